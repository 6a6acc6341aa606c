"""Counts and latencies of calls, who is connected, and what stats tell of the daemon."""

import os
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from each import each
from memoryd.client import AsyncClient, Client
from memoryd.client.protocol import Add, AddToken, GetStats, NewMemory, NewTurn, Observe
from memoryd.daemon.server.meters import SIZE, TURN_S, Meters, find_bucket, percentile
from memoryd.daemon.system.process import name_in, process_name
from waiting import wait_until
from workbench import Daemon

ERROR = 2 ** (1 / 8)  # the width of a bucket

times = some.lists(some.floats(2e-6, 900.0), min_size=1, max_size=300)


def counted(took_s: list[float]) -> list[int]:
    counts = [0] * SIZE
    for one in took_s:
        counts[find_bucket(one)] += 1
    return counts


# Histograms ----------------------------------------------------------------------------------------------------------


@given(times, some.integers(1, 100))
def test_a_percentile_is_that_of_numpy_but_for_the_width_of_a_bucket(took_s: list[float], percent: int) -> None:
    exact = float(np.percentile(took_s, percent, method="inverted_cdf"))
    assert exact / ERROR <= percentile(counted(took_s), percent) <= exact * ERROR


# Meters --------------------------------------------------------------------------------------------------------------


def test_meters_count_calls_errors_and_seconds() -> None:
    meters = Meters()
    assert meters.read(0.0) == {}
    for number in range(200):
        meters.count("search", 0.001 * (number + 1), failed=number % 4 == 0, now=1.0 + number / 100)
    meters.count("add", 0.25, failed=False, now=3.0)
    read = meters.read(3.0)
    assert list(read) == ["add", "search"]
    search = read["search"]
    assert (search.calls, search.errors, search.total_s) == (200, 50, pytest.approx(20.1))
    assert search.p50_ms == pytest.approx(100.0, rel=0.05)
    assert search.p99_ms == pytest.approx(198.0, rel=0.05)
    assert search.at_most[-1] == 200
    assert search.recent is not None
    assert (search.recent.calls, search.recent.over_s) == (200, 2.0)


def test_the_recent_past_forgets_what_the_whole_keeps() -> None:
    meters = Meters()
    for second in range(200):  # one call a second, slow at first
        meters.count("get", 0.5 if second < 100 else 0.001, failed=False, now=float(second))
    found = meters.read(199.5)["get"]
    assert found.recent is not None
    assert TURN_S <= found.recent.over_s <= 2 * TURN_S
    assert found.recent.calls == pytest.approx(found.recent.over_s, abs=1.5)
    assert found.recent.p99_ms < 2.0
    assert (found.calls, found.at_most[-1]) == (200, 200)
    assert found.p95_ms == pytest.approx(500.0, rel=0.09)


@each(("later_s", "calls"), [(1.0, 3), (40.0, 3), (70.0, 0), (4000.0, 0)])
def test_calls_that_are_a_minute_old_are_not_recent(later_s: float, calls: int) -> None:
    meters = Meters()
    for _ in range(3):
        meters.count("get", 0.001, failed=False, now=10.0)
    found = meters.read(10.0 + later_s)["get"]
    assert found.recent is not None
    assert (found.calls, found.recent.calls) == (3, calls)
    meters.count("get", 0.001, failed=False, now=10.0 + later_s)
    again = meters.read(10.0 + later_s)["get"]
    assert again.recent is not None
    assert (again.calls, again.recent.calls, again.at_most[-1]) == (4, calls + 1, 4)


@given(some.lists(some.floats(0.0, 100.0), max_size=60))
def test_no_call_is_lost_however_they_are_apart(pauses_s: list[float]) -> None:
    meters, now = Meters(), 0.0
    for pause_s in pauses_s:
        now += pause_s
        meters.count("get", 0.001, failed=False, now=now)
    read = meters.read(now)
    assert sum(stats.at_most[-1] for stats in read.values()) == len(pauses_s)
    assert ceil(sum(stats.total_s for stats in read.values()) * 1000 - 1e-6) == len(pauses_s)


# Clients -------------------------------------------------------------------------------------------------------------


