"""Fixtures of the page's tests: a daemon with a morning's work, `memctl web` for it, a signed-in tab of Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page import CHROMIUM, Browser, Served, Tab
from shelf import fill

from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from places import make_folder
from workbench import Clock, Daemon, WordEmbedder

NO_CHROMIUM = "no Chromium is installed (Debian: apt-get install chromium)"


@pytest.fixture
def served(daemon: Any) -> Iterator[Served]:
    """`memctl web` for a daemon without memories."""
    running = Served(daemon.socket)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    """`memctl web` for an empty daemon, shared by the tests of a module that change nothing."""
    where = make_folder()
    core = Core(where / "data", Config(), where, lambda name, folder: WordEmbedder(), clock=Clock())
    core.start()
    daemon = Daemon(core, Config(), where / "s")
    running = Served(where / "s")
    yield running
    assert running.stop() == 0
    daemon.stop()
    core.close()
    shutil.rmtree(where)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium for the whole session; tests that need it are skipped where there is none."""
    pytest.importorskip("playwright", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    running = Browser()
    yield running
    running.close()


@pytest.fixture
def morning(daemon: Any, clock: Any) -> Any:
    """The daemon with thirty memories and the work of a morning."""
    with daemon.client() as client:
        fill(client, clock, 30)
    return daemon


@pytest.fixture
def tab(browser: Browser, morning: Any, served: Served) -> Iterator[Tab]:
    """A tab that is signed in, at `Today`; it may log no error."""
    opened = Tab(browser, served)
    yield opened
    opened.close()
    assert opened.errors == []


@pytest.fixture
def axe() -> str:
    """axe-core, from the folder that `axe.py` fills from the npm registry."""
    from axe import script

    found = script(Path(__file__).parents[3] / ".cache")
    if found is None:
        pytest.skip("axe-core can not be had from the npm registry")
    return found
