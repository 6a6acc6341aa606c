"""What a jump of the clock does to the time by which things expire and are forgotten: nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.system.clock import Reading
from memoryd.daemon.system.timekeeper import (
    EARLY_S,
    SETTLE_S,
    TOLERANCE_S,
    Known,
    Timekeeper,
    follow,
    set_since_boot,
    start_state,
)
from workbench import Clock

DAY_S = 86_400.0
NOW = 1_800_000_000.0


@pytest.fixture
def settings() -> dict[str, str]:
    return {}


def started(clock: Any, settings: Any) -> Timekeeper:
    """Start the daemon anew with what it knew."""
    return Timekeeper(clock, settings.get("clock"))


def looked(time: Timekeeper, settings: Any) -> Timekeeper:
    """Let a job run."""
    settings["clock"] = time.update()
    return time


def times(time: Timekeeper) -> tuple[float, float, float]:
    """Return the time for dates, for expiry, for deletion, from where the tests begin, in days."""
    return tuple(round((at - NOW) / DAY_S, 3) for at in (time(), time.read_elapsed(), time.read_settled()))  # type: ignore[return-value]


def test_time_that_passes_counts(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    assert times(time) == (0, 0, 0)
    clock.advance(400 * DAY_S)
    assert times(time) == (400, 400, 400)
    assert time.read_state().state == "steady"
    looked(time, settings)
    clock.advance(30 * DAY_S)  # asleep
    assert times(started(clock, settings)) == (430, 430, 430)


def test_a_jump_ahead_does_not_count_and_goes_without_a_trace(clock: Any, settings: Any) -> None:
    time = looked(started(clock, settings), settings)
    clock.jump(400 * DAY_S)
    assert times(time) == (400, 0, 0)
    state = time.read_state()
    assert (state.state, state.off_s, state.since) == ("ahead", 400 * DAY_S, NOW + 400 * DAY_S)
    assert time.has_jumped()
    for restarted in (time, started(clock, settings), looked(started(clock, settings), settings)):
        clock.advance(DAY_S / 4)
        assert round(times(restarted)[0] - times(restarted)[1], 3) == 400
    clock.jump(-400 * DAY_S)
    assert times(looked(restarted, settings)) == (0.75, 0.75, 0.75)
    assert times(started(clock, settings)) == (0.75, 0.75, 0.75)
    assert restarted.read_state().state == "steady"


def test_a_jump_counts_once_as_much_time_has_passed(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    clock.jump(10 * DAY_S)
    assert times(looked(time, settings)) == (10, 0, 0)
    assert time.read_state().counts_in_s == 10 * DAY_S
    clock.advance(9.9 * DAY_S)
    assert times(looked(time, settings)) == (19.9, 9.9, 9.9)
    clock.advance(0.1 * DAY_S)
    assert times(looked(time, settings)) == (20, 20, 20)
    assert time.read_state().state == "steady"


def test_a_jump_counts_when_somebody_confirms_it(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    clock.jump(400 * DAY_S)
    assert times(looked(time, settings)) == (400, 0, 0)
    settings["clock"] = time.confirm()
    assert times(time) == times(started(clock, settings)) == (400, 400, 400)
    clock.jump(-400 * DAY_S)
    assert time.read_state().state == "behind"
    settings["clock"] = time.confirm()
    assert time.read_state().state == "steady"
    clock.jump(400 * DAY_S)
    assert times(time) == (400, 0, 0)


def test_a_clock_set_back_goes_by_what_it_says_and_may_come_back(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    clock.jump(-400 * DAY_S)
    assert times(time) == (-400, -400, -400)
    assert (time.read_state().state, time.read_state().off_s) == ("behind", 400 * DAY_S)
    clock.advance(DAY_S)
    clock.jump(400 * DAY_S)
    assert times(looked(time, settings)) == (1, 1, 1)
    clock.jump(-DAY_S)
    clock.jump(3 * DAY_S)
    assert times(time) == (3, 1, 1), "more than it was set back is a jump"


def test_many_small_steps_are_a_jump(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    for _ in range(240):
        clock.jump(600.0)
        looked(time, settings)
    assert times(time)[0] == round(100 / 60, 3)
    assert times(time)[1] < 2 * TOLERANCE_S / DAY_S


def test_a_machine_that_was_off_for_a_month_has_no_jump(clock: Any, settings: Any) -> None:
    looked(started(clock, settings), settings)
    clock.reboot("second", off_s=30 * DAY_S)
    time = started(clock, settings)
    assert times(time) == (30, 30, 0), "what is deleted waits for an hour: a wrong clock is set right by then"
    assert (time.read_state().state, time.has_jumped()) == ("settling", False)
    clock.advance(SETTLE_S)
    assert times(looked(time, settings)) == (30.042, 30.042, 30.042)
    assert time.read_state().state == "steady"


def test_a_machine_that_is_never_on_for_an_hour_forgets_all_the_same(clock: Any, settings: Any) -> None:
    looked(started(clock, settings), settings)
    for boot in range(10):
        clock.reboot(f"boot {boot}", off_s=DAY_S)
        time = started(clock, settings)
        clock.advance(900)
        looked(time, settings)
    assert times(time)[0] - times(time)[2] < 4


def test_a_wrong_clock_at_a_boot_that_is_set_right_soon_made_nothing_go(clock: Any, settings: Any) -> None:
    looked(started(clock, settings), settings)
    clock.reboot("second", off_s=400 * DAY_S)
    time = looked(started(clock, settings), settings)
    clock.advance(60)
    assert times(time)[2] == 0.001
    clock.jump(-399 * DAY_S)
    assert times(looked(time, settings)) == (1.001, 1.001, 0.001)
    clock.advance(SETTLE_S)
    assert times(looked(time, settings)) == (1.042, 1.042, 1.042)


def test_a_machine_without_a_clock_of_its_own_gets_the_time_from_the_network(clock: Any, settings: Any) -> None:
    looked(started(clock, settings), settings)
    clock.reboot("second", off_s=0.0)  # it goes on where it was
    time = looked(started(clock, settings), settings)
    clock.advance(EARLY_S / 2)
    clock.jump(3 * DAY_S)
    assert times(time)[:2] == (3.003, 3.003)
    assert time.read_state().state == "settling"
    clock.advance(SETTLE_S)
    assert looked(time, settings).read_state().state == "steady"


def test_after_a_boot_with_a_dead_battery_time_goes_on_from_where_it_was(clock: Any, settings: Any) -> None:
    looked(started(clock, settings), settings)
    clock.reboot("second", off_s=-NOW)  # 1970
    time = looked(started(clock, settings), settings)
    clock.advance(2 * DAY_S)
    assert times(time) == (2, 2, 2)
    assert (time.read_state().state, time.read_state().off_s) == ("behind", NOW)
    assert times(started(clock, settings)) == (2, 2, 2)
    clock.jump(NOW + 5 * DAY_S)  # the network sets it: it was off for five days
    assert times(looked(time, settings)) == (7, 7, 2)
    clock.advance(SETTLE_S)
    assert looked(time, settings).read_state().state == "steady"
    assert times(time) == (7.042, 7.042, 7.042)


def test_a_dead_battery_at_every_boot(clock: Any, settings: Any) -> None:
    looked(started(clock, settings), settings)
    clock.reboot("second", off_s=-NOW)
    looked(started(clock, settings), settings)
    clock.advance(DAY_S)
    looked(started(clock, settings), settings)
    clock.reboot("third", off_s=-DAY_S)
    assert times(looked(started(clock, settings), settings)) == (1, 1, 1)
    clock.reboot("fourth", off_s=NOW + 3 * DAY_S)  # set before the daemon starts
    assert times(started(clock, settings)) == (3, 3, 1)


def test_a_jump_is_not_forgotten_over_a_boot(clock: Any, settings: Any) -> None:
    time = started(clock, settings)
    clock.jump(400 * DAY_S)
    looked(time, settings)
    clock.reboot("second", off_s=DAY_S)
    time = looked(started(clock, settings), settings)
    assert times(time) == (401, 1, 0)
    clock.reboot("third", off_s=-399 * DAY_S)  # set right while the machine was off for a day more
    time = started(clock, settings)
    assert time.read_state().state == "settling"
    assert times(time) == (2, 2, 0)


def test_a_jump_of_this_boot_while_the_daemon_did_not_run_is_seen_by_the_dates_of_files(
    clock: Any, settings: Any
) -> None:
    looked(started(clock, settings), settings)
    clock.reboot("second", off_s=DAY_S)
    clock.files = [clock.now, clock.now + 7200.0]  # so long the clock was right
    clock.advance(3 * 3600.0)
    clock.jump(400 * DAY_S)
    clock.files.append(clock.now)
    time = started(clock, settings)
    assert times(time) == (401.125, 1.125, 0)
    assert time.has_jumped()


def test_the_dates_of_files_say_nothing_of_a_clock_that_was_set_at_the_boot() -> None:
    at_boot = NOW - 86_400.0
    read = Reading(NOW, 3600.0, "second")
    assert set_since_boot(read, []) == 0.0
    assert set_since_boot(read, [NOW - 3600.0, NOW]) == 0.0
    assert set_since_boot(read, [at_boot, at_boot + 30.0, NOW]) == 0.0
    assert set_since_boot(read, [at_boot, at_boot + EARLY_S, NOW]) == 86_400.0 - 3600.0
    known = follow(start_state(Reading(NOW - DAY_S, 5.0, "first")), read, [0.0, 5000.0])
    assert known.ahead_s == 0.0, "files of 1970 are from before the clock was set"


def test_what_cannot_be_read_of_the_former_clock_is_left_out(clock: Any) -> None:
    for kept in ("", "{", '{"boot": 3}'):
        assert Timekeeper(clock, kept).read_state().state == "steady"


steps = st.one_of(
    st.tuples(st.just("advance"), st.floats(0, 100 * DAY_S)),
    st.tuples(st.just("jump"), st.floats(-1000 * DAY_S, 1000 * DAY_S)),
    st.tuples(st.just("look"), st.just(0.0)),
)


@given(st.lists(steps, max_size=12))
def test_within_a_boot_no_more_time_is_taken_for_passed_than_has(moves: list[tuple[str, float]]) -> None:
    clock = Clock()
    known, really = start_state(clock.read()), 0.0
    for kind, seconds in moves:
        if kind == "advance":
            clock.advance(seconds)
            really += seconds
        elif kind == "jump":
            clock.jump(seconds)
        else:
            known = follow(known, clock.read())
            believed = known.counted_time() - NOW
            doubted = [abs(step) for name, step in moves if name == "jump"]
            # A jump counts only after as much time has passed, and steps within the tolerance count at once.
            assert believed <= 2 * really + (1 + len(doubted)) * TOLERANCE_S
            assert isinstance(known, Known)
