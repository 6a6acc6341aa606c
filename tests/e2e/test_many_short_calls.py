"""Calls that run on a thread of their own, by the thousand: they leave no descriptor and no RAM to the real daemon."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from configs import NO_MODEL
from memoryd.client import Client
from memoryd.client.errors import ModelUnavailable
from waiting import wait_until

GROWTH_BYTES = 20_000_000


@pytest.fixture
def process(make_process: Callable[..., Any]) -> Any:
    return make_process(NO_MODEL).start()


def measure(process: Any) -> tuple[int, int]:
    """Return how many descriptors the daemon has but those of connections to the database, and its resident bytes."""
    place = Path(f"/proc/{process.child.pid}")
    [kib] = re.findall(r"^VmRSS:\s+(\d+) kB$", (place / "status").read_text(), re.MULTILINE)
    names = [_read_link(place / "fd" / name) for name in os.listdir(place / "fd")]
    return sum("memoryd.sqlite" not in name for name in names), 1024 * int(kib)


def _read_link(place: Path) -> str:
    try:
        return os.readlink(place)
    except FileNotFoundError:  # closed since it was listed
        return ""


def call_each(client: Client, notes: Path, number: int) -> None:
    """Do everything that runs on a thread of its own."""
    client.add_workspace(str(notes.parent / "other"), namespace="other")
    client.remove_workspace("other")
    client.index_workspace("notes")
    client.workspaces("notes")
    with suppress(ModelUnavailable):  # its thread has read the notes by then
        client.dream("notes", dry_run=True)
    client.flush([{"role": "user", "content": f"We decided that flush {number} is kept."}], "notes")
    message = {"id": f"m{number}", "role": "user", "content": f"Part {number} of the work is done."}
    client.summarize([message], max_tokens=500, wait=True)
    client.observe([{"role": "user", "content": f"We decided to keep number {number}."}], session=f"s{number}")
    client.end_session(f"s{number}", wait=True)


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(300, marks=pytest.mark.slow),
        pytest.param(5000, marks=[pytest.mark.stress, pytest.mark.timeout(1200)]),
    ],
)
def test_calls_with_a_thread_of_their_own_leave_no_descriptor_and_no_ram(
    process: Any, folder: Path, calls: int
) -> None:
    notes = folder / "notes"
    notes.mkdir()
    (folder / "other").mkdir()
    (notes / "MEMORY.md").write_text("# Birds\n\nHerons fish at dawn.\n")
    with process.client(timeout_s=60) as client:
        client.add_workspace(str(notes), namespace="notes")
        for number in range(20):
            call_each(client, notes, number)
        before, ram = measure(process)
        for _ in range(calls):
            client.index_workspace("notes")
        for number in range(calls // 10):
            call_each(client, notes, number)
        wait_until(lambda: measure(process)[0] <= before)
        after, now = measure(process)
        print(f"{calls} calls: {before} descriptors, then {after}; {(now - ram) / 1e6:+.1f} MB of {ram / 1e6:.0f}")
        assert now <= ram + GROWTH_BYTES
        assert client.search("where do herons fish", namespace="notes").hits
