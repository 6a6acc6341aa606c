"""Fixtures of workspaces: a folder of notes; a core that watches, with an embedder that counts; jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from notes import Watched

from memoryd.daemon.workspaces.watching import Watchers
from workbench import CountingEmbedder, running


@pytest.fixture
def root(folder: Path) -> Path:
    made = folder / "notes"
    made.mkdir()
    return made


@pytest.fixture
def watched(folder: Path) -> Iterator[Watched]:
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        watchers = Watchers(core)
        watchers.start()
        yield Watched(core, embedder)
        core.background.stopping.set()
        watchers.close()
