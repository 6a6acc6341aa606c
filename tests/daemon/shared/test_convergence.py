"""Whatever happens between machines and their server: all hold the same at the end, and no live version is lost."""

import os
from pathlib import Path

import pytest
from chaos import MORE, OWN, Chaos
from machines import converge

from memoryd.daemon.shared import applying, engine, exchange
from memoryd.daemon.shared.messages import RemoteMemory
from memoryd.daemon.shared.session import ExchangeSession
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import SharedEntry
from postgres import Postgres

STEPS = 150
SECONDS = float(os.environ.get("CHAOS_SECONDS", "30"))


def play(
    monkeypatch: pytest.MonkeyPatch,
    postgres: Postgres,
    database: str,
    folder: Path,
    seed: int,
    seconds: float = 0,
    part: int = 0,
) -> int:
    """Let four machines work, at once for so many seconds or else step by step; return how many memories are left.

    `settle` fails where they differ or where a live version is lost.
    """
    day = Chaos(postgres, database, folder, seed, part)
    monkeypatch.setattr(exchange, "offer", day.offer)
    try:
        if seconds:
            day.run_at_once(seconds)
        else:
            day.run(STEPS)
        day.settle()
        return len(day.machines[0].texts())
    finally:
        day.close()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_all_machines_converge_and_nothing_is_lost(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    assert play(monkeypatch, postgres, database, folder, seed) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 8))
def test_a_machine_that_holds_a_part_loses_nothing_of_the_others(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    assert play(monkeypatch, postgres, database, folder, seed, part=5) > 5


@pytest.mark.stress
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(20))
def test_all_machines_converge_after_half_a_minute_of_trouble(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(engine, "LIMIT_S", 2.0)
    assert play(monkeypatch, postgres, database, folder, seed, SECONDS) > 0


@pytest.mark.slow
def test_without_the_check_of_the_base_versions_are_lost(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server takes whatever is offered."""
    [(judge,)] = postgres.sql("SELECT pg_get_functiondef('memoryd.judge'::regproc)", database)
    broken = str(judge).replace("r.tag = o.base OR", "true OR", 1)
    assert broken != judge
    postgres.sql(broken, database)
    with pytest.raises(AssertionError, match="live versions are lost"):
        play(monkeypatch, postgres, database, folder, 1)


@pytest.mark.parametrize("is_checked", [True, False])
def test_only_the_check_of_lives_brings_back_what_a_server_lost(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch, is_checked: bool
) -> None:
    if not is_checked:
        monkeypatch.setattr(engine, "find_parting", lambda mine, mark, there, head: mark)
    day = Chaos(postgres, database, folder, seed=1)
    one, two = day.machines[:2]
    try:
        one.add("before")
        one.sync()
        day.save(one)
        one.add("lost there")
        one.sync()
        day.lose(one)
        one.sync()
        two.sync()
        assert ("lost there" in two.texts().values()) is is_checked
    finally:
        day.close()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_what_several_machines_offer_again_the_newest_version_wins(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[int, int]
) -> None:
    day = Chaos(postgres, database, folder, seed=1)
    newest, newer = day.machines[:2]
    asked: list[str] = []
    real_offer, real_pull = exchange.offer, exchange.pull
    monkeypatch.setattr(exchange, "offer", lambda *given: (asked.append("offer"), real_offer(*given))[1])
    monkeypatch.setattr(exchange, "pull", lambda *given: (asked.append("pull"), real_pull(*given))[1])
    try:
        id, alone = newest.add("version 1"), newer.add("of one machine, version 1")
        converge(newest, newer)
        day.save(newest)
        newest.update(id, content="version 2")
        newer.update(alone, content="of one machine, version 2")
        converge(newest, newer)
        newest.update(id, content="version 3")
        newest.sync()
        day.lose(newest)
        for number in order:
            asked.clear()
            day.machines[number].sync()
            assert asked[0] == "offer", "it offers before it reads"
        converge(newest, newer)
        assert newer.texts() == {id: "version 3", alone: "of one machine, version 2"}
        assert newer.conflicts() == {}
    finally:
        day.close()


@pytest.mark.slow
def test_without_entries_what_is_private_leaks(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that the server gave to another memory takes the one that has it here along, as it did once."""
    real = applying._free_key

    def free_key(session: ExchangeSession, remote: RemoteMemory, coming: set[str]) -> None:
        session.namespaces |= {session.core.store.namespaces.find_number(place) for place in (MORE, OWN)} - {None}
        real(session, remote, coming)
        connection, number = session.connection, session.core.store.namespaces.find_number(MORE)
        found = connection.execute("SELECT id FROM memories WHERE namespace = ? AND content GLOB 'private*'", (number,))
        for (id,) in found.fetchall():
            if shared.read_of_memory(connection, id) is None:
                shared.put_entry(connection, SharedEntry(root=session.root.id, id=id, memory=id, dirty=10**6))

    monkeypatch.setattr(applying, "_free_key", free_key)
    with pytest.raises(AssertionError):
        play(monkeypatch, postgres, database, folder, 1)
