"""What the lines of a search say."""

import os
import pty
import re
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest
from fake_daemon import FakeDaemon, Memctl

from each import each
from memoryd.client.programs.memctl.source_file import place_text, short_path
from memoryd.client.protocol import Get, Hit, Hits, Memory, Search


@each(
    ("place", "text"),
    [
        ((None, None, None), ""),
        (("notes.md", None, None), "notes.md"),
        (("notes.md", 3, None), "notes.md:3"),
        (("notes.md", 3, 3), "notes.md:3"),
        (("/srv/notes.md", 3, 12), "/srv/notes.md:3-12"),
    ],
)
def test_the_file_of_a_memory_is_named_as_editors_open_it(
    place: tuple[str | None, int | None, int | None], text: str
) -> None:
    path, start, end = place
    memory = Memory(
        id="0" * 32,
        namespace="",
        type="fact",
        content="x",
        created_at=0.0,
        updated_at=0.0,
        path=path,
        start_line=start,
        end_line=end,
    )
    assert place_text(memory) == text


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with the current folder in it."""
    (tmp_path / "home/projects/docs").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home/projects")
    return tmp_path / "home"


def test_a_current_folder_that_is_gone_is_no_problem(home: Path) -> None:
    (home / "projects/docs").rmdir()
    (home / "projects").rmdir()
    assert short_path(f"{home}/projects/a.md") == "~/projects/a.md"


def hit(content: str, path: str | None = None) -> Hit:
    return Hit(
        id="ab" * 16,
        namespace="docs",
        type="note",
        content=content,
        created_at=0.0,
        updated_at=0.0,
        confidence=0.5,
        tier="documents",
        path=path,
        start_line=3 if path else None,
        end_line=12 if path else None,
        score=0.5,
    )


def on_a_terminal(words: list[str], folder: Path, **environment: str) -> str:
    """Run memctl on a terminal of 100 columns and return what it writes there."""
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 100))
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    with subprocess.Popen(
        [sys.executable, "-m", "memoryd.client.programs.memctl", *words],
        stdin=subprocess.DEVNULL,
        stdout=child,
        stderr=child,
        cwd=folder,
        env={**clean, "TERM": "xterm", **environment},
    ) as process:
        os.close(child)
        parts = list[bytes]()
        with suppress(OSError):  # the terminal is gone when its last writer is
            while part := os.read(parent, 65536):
                parts.append(part)
        process.wait()
    os.close(parent)
    return b"".join(parts).decode().replace("\r\n", "\n")


LINK = re.compile(r"\x1b\]8;;(.*?)\x1b\\(.*?)\x1b\]8;;\x1b\\")
SGR = re.compile(r"\x1b\[[0-9;]*m")


def test_on_a_terminal_a_place_is_a_link_and_matching_words_are_marked(home: Path, fake: FakeDaemon) -> None:
    content = "# Cache\n\n" + "Other words. " * 60 + "The gateway is cached by Valkey."
    fake.replies[Search] = Hits(hits=[hit(content, f"{home}/projects/docs/my note.md")])
    text = on_a_terminal(["search", "caching", "gateway"], home / "projects")
    (url, shown) = LINK.findall(text)[0]
    assert shown == "docs/my note.md:3-12"
    assert url == f"file://{os.uname().nodename}{home}/projects/docs/my%20note.md"
    assert "\x1b[1;33mgateway\x1b[0m is \x1b[1;33mcached\x1b[0m by Valkey." in text
    assert max(len(line) for line in SGR.sub("", LINK.sub(r"\2", text)).split("\n")) <= 100


def test_get_shows_place_heading_and_links_both_ways(home: Path, fake: FakeDaemon, memctl: Memctl) -> None:
    found = hit("# Cache\n\nsee [[b]]", f"{home}/projects/a.md")
    found.metadata = {"heading": "Ops > Cache", "tags": ["x"]}
    found.links = [f"{home}/projects/b.md", "gone (not found)"]
    found.linked_from = [f"{home}/notes/c.md"]
    fake.replies[Get] = found
    lines = memctl("get", "abab").out.split("\n")
    for expected in (
        "from         a.md:3-12",
        "heading      Ops > Cache",
        "links to     b.md",
        "             gone (not found)",
    ):
        assert expected in lines
    assert "linked from  ~/notes/c.md" in lines
    assert 'metadata     tags=["x"]' in lines
