"""The real daemon while its descriptors are used up: it reads with those that it has, and says what fails."""

import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.errors import MemorydError
from memoryd.client.protocol import JobRun
from waiting import wait_until
from workbench import Process

CONFIG = """
[model]
name = "none"
fetch = false
[jobs]
enabled = false
"""
CONSTANTS = {"daemon.server.server.WORKERS": 1}


@pytest.fixture
def process(folder: Path) -> Iterator[Any]:
    running = Process(folder, CONFIG, constants=CONSTANTS).start()
    yield running
    running.stop()


def limit(pid: int, files: int) -> int:
    """Allow a process so many descriptors; return how many it was allowed."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, hard))
    return soft


@pytest.mark.slow
def test_what_needs_no_descriptor_goes_on_and_the_rest_once_there_are_some(process: Any, folder: Path) -> None:
    copy = folder / "copy.sqlite"
    with process.client(timeout_s=60) as client, process.client(timeout_s=60) as other:
        id = client.add("Herons fish at dawn").id
        client.search("herons", touch=False)
        client.status()
        other.status()
        # The numbers that are free below the limit: whoever opens the next file gets the first of them.
        usual = limit(process.child.pid, len(os.listdir(f"/proc/{process.child.pid}/fd")))
        runs: list[JobRun] = []
        asking = threading.Thread(target=lambda: runs.append(other.run_job("sweep")))
        asking.start()
        client.search("herons", session="s")
        asking.join(60)
        assert [run.outcome for run in runs] == ["done"]
        wait_until(lambda: client.get(id).access_count >= 1)
        with pytest.raises(MemorydError, match="open"):
            client.backup(copy)

        limit(process.child.pid, usual)
        assert client.backup(copy).memories == 1
        assert not [thread for thread in client.status().threads if thread.is_failing()]
