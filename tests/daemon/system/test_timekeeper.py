"""What a jump of the clock does to the time by which things are deleted: nothing for a day."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.system.timekeeper import DAY_S, Timekeeper, follow, start_state
from workbench import Clock

NOW = 1_800_000_000.0


@pytest.fixture
def settings() -> dict[str, str]:
    return {}


def started(clock: Any, settings: Any) -> Timekeeper:
    """Start the daemon with what it knew."""
    return Timekeeper(clock, settings.get("clock"))


def looked(time: Timekeeper, settings: Any) -> Timekeeper:
    """Let a job run."""
    settings["clock"] = time.update()
    return time


def times(time: Timekeeper) -> tuple[float, float]:
    """Return the time for dates and expiry, and that for deletion, from where the tests begin, in days."""
    return round((time() - NOW) / DAY_S, 3), round((time.read_settled() - NOW) / DAY_S, 3)


def test_time_that_passes_counts(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    assert times(time) == (0, 0)
    clock.advance(400 * DAY_S)  # also asleep
    assert times(time) == (400, 400)
    looked(time, settings)
    clock.advance(30 * DAY_S)
    assert times(started(clock, settings)) == (430, 430)
    assert time.read_state().state == "steady"


def test_a_jump_ahead_counts_after_a_day(clock: Any, settings: Any) -> None:
    time = looked(started(clock, settings), settings)
    clock.jump(400 * DAY_S)
    assert times(time) == (400, 0)
    state = time.read_state()
    assert (state.state, state.off_s, state.counts_in_s) == ("jumped", 400 * DAY_S, DAY_S)
    for restarted in (time, started(clock, settings), looked(started(clock, settings), settings)):
        clock.advance(DAY_S / 4)
        assert round(times(restarted)[0] - times(restarted)[1], 3) == 400
        assert restarted.has_jumped()
        looked(restarted, settings)
    clock.advance(DAY_S / 4)
    assert times(started(clock, settings)) == times(restarted) == (401, 401)
    assert (restarted.read_state().state, restarted.has_jumped()) == ("steady", False)


@pytest.mark.parametrize("days", [400, -400])
def test_a_jump_there_and_back_within_a_day_leaves_no_trace(clock: Any, settings: Any, days: float) -> None:
    time = looked(started(clock, settings), settings)
    clock.jump(days * DAY_S)
    assert times(looked(time, settings))[1] == min(days, 0)
    clock.advance(DAY_S / 2)
    clock.jump(-days * DAY_S)
    assert times(looked(time, settings)) == (0.5, 0.5)
    assert time.read_state().state == "steady"


def test_a_jump_while_another_one_waits_begins_the_day_again(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    clock.jump(10 * DAY_S)
    assert times(time) == (10, 0)
    clock.advance(0.75 * DAY_S)
    looked(time, settings)
    clock.jump(10 * DAY_S)
    looked(time, settings)
    clock.advance(0.75 * DAY_S)
    assert times(time) == (21.5, 1.5)
    clock.advance(0.25 * DAY_S)
    assert times(time) == (21.75, 21.75)


def test_a_clock_that_was_set_back_counts_after_a_day_too(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    clock.jump(-400 * DAY_S)
    assert times(time) == (-400, -400)
    clock.advance(DAY_S)
    assert time.read_state().state == "steady"
    clock.jump(400 * DAY_S)
    assert times(time) == (1, -399), "what comes later is a jump again"


def test_a_step_of_a_day_or_less_counts_at_once(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    clock.jump(DAY_S)
    assert times(time) == (1, 1)
    clock.jump(-DAY_S)
    assert times(time) == (0, 0)


def test_after_a_month_off_a_day_passes_before_that_counts(clock: Any, settings: Any) -> None:
    looked(started(clock, settings), settings)
    clock.reboot("second", off_s=30 * DAY_S)
    time = looked(started(clock, settings), settings)
    assert times(time) == (30, 0)
    clock.advance(DAY_S)
    assert times(time) == (31, 31)


def test_a_machine_that_runs_for_some_hours_a_week_forgets_all_the_same(clock: Any, settings: Any) -> None:
    looked(started(clock, settings), settings)
    for boot in range(4):
        clock.reboot(f"boot {boot}", off_s=7 * DAY_S)
        time = looked(started(clock, settings), settings)
        assert times(time)[1] < 1
        clock.advance(DAY_S / 4)
        looked(time, settings)
    assert times(time) == (29, 29)


def test_a_dead_battery_and_the_network_that_sets_the_clock_leave_the_days_off(clock: Any, settings: Any) -> None:
    looked(started(clock, settings), settings)
    clock.reboot("second", off_s=-NOW)  # 1970
    time = looked(started(clock, settings), settings)
    assert time.read_settled() == 0
    clock.advance(60)
    clock.jump(NOW + 5 * DAY_S)
    assert times(looked(time, settings)) == (5.001, 0.001)
    clock.advance(DAY_S)
    assert times(time) == (6.001, 6.001)


def test_what_cannot_be_read_of_the_former_clock_is_left_out(clock: Any) -> None:
    for kept in ("", "{", '{"boot": 3}'):
        assert Timekeeper(clock, kept).read_state().state == "steady"


steps = st.one_of(
    st.tuples(st.just("advance"), st.floats(0, DAY_S / 20)),
    st.tuples(st.just("jump"), st.floats(-1000 * DAY_S, 1000 * DAY_S)),
    st.tuples(st.just("boot"), st.floats(0, 1000 * DAY_S)),
)


@given(st.lists(steps, max_size=12))
def test_within_a_day_of_running_no_jump_counts(moves: list[tuple[str, float]]) -> None:
    clock = Clock()
    known, passed, smaller = start_state(clock.read()), 0.0, 0.0
    for kind, seconds in moves:
        if kind == "advance":
            clock.advance(seconds)
            passed += seconds
        elif kind == "jump":
            clock.jump(seconds)
        else:
            clock.reboot(f"after {seconds} {passed}", seconds)
        smaller += abs(seconds) if kind != "advance" and abs(seconds) <= DAY_S else 0.0
        known = follow(known, clock.read())
        assert known.now - max(0.0, known.ahead_s) <= NOW + passed + smaller + DAY_S + 1.0
