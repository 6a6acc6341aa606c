"""`kill -9` while clients observe and jobs move: L0 is back exactly, nothing is half-moved, no turn is lost."""

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from killing import Account, kill_amid, open_snapshot

from memoryd.client import Client, MemorydError
from memoryd.client.protocol import NewTurn, Verify

CONFIG = """
[model]
name = "none"
fetch = false
[tiers]
ring = 8
max_recent = 30
recent_half_life_days = 0.000001
[cognition]
extract = false
[jobs]
enabled = false
"""
AT_ONCE = {"daemon.jobs.sweeping.COLD_AFTER_S": 0.01, "daemon.conversations.promoting.QUIET_H": 0.00003}
JOBS = ("promote", "sweep", "caps", "expire")


def observe_until_killed(process: Any, account: Account, name: str, seed: str) -> None:
    dice = random.Random(seed)
    try:
        with process.client(f"talk/{name}", timeout_s=20) as client:
            while True:
                size = dice.randrange(1, 6)
                said = [
                    NewTurn(
                        role=dice.choice(["user", "assistant"]),
                        content=f"We decided that item {dice.getrandbits(40)} has the number {number}.",
                    )
                    for number in range(size)
                ]
                account.note(f"talk/{name}", client.observe(said, session=name).ids, said)
    except (MemorydError, OSError):
        return


def run_jobs_until_killed(process: Any, seed: str) -> None:
    dice = random.Random(seed)
    try:
        with process.client(timeout_s=20) as client:
            while True:
                run = client.run_job(dice.choice(JOBS))
                if run.operation and dice.random() < 0.3:
                    undo(client, run.operation)
                if dice.random() < 0.1:
                    client.consolidate()
    except (MemorydError, OSError):
        return


def undo(client: Client, operation: str) -> None:
    try:
        client.undo(operation)
    except MemorydError as error:
        if error.code not in ("conflict", "not_found"):
            raise


def stored(process: Any) -> tuple[dict[str, tuple[str, str]], list[str], list[Any]]:
    """Return where each turn is (L0 or memory, namespace), what is in two places, and L0 in order."""
    with open_snapshot(process) as connection:
        active = connection.execute(
            "SELECT t.key, n.name, t.content FROM turns t JOIN namespaces n ON n.id = t.namespace ORDER BY t.id"
        ).fetchall()
        kept = connection.execute(
            "SELECT coalesce(v.value, m.id), n.name, m.content FROM memories m JOIN namespaces n ON n.id = m.namespace"
            " LEFT JOIN json_each(m.metadata, '$.turns') v WHERE m.turns > 0"
        ).fetchall()
    where: dict[str, tuple[str, str]] = {}
    twice = []
    for id, namespace, content in (*active, *kept):
        if id in where:
            twice.append(str(id))
        where[str(id)] = (str(namespace), str(content))
    return where, twice, active


def check(process: Any, account: Account) -> None:
    """Compare what is on disk with what was acknowledged, and L0 as the daemon tells it with L0 on disk."""
    where, twice, active = stored(process)
    assert twice == []
    lost = [id for id in account.accepted if id not in where]
    assert lost == []
    for id, (namespace, content) in account.accepted.items():
        assert where[id][0] == namespace
        assert content in where[id][1]
    with process.client() as client:
        assert client.call(Verify()).problems == []
        assert [turn.id for turn in client.turns(limit=1000)] == [id for id, _, _ in reversed(active)]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_acknowledged_turn_is_lost_or_half_moved_however_often_the_daemon_is_killed(
    make_process: Callable[..., Any],
) -> None:
    process = make_process(CONFIG, constants=AT_ONCE)
    dice = random.Random(7)
    account = Account()
    for life in range(20):
        process.start()
        check(process, account)
        aim = account.calls + dice.randrange(5, 60)
        threads = [
            threading.Thread(target=observe_until_killed, args=(process, account, name, f"{life} {name}"))
            for name in "abc"
        ]
        threads.append(threading.Thread(target=run_jobs_until_killed, args=(process, f"{life} jobs")))
        kill_amid(process, threads, lambda aim=aim: account.calls >= aim, dice, within_s=0.02)  # type: ignore[misc]
    process.start()
    check(process, account)
    with process.client() as client:  # however few runs the lives were long enough for
        client.consolidate()
        client.run_job("sweep")
    check(process, account)
    assert process.stop() == 0
    assert account.calls > 100
    with open_snapshot(process) as connection:
        counts = dict(connection.execute("SELECT tier || turns, count(*) FROM memories GROUP BY 1").fetchall())
    assert counts.get("L21", 0) > 5, "turns must have moved"
    assert "L22" not in counts
