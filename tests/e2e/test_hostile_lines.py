"""Lines made to hold up a daemon: whoever sends them, nobody else waits, and it ends when it is told to."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbench import Process

LINES = (
    "Retrying" + 90 * "." + " failed",
    "ECONNREFUSED" + 30 * ":",
    "Error: connect ECONNREFUSED 2001:db8:85a3:8d3:1319:8a2e:370:7348 and then it failed",
    "2026-01-03 " + 480 * "1",
    "iteration" + 480 * "\t" + "x",
    "-----BEGIN PRIVATE KEY-----" + 300 * "\nHash: -",
    "-----BEGIN PRIVATE KEY-----" + 2000 * "Version: - Hash: - ",
    "eyJ" + 20_000 * "eyJ-",
    "“".join(200 * ["a"]) + " kept " + 100 * "is:",
    30_000 * " " + "x",
)
BEARABLE_S = 0.25


@pytest.mark.timeout(110)
def test_lines_made_to_hang_it_hold_up_no_other_client_nor_its_end(process: "Process") -> None:
    try:
        assert min(_longest_search_s(process, number) for number in range(3)) < BEARABLE_S
        assert process.stop() == 0
    finally:
        process.kill()


def _longest_search_s(process: "Process", number: int) -> float:
    """Return the longest time that a search of one client took while another had lines observed."""
    longest = 0.0
    with (
        process.client("a", timeout_s=25) as one,
        process.client("b", timeout_s=25) as other,
        ThreadPoolExecutor() as run,
    ):
        other.add(f"The archive of region {number} is moved at night")
        turns = [{"role": "user", "content": line} for line in LINES]
        observed = run.submit(one.observe, turns, session=str(number))
        while not observed.done() or not longest:
            begin = time.monotonic()
            assert other.search("which archive is moved at night?").hits
            longest = max(longest, time.monotonic() - begin)
        assert len(observed.result().turns) == len(LINES)
    return longest
