"""What the exchange survives, one fault at a time; afterwards all machines hold the same and nothing is lost."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from machines import Machine, converge, machines

from memoryd.client.protocol import NewMemory
from memoryd.daemon.shared import engine, exchange
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.store import aging
from memoryd.daemon.store.aging import Group
from memoryd.daemon.store.tiers import L1
from postgres import Postgres
from waiting import wait_until
from workbench import add_many

# Fields of a body as no memory here can have them.
BROKEN = ('"importance": 7', '"created_at": 1e400', '"key": 7', '"superseded_by": ""', '"metadata": "text"')


@pytest.fixture
def pair(postgres: Postgres, database: str, folder: Path) -> Iterator[tuple[Machine, Machine]]:
    with machines(folder, postgres.address(database=database), "one", "two") as made:
        yield made[0], made[1]


def add_all(machine: Machine, *texts: str) -> None:
    add_many(machine.core, [NewMemory(content=text) for text in texts], "acme/api", dedup=False)


def test_a_server_that_stops_at_once_and_comes_back(pair: tuple[Machine, Machine], postgres: Postgres) -> None:
    one, two = pair
    postgres.sql("CHECKPOINT")  # the tables stay; of what comes now the server may lose what it acknowledged
    one.add("before")
    converge(one, two)
    postgres.stop(at_once=True)
    try:
        one.add("while it was away")
        assert not one.engine.exchange_all()
        assert one.engine.figures.state == "offline"
        assert "cannot be used" in one.engine.figures.error
    finally:
        postgres.start()
    assert not two.engine.exchange_all()  # its connection was cut
    converge(one, two)
    assert set(two.texts().values()) == {"before", "while it was away"}


@pytest.mark.slow
def test_of_two_servers_that_are_named_the_one_that_takes_writes_is_used(
    postgres: Postgres, database: str, folder: Path
) -> None:
    standby = Postgres(primary=postgres)
    try:
        standby.start()
        both = f"host=127.0.0.1,127.0.0.1 port={standby.port},{postgres.port} target_session_attrs=read-write"
        with machines(folder, f"{both} user=postgres dbname={database} sslmode=disable", "one") as (one,):
            one.add("before")
            one.sync()
            assert read_texts(postgres, database) == {"before"}
            postgres.sql("CHECKPOINT")  # the tables stay
            postgres.stop(at_once=True)
            one.add("while it was away")
            assert not one.engine.exchange_all(), "a standby takes no writes"
            standby.promote()
            wait_until(one.engine.exchange_all)
            one.sync()
            assert read_texts(standby, database) == {"before", "while it was away"}
    finally:
        standby.remove()
        postgres.stop()
        postgres.start()


def read_texts(server: Postgres, database: str) -> set[object]:
    return {text for (text,) in server.sql("SELECT body->>'content' FROM memoryd.mem", database)}


def test_a_server_that_hangs_is_given_up_at_the_limit(
    pair: tuple[Machine, Machine], postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    one.sync()
    monkeypatch.setattr(engine, "LIMIT_S", 0.2)
    postgres.hang()
    try:
        began = time.monotonic()
        assert not one.engine.exchange_all()
        assert time.monotonic() - began < 20  # a hanging server would be waited for without end
        one.add("while it hung")
    finally:
        postgres.resume()
    monkeypatch.undo()
    converge(one, two)
    assert set(two.texts().values()) == {"while it hung"}


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_transaction_that_another_was_in_the_way_of_is_tried_again(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str, code: str
) -> None:
    one, two = pair
    one.sync()
    postgres.sql(
        "CREATE SEQUENCE public.attempts;"
        "CREATE FUNCTION public.stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF nextval('public.attempts') < 3 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '{code}'; END IF;"
        " RETURN new; END $$;"
        "CREATE TRIGGER stumble BEFORE INSERT ON memoryd.mem FOR EACH ROW EXECUTE FUNCTION public.stumble()",
        database,
    )
    connected = one.engine.server
    one.add("pushed at last")
    one.sync()
    assert one.engine.server is connected
    assert postgres.sql("SELECT last_value FROM attempts", database) == [(3,)]
    converge(one, two)
    assert list(two.texts().values()) == ["pushed at last"]


def test_a_full_disk_is_named_and_nothing_is_lost(
    pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair

    def push(*given: Any) -> Any:
        raise psycopg.errors.DiskFull("could not extend file: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "offer", push)
        one.add("waits for room")
        assert not one.engine.exchange_all()
        assert one.engine.figures.state == "offline"
        assert "disk is full" in one.engine.figures.error
    converge(one, two)
    assert list(two.texts().values()) == ["waits for room"]


def test_a_row_that_is_refused_does_not_hold_up_the_others(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    postgres.sql("ALTER TABLE memoryd.mem ADD CHECK (body::text NOT LIKE '%poison%')", database)
    add_all(one, "first", "poison", "last")
    one.sync()
    two.sync()
    assert {machine.engine.figures.state for machine in pair} == {"ready"}
    assert set(two.texts().values()) == {"first", "last"}
    with one.core.store.reading() as connection:
        [(id, reason)] = shared.read_stuck(connection, one.engine.root.id)
    assert "check constraint" in reason
    one.update(id, content="medicine")
    converge(one, two)
    assert set(two.texts().values()) == {"first", "last", "medicine"}


def test_a_row_that_cannot_be_used_here_does_not_hold_up_the_others(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    add_all(one, "first", *(f"poison {number}" for number in range(len(BROKEN))), "last")
    one.sync()
    for number, fields in enumerate(BROKEN):
        which = f"body->>'content' = 'poison {number}'"
        postgres.sql(f"UPDATE memoryd.mem SET body = body || '{{{fields}}}' WHERE {which}", database)
    two.sync()
    assert {machine.engine.figures.state for machine in pair} == {"ready"}
    assert set(two.texts().values()) == {"first", "last"}
    with two.core.store.reading() as connection:
        set_aside = dict(shared.read_stuck(connection, two.engine.root.id))
    assert set_aside.keys() == {id for id, text in one.texts().items() if text.startswith("poison")}
    assert all(reason.startswith("It cannot be used here: ") for reason in set_aside.values())
    for id in set_aside:
        one.update(id, content="medicine")
    converge(one, two)
    with two.core.store.reading() as connection:
        assert shared.read_stuck(connection, two.engine.root.id) == []


def test_a_role_that_is_revoked_in_mid_batch_keeps_its_outbox(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memoryd.daemon.shared import schema, server

    role, real, one = f"r_{database}", exchange.offer, pair[0]
    postgres.sql(f"CREATE ROLE {role} LOGIN")
    owner = server.connect(postgres.address(database=database))
    schema.grant(owner, "acme", role, True)

    def push(*given: Any) -> Any:
        done = real(*given)
        schema.revoke(owner, "acme", role)
        return done

    try:
        with machines(folder, postgres.address(role, database), "three") as (three,):
            add_all(three, *(f"text {number}" for number in range(250)))
            with monkeypatch.context() as patch:
                patch.setattr(exchange, "offer", push)
                assert not three.engine.exchange_all()  # its session was ended
            assert not three.engine.exchange_all()
            assert three.engine.figures.state == "refused"
            assert three.waiting() == 50
            one.sync()
            assert len(one.texts()) == 200
            schema.grant(owner, "acme", role, True)
            converge(one, three)
            assert len(one.texts()) == 250
    finally:
        owner.close()
        postgres.sql(f"DROP OWNED BY {role}", database)
        postgres.sql(f"DROP ROLE {role}")


def test_an_older_client_pulls_and_does_not_push(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    one.add("from a newer one")
    one.sync()
    postgres.sql("UPDATE memoryd.meta SET min_client = 99", database)
    two.add("from an older one")
    two.sync()
    assert set(two.texts().values()) == {"from a newer one", "from an older one"}
    assert (two.engine.figures.state, two.waiting()) == ("old", 1)
    assert "newer memoryd" in two.engine.figures.error


def test_fields_of_a_newer_client_are_kept(pair: tuple[Machine, Machine], postgres: Postgres, database: str) -> None:
    one, two = pair
    id = one.add("the port is 80")
    one.sync()
    postgres.sql("UPDATE memoryd.mem SET body = body || '{\"future\": [1]}'", database)
    two.sync()
    two.update(id, content="the port is 90")
    two.sync()
    assert postgres.sql("SELECT body->'future', body->>'content' FROM memoryd.mem", database) == [
        ([1], "the port is 90")
    ]


def test_who_was_away_longer_than_the_log_is_nothing_special(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    ids = [one.add(f"text {number}") for number in range(4)]
    converge(one, two)
    one.delete(ids[0])
    one.update(ids[1], content="changed there")
    two.update(ids[2], content="changed here")
    one.sync()
    one.add("the latest")
    one.sync()
    postgres.sql("UPDATE memoryd.log SET at = now() - interval '100 days'", database)
    one.engine._noted_at = -engine.NOTED_S
    one.sync()  # the log forgets what is that old
    assert postgres.sql("SELECT count(*) FROM memoryd.log", database) == [(0,)]
    converge(one, two)
    assert set(one.texts().values()) == {"changed there", "changed here", "text 3", "the latest"}
    assert one.conflicts() == {}
    assert postgres.sql(f"SELECT body FROM memoryd.mem WHERE id = '{ids[0]}' AND deleted", database) == [({},)]


@pytest.mark.slow
def test_a_first_copy_that_is_cut_goes_on_where_it_was(
    pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_in_two(pair, monkeypatch, 1_800)


@pytest.mark.stress
@pytest.mark.timeout(1800)
def test_a_first_copy_of_many_rows(pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    copy_in_two(pair, monkeypatch, 100_000)


def copy_in_two(pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    one, two = pair
    for start in range(0, count, 5_000):
        add_all(one, *(f"text {number}" for number in range(start, min(count, start + 5_000))))
    one.sync()
    real, pulls = exchange.pull, 0

    def pull(*given: Any) -> Any:
        nonlocal pulls
        pulls += 1
        if pulls == max(2, count // exchange.PULLED // 2):
            raise psycopg.OperationalError("cut")
        return real(*given)

    monkeypatch.setattr(exchange, "pull", pull)
    assert not two.engine.exchange_all()
    got = len(two.texts())
    assert 0 < got < count
    pulls = -count
    two.sync()
    assert len(two.texts()) == count
    assert two.engine.figures.pulled == count, "nothing is copied twice"


def test_equal_texts_of_two_machines_stay_two_memories(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    first = one.add("Deploys are on Tuesday", metadata={"team": "infra"})
    second = two.add("Deploys are on Tuesday", metadata={"source": "wiki"})
    converge(one, two)
    assert two.texts() == {first: "Deploys are on Tuesday", second: "Deploys are on Tuesday"}
    assert one.conflicts() == {}


def test_changes_that_do_not_disagree_are_merged(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    id = one.add("Deploys are on Tuesday")
    converge(one, two)
    one.update(id, metadata={"team": "infra"})
    two.update(id, metadata={"source": "wiki"}, pinned=True)
    converge(one, two)
    [row] = one.rows()
    assert (row[0], row[4]) == (id, 1)
    assert '"team":"infra"' in row[7]
    assert '"source":"wiki"' in row[7]


def test_an_edit_wins_against_a_deletion(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    ids = [one.add("the port is 80"), one.add("the host is db")]
    converge(one, two)
    one.delete(*ids)
    two.update(ids[0], content="the port is 81")
    one.sync()  # the deletion comes first
    converge(one, two)
    assert one.texts() == {ids[0]: "the port is 81"}
    two.delete(ids[0])
    one.update(ids[0], content="the port is 82")
    one.sync()  # the edit comes first
    converge(one, two)
    assert two.texts() == {ids[0]: "the port is 82"}


def test_a_limit_of_one_machine_deletes_nothing_of_the_others(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    add_all(one, *(f"text {number}" for number in range(10)))
    converge(one, two)
    two.add("of this machine alone", "private")
    group = Group("tier", L1, own=True)
    with two.core.store.reading() as connection:
        assert [count for _, count in aging.count_over(connection, group, 0)] == [1]
        assert [count for _, count in aging.count_over(connection, Group("tier", L1), 0)] == [10, 1]
