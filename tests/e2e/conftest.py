"""Fixtures of tests that kill the daemon, or that share one with the default model."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from places import make_folder
from waiting import wait_until
from workbench import Process


@pytest.fixture(scope="module")
def shared_real(model_dir: Path) -> Iterator[Process]:
    """One daemon with the default model for all tests of a module, each in a namespace of its own."""
    folder = make_folder()
    running = Process(folder, environment={"MEMORYD_MODEL_DIR": str(model_dir)}).start()
    with running.client() as client:
        wait_until(lambda: client.status().model.state == "ready", limit_s=120)
    yield running
    running.stop()
    shutil.rmtree(folder)


@pytest.fixture
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    """Where the daemon finds the default model; nothing for a test with words alone."""
    variant: str = request.param
    return {} if variant == "words" else {"MEMORYD_MODEL_DIR": str(request.getfixturevalue("model_dir"))}


@pytest.fixture
def make_process(folder: Path) -> Iterator[Callable[..., Any]]:
    """Make a daemon, by its configuration and environment, that a test itself starts and kills."""
    made: list[Any] = []

    def make(config: str, *given: Any, **options: Any) -> Any:
        made.append(Process(folder, config, *given, **options))
        return made[-1]

    yield make
    for running in made:
        if running.child is not None:
            running.kill()
