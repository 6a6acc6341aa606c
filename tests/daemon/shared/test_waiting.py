"""Saves while the place is away: they are here as any memory, go there once when it is back, and are here no more."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest
from joined import Shared, decide, get_roots

from memoryd.client import NotFound, StorageFull, Unavailable, protocol
from memoryd.client.protocol import Add, AddToken, Get, GetShared, NewMemory, RevokeToken, Update
from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.upkeep import rescue
from waiting import wait_until
from workbench import Daemon


def leave(shared: Shared) -> None:
    """Take the place away: no session goes on and none begins."""
    shared.sshd.stop()
    for root in get_roots(shared.daemon):
        child = root.line._child
        if child:
            child.kill()
    wait_until(lambda: all(root.line.state in ("away", "idle") for root in get_roots(shared.daemon)))


def come_back(shared: Shared) -> None:
    shared.sshd.start()


def test_a_save_waits_is_found_and_is_sent_once(shared: Shared) -> None:
    leave(shared)
    added = shared.decide("Releases are on Tuesdays")
    assert (added.shared, added.waiting) == ("acme", True)
    [hit] = shared.here.search("when are releases?")
    assert (hit.id, hit.tier, hit.shared) == (added.id, "waiting", "")
    assert shared.here.call(Get(id=added.id)).content == "Releases are on Tuesdays"
    status = shared.here.call(GetShared())
    assert (status.roots[0].waiting, status.roots[0].state) == (1, "away")
    assert [save.id for save in status.waiting] == [added.id]
    come_back(shared)
    shared.send()
    assert shared.list_there() == ["Releases are on Tuesdays"]
    [hit] = shared.here.search("when are releases?")
    assert (hit.shared, hit.content) == ("acme", "Releases are on Tuesdays")
    assert hit.id != added.id
    with pytest.raises(NotFound):
        shared.here.get(added.id)


def test_what_was_sent_is_here_no_more_not_even_in_the_history(shared: Shared) -> None:
    leave(shared)
    added = shared.decide("Releases are on Tuesdays")
    shared.here.call(Update(id=added.id, content="Releases are on Fridays"))
    come_back(shared)
    shared.send()
    assert shared.list_there() == ["Releases are on Fridays"]
    with shared.daemon.core.store.reading() as connection:
        for table in ("memories", "history", "extraction", "later", "sends"):
            [(count,)] = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
            assert not count, table


def test_what_is_deleted_while_it_waits_is_not_sent_and_what_came_back_is(shared: Shared) -> None:
    leave(shared)
    gone, back = shared.decide("It goes"), shared.decide("It comes back")
    shared.here.delete(gone.id)
    operation = shared.here.delete(back.id).operation
    assert shared.list_waiting() == []
    shared.here.undo(operation)
    come_back(shared)
    shared.send()
    assert shared.list_there() == ["It comes back"]


@pytest.mark.slow
def test_an_answer_that_was_lost_makes_no_second_memory_and_loses_no_change(shared: Shared) -> None:
    """The place takes the save, and the line ends before its reply: the save waits and is sent again."""
    [root] = get_roots(shared.daemon)
    receive = root.line._receive
    root.line._receive = lambda data: receive(data) if root.line.state != "ready" else root.line._child.kill()
    added = shared.decide("Releases are on Tuesdays")
    assert added.waiting
    assert shared.list_there() == ["Releases are on Tuesdays"]
    shared.here.call(Update(id=added.id, content="Releases are on Fridays", metadata={"team": "api"}))
    root.line._receive = receive
    shared.send()
    [memory] = shared.there.list()
    assert (memory.content, memory.metadata) == ("Releases are on Fridays", {"team": "api", "author": "acme"})


@pytest.mark.slow
def test_what_was_erased_at_the_place_does_not_come_back_by_a_save_that_is_sent_again(shared: Shared) -> None:
    [root] = get_roots(shared.daemon)
    receive = root.line._receive
    root.line._receive = lambda data: receive(data) if root.line.state != "ready" else root.line._child.kill()
    shared.decide("Releases are on Tuesdays")
    [memory] = shared.there.list()
    shared.there.erase(ids=[memory.id])
    root.line._receive = receive
    shared.send()
    assert shared.list_there() == []
    assert shared.here.list().total == 0


@pytest.mark.slow
def test_what_the_place_refuses_stays_with_the_reason_until_it_is_sent_again(shared: Shared) -> None:
    leave(shared)
    added = shared.decide("Releases are on Tuesdays")
    shared.there.call(RevokeToken(name="acme"))
    shared.there.call(AddToken(name="acme", namespace="acme", role="reader"))
    come_back(shared)

    def is_refused() -> bool:
        shared.here.search("wake the line")
        return bool(shared.here.call(GetShared()).waiting[0].refused)

    wait_until(is_refused)
    [save] = shared.here.call(GetShared()).waiting
    assert (save.id, "only reads" in save.refused) == (added.id, True)
    shared.there.call(RevokeToken(name="acme"))
    shared.there.call(AddToken(name="acme", namespace="acme"))
    [root] = get_roots(shared.daemon)
    root.line._child.kill()
    shared.send()
    assert shared.list_there() == ["Releases are on Tuesdays"]


@pytest.mark.slow
def test_a_place_that_is_full_takes_nothing_says_so_and_is_read(
    shared: Shared, start_daemon: Callable[..., Daemon]
) -> None:
    full = start_daemon(storage={"max_size_mb": 1})
    with full.client() as owner:
        owner.call(AddToken(name="acme", namespace="acme"))
        decide(owner, "Releases are on Tuesdays")
        with suppress(StorageFull):
            for number in range(100):
                owner.add(f"{number} " + "word " * 20_000, dedup=False)
    root = {**shared.root, "memctl": shared.root["memctl"].replace(str(shared.place.socket), str(full.socket))}
    with start_daemon(shared={"acme": root}).client() as client:
        with pytest.raises(StorageFull, match="The place of acme says"):
            decide(client, "Builds are on Fridays")
        assert [hit.shared for hit in client.search("releases")][:1] == ["acme"]


def test_other_changes_need_the_place_and_change_nothing(shared: Shared) -> None:
    added = shared.decide("Releases are on Tuesdays")
    leave(shared)
    calls = (
        Update(id=added.id, content="x"),
        protocol.Delete(ids=[added.id]),
        Add(memory=NewMemory(content="It replaces", type="decision", supersedes=added.id), namespace="acme/api"),
    )
    for call in calls:
        with pytest.raises(Unavailable, match="cannot be reached"):
            shared.here.call(call)
    assert shared.list_there() == ["Releases are on Tuesdays"]
    assert shared.here.list(reach="exact", limit=100).total == 0
    assert shared.here.list().degraded == ["shared:acme"]


@pytest.mark.slow
def test_the_place_stops_and_starts_under_many_saves(shared: Shared) -> None:
    """Nothing that was acknowledged is lost, nothing is there twice."""
    texts = [f"Decision {word} {number} of the release" for number in range(10) for word in ("one", "two", "three")]

    def interrupt() -> None:
        for _ in range(4):
            time.sleep(0.2)
            leave(shared)
            come_back(shared)

    with ThreadPoolExecutor(4) as pool:
        stopping = pool.submit(interrupt)
        saved = list(pool.map(lambda text: decide(shared.here, text, dedup=False), texts))
        stopping.result()
    assert all(added.shared == "acme" for added in saved)
    shared.send()
    assert shared.list_there() == sorted(texts)


def test_nothing_of_this_machine_is_merged_into_what_waits(shared: Shared) -> None:
    leave(shared)
    shared.decide("Releases are on Tuesdays")
    memory = NewMemory(content="Releases are on Tuesdays", type="decision", metadata={"private": "yes"}, source="mem0")
    assert shared.here.call(Add(memory=memory, namespace="acme/api")).outcome == "created"
    come_back(shared)
    shared.send()
    [there] = shared.there.list()
    assert there.metadata == {"author": "acme"}


def test_what_waited_in_a_copy_that_is_restored_waits_for_a_word(shared: Shared, folder: Path) -> None:
    leave(shared)
    added = shared.decide("Releases are on Tuesdays")
    shared.here.call(protocol.Backup(path=str(folder / "copy")))
    (folder / "restored").mkdir()
    rescue.restore(folder / "copy", folder / "restored")
    with closing(apsw.Connection(str(folder / "restored" / FILE_NAME))) as connection:
        found = connection.execute("SELECT memory, refused FROM sends").fetchall()
    assert found == [(added.id, "it comes from a copy that was restored")]


def test_what_waits_is_not_sent_by_an_import_of_it(shared: Shared) -> None:
    leave(shared)
    added = shared.decide("Releases are on Tuesdays")
    records = shared.here.call(protocol.ExportMemories(namespace="acme/api", reach="exact"))
    shared.here.delete(added.id)
    shared.here.call(protocol.ImportMemories(records=list(records)))
    come_back(shared)
    shared.send()
    assert shared.here.get(added.id).tier == "L1"
    assert shared.list_there() == []


def test_what_waits_is_erased_by_what_it_mentions_and_is_never_sent(shared: Shared) -> None:
    leave(shared)
    shared.decide("Releases are on Tuesdays")
    shared.decide("Xylophones are tuned on Fridays")
    assert shared.here.call(protocol.Erase(matching="xylophones")).count == 1
    assert [b"ylophon" in path.read_bytes() for path in shared.daemon.core.folder.rglob("*.sqlite*")].count(True) == 0
    come_back(shared)
    shared.send()
    assert shared.list_there() == ["Releases are on Tuesdays"]
