"""What the server does with an offered version, rule by rule, and what it tells of itself."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import msgspec
import numpy as np
import psycopg
import pytest
from desk import ROOT, Desk, make_id, make_offer, read

from memoryd.client.errors import Conflict
from memoryd.daemon.core.core import Core
from memoryd.daemon.shared import backfill, exchange, schema, server, vectors
from memoryd.daemon.shared.backfill import SharedBackfill
from postgres import Postgres
from workbench import WordEmbedder


@pytest.fixture
def desk(postgres: Postgres, database: str) -> Iterator[Desk]:
    made = Desk(postgres, database)
    made.look()
    yield made
    made.close()


def test_a_new_version_and_its_edit_are_taken_and_a_replay_changes_nothing(desk: Desk) -> None:
    first = make_offer("the port is 80")
    assert desk.one(first).said == "taken"
    again = desk.one(first)
    assert (again.said, again.base, again.seq, desk.mark) == ("kept", first.tag, 1, 1)
    edit = make_offer("the port is 81", id=first.id, base=first.tag)
    assert desk.one(edit).said == "taken"
    late = desk.one(first)
    assert (late.said, late.base, read(late.row)["content"]) == ("kept", first.tag, "the port is 81")
    assert desk.texts() == ["the port is 81"]
    assert desk.mark == 2


def test_an_edit_of_what_was_offered_without_an_answer_is_taken(desk: Desk) -> None:
    first = make_offer("the port is 80")
    desk.one(first)  # the answer is lost
    assert desk.one(make_offer("the port is 81", id=first.id, offered=[first.tag])).said == "taken"
    assert desk.texts() == ["the port is 81"]


def test_what_its_author_replaced_is_not_taken_when_it_comes_late(desk: Desk) -> None:
    late = make_offer("the port is 80")
    assert desk.one(make_offer(id=late.id, deleted=True, offered=[late.tag])).said == "taken"
    assert desk.one(late).said == "kept"
    assert desk.texts() == []


def test_two_edits_are_a_conflict_and_a_replay_makes_no_second_one(desk: Desk) -> None:
    first = make_offer("the port is 80")
    mine, theirs = (make_offer(text, id=first.id, base=first.tag) for text in ("the port is 81", "the port is 90"))
    desk.offer(first, mine)
    answer = desk.one(theirs)
    assert (answer.said, read(answer.row)["content"]) == ("conflict", "the port is 81")
    assert answer.sibling is not None
    sibling = desk.rows()[answer.sibling.id]
    assert (sibling.conflict_of, sibling.tag, read(sibling)["content"]) == (first.id, theirs.tag, "the port is 90")
    mark = desk.mark
    assert desk.one(theirs) == answer
    edit = make_offer("the port is 91", id=first.id, base=first.tag, offered=[theirs.tag])
    on = desk.one(edit).sibling
    assert on is not None
    assert (on.id, on.tag, desk.mark) == (sibling.id, edit.tag, mark + 1), "its author goes on in the same sibling"
    assert desk.one(edit).sibling == on
    gone = make_offer(id=first.id, base=first.tag, deleted=True, offered=[theirs.tag, edit.tag])
    desk.one(gone)
    assert desk.texts() == ["the port is 81"]


def test_an_edit_beats_a_deletion_whichever_was_first(desk: Desk) -> None:
    one, other = make_offer("the port is 80"), make_offer("the host is db")
    desk.offer(one, other, *(make_offer(id=it.id, base=it.tag, deleted=True) for it in (one,)))
    assert desk.one(make_offer("the port is 81", id=one.id, base=one.tag)).said == "taken"
    assert desk.one(make_offer("the host is db2", id=other.id, base=other.tag)).said == "taken"
    dropped = desk.one(make_offer(id=other.id, base=other.tag, deleted=True))
    assert (dropped.said, dropped.base, read(dropped.row)["content"]) == ("kept", None, "the host is db2")
    assert desk.texts() == ["the port is 81", "the host is db2"]
    deleted = desk.rows()[one.id]
    assert desk.one(make_offer(id=one.id, base=deleted.tag, deleted=True)).said == "taken"
    both = desk.one(make_offer(id=one.id, base=one.tag, deleted=True))
    assert (both.said, both.base) == ("kept", desk.rows()[one.id].tag)
    gone = make_offer(id=other.id, base=desk.rows()[other.id].tag, deleted=True)
    assert desk.one(msgspec.structs.replace(gone, body={"content": "a text"})).said == "taken"
    assert read(desk.rows()[other.id]) == {}, "a deletion that brings a text leaves none"


def test_equal_texts_are_merged(desk: Desk) -> None:
    votes = [{"by": by, "at": at} for by, at in (("ann", 1.0), ("bob", 2.0))]
    first = make_offer("deploys are on Tuesday", body={"metadata": {"a": 1, "b": 1}, "votes": votes[:1]})
    desk.one(first)
    body = {"metadata": {"b": 2, "c": 2}, "pinned": True, "votes": [{"by": "ann", "at": 9.0}, votes[1]]}
    other = make_offer("deploys are on Tuesday", id=first.id, body=body)
    answer = desk.one(other)
    assert (answer.said, answer.base, answer.sibling) == ("kept", other.tag, None)
    merged = read(answer.row)
    assert (merged["metadata"], merged["pinned"], merged["votes"]) == ({"a": 1, "b": 1, "c": 2}, True, votes)
    again = desk.one(make_offer("deploys are on Tuesday", id=first.id, body={"metadata": {"a": 1}}))
    assert (again.said, again.base, desk.mark) == ("kept", other.tag, 2), "it says nothing new"


def test_tags_of_two_edits_are_united(desk: Desk) -> None:
    desk.server.run(  # as a server has it whose tables are older: `migrate` makes it again
        "CREATE OR REPLACE FUNCTION memoryd.merge(first jsonb, second jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE"
        " RETURN second || first"
    )
    schema.migrate(desk.server)
    first = make_offer("deploys are on Tuesday", body={"metadata": {"tags": ["old", "a"]}})
    desk.one(first)
    for metadata in ({"tags": ["old", "b"]}, {"tags": "no list"}, {}):
        other = make_offer("deploys are on Tuesday", id=first.id, body={"metadata": metadata})
        assert read(desk.one(other).row)["metadata"]["tags"] == ["old", "a", "b"]


def test_a_key_is_that_of_the_first(desk: Desk) -> None:
    one, other = make_offer("the port is 80", key="port"), make_offer("the port is 90", key="port")
    desk.one(one)
    answer = desk.one(other)
    assert (answer.said, answer.row and answer.row.id) == ("taken", one.id)
    row = desk.rows()[other.id]
    assert (row.conflict_of, read(row).get("key")) == (one.id, None)
    replay = desk.one(other)
    assert (replay.said, replay.row) == ("kept", row), "the machine learns that it lost the key"
    elsewhere = make_offer("of another place", key="port", ns=f"{ROOT}/api")
    assert desk.one(elsewhere).row is None
    desk.one(make_offer(id=one.id, base=one.tag, deleted=True))
    assert desk.one(make_offer("the port is 91", id=other.id, base=other.tag, key="port")).row is None
    assert read(desk.rows()[other.id])["key"] == "port"


def test_a_purge_beats_everything_and_takes_siblings_and_vectors(postgres: Postgres, with_vectors: str) -> None:
    desk = Desk(postgres, with_vectors)
    desk.look()
    first = make_offer("a secret", key="k")
    aside = make_offer("a secret too", id=first.id)
    bystander = make_offer("of no concern")
    desk.offer(first, aside, bystander)
    feed = vectors.read_feed(desk.server, ROOT, 0)
    made = [(one, b"hash", np.ones(4, dtype=np.float32)) for one in feed]
    vectors.put(desk.server, ROOT, "m", [], feed[:1])
    assert vectors.take_lease(desk.server, ROOT, "m", 4, "desk") is not None
    vectors.put(desk.server, ROOT, "m", made, feed)
    assert len(postgres.sql("SELECT 1 FROM memoryd.vec", with_vectors)) == 3
    purge = make_offer(id=first.id, purged=True, deleted=True)
    assert desk.one(purge).said == "taken"
    assert desk.one(purge).said == "purged"
    for late in (first, aside, make_offer("new text", id=first.id, base=purge.tag)):
        assert desk.one(late).said == "purged"
    on_its_way = "0" * 16 + first.id[16:]  # as the id of a version that was set aside
    late = make_offer("a secret that was on its way", id=on_its_way, conflict_of=first.id)
    assert desk.one(late).said == "purged"
    wanted_the_key = make_offer("a memory of its own", conflict_of=first.id)
    assert desk.one(wanted_the_key).said == "taken"
    assert desk.texts() == ["of no concern", "a memory of its own"]
    assert postgres.sql(
        "SELECT count(*) FROM memoryd.mem WHERE purged AND body = '{}' AND key IS NULL", with_vectors
    ) == [(3,)]
    assert postgres.sql("SELECT count(*) FROM memoryd.mem WHERE body::text LIKE '%secret%'", with_vectors) == [(0,)]
    assert len(postgres.sql("SELECT 1 FROM memoryd.vec", with_vectors)) == 1
    vectors.put(desk.server, ROOT, "m", made, feed)  # made before the purge, put after it
    assert len(postgres.sql("SELECT 1 FROM memoryd.vec", with_vectors)) == 1
    desk.close()


def test_a_row_that_is_refused_holds_up_no_other(desk: Desk) -> None:
    deep: list[object] = []
    for _ in range(200_000):
        deep = [deep]
    long_key = "".join(make_id() for _ in range(100))
    bad = (
        make_offer("a NUL \0 in it"),
        make_offer("a long key", key=long_key),
        make_offer("deep", body={"metadata": {"deep": deep}}),
        make_offer("elsewhere", ns="other"),
        make_offer("beside", ns=f"{ROOT}x"),
        make_offer("no id", id="x"),
        make_offer("half a letter \ud800"),
    )
    good = [make_offer(f"good {number}") for number in range(len(bad) + 1)]
    mixed = [offer for pair in zip(good, bad, strict=False) for offer in pair] + good[-1:]
    answers = {answer.id: answer for answer in desk.offer(*mixed).answers}
    assert {id for id, answer in answers.items() if answer.said == "refused"} == {offer.id for offer in bad}
    assert all(answer.reason for answer in answers.values() if answer.said == "refused")
    assert desk.texts() == [f"good {number}" for number in range(len(good))]
    assert desk.mark == len(good), "a refused row takes no number"


def test_answers_are_bounded_and_what_was_not_looked_at_is_offered_again(desk: Desk) -> None:
    large = [make_offer("x" * 3_000_000 + str(number)) for number in range(3)]
    for offer in large:
        desk.one(offer)
    edits = [make_offer("short", id=offer.id) for offer in large]
    first = desk.offer(*edits).answers
    assert [answer.said for answer in first] == ["conflict", "conflict"]
    rest = desk.offer(*edits[len(first) :]).answers
    assert [answer.id for answer in rest] == [edits[2].id]


def test_the_feed_comes_in_parts_of_bounded_size(postgres: Postgres, database: str, desk: Desk) -> None:
    for size in (10, 2_500_000, 2_500_000, 9_000_000, 10, 10):
        desk.one(make_offer("x" * size))
    parts, after = [], 0
    while True:
        pulled = exchange.pull(desk.server, ROOT, desk.life, after)
        parts.append([len(read(row)["content"]) for row in pulled.rows])
        after = pulled.rows[-1].seq
        if after >= pulled.head.seq:
            break
    assert parts == [[10, 2_500_000], [2_500_000], [9_000_000], [10, 10]]
    ids = list(desk.rows())
    assert [row.id for row in exchange.fetch(desk.server, ROOT, ids)] == ids


def test_numbers_become_visible_in_their_order(postgres: Postgres, database: str) -> None:
    writers, each = 4, 30
    seen: list[int] = []
    done = threading.Event()

    def write(number: int) -> None:
        desk = Desk(postgres, database)
        for place in range(each):
            desk.one(make_offer(f"{number} {place}"))
        desk.close()

    def follow() -> None:
        desk = Desk(postgres, database)
        while True:
            is_end = done.is_set()
            found = exchange.pull(desk.server, ROOT, "", seen[-1] if seen else 0).rows
            seen.extend(row.seq for row in found)
            if is_end and not found:
                break
        desk.close()

    with ThreadPoolExecutor() as pool:
        reading = pool.submit(follow)
        for writing in [pool.submit(write, number) for number in range(writers)]:
            writing.result()
        done.set()
        reading.result()
    assert seen == list(range(1, writers * each + 1))


def test_who_waited_with_an_old_snapshot_is_told_to_try_again(postgres: Postgres, database: str, desk: Desk) -> None:
    other = Desk(postgres, database)
    other.server.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    other.look()
    desk.one(make_offer("first"))
    with pytest.raises(psycopg.errors.SerializationFailure) as raised:
        other.one(make_offer("second"))
    assert server.is_passing(raised.value)
    other.server.run("ROLLBACK")
    assert other.one(make_offer("second")).said == "taken"
    other.close()


def test_a_change_is_told_at_most_once_a_second(postgres: Postgres, database: str, desk: Desk) -> None:
    listener = Desk(postgres, database)
    listener.server.run(f"LISTEN {listener.look().channel}")
    for number in range(20):
        desk.one(make_offer(str(number)))
    postgres.sql(f"NOTIFY {listener.look().channel}, 'end'", database)
    heard = []
    for notice in listener.server.connection.notifies(timeout=10):
        if notice.payload == "end":
            break
        heard.append(notice)
    [(took,)] = postgres.sql("SELECT extract(epoch FROM max(at) - min(at))::float FROM memoryd.mem", database)
    assert 1 <= len(heard) <= 1 + int(took)  # type: ignore[call-overload]
    listener.close()


def test_one_machine_at_a_time_makes_the_vectors(
    postgres: Postgres, with_vectors: str, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "_AGAIN_S", 0.0)
    with closing(Desk(postgres, with_vectors)) as desk:
        desk.look()
        desk.one(make_offer("the port is 80"))
        model, length = WordEmbedder.fingerprint, WordEmbedder.dimensions
        assert vectors.take_lease(desk.server, ROOT, model, length, "one") == 0
        second = SharedBackfill(core, ROOT, "two")
        second.work(lambda question: question(desk.server), desk.mark)
        assert vectors.take_lease(desk.server, ROOT, model, length, "two") is None
        assert vectors.take_lease(desk.server, ROOT, model, length, "one") == 0, "it may go on"
        assert postgres.sql("SELECT count(*) FROM memoryd.vec", with_vectors) == [(0,)]
        postgres.sql("UPDATE memoryd.models SET until = now() - interval '1 second'", with_vectors)
        second.work(lambda question: question(desk.server), desk.mark)
        assert postgres.sql("SELECT machine, seq FROM memoryd.models", with_vectors) == [("two", 1)]
        assert postgres.sql("SELECT count(*) FROM memoryd.vec", with_vectors) == [(1,)]
        desk.one(make_offer("the cache is Valkey"))
        assert vectors.take_lease(desk.server, ROOT, model, length, "one") is None, "it is the other's now"


def test_machines_are_noted_and_the_log_is_pruned(postgres: Postgres, database: str, desk: Desk) -> None:
    first, second = make_offer("text"), make_offer("another")
    desk.offer(first, second)
    assert exchange.note_machine(desk.server, ROOT, "one", 1) == []
    assert exchange.note_machine(desk.server, ROOT, "two", 1) == ["one (postgres)"]
    assert exchange.note_machine(desk.server, ROOT, "one", 2) == ["two (postgres)"]
    noted = postgres.sql(
        "SELECT root, machine, role, seq, at <= now() FROM memoryd.machines ORDER BY machine", database
    )
    assert noted == [(ROOT, "one", "postgres", 2, True), (ROOT, "two", "postgres", 1, True)]
    for offer, days in ((first, 91), (second, 89)):
        postgres.sql(f"UPDATE memoryd.log SET at = now() - interval '{days} days' WHERE tag = '{offer.tag}'", database)
    exchange.note_machine(desk.server, ROOT, "one", 2)
    assert postgres.sql("SELECT replace(tag::text, '-', '') FROM memoryd.log", database) == [(second.tag,)]
    assert desk.one(first).said == "kept"


def test_the_newest_and_the_pinned_are_found(desk: Desk) -> None:
    offers = [make_offer(str(number), body={"pinned": number < 2}) for number in range(5)]
    desk.offer(*offers)
    assert exchange.find_start(desk.server, ROOT, 2) == 3
    assert exchange.find_start(desk.server, ROOT, 5) is None
    assert exchange.list_pinned(desk.server, ROOT, 3, 10) == [offers[1].id, offers[0].id]
    assert exchange.count_rows(desk.server, ROOT) == 5


def test_tables_of_the_first_design_are_refused(postgres: Postgres, database: str) -> None:
    owner = server.connect(postgres.address(database=database))
    assert schema.migrate(owner) == (schema.VERSION, schema.VERSION)
    owner.run("DROP SCHEMA memoryd CASCADE")
    with pytest.raises(Conflict, match="shared migrate"):
        schema.check_version(owner)
    owner.run("CREATE SCHEMA memoryd; CREATE TABLE memoryd.meta (schema int); INSERT INTO memoryd.meta VALUES (1)")
    with pytest.raises(Conflict, match="DROP SCHEMA memoryd CASCADE"):
        schema.migrate(owner)
    owner.run("DROP SCHEMA memoryd CASCADE")
    assert schema.migrate(owner) == (0, schema.VERSION)
    owner.run("UPDATE memoryd.meta SET schema = 99")
    with pytest.raises(Conflict, match="newer memoryd"):
        schema.migrate(owner)
    owner.close()


def test_an_old_pgvector_is_named_and_makes_nothing(postgres: Postgres, database: str) -> None:
    postgres.sql("CREATE EXTENSION vector", database)
    with closing(server.connect(postgres.address(database=database))) as owner:
        postgres.sql("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'", database)
        with pytest.raises(Conflict, match=r"has pgvector 0\.7\.4.*0\.8 or newer.*ALTER EXTENSION vector UPDATE"):
            vectors.make(owner, {"m": 4})
        assert owner.value("SELECT to_regclass('memoryd.vec')") is None
        postgres.sql("UPDATE pg_extension SET extversion = '0.10.0' WHERE extname = 'vector'", database)
        assert vectors.make(owner, {"m": 4})


def test_a_root_that_is_not_there_takes_nothing(desk: Desk, postgres: Postgres, database: str) -> None:
    postgres.sql("DELETE FROM memoryd.heads", database)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="there is no root"):
        desk.offer(make_offer("a text"))
