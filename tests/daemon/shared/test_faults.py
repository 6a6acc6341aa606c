"""Faults of the line, the place and this daemon, by the real thing: no acknowledged save is lost or there twice."""

import os
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from joined import decide, wait_until_sent
from machine import Pair
from standing import MEMBERS

from memoryd.client import MemorydError
from memoryd.client.protocol import GetShared, Search
from sshd import Sshd
from waiting import wait_until

save = partial(decide, dedup=False)


@pytest.mark.slow
def test_a_place_that_hangs_ends_a_search_at_its_deadline_and_a_save_waits(pair: Pair) -> None:
    with pair.here.client() as client:
        assert save(client, "Releases are on Tuesdays").shared == "acme"
        assert pair.place.child
        pair.place.child.send_signal(signal.SIGSTOP)
        for deadline_ms in (150, None):
            found = client.call(Search(query="releases", deadline_ms=deadline_ms))
            assert found.degraded[-1] == "shared:acme"
        assert save(client, "Builds are on Fridays").waiting
        assert [hit.content for hit in client.search("builds")] == ["Builds are on Fridays"]
        wait_until(lambda: client.call(GetShared()).roots[0].state == "away", 30)
        pair.place.child.send_signal(signal.SIGCONT)
        pair.wait_until_sent()
    assert pair.list_there() == ["Builds are on Fridays", "Releases are on Tuesdays"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "kills", [pytest.param(10, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.stress)]
)
def test_a_daemon_that_is_killed_with_saves_waiting_sends_each_once(place: Any, folder: Path, kills: int) -> None:
    here = place.join(folder / "here", MEMBERS[0])
    saved: list[str] = []
    try:
        for number in range(kills):
            if number % 10 in (0, 7):
                (place.stop if number % 10 == 0 else place.start)()
            with here.client("acme/api") as client:
                for part in range(3):
                    text = f"Decision {number} in part {part}"
                    assert save(client, text).waiting or number % 10 > 6
                    saved.append(text)
            if number % 10 > 6:  # somewhere in the middle of sending
                time.sleep(random.uniform(0.0, 0.6))
            here.kill()
            here.start()
        with here.client() as client:
            wait_until_sent(client, 120)
        assert sorted(row.content for row in place.read_rows()) == sorted(saved)
    finally:
        here.stop()


def end_sessions(sshd: Sshd) -> None:
    """End the sessions of ssh that this server's clients have."""
    marker = str(sshd.folder / "ssh_config").encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if marker in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


@pytest.mark.slow
def test_a_line_that_is_cut_anywhere_loses_and_repeats_nothing(folder: Path, sshd: Sshd) -> None:
    """Each session of `memctl` ends after a number of bytes, either way, that is drawn anew."""
    cutter = Path(__file__).with_name("cutting.py")
    pair = Pair(folder, f"{sys.executable} {cutter} ")
    try:
        texts = [f"Decision number {number} of the line that is cut" for number in range(200)]

        def work(part: list[str]) -> list[bool]:
            waiting = []
            with pair.here.client() as client:
                for text in part:
                    waiting.append(save(client, text).waiting)
                    client.call(Search(query="decision number", deadline_ms=300))
                    client.call(GetShared(send=True))
            return waiting

        with ThreadPoolExecutor(4) as pool:
            waited = list(pool.map(work, [texts[start::4] for start in range(4)]))
        assert any(map(any, waited))
        pair.wait_until_sent()
        assert pair.list_there() == sorted(texts)
    finally:
        pair.stop()


@pytest.mark.slow
def test_a_start_of_the_daemon_does_not_wait_for_a_place(pair: Pair, sshd: Sshd) -> None:
    sshd.stop()
    end_sessions(sshd)
    pair.here.stop()
    pair.here.start()
    with pair.here.client() as client, suppress(MemorydError):
        assert client.call(GetShared()).roots[0].state == "idle"
