"""Faults of the server, the line and the rows: no acknowledged save is lost or there twice, others go on."""

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from database import Team
from joined import decide, get_roots, wait_until_sent
from relay import Relay

from memoryd.client import Invalid, Unavailable, protocol
from memoryd.client.protocol import Add, Get, GetShared, NewMemory, Search, Update
from memoryd.client.transport.postgres import schema
from memoryd.daemon.shared.postgres import line
from waiting import wait_until


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_server_that_ends_has_saves_wait_and_gets_them_once(team: Team, how: int) -> None:
    before = team.decide("Releases are on Tuesdays")
    if how == signal.SIGKILL:  # it leaves no children only if they are killed, too
        team.server.kill()
    else:
        team.server.stop(how)
    added = team.decide("Builds are on Fridays")
    assert (added.shared, added.waiting) == ("acme", True)
    found = team.here.call(Search(query="builds releases"))
    assert ([hit.content for hit in found], found.degraded) == (["Builds are on Fridays"], ["shared:acme"])
    for change in (Update(id=before.id, content="x"), protocol.Delete(ids=[before.id])):
        with pytest.raises(Unavailable, match="not on this machine"):
            team.here.call(change)
    with pytest.raises(Unavailable):
        team.here.call(Add(memory=NewMemory(content="x", type="decision", supersedes=before.id), namespace="acme/api"))
    team.server.start()
    team.send()
    assert team.list_there() == ["Builds are on Fridays", "Releases are on Tuesdays"]
    assert team.here.list(reach="exact").total == 0


def test_a_server_that_is_started_again_between_two_calls_is_not_noticed(team: Team) -> None:
    team.decide("Releases are on Tuesdays")
    team.server.stop()
    team.server.start()
    get_roots(team.daemon)[0].line.hurry()  # what a start tells may have been asked for while it was away
    assert not team.decide("Builds are on Fridays").waiting


