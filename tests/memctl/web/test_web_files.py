"""The files of the page: from nowhere else, and what is vendored is what the lock file says."""

import json
import re
from os.path import normpath

from vendored import FOLDER, digest

from memoryd.client.programs.web.relay import ALLOWED
from memoryd.client.protocol import method_name

STATIC = FOLDER.parent
# By its address below `/static`.
OWN = {
    str(path.relative_to(STATIC)): path
    for path in sorted(STATIC.rglob("*"))
    if path.suffix in (".js", ".css", ".html") and FOLDER not in path.parents
}


def test_what_is_vendored_is_what_the_lock_file_says() -> None:
    lock = json.loads((FOLDER / "lock.json").read_text())
    data = (FOLDER / lock["file"]).read_bytes()
    assert digest(data) == lock["file_integrity"]
    assert {"name", "version", "integrity", "license"} <= lock.keys()
    assert sorted(path.name for path in FOLDER.iterdir()) == ["htm-preact.js", "lock.json"]


def test_nothing_comes_from_elsewhere_and_no_text_becomes_markup() -> None:
    text = "\n".join(path.read_text() for path in OWN.values())
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|dangerously", text)


def test_every_module_of_the_page_is_reached_from_its_beginning() -> None:
    def imports(address: str) -> set[str]:
        named = re.findall(r'(?:from|import) "([^"]+)"', OWN[address].read_text()) if address in OWN else []
        return {normpath(f"{address}/../{name}") for name in named}

    listed = re.findall(r'^  \["(\w+)", "\w+", ', OWN["app.js"].read_text(), re.M)
    views = {f"views/{name}.js" for name in listed}
    assert views == {address for address in OWN if address.startswith("views/")}
    reached, left = set[str](), {"app.js", *views}
    while left:
        reached |= left
        left = set[str]().union(*map(imports, left)) - reached
    assert {address for address in OWN if address.endswith(".js")} <= reached


def test_each_call_of_the_page_is_one_that_it_may_send() -> None:
    text = "\n".join(path.read_text() for address, path in OWN.items() if address.endswith(".js"))
    sent = re.findall(r'\b(?:useCall|call)\(\s*"(\w+)"', text) + re.findall(r'\brun\([^;]*?,\s*"(\w+)"', text)
    assert len(sent) > 20
    assert set(sent) - {method_name(method) for method in ALLOWED} == set()
