"""A daemon whose time is that of a file, and the readings of clocks."""

import os
import time
from pathlib import Path

import pytest

from memoryd.client import linux
from memoryd.client.errors import Invalid
from memoryd.daemon.system.clock import ClockReading, FileClock, SystemClock, build_reader

NOW = 1_800_000_000.0


def test_the_time_is_that_of_the_file(folder: Path) -> None:
    file = folder / "clock"
    with pytest.raises(Invalid, match="is not a file"):
        FileClock(file)
    file.touch()
    clock = FileClock(file)
    for at in (0.0, 1_800_000_000.5, 1_700_000_000.0):
        os.utime(file, (at, at))
        assert clock() == at


def test_the_file_says_how_much_time_passed_and_in_which_boot(folder: Path) -> None:
    file = folder / "clock"
    file.touch()
    os.utime(file, (NOW, NOW))
    assert build_reader(FileClock(file))() == ClockReading(NOW, NOW, "")
    file.write_text("3600 second")
    os.utime(file, (NOW, NOW))
    assert build_reader(FileClock(file))() == ClockReading(NOW, 3600.0, "second")


def test_a_clock_that_is_only_a_function_is_always_right() -> None:
    assert build_reader(lambda: NOW)() == ClockReading(NOW, NOW, "")


def test_the_systems_clock_counts_the_time_since_the_boot() -> None:
    clock = SystemClock()
    first, second = clock.read(), clock.read()
    assert first.boot == second.boot != ""
    assert 0 < first.up_s <= second.up_s
    assert abs((second.now - second.up_s) - (first.now - first.up_s)) < 1.0
    assert abs(clock() - time.time()) < 60.0


def test_where_the_boot_cannot_be_known_each_start_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "read_boot_id", lambda: "")
    assert SystemClock().read().boot != SystemClock().read().boot