def test_a_server_that_hangs_ends_a_search_at_its_deadline_and_the_line_is_cut(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.daemon.search.remotes.WAIT_S", 0.5)
    monkeypatch.setattr("memoryd.daemon.search.remote.WAIT_S", 0.5)
    monkeypatch.setattr("memoryd.daemon.shared.root.CHANGE_S", 0.5)
    monkeypatch.setattr(line, "HUNG_S", 2.0)
    team.decide("Releases are on Tuesdays")
    team.server.hang(True)
    try:
        for deadline_ms in (150, None):
            assert team.here.call(Search(query="releases", deadline_ms=deadline_ms)).degraded[-1] == "shared:acme"
        assert team.decide("Builds are on Fridays").waiting
        wait_until(lambda: get_roots(team.daemon)[0].line.state == "away")
    finally:
        team.server.hang(False)
    monkeypatch.setattr("memoryd.daemon.shared.root.CHANGE_S", 60.0)
    team.send()
    assert team.list_there() == ["Builds are on Fridays", "Releases are on Tuesdays"]


def test_a_server_that_takes_no_writes_is_read_and_saves_wait(team: Team) -> None:
    added = team.decide("Releases are on Tuesdays")
    team.run("ALTER DATABASE team SET default_transaction_read_only = on")
    team.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ada'")
    wait_until(lambda: [hit.id for hit in team.here.search("releases")] == [added.id])  # by a line that is opened anew
    assert team.decide("Builds are on Fridays").waiting
    with pytest.raises(Unavailable, match="read-only"):
        team.here.call(Update(id=added.id, content="x"))
    with psycopg.connect(team.server.url(), autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute("ALTER DATABASE team RESET default_transaction_read_only")
    team.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ada'")
    team.send()
    assert team.list_there() == ["Builds are on Fridays", "Releases are on Tuesdays"]


def test_a_server_whose_disk_is_full_is_read_and_saves_wait(team: Team) -> None:
    added = team.decide("Releases are on Tuesdays")
    team.run(
        "CREATE FUNCTION memoryd_acme.fill() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE disk_full USING MESSAGE = 'could not extend file: No space left on device'; END$$"
    )
    team.run(
        "CREATE TRIGGER fill BEFORE INSERT OR UPDATE ON memoryd_acme.memories"
        " FOR EACH ROW EXECUTE FUNCTION memoryd_acme.fill()"
    )
    assert team.decide("Builds are on Fridays").waiting
    with pytest.raises(Unavailable, match="No space left"):
        team.here.call(Update(id=added.id, content="x"))
    assert [hit.id for hit in team.here.search("releases", namespace="acme/api") if hit.shared] == [added.id]
    team.run("DROP TRIGGER fill ON memoryd_acme.memories")
    team.send()
    assert team.list_there() == ["Builds are on Fridays", "Releases are on Tuesdays"]


def test_a_place_that_cannot_be_used_is_named_with_its_reason(team: Team) -> None:
    def say(undo: str = "", **settings: str) -> str:
        _, client = team.join("ada", **settings)
        assert client.search("anything").degraded == ["shared:acme"]
        assert decide(client, "It waits").waiting
        if undo:
            team.run(undo)
        return client.call(GetShared()).roots[0].problem

    team.run("UPDATE memoryd_acme.meta SET version = 99")
    assert "a newer memoryd made it" in say(f"UPDATE memoryd_acme.meta SET version = {schema.VERSION}")
    team.run("UPDATE memoryd_acme.meta SET version = 1")
    assert "an older memoryd made it" in say(f"UPDATE memoryd_acme.meta SET version = {schema.VERSION}")
    team.run("DROP EXTENSION vector CASCADE")
    assert "no extension `vector`" in say()
    team.run("CREATE EXTENSION vector")
    team.run("DROP SCHEMA memoryd_acme CASCADE")
    assert "no root acme" in say()
    assert "does not exist" in say(server=team.server.url("nobody_there"))
    team.run("ALTER ROLE ada CONNECTION LIMIT 0")
    assert "too many connections" in say("ALTER ROLE ada CONNECTION LIMIT -1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "psycopg", None)
        assert "with the extra shared: pip install 'FILE.whl[shared]'" in say()
    assert "cannot be used" in say(server="postgresql://ada@127.0.0.1:1/team")
    assert "SSL" in say(server=f"postgresql://ada@127.0.0.1:{team.server.port}/team")


HOSTILE = {
    "id": ("''", "repeat('A', 32)", "repeat('../', 100)"),
    "namespace": ("''", "'home'", "'acmeinc'", "repeat('acme/', 1000)"),
    "type": ("repeat('x', 100000)",),
    "content": ("''", "repeat('x', 3000000)"),
    "summary": ("repeat('x', 3000000)",),
    "metadata": (
        "'[]'",
        "'5'",
        "'null'",
        "'\"x\"'",
        "('{\"x\": ' || repeat('9', 5000) || '}')::json",
        "('{\"x\": ' || repeat('[', 3000) || repeat(']', 3000) || '}')::json",
        "'{\"x\": 1e999}'",
        '\'{"x": "\\u0000"}\'',
        "('{\"x\": \"' || repeat('x', 70000) || '\"}')::json",
    ),
    "importance": ("'nan'", "'infinity'", "-1", "1e300"),
    "source": ("repeat('x', 100000)",),
    "origin": ("'god'",),
    "created_at": ("'infinity'", "'-infinity'", "'nan'", "-1", "1e300"),
    "updated_at": ("'infinity'", "'nan'"),
    "expires_at": ("'infinity'", "'nan'"),
    "path": ("repeat('x', 100000)",),
    "start_line": ("0", "-5"),
    "end_line": ("0",),
    "author": ("repeat('x', 100000)",),
    "embedding": ("array_fill(0, ARRAY[64])::vector",),
}


def test_rows_that_are_no_memories_are_left_out_and_counted_and_the_others_are_there(team: Team) -> None:
    """The owner takes the checks away, and writes into each column what no memory can have."""
    good = team.decide("Releases are on Tuesdays")
    sql = "SELECT conname FROM pg_constraint WHERE conrelid = 'memoryd_acme.memories'::regclass AND contype = 'c'"
    for (name,) in team.run(sql):
        team.run(f"ALTER TABLE memoryd_acme.memories DROP CONSTRAINT {name}")
    team.run("ALTER TABLE memoryd_acme.memories DISABLE TRIGGER USER")
    sql = "SELECT attname FROM pg_attribute WHERE attrelid = 'memoryd_acme.memories'::regclass AND attnum > 0"
    columns = [name for (name,) in team.run(sql)]
    count = 0
    for column, values in HOSTILE.items():
        for value in values:
            count += 1
            own = {"id": f"'{count:032x}'", "text_hash": f"'{count}'", column: value}
            chosen = ", ".join(own.get(name, name) for name in columns)
            sql = f"INSERT INTO memoryd_acme.memories SELECT {chosen} FROM memoryd_acme.memories WHERE id = %s"
            team.run(sql, good.id)
    for search in (Search(query="releases", limit=200), Search(query="releases", limit=200, mode="lexical")):
        found = team.here.call(search)
        assert good.id in [hit.id for hit in found]
        assert found.degraded == ["unreadable:acme"]
        assert all(hit.shared == "acme" and 0.0 <= hit.score <= 2.0 for hit in found)
    page = team.here.list(limit=200)
    assert good.id in [memory.id for memory in page]
    assert page.degraded == ["unreadable:acme"]
    assert len(page.memories) == 4  # an empty text, a vector of zeros, a path that is left out
    status = team.here.call(GetShared()).roots[0]
    assert status.state == "ready"
    assert status.unreadable >= 3 * (count - 3)  # what a start tells may have been fetched meanwhile
    bad = 2 + sum(len(HOSTILE[name]) for name in ("id", "namespace", "type"))
    with pytest.raises(Invalid, match="cannot be read"):
        team.here.call(Get(id=f"{bad:032x}"))


def test_a_hostile_row_swallows_no_save(team: Team) -> None:
    """A member cannot claim the hash of a text that another one will save."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        team.run("UPDATE memoryd_acme.memories SET text_hash = ''", role="bob")
    sql = (
        "INSERT INTO memoryd_acme.memories (id, namespace, type, content, created_at, stems)"
        " VALUES (%s, 'acme/api', 'decision', 'Nonsense', 0, '{releas,tuesdai}')"
    )
    team.run(sql, "ab" * 16, role="bob")
    assert team.decide("Releases are on Tuesdays").outcome == "created"


def test_a_lock_that_a_member_holds_stops_nobody_for_long_and_is_named(team: Team) -> None:
    added = team.decide("Releases are on Tuesdays")
    with psycopg.connect(team.server.url("bob")) as bob:
        bob.execute("UPDATE memoryd_acme.memories SET pinned = true")
        assert "bob" in team.here.call(GetShared()).roots[0].place["holds a lock"]
        assert [hit.id for hit in team.here.search("releases")] == [added.id]
        with pytest.raises(Exception, match="did not do it in time"):
            team.here.call(Update(id=added.id, content="x"))
        bob.rollback()
    team.here.call(Update(id=added.id, content="Releases are on Fridays"))
    place = team.here.call(GetShared()).roots[0].place
    assert (place["synchronous_commit"], place["standbys"], place.get("holds a lock")) == ("on", "none", None)
    assert "PostgreSQL 16" in place["version"]


# The line cut at every message ---------------------------------------------------------------------------------------


@pytest.fixture
def cutter(team: Team) -> Iterator[Relay]:
    made = Relay(team.server.port)
    yield made
    made.close()


def test_a_line_that_is_cut_at_any_message_loses_and_repeats_nothing(team: Team, cutter: Relay) -> None:
    """A save and a change are each cut after every number of messages, until one goes through without a cut."""
    server = f"postgresql://ada@127.0.0.1:{cutter.port}/team?sslmode=disable"
    daemon, client = team.join("ada", server=server)
    [root] = get_roots(daemon)
    saved: list[str] = []
    cuts = 0
    for blocks in range(60):
        cutter.left = blocks
        text = f"Decision number {blocks} of the line that is cut"
        root.line.hurry()
        added = decide(client, text, dedup=False)
        saved.append(text)
        was_cut = cutter.left < 0
        cuts += was_cut
        assert added.shared == "acme"
        cutter.left = float("inf")
        if not was_cut:
            break
    assert cuts > 10
    wait_until_sent(client)
    assert team.list_there() == sorted(saved)
    assert team.run("SELECT count(*) FROM memoryd_acme.history") == [(len(saved),)]
    id = client.call(Search(query="number 0", limit=1))[0].id
    for blocks in range(60):
        root.line.hurry()
        client.search("number")
        cutter.left = blocks
        changed = False
        with suppress(Unavailable):
            changed = bool(client.call(Update(id=id, importance=blocks / 100)))
        cutter.left = float("inf")
        [(version, least, most)] = team.run(
            "SELECT max(version), min(version), count(*) FROM memoryd_acme.history WHERE memory = %s", id
        )
        assert (version, least) == (most, 1)  # no gap
        if changed:  # a call may also fail because the background lost the line just before
            break

    def read_importance() -> float | None:
        with suppress(Unavailable):  # what the background asked may have been cut last
            return client.call(Get(id=id)).importance
        return None

    wait_until(lambda: read_importance() == blocks / 100)


def test_what_was_erased_does_not_come_back_by_a_save_that_is_sent_again(
    team: Team, cutter: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = f"postgresql://ada@127.0.0.1:{cutter.port}/team?sslmode=disable"
    daemon, client = team.join("ada", server=server)
    client.search("open the line")
    [root] = get_roots(daemon)
    wait_until(lambda: client.call(GetShared()).roots[0].state == "ready" and root.line._current is None)
    transact = line.transact

    def lose_answer(connection: Any, *how: Any) -> Any:
        result = transact(connection, *how)
        if not team.list_there():  # what the background asked
            return result
        connection.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(line, "transact", lose_answer)
        assert decide(client, "The password is under the mat").waiting
    [(id,)] = team.run("SELECT id FROM memoryd_acme.memories")
    assert team.run("SELECT memoryd_acme.erase(%s)", id, role="ada") == [(True,)]
    root.line.hurry()
    wait_until_sent(client)
    assert team.list_there() == []
    assert client.list().total == 0
