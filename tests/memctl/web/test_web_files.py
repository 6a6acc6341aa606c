"""The files of the page: from nowhere else, and what is vendored is what the lock file says."""

import json
import re
from pathlib import Path

from vendored import FOLDER, digest

from memoryd.client.memctl.search import FLOOR

STATIC = FOLDER.parent
OWN = [
    path for path in sorted(STATIC.rglob("*")) if path.suffix in (".js", ".css", ".html") and FOLDER not in path.parents
]


def test_what_is_vendored_is_what_the_lock_file_says() -> None:
    lock = json.loads((FOLDER / "lock.json").read_text())
    data = (FOLDER / lock["file"]).read_bytes()
    assert digest(data) == lock["file_integrity"]
    assert {"name", "version", "integrity", "license"} <= lock.keys()
    assert sorted(path.name for path in FOLDER.iterdir()) == ["htm-preact.js", "lock.json"]


def test_nothing_comes_from_elsewhere_and_no_text_becomes_markup() -> None:
    text = "\n".join(path.read_text() for path in OWN)
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|dangerously", text)


def test_every_module_of_the_page_is_reached_from_its_beginning() -> None:
    def imports(path: Path) -> set[Path]:
        named = re.findall(r'(?:from|import) "([^"]+)"', path.read_text())
        return {(path.parent / name).resolve() for name in named}

    app = STATIC / "app.js"
    views = re.findall(r'^  \["(\w+)", "\w+", ', app.read_text(), re.M)
    assert {f"{name}.js" for name in views} == {path.name for path in (STATIC / "views").iterdir()}
    reached = {app, *(STATIC / "views").iterdir()}
    for path in list(reached):
        reached |= imports(path)
    assert {path for path in OWN if path.suffix == ".js"} <= reached


def test_the_page_hides_below_the_floor_that_memctl_has() -> None:
    assert f"const FLOOR = {FLOOR};" in (STATIC / "views/search.js").read_text()
