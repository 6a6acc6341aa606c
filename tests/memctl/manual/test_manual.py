"""The manual pages are what the tables say, and readers of man pages have nothing against them."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pages
import pytest
from fake_daemon import Memctl

from memoryd.client.memctl.commands import COMMANDS
from memoryd.client.memctl.doctor.checks import CHECKS
from memoryd.client.memctl.doctor.installation import VARIABLES
from memoryd.client.memctl.manual import PAGES, page_path

EXAMPLE_INDENT = 11
CHECKOUT = Path(__file__).parents[3]


@pytest.mark.parametrize(("name", "made"), [("memctl", pages.memctl), ("memoryd", pages.memoryd_page)])
def test_a_page_is_current(name: str, made: object) -> None:
    assert callable(made)
    assert page_path(name).read_text() == made(), "it is not what the tables say: run `make manual`"


@pytest.mark.parametrize("name", PAGES)
def test_mandoc_has_nothing_against_a_page(name: str) -> None:
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed; its package would make this run")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "style", str(page_path(name))], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def rendered(name: str, columns: int) -> str:
    """Return a page as man shows it."""
    if not shutil.which("man"):
        pytest.skip("man is not installed; the package man-db would make this run")
    environment = {**os.environ, "MANWIDTH": str(columns), "LC_ALL": "C.UTF-8", "MANROFFOPT": "-ww"}
    done = subprocess.run(
        ["man", "--no-hyphenation", "-l", str(page_path(name))], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    return re.sub(".\b", "", done.stdout)


def test_memctl_is_described_whole() -> None:
    shown = rendered("memctl", 80)
    words = set(re.sub(r"-\n\s+", "-", shown).split())
    assert all(re.search(rf"^   memctl {name}( |$)", shown, re.MULTILINE) for name in COMMANDS)
    assert {check.rstrip(",") for check in CHECKS} <= {word.rstrip(",") for word in words}
    assert set(VARIABLES) <= words
    assert max(map(len, shown.splitlines())) <= 80 + EXAMPLE_INDENT, "examples are not broken"


def test_memoryd_is_described_with_its_settings() -> None:
    shown = rendered("memoryd", 80)
    assert "[llm]" in shown
    assert re.search(r"^ +max_queued = 256\n +calls that may wait; past them a client gets busy$", shown, re.MULTILINE)
    assert "--print-config" in shown
    assert max(map(len, shown.splitlines())) <= 100, "defaults are not broken"


def test_the_pages_are_shown_and_printed(memctl: Memctl) -> None:
    assert memctl("man").out == page_path("memctl").read_text()
    assert memctl("man", "memoryd").out.startswith(".TH MEMORYD 1")
    assert memctl("man", "other").code == 2


def test_a_terminal_gets_the_page_from_man(tmp_path: Path) -> None:
    (tmp_path / "man").write_text('#!/bin/sh\necho "shown: $*"\n')
    (tmp_path / "man").chmod(0o700)
    command = f"{sys.executable} -m memoryd.client.memctl man memoryd"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == f"shown: -l {page_path('memoryd')}"


def test_a_wheel_brings_the_pages() -> None:
    tools = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]
    installed = tools["data-files"]["share/man/man1"]
    assert sorted((CHECKOUT / path).resolve() for path in installed) == sorted(
        page_path(name).resolve() for name in PAGES
    )
    assert tools["package-data"]["memoryd.client.memctl.manual"] == ["*.1"]
