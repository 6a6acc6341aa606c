"""A daemon whose time is that of a file."""

import os
from pathlib import Path

import pytest

from memoryd.client.errors import Invalid
from memoryd.client.memctl.private import private_daemon
from memoryd.daemon.clock import clock_of

NO_MODEL = '[model]\nname = "none"\nfetch = false\n'


def test_the_time_is_that_of_the_file(folder: Path) -> None:
    file = folder / "clock"
    with pytest.raises(Invalid, match="is not a file"):
        clock_of(file)
    file.touch()
    clock = clock_of(file)
    for at in (0.0, 1_800_000_000.5, 1_700_000_000.0):
        os.utime(file, (at, at))
        assert clock() == at


def test_a_daemon_lives_in_the_time_of_its_clock() -> None:
    with private_daemon(config=NO_MODEL, clock=1_700_000_000.0) as daemon, daemon.client() as client:
        first = client.add("said long ago").id
        os.utime(daemon.clock, (1_800_000_000.0, 1_800_000_000.0))
        second = client.add("said later").id
        assert client.get(first).created_at == 1_700_000_000.0
        assert client.get(second).created_at == 1_800_000_000.0
