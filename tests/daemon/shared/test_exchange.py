"""What two machines see of one another."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from machines import PLACE, converge, machines

from memoryd.client.protocol import Links
from memoryd.daemon.shared import exchange, offering
from memoryd.daemon.shared.messages import Offer
from memoryd.daemon.store import links
from postgres import Postgres
from workbench import ask, found


def test_a_memory_and_its_change_and_its_end_reach_the_other_machine(
    postgres: Postgres, database: str, folder: Path
) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        id = one.add("the build runs on Fridays", metadata={"team": "infra"})
        converge(one, two)
        assert two.texts() == {id: "the build runs on Fridays"}
        two.update(id, content="the build runs on Mondays")
        converge(one, two)
        assert one.texts() == {id: "the build runs on Mondays"}
        one.delete(id)
        converge(one, two)
        assert two.texts() == {}


def test_an_edit_of_another_machine_takes_a_link_away_with_its_reason(
    postgres: Postgres, database: str, folder: Path
) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        old, new = one.add("the port of the gateway is 80"), one.add("the port of the gateway is 90")
        one.core.store.write(lambda t: links.add(t.connection, new, old, links.CONTRADICTS, 1.0)).result()
        assert len(ask(one.core, Links()).links) == 1
        converge(one, two)
        two.update(old, content="the gateway is written in Rust")
        converge(one, two)
        assert one.texts()[old] == "the gateway is written in Rust"
        assert ask(one.core, Links()).links == []


def test_two_edits_of_one_memory_both_live_and_are_named(postgres: Postgres, database: str, folder: Path) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        id = one.add("the port is 80")
        converge(one, two)
        one.update(id, content="the port is 8080")
        two.update(id, content="the port is 9090")
        converge(one, two)
        assert sorted(one.texts().values()) == ["the port is 8080", "the port is 9090"]
        assert one.texts()[id] == "the port is 8080"  # the first that was pushed


def test_a_server_cannot_reach_into_what_is_not_shared(postgres: Postgres, database: str, folder: Path) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        own = two.add("of this machine alone", "private")
        one.add("a shared fact")
        one.sync()
        forged = f"(SELECT '{own}'::uuid AS id, 'acme/api' AS ns UNION SELECT gen_random_uuid(), 'private')"
        postgres.sql(
            "INSERT INTO memoryd.mem (id, ns, root, seq, tag, body, size, deleted, purged, was_changed, device, author,"
            " at) SELECT f.id, f.ns, root, seq + row_number() OVER (), gen_random_uuid(), body, size, deleted, purged,"
            f" false, device, author, at FROM memoryd.mem, {forged} f; UPDATE memoryd.heads SET seq = seq + 3",
            database,
        )
        two.sync()
        assert set(two.texts().values()) == {"a shared fact"}
        assert own not in two.texts()
        assert two.texts("private") == {own: "of this machine alone"}


def test_one_key_on_two_machines_is_one_memory_with_a_conflict(postgres: Postgres, database: str, folder: Path) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        first, second = one.add("the port is 80"), two.add("the port is 90")
        for machine, id in ((one, first), (two, second)):
            machine.give_key(id, "port")
        converge(one, two)
        assert one.texts() == {first: "the port is 80", second: "the port is 90"}
        assert one.keys() == two.keys() == {"port": first}
        assert one.conflicts() == two.conflicts() == {second: first}


def test_keys_may_change_hands(postgres: Postgres, database: str, folder: Path) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        first, second = one.add("the old one"), one.add("another that is new")
        one.give_key(first, "port")
        converge(one, two)
        one.give_key(first, None)
        one.give_key(second, "port")
        one.update(first, content="the old one again")  # it comes after the other one
        converge(one, two)
        assert one.keys() == two.keys() == {"port": second}
        assert one.conflicts() == two.conflicts() == {}


def test_a_first_copy_says_how_much_is_to_be_read_and_what_has_come_is_found(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        for number in range(5):
            one.add(f"the port of service {number} is {8000 + 7 * number}")
        one.sync()
        engine, unread, there = two.engine, list[int](), list[int]()
        apply = engine._apply

        def record(*given: object, **places: int | str) -> None:
            unread.append(engine.figures.head - engine.root.cursor)
            there.append(len(found(two.core, "port of service", namespace=PLACE)))
            apply(*given, **places)  # type: ignore[arg-type]

        monkeypatch.setattr(exchange, "PULLED", 2)
        monkeypatch.setattr(engine, "_apply", record)
        two.sync()
        assert (unread[:3], there[:3]) == ([5, 3, 1], [0, 2, 4])
        assert engine.figures.head == engine.root.cursor


def test_what_is_written_goes_in_parts_of_at_most_a_megabyte(
    postgres: Postgres, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, parts = exchange.offer, list[list[Offer]]()

    def offer(*given: Any) -> Any:
        parts.append(given[-1])
        return real(*given)

    monkeypatch.setattr(exchange, "offer", offer)
    with machines(folder, postgres.address(database=database), "one") as (one,):
        texts = [f"{number} {'ü' * size}" for number, size in enumerate((240_000, 240_000, 240_000, 524_000, 10))]
        for text in texts:
            one.add(text, dedup=False)
        one.sync()
    assert [[texts.index(made.body["content"]) for made in part] for part in parts] == [[0, 1], [2], [3], [4]]
    sizes = [len(msgspec.json.encode(part)) for part in parts]
    assert [size <= offering.MOST_BYTES for size in sizes] == [True, True, False, True]