@each(
    ("words", "name"),
    [
        (["/usr/bin/python3.12", "-P", "/opt/agent/agent.py", "--fast"], "agent.py"),
        (["python", "-m", "pytest", "-q"], "pytest"),
        (["python3", "-c", "import x"], "python3"),
        (["/home/x/.venv/bin/python", "/home/x/.venv/bin/memctl", "tail"], "memctl"),
        (["node", "server.js"], "server.js"),
        (["/usr/bin/ls", "-l"], "ls"),
        ([""], ""),
        ([], ""),
    ],
)
def test_a_process_is_called_by_its_script(words: list[str], name: str) -> None:
    assert name_in(words) == name


def test_a_process_that_is_gone_has_no_name() -> None:
    assert process_name(2**22 + 1) == ""
    assert process_name(os.getpid())


async def test_stats_tell_who_is_connected_since_when_and_how_often_it_called(daemon: "Daemon") -> None:
    async with AsyncClient(socket=daemon.socket, autostart=False) as asynchronous:
        for _ in range(3):
            await asynchronous.status()
        with daemon.client() as client:
            found = client.stats().daemon
    assert found is not None
    fewer, more = sorted(one.calls for one in found.clients)  # what a client says of itself first counts as well
    assert more == fewer + 2 >= 3
    assert {one.pid for one in found.clients} == {os.getpid()}
    assert all(one.name == process_name(os.getpid()) for one in found.clients)
    assert all(one.since == found.at for one in found.clients)  # the clock stands still
    assert sum(one.under_way for one in found.clients) == 1


def test_stats_tell_how_the_daemon_is(daemon: "Daemon", client: Client) -> None:
    client.add("We use Valkey")
    client.call(Observe(turns=[NewTurn(role="user", content="Never deploy on Fridays, says the handbook")]))
    wait_until(lambda: not any(client.tiers().waiting.values()))
    found = client.stats().daemon
    assert found is not None
    assert found.pid == os.getpid()
    assert found.rss_bytes > 10**7
    assert found.cpu_s > 0 < found.uptime_s
    assert found.wal_bytes > 0
    assert found.model.state == "ready"
    assert found.degraded == []
    assert {tier.name: tier.count for tier in found.tiers} == {"L0": 1, "hot": 0, "L1": 1, "L2": 0, "documents": 0}
    assert {"interactive", "bulk", "control", "writes", "vectors"} <= set(found.queues)
    assert found.queues["vectors"] == 0
    assert {job.name for job in found.jobs} >= {"sweep", "backup"}


def test_a_bound_caller_is_told_nothing_of_the_daemon(daemon: "Daemon", client: Client) -> None:
    token = client.call(AddToken(name="alpha", namespace="acme/alpha")).token
    with daemon.client(token=token) as bound:
        found = bound.call(GetStats())
        assert client.stats().daemon is not None
        told = next(one for one in client.stats().daemon.clients if one.token)  # type: ignore[union-attr]
    assert (found.daemon, found.methods) == (None, {})
    assert told.token == "alpha"


def test_counts_and_sizes_are_those_of_the_folder_and_of_a_namespace(daemon: "Daemon", client: Client) -> None:
    for namespace, text in (("acme", "We use Valkey"), ("acme/api", "We use Postgres")):
        client.call(Add(memory=NewMemory(content=text), namespace=namespace))
    client.observe([{"role": "user", "content": "Never deploy on Fridays, says the handbook"}])
    wait_until(lambda: not any(client.tiers().waiting.values()))
    client.backup()
    status, stats = client.status(), client.stats()
    folder = Path(status.data_dir)
    assert status.data_bytes == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    database = [folder / "memoryd.sqlite", folder / "memoryd.sqlite-wal"]
    assert status.database_bytes == stats.database_bytes == sum(path.stat().st_size for path in database)
    assert (status.memories, status.turns, stats.memories, stats.turns, stats.embedded) == (2, 1, 2, 1, 2)
    within = client.call(GetStats(namespace="acme/api", reach="exact"))
    assert (within.memories, within.turns, within.embedded, within.pending_embeddings) == (1, 0, 1, 0)
