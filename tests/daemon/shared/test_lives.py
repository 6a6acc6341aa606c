"""A server that lost its tail, was restored or was started again begins a new life, and tells who knows more."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import ROOT, Desk, make_offer

from memoryd.daemon.shared import schema, server
from postgres import Postgres

TABLES = ("meta", "grants", "heads", "lives", "log", "mem", "machines")


@pytest.fixture
def desk(postgres: Postgres, database: str) -> Iterator[Desk]:
    made = Desk(postgres, database)
    made.look()
    made.one(make_offer("one"))
    yield made
    made.close()


def lives(postgres: Postgres, database: str) -> list[int]:
    return [int(str(start)) for (start,) in postgres.sql("SELECT start FROM memoryd.lives ORDER BY start", database)]


def write_three(desk: Desk) -> str:
    """Write what is lost afterwards; return the life that it was written in."""
    desk.offer(*(make_offer(text) for text in ("two", "three", "four")))
    return desk.life


def find_parted(postgres: Postgres, database: str, known: str) -> None:
    """See that whoever knows the lost tail is told so, and that others go on, in a new life."""
    new, old = Desk(postgres, database), Desk(postgres, database)
    new.life, new.mark = known, 1
    head = new.look()
    assert (head.seq, head.life, head.lives) == (1, known, None), "reading begins no life"
    old.life, old.mark = known, 4
    assert old.offer(make_offer("known")).parted
    assert new.one(make_offer("other two")).seq == 2
    assert new.life != known
    assert old.offer(make_offer("known")).parted, "a number that was given twice is not the same"
    old.mark = 1
    assert not old.offer(make_offer("other three")).parted, "up to the parting the life is known"
    told = old.look().lives
    new.life = ""
    assert new.look().lives == [(known, 1), (new.life, 2)]
    assert told is None
    assert new.texts() == ["one", "other two", "other three"]
    for made in (new, old):
        made.close()


@pytest.mark.parametrize("way", ["truncate and insert", "delete and insert", "update"])
def test_tables_that_were_put_back_by_hand(postgres: Postgres, database: str, desk: Desk, way: str) -> None:
    for table in TABLES:
        postgres.sql(f"CREATE TABLE saved_{table} AS SELECT * FROM memoryd.{table}", database)
    known = write_three(desk)
    again = {
        "truncate and insert": "TRUNCATE memoryd.{0}; INSERT INTO memoryd.{0} SELECT * FROM saved_{0}",
        "delete and insert": "DELETE FROM memoryd.{0}; INSERT INTO memoryd.{0} SELECT * FROM saved_{0}",
    }.get(way)
    if again is None:
        postgres.sql("UPDATE memoryd.heads SET seq = 1; DELETE FROM memoryd.mem WHERE seq > 1", database)
    for table in TABLES if again else ():
        postgres.sql(again.format(table), database)
    find_parted(postgres, database, known)


def test_tables_that_were_copied_out_and_in(postgres: Postgres, database: str, desk: Desk) -> None:
    owner = server.connect(postgres.address(database=database)).connection.cursor()
    saved = {}
    for table in TABLES:
        with owner.copy(f"COPY memoryd.{table} TO STDOUT") as copying:
            saved[table] = b"".join(bytes(part) for part in copying)
    known = write_three(desk)
    for table in TABLES:
        owner.execute(f"TRUNCATE memoryd.{table}")
        with owner.copy(f"COPY memoryd.{table} FROM STDIN") as copying:
            copying.write(saved[table])
    owner.connection.close()
    find_parted(postgres, database, known)


def test_a_dump_that_was_restored(postgres: Postgres, database: str, desk: Desk) -> None:
    def run(program: str, *words: str) -> None:
        where = ["-h", "127.0.0.1", "-p", str(postgres.port), "-U", "postgres"]
        done = subprocess.run(
            [str(postgres.binaries / program), *where, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    file = Path(postgres.folder) / f"{database}.dump"
    run("pg_dump", "-Fc", "-f", str(file), database)
    known = write_three(desk)
    desk.close()
    run("dropdb", "--force", database)
    run("createdb", database)
    run("pg_restore", "-d", database, str(file))
    find_parted(postgres, database, known)


def test_a_start_of_the_server_begins_a_life_with_the_next_number(
    postgres: Postgres, database: str, desk: Desk
) -> None:
    postgres.sql("CHECKPOINT")
    known = desk.life
    for _ in range(2):  # nothing is written in between
        postgres.stop()
        postgres.start()
    again = Desk(postgres, database)
    again.life, again.mark = known, 1
    assert again.look().lives is None
    assert lives(postgres, database) == [1]
    assert not again.offer(make_offer("two")).parted, "nothing was lost"
    assert lives(postgres, database) == [1, 2]
    assert again.life != known
    again.one(make_offer("three"))
    assert lives(postgres, database) == [1, 2]
    again.close()


def test_a_life_without_a_number_is_forgotten(postgres: Postgres, database: str, desk: Desk) -> None:
    """A new channel writes the head too."""
    owner = server.connect(postgres.address(database=database))
    known = desk.life
    for _ in range(3):
        postgres.sql("UPDATE memoryd.heads SET seq = seq", database)  # not by memoryd
        schema.revoke(owner, ROOT, "nobody")
    assert lives(postgres, database) == [1, 2]
    assert not desk.offer(make_offer("two")).parted
    assert desk.look().seq == 2
    assert lives(postgres, database) == [1, 2]
    assert desk.life != known
    owner.close()


def test_numbers_go_on_after_those_that_are_there(postgres: Postgres, database: str, desk: Desk) -> None:
    write_three(desk)
    postgres.sql("UPDATE memoryd.heads SET seq = 1", database)
    desk.life = ""
    assert desk.one(make_offer("five")).seq == 5
    assert desk.texts() == ["one", "two", "three", "four", "five"]


def test_an_offer_in_a_savepoint_of_the_client_loses_nothing(desk: Desk) -> None:
    with desk.server.begin(), desk.server.begin():
        desk.one(make_offer("two"))
    assert desk.one(make_offer("three")).seq == 3
    assert desk.texts() == ["one", "two", "three"]


def test_what_was_brought_back_replaces_what_nobody_changed(desk: Desk) -> None:
    lost = "0" * 31 + "1"
    one = make_offer("version 5")
    desk.offer(make_offer("before"), one)
    point = desk.mark
    later = make_offer("version 7", id=one.id, base=None, life=lost, seq=7, point=point)
    later.base = later.tag
    assert desk.one(later).said == "taken"
    older = make_offer("version 6", id=one.id, life=lost, seq=6, point=point)
    older.base = older.tag
    assert (desk.one(older).said, desk.one(older).base) == ("kept", None)
    newest = make_offer("version 8", id=one.id, life=lost, seq=8, point=point)
    newest.base = newest.tag
    assert desk.one(newest).said == "taken"
    assert desk.one(make_offer("an edit of 8", id=one.id, base=newest.tag)).said == "taken"
    last = make_offer("version 9", id=one.id, life=lost, seq=9, point=point)
    last.base = last.tag
    assert desk.one(last).said == "conflict", "somebody changed what was brought back"
