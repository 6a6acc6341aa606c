"""What cannot happen between machines that share: each of these did once."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from desk import Desk, grant, make_offer
from machines import PLACE, Machine, converge, machines

from memoryd.client.shared.calls import ShareRoot
from memoryd.daemon.shared import exchange
from memoryd.daemon.shared.sharing import lines_of
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.store import rescue
from memoryd.daemon.store.store import FILE_NAME
from postgres import Postgres
from waiting import wait_until
from workbench import ask

PRIVATE, OTHER = "acme/own", "other"


@pytest.fixture
def pair(postgres: Postgres, database: str, folder: Path) -> Iterator[tuple[Machine, Machine]]:
    with machines(folder, postgres.address(database=database), "one", "two") as made:
        yield made[0], made[1]


def texts_on(postgres: Postgres, database: str) -> set[str]:
    """Return the texts of all rows of the server, deleted ones too."""
    found = postgres.sql("SELECT body->>'content' FROM memoryd.mem", database)
    return {text for (text,) in found if text}


def test_an_equal_key_elsewhere_sends_nothing_that_is_private(postgres: Postgres, database: str, folder: Path) -> None:
    address = postgres.address(database=database)
    with (
        machines(folder, address, "one") as (one,),
        machines(folder, address, "two", places=(PLACE, PRIVATE)) as (two,),
    ):
        mine = one.add("my own note", PRIVATE)
        one.give_key(mine, "port")
        two.give_key(two.add("the port is 80", PRIVATE), "port")
        for machine in (two, one, two, one):
            machine.sync()
        assert texts_on(postgres, database) == {"the port is 80"}
        assert one.texts(PRIVATE) == {mine: "my own note"}
        assert one.keys(PRIVATE) == {"port": mine}


def test_an_equal_id_elsewhere_sends_nothing_that_is_private(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    mine = one.add("my own note", PRIVATE)
    theirs = two.add("another one")
    two.sync()
    postgres.sql(f"UPDATE memoryd.mem SET id = '{mine}' WHERE id = '{theirs}'", database)
    one.sync()
    assert one.texts(PRIVATE) == {mine: "my own note"}
    assert list(one.texts().values()) == ["another one"]
    [here] = one.texts()
    one.update(here, content="another one, edited")
    one.sync()
    assert texts_on(postgres, database) == {"another one, edited"}


def test_a_known_id_in_another_root_neither_shows_nor_erases_a_memory(
    postgres: Postgres, database: str, folder: Path
) -> None:
    role = f"r_{database}"
    postgres.sql(f"CREATE ROLE {role} LOGIN")
    grant(postgres, database, role, OTHER)
    with (
        machines(folder, postgres.address(database=database), "one") as (one,),
        closing(one.open(OTHER, [OTHER])) as other,
        closing(Desk(postgres, database, role, OTHER)) as stranger,
    ):
        id = one.add("of acme alone")
        one.sync()
        stranger.look()
        body = {"type": "fact", "source": "manual", "importance": 0.5, "created_at": 1.0, "updated_at": 1.0}
        stranger.one(make_offer("forged", id=id, ns=OTHER, body=body))
        assert other.exchange_all()
        one.update(id, content="of acme alone, edited")
        one.sync()
        assert other.exchange_all()
        assert stranger.texts() == ["forged"]
        assert list(one.texts(OTHER).values()) == ["forged"]
        stranger.one(make_offer(id=id, ns=OTHER, purged=True, deleted=True))
        assert other.exchange_all()
        assert one.texts(OTHER) == {}
        one.sync()
        assert one.texts() == {id: "of acme alone, edited"}
        assert texts_on(postgres, database) == {"of acme alone, edited"}
    postgres.sql(f"DROP OWNED BY {role}", database)
    postgres.sql(f"DROP ROLE {role}")


def test_two_edits_under_one_key_do_not_stop_the_exchange(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    id = one.add("the port is 80")
    one.give_key(id, "port")
    converge(one, two)
    one.update(id, content="the port is 81")
    two.update(id, content="the port is 82")
    converge(one, two)
    two.add("after that")
    converge(one, two)
    assert set(one.texts().values()) == {"the port is 81", "the port is 82", "after that"}
    assert one.keys() == two.keys() == {"port": id}
    assert len(one.conflicts()) == 1


def test_two_puts_under_one_key_do_not_stop_the_exchange(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    one.give_key(one.add("the port is 80"), "port")
    one.sync()
    two.give_key(two.add("the port is 90"), "port")
    two.delete(two.keys()["port"])
    two.give_key(two.add("the port is 91"), "port")
    converge(one, two)
    two.add("after that")
    converge(one, two)
    assert {"the port is 80", "the port is 91", "after that"} == set(one.texts().values())
    assert one.keys() == two.keys()


def test_an_untouched_copy_does_not_come_back_however_many_edits_it_missed(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    kept, gone = one.add("version 0"), one.add("will be deleted")
    converge(one, two)
    for number in range(1, 40):
        one.update(kept, content=f"version {number}")
        one.sync()
    one.delete(gone)
    one.sync()
    converge(one, two)
    assert one.texts() == two.texts() == {kept: "version 39"}
    assert one.conflicts() == two.conflicts() == {}


def test_a_server_made_again_gets_everything_back(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    for number in range(5):
        one.add(f"text {number}")
    converge(one, two)
    edited, deleted = sorted(one.texts())[:2]
    postgres.sql("DROP SCHEMA memoryd CASCADE", database)
    assert not one.engine.exchange_all()
    assert one.engine.figures.state == "refused"
    assert "memctl shared migrate" in one.engine.figures.error
    make_tables(postgres, database)
    two.update(edited, content="edited meanwhile")
    one.delete(deleted)
    converge(one, two)
    assert len(one.texts()) == 4
    assert "edited meanwhile" in one.texts().values()
    assert one.texts() == two.texts()
    assert one.conflicts() == {}


def test_a_server_made_again_that_another_machine_fills_first_deletes_nothing(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    mine = {one.add(f"text {number}") for number in range(5)}
    one.sync()
    postgres.sql("DROP SCHEMA memoryd CASCADE", database)
    make_tables(postgres, database)
    for number in range(10):
        two.add(f"more {number}")
    two.sync()
    converge(one, two)
    assert mine <= set(one.texts())
    assert len(one.texts()) == 15


def make_tables(postgres: Postgres, database: str) -> None:
    from memoryd.daemon.shared import schema, server

    owner = server.connect(postgres.address(database=database))
    schema.migrate(owner)
    schema.make_root(owner, "acme")
    owner.close()


def test_a_purge_from_elsewhere_takes_nothing_that_was_never_shared(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    mine = one.add("my own note", PRIVATE)
    theirs = two.add("another one")
    two.sync()
    postgres.sql(
        f"UPDATE memoryd.mem SET id = '{mine}', purged = true, deleted = true, body = '{{}}' WHERE id = '{theirs}'",
        database,
    )
    one.sync()
    assert one.texts(PRIVATE) == {mine: "my own note"}


def test_what_was_pulled_is_redacted_and_not_pushed_for_it(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    secret = "gh" + "p_q7RtZ0mXc3vB9nL2kJ8hG5fD4sA1pQ6wE0yU"
    id = one.add("The deploy key is in the safe")
    one.sync()
    said = f"The deploy key is {secret}"
    postgres.sql(
        f"UPDATE memoryd.mem SET body = jsonb_set(body, '{{content}}', '\"{said}\"') WHERE id = '{id}'", database
    )
    two.sync()
    assert secret not in two.texts()[id]
    assert two.texts()[id].startswith("The deploy key is [secret")
    assert two.waiting() == 0
    assert not any(secret.encode() in path.read_bytes() for path in two.folder.glob("memoryd*"))


def test_what_was_pulled_is_redacted_in_fields_that_are_not_known_here(
    pair: tuple[Machine, Machine], postgres: Postgres, database: str
) -> None:
    one, two = pair
    secret = "gh" + "p_q7RtZ0mXc3vB9nL2kJ8hG5fD4sA1pQ6wE0yU"
    id = one.add("The deploy key is in the safe")
    one.sync()
    further = f'{{"future": {{"note": "{secret}", "more": [1, null]}}}}'
    postgres.sql(f"UPDATE memoryd.mem SET body = body || '{further}'", database)
    two.sync()
    assert len(two.texts()) == 1
    assert two.waiting() == 0
    assert not any(secret.encode() in path.read_bytes() for path in two.folder.glob("memoryd*"))
    two.update(id, content="The deploy key is in the drawer")
    two.sync()
    [(future,)] = postgres.sql("SELECT body->'future' FROM memoryd.mem", database)
    assert future == {"note": "[secret: GitHub token]", "more": [1, None]}


def test_what_left_is_deleted_there_and_goes_on_here(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    id = one.add("the port is 80")
    converge(one, two)
    one.move(id, PRIVATE)
    converge(one, two)
    assert two.texts() == {}
    assert one.texts(PRIVATE) == {id: "the port is 80"}
    one.update(id, content="the port is 81")
    converge(one, two)
    assert two.texts() == {}
    one.move(id, PLACE)
    converge(one, two)
    assert list(two.texts().values()) == ["the port is 81"]


def test_a_namespace_that_is_chosen_later_is_read_from_its_start(
    postgres: Postgres, database: str, folder: Path
) -> None:
    address = postgres.address(database=database)
    with (
        machines(folder, address, "one", places=(PLACE, PRIVATE)) as (one,),
        machines(folder, address, "two") as (two,),
    ):
        there = one.add("of the other namespace", PRIVATE)
        one.sync()
        two.sync()
        assert two.texts(PRIVATE) == {}
        equal = two.add("of this machine", PRIVATE)
        two.choose(PRIVATE)
        for machine in (two, one, two):
            machine.sync()
        assert one.texts(PRIVATE) == two.texts(PRIVATE) == {there: "of the other namespace", equal: "of this machine"}


def test_what_a_limit_deletes_here_stays_elsewhere(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    id = one.add("the port is 80")
    converge(one, two)
    with two.core.store.reading() as connection:
        number = connection.execute("SELECT row FROM memories WHERE id = ?", (id,)).get

    def forget(transaction: object) -> None:
        connection = transaction.connection  # type: ignore[attr-defined]
        with shared.change_locally(connection):
            connection.execute("DELETE FROM memories WHERE row = ?", (number,))

    two.core.store.write(forget).result()
    for machine in (two, one, two):
        machine.sync()
    assert two.texts() == {}
    assert one.texts() == {id: "the port is 80"}
    one.update(id, content="the port is 81")
    converge(one, two)
    assert two.texts() == {id: "the port is 81"}


def test_without_its_triggers_a_machine_does_not_say_that_it_is_ready(pair: tuple[Machine, Machine]) -> None:
    one, _ = pair
    one.sync()
    one.core.store.write(lambda transaction: transaction.connection.execute("DROP TRIGGER shared_changed")).result()
    one.engine.exchange_all()
    assert one.engine.figures.state == "refused"
    assert "memctl repair" in one.engine.figures.error


def test_a_push_in_parts_is_read_on_by_whoever_made_it(
    pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    for number in range(20):
        one.add(f"text {number}")
    monkeypatch.setattr("memoryd.daemon.shared.engine.PUSHED", 7)
    one.sync()
    assert one.engine.root.cursor == one.engine.figures.head == 20
    assert one.engine.figures.pulled == 0
    monkeypatch.setattr(exchange, "PULLED", 6)
    converge(one, two)
    assert one.texts() == two.texts()


@pytest.mark.parametrize("how", ["repair", "automatic repair", "recover", "restore"])
def test_a_repaired_or_restored_machine_goes_on_sharing(
    postgres: Postgres, database: str, folder: Path, how: str
) -> None:
    address = postgres.address(database=database)
    with machines(folder, address, "one") as (one,):
        one.add("before")
        one.sync()
        if how == "repair":
            one.core.store.rebuild().result()
        elif how == "automatic repair":
            one.core.store.repair_soon()
            wait_until(lambda: not one.core.store._repairing)
    file = folder / "one" / FILE_NAME
    if how in ("recover", "restore"):
        made = folder / "made"
        made.mkdir()
        if how == "recover":
            rescue.recover(file, made)
        else:
            rescue.restore(file, made, file)
        for path in (folder / "one").glob("memoryd.sqlite*"):
            path.unlink()
        (made / FILE_NAME).rename(file)
    with machines(folder, address, "one", "two") as (one, two):
        [id] = one.texts()
        one.add("after")
        one.update(id, content="changed after")
        converge(one, two)
        assert set(two.texts().values()) == {"changed after", "after"}
        assert one.engine.figures.state == "ready"


def test_a_restored_copy_of_somebody_else_connects_to_nobody(postgres: Postgres, database: str, folder: Path) -> None:
    address = postgres.address(database=database)
    with machines(folder, address, "one") as (one,):
        one.add("before")
        one.sync()
    (folder / "two").mkdir()
    rescue.restore(folder / "one" / FILE_NAME, folder / "two")
    with machines(folder, address, "two") as (two,):
        lines = lines_of(two.core)
        lines.start()
        [root] = lines.report().roots
        threads = [state.name for state in two.core.supervisor.list_states()]
        ask(two.core, ShareRoot(root="acme"))
        wait_until(lambda: [root.state for root in lines.report().roots] == ["ready"])
        lines.close()
        lines.start()  # it is confirmed from then on
        wait_until(lambda: [root.state for root in lines.report().roots] == ["ready"])
        lines.close()
    assert root.state == "unconfirmed"
    assert "memctl shared add" in root.error
    assert not [name for name in threads if name.startswith("shared")]
