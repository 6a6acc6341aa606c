"""Erasing for good: no byte of the data directory holds what was said, and nothing brings it back."""

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client import Client
from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.protocol import (
    Backup,
    Erase,
    Erased,
    ExportMemories,
    ImportMemories,
    Record,
)
from memoryd.daemon.core.core import Core
from memoryd.daemon.erasing import erasing
from memoryd.daemon.erasing.tables import erasing as records
from memoryd.daemon.erasing.tables import leftovers, trimming
from memoryd.daemon.erasing.tables.mentions import OtherTraces
from memoryd.daemon.jobs.table import list_jobs
from memoryd.daemon.registry import finish
from memoryd.daemon.store import copies, erasures, upkeep
from memoryd.daemon.store.vectors import count
from workbench import Daemon, add, ask, search, wait_until

SECRET = "Zenobia confessed that the quokkafarm owes Xanthippe 48151 guilders"
ANSWER = "I decided that the quokkafarm keeps its zythology ledger in Ljubljana"
FORMER = "Zenobia owes the wombatfarm nothing at all"
LONG = f"{'We looked at the quarterly figures of the harbour again. ' * 40}The narwhalbank lent Xanthippe everything."
PLAIN = [
    {"role": "user", "content": f"We decided that the service {name} listens on port {port}"}
    for name, port in (("billing", 9001), ("search", 9002), ("mail", 9003))
]
WORDS = sorted(
    {word for text in (SECRET, ANSWER, FORMER, LONG[-42:]) for word in re.findall(r"\w{6,}", text)}
    - {"decided", "nothing"}
)


def holding(folder: Path, words: list[str]) -> list[tuple[str, str]]:
    """Return the files that hold any of some words, in any case."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [(path.name, word) for path in files for word in words if word.lower().encode() in path.read_bytes().lower()]


def erase(client: Client, **fields: Any) -> Erased:
    return client.call(Erase(**fields))


def read_unused_vectors(daemon: "Daemon") -> set[int]:
    """Return the vectors of texts, parts and contexts that nothing has any more."""
    with daemon.core.store.reading() as connection:
        return set(trimming.find_unused(connection))


@pytest.fixture
def said(start_daemon: Callable[..., "Daemon"], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple["Daemon", Client]]:
    """A session with a secret in it, whose turns left L0, were summed up, corrected, deleted and searched for."""
    monkeypatch.setattr("memoryd.daemon.conversations.extracting.QUIET_S", 0.01)
    daemon = start_daemon()
    with daemon.client() as client:
        secret = {"role": "user", "content": SECRET, "id": "5e" * 16}
        answer = {"role": "assistant", "content": ANSWER, "id": "a5" * 16}
        long = {"role": "assistant", "content": LONG}
        client.observe([PLAIN[0], secret, answer, *PLAIN[1:], secret, long], session="s1")
        client.observe([{"role": "user", "content": f"We decided that shelf {n} holds jar {n * 7}"} for n in range(30)])
        client.update("5e" * 16, content=FORMER)
        client.update("5e" * 16, content=SECRET)
        client.add("The quokkafarm is in debt", metadata={"turns": ["5e" * 16]}, source="extraction")
        client.add("Session s1: the wombatfarm was named", metadata={"session": "s1"}, source="session_summary")
        wait_until(lambda: daemon.core.embedding.count_pending() == 0)
        client.consolidate()
        for name in {"sweep", "cluster", "maintain"} & list_jobs().keys():
            client.run_job(name)
        client.run_job("sweep", dry_run=True)  # its plan is kept
        client.search("Zenobia quokkafarm narwhalbank")
        client.context("what about the quokkafarm", session="s2")
        assert ("memoryd.sqlite", "quokkafarm") in holding(daemon.core.folder, WORDS) or holding(
            daemon.core.folder, WORDS
        )
        yield daemon, client


def test_nothing_on_disk_holds_what_was_erased(said: tuple["Daemon", Client]) -> None:
    daemon, client = said
    found = erase(client, session="s1", dry_run=True)
    assert {"5e" * 16, "a5" * 16} <= set(found.ids)
    assert len(found.derived) == 1  # the summary is of the session as well
    assert {word.lower() for _, word in holding(daemon.core.folder, WORDS)} >= {"quokkafarm", "narwhalbank"}
    unused = read_unused_vectors(daemon)
    done = erase(client, session="s1")
    assert (done.ids, done.copies) == (found.ids, [])
    assert holding(daemon.core.folder, WORDS) == []
    assert read_unused_vectors(daemon) <= unused
    assert client.search("Zenobia quokkafarm", options={"distinct": False}).hits == [] or all(
        "quokka" not in hit.content for hit in client.search("Zenobia quokkafarm")
    )
    assert all("shelf" in hit.content for hit in client.search("which shelf holds the jar"))
    assert daemon.core.store.find_problems() == []
    daemon.stop()
    daemon.core.close()  # what it writes at its end
    assert holding(daemon.core.folder, WORDS) == []


def test_an_erased_memory_is_not_brought_back(said: tuple["Daemon", Client]) -> None:
    daemon, client = said
    before = {operation.id for operation in client.operations(limit=1000)}
    done = erase(client, ids=["5e" * 8, "a5" * 8])
    assert done.count == 2
    with pytest.raises(Conflict, match="erased for good"):
        client.undo(done.operation)
    for operation in sorted(before, reverse=True):
        try:
            client.undo(operation)
        except (Conflict, NotFound):
            continue
    assert holding(daemon.core.folder, ["quokkafarm", "zythology", "wombatfarm"]) == []
    with pytest.raises(NotFound):
        client.get("5e" * 16)


def test_what_was_deleted_before_is_erased_from_the_history(daemon: "Daemon", client: Client) -> None:
    added = client.add(SECRET)
    other = client.add("Plain words about nothing", neighbours=[SECRET, "other words"])
    client.delete(added.id)
    assert holding(daemon.core.folder, WORDS) != []
    assert erase(client, ids=[added.id[:8]]).count == 1
    assert holding(daemon.core.folder, WORDS) == []
    assert client.get(other.id).content == "Plain words about nothing"
    [change] = client.history(added.id)
    assert (change.kind, change.action, change.changed) == ("erase", "deleted", {})
    with pytest.raises(NotFound):
        client.get(added.id)


@pytest.mark.parametrize("text", ["QUOKKAFARM", "quokkafarm owes"])
def test_all_that_mentions_a_text_is_erased(said: tuple["Daemon", Client], text: str) -> None:
    """A turn, what was made of it, a former text, a deleted memory, a summary, a key, metadata; and nothing else."""
    daemon, client = said
    saying = f"the {text.lower()} it is"
    for fields in (
        {"content": f"In the content {saying}"},
        {"content": "Nothing here", "metadata": {"note": [f'"{saying}"']}},
        {"content": "Nor here", "summary": saying},
    ):
        client.add(**fields)
    client.put(saying, "Under a key")
    client.observe([{"role": "user", "content": f"We decided to sell: {saying}"}], session="s9")
    former = client.add(f"Formerly {saying}").id
    client.update(former, content="Now it says something else")
    gone = client.add(f"Deleted, {saying}").id
    client.delete(gone)
    kept = client.list(limit=1000)
    found = erase(client, matching=text, dry_run=True)
    assert {former, gone} <= set(found.ids)
    assert erase(client, matching=text).count == found.count
    assert holding(daemon.core.folder, [text.lower()]) == []
    left = {memory.id for memory in client.list(limit=1000)}
    assert left == {memory.id for memory in kept} - {*found.ids, *found.derived}
    assert left
    assert erase(client, matching=text, dry_run=True).count == 0


def test_what_was_said_around_others_loses_a_text_whose_turn_is_gone(daemon: "Daemon", client: Client) -> None:
    """In rows, former versions, turns of L0, contexts, full text and copies; the memories stay."""
    stays = client.add("Plain words about nothing", neighbours=["Zenobia keeps the quokkafarm", "other words"])
    client.update(stays.id, summary="Plain")
    former = client.add("Plain words of former times", neighbours=["A quokkafarm for all"])
    client.delete(former.id)
    beside = client.add("Words beside it", neighbours=["Said of something else"]).id
    client.observe([{**PLAIN[0], "id": "7e" * 16}], session="s1")
    say = "UPDATE turns SET previous = 'On the quokkafarm'"
    daemon.core.store.write(lambda one: one.connection.execute(say)).result()
    kept = client.call(Backup())
    for dry_run in (True, False):
        found = erase(client, matching="Quokkafarm", dry_run=dry_run)
        assert (found.count, {one.id: one.place for one in found.around}) == (
            0,
            dict.fromkeys((stays.id, former.id, "7e" * 16), "neighbours"),
        )
    assert found.copies == [kept.path]
    assert holding(daemon.core.folder, ["quokkafarm"]) == [(Path(kept.path).name, "quokkafarm")]
    done = erase(client, matching="quokkafarm", copies=True)
    assert (done.rewritten, done.around) == ([kept.path], [])
    assert holding(daemon.core.folder, ["quokkafarm"]) == []
    assert {stays.id, beside} == {memory.id for memory in client.list()}
    assert search(daemon.core, "said of something else").hits


def test_of_a_turn_that_goes_too_nothing_is_said_around_others(daemon: "Daemon", client: Client) -> None:
    client.add(SECRET)
    other = client.add("Plain words about nothing", neighbours=[SECRET, "other words"])
    assert erase(client, matching="quokkafarm", dry_run=True).around == []
    erase(client, matching="quokkafarm")
    [left] = client.call(ExportMemories()).records
    assert (left.id, left.neighbours) == (other.id, "other words")


def test_what_was_said_around_others_is_not_restored_with_a_session_of_which_something_was_erased(core: Core) -> None:
    with core.store.reading() as connection:
        empty = records.read_record(connection)
    said = {"type": "turn", "created_at": 5.0, "updated_at": 5.0, "turns": 1}
    put = [
        Record(
            id=f"{number:032x}", namespace="", content=f"Herons {number}", neighbours=SECRET, metadata=session, **said
        )
        for number, session in enumerate(({"session": "s1"}, {"session": "s2"}))
    ]
    ask(core, ImportMemories(records=put))
    gone = empty._replace(sessions=[erasures.digest("s1")])
    core.store.write(lambda one: records.carry_over(one.connection, gone, 6.0)).result()
    assert [one.neighbours for one in ask(core, ExportMemories()).records] == ["", SECRET]


def test_a_copy_in_which_a_file_mentioned_a_text_is_named_and_rewritten(
    daemon: "Daemon", client: Client, tmp_path: Path
) -> None:
    """Also after the file was edited, and where nothing else holds the text any more."""
    (tmp_path / "a.md").write_text("# Vault\n\nThe vault is behind the painting.\n")
    client.add_workspace(str(tmp_path), namespace="notes")
    wait_until(lambda: client.list(tier=["documents"]))
    copy = client.backup().path
    (tmp_path / "a.md").write_text("# Vault\n\nThe vault is gone.\n")
    wait_until(lambda: "gone" in client.list(tier=["documents"])[0].content)
    found = erase(client, matching="Painting", dry_run=True)
    assert (found.count, found.copies) == (0, [copy])
    assert erase(client, matching="painting", copies=True).rewritten == [copy]
    assert holding(daemon.core.folder, ["painting"]) == []


def test_words_that_removed_text_left_are_cleared_here_and_in_copies(
    daemon: "Daemon", client: Client, tmp_path: Path
) -> None:
    """No row says them: a file was edited, and the copy was made afterwards. Full text keeps them by their stems."""
    words, note = ["okonkwo", "zephyrin"], tmp_path / "a.md"
    note.write_text("# Two\n\nZephyrine Okonkwo-Hart again\n\nThe deer is a hart.\n")
    client.add_workspace(str(tmp_path), namespace="notes")
    wait_until(lambda: client.list(tier=["documents"]))
    note.write_text("# Two\n\nThe deer is a hart.\n")
    wait_until(lambda: "again" not in client.list(tier=["documents"])[0].content)
    copy = client.backup().path
    assert {Path(copy).name[:5], "memor"} <= {name[:5] for name, _ in holding(daemon.core.folder, words)}
    found = erase(client, matching="Okonk", dry_run=True)
    assert (found.count, found.copies, found.rewritten) == (0, [], [])
    assert erase(client, matching="Okonk").count == 0
    assert {Path(copy).name} == {name for name, _ in holding(daemon.core.folder, words)}
    done = erase(client, matching="Okonk", copies=True)
    assert (done.rewritten, done.copies) == ([copy], [])
    assert holding(daemon.core.folder, words) == []


def test_a_copy_that_cannot_be_rewritten_is_named_and_does_not_keep_the_others_from_it(
    daemon: "Daemon", client: Client
) -> None:
    id = client.add(SECRET).id
    copy = Path(client.backup().path)
    damaged = copy.with_name("kept-20260101T000000Z.sqlite")
    damaged.write_bytes(b"This is no database at all. " * 100)
    done = erase(client, ids=[id], copies=True)
    assert (done.copies, done.rewritten) == ([str(damaged)], [str(copy)])
    assert holding(daemon.core.folder, WORDS) == []


def test_what_mentions_a_text_is_erased_within_the_other_filters(daemon: "Daemon", client: Client) -> None:
    for namespace in ("acme", "acme/api", "other"):
        with daemon.client(namespace) as there:
            there.add("The vault is open")
    assert erase(client, matching="vault", namespace="acme").count == 2
    assert erase(client, matching="vault", type=["lesson"]).count == 0
    assert [memory.namespace for memory in client.list(reach="all")] == ["other"]


def test_files_that_mention_a_text_are_named_and_left(daemon: "Daemon", client: Client, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Vault\n\nThe vault is behind the painting.\n")
    (tmp_path / "b.md").write_text("# Herons\n\nHerons fish at dawn.\n")
    client.add_workspace(str(tmp_path), namespace="notes")
    wait_until(lambda: client.list(tier=["documents"]))
    found = erase(client, matching="painting")
    assert (found.count, found.notes) == (0, [str(tmp_path / "a.md")])
    assert "painting" in (tmp_path / "a.md").read_text()


def test_the_vectors_of_what_a_file_said_before_are_deleted(daemon: "Daemon", client: Client, tmp_path: Path) -> None:
    """A file is edited first, then the text is erased: nothing holds the former part of it any more. In a copy, too."""
    (tmp_path / "a.md").write_text(SECRET)
    client.add_workspace(str(tmp_path), namespace="notes")
    added = client.add(f"{SECRET}, again")
    client.index_workspace("notes", wait=True)
    (tmp_path / "a.md").write_text("The vault is gone.")
    wait_until(lambda: "gone" in client.list(tier=["documents"])[0].content)
    client.index_workspace("notes", wait=True)
    copy = client.backup().path
    assert erase(client, ids=[added.id], copies=True).rewritten == [copy]
    for path in (daemon.core.store.path, copy):
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            assert (trimming.find_unused(connection), count(connection)) == ([], 1)


def test_copies_of_what_was_deleted_before_are_erased_with_it(daemon: "Daemon", client: Client) -> None:
    with daemon.client("acme/api/alpha") as agent:
        first = agent.add(SECRET).id
    second = client.share(first, to="acme/api").memories[0].id
    third = client.share(second, to="acme").memories[0].id
    client.delete(second)
    client.delete(first)
    assert set(erase(client, ids=[first]).derived) == {second, third}
    assert client.list().total == 0
    with pytest.raises(NotFound):
        client.undo()


def test_an_undo_of_the_latest_refuses_after_an_erase(daemon: "Daemon", client: Client) -> None:
    """It would take back something else, which nobody named."""
    kept, gone = client.add("Herons fish at dawn"), client.add(SECRET)
    assert erase(client, ids=[gone.id]).count == 1
    with pytest.raises(Conflict, match="To undo an earlier one, name it"):
        client.undo()
    assert client.get(kept.id).content == "Herons fish at dawn"
    client.add("Owls hunt at night")
    client.undo()
    client.undo(kept.operation)
    assert client.list().total == 0


def test_copies_that_hold_it_are_named_and_rewritten(daemon: "Daemon", client: Client) -> None:
    added, kept = client.add(SECRET), client.add("Herons fish at dawn")
    made = client.call(Backup())
    assert erase(client, ids=[added.id], dry_run=True).copies == [made.path]
    assert erase(client, ids=[added.id]).copies == [made.path]
    assert {name for name, _ in holding(daemon.core.folder, WORDS)} == {Path(made.path).name}
    done = erase(client, ids=[added.id], copies=True)
    assert (done.copies, done.rewritten) == ([], [made.path])
    assert holding(daemon.core.folder, WORDS) == []
    copy = apsw.Connection(made.path)
    assert copy.execute("SELECT id FROM memories").fetchall() == [(kept.id,)]
    assert copy.execute("PRAGMA integrity_check").get == "ok"
    copy.close()


def test_a_former_database_is_rewritten_with_its_log(daemon: "Daemon", client: Client) -> None:
    """Its log was not folded in, its file is linked elsewhere, and a kill cut short a rewriting before."""
    kept = client.add("Herons fish at dawn")
    wait_until(lambda: daemon.core.embedding.count_pending() == 0)
    upkeep.clear_log(daemon.core.store)
    added = client.add(SECRET)
    file, log = daemon.core.store.path, daemon.core.store.path.with_name("memoryd.sqlite-wal")
    former = daemon.core.folder / "before-recovery-20260101T000000Z" / "memoryd.sqlite"
    former.parent.mkdir()
    for source, name in ((file, former.name), (log, log.name), (file, "memoryd.part"), (log, "memoryd.part-wal")):
        shutil.copyfile(source, former.parent / name)
    linked = former.parent / "linked"
    os.link(former, linked)
    assert {name for name, _ in holding(former.parent, WORDS)} == {"memoryd.sqlite-wal", "memoryd.part-wal"}
    assert erase(client, ids=[added.id]).copies == [str(former)]
    with (former.parent / "memoryd.part-wal").open("r+b") as stale:
        stale.truncate(stale.seek(0, os.SEEK_END) // 2)
    done = erase(client, ids=[added.id], copies=True)
    assert (done.copies, done.rewritten) == ([], [str(former)])
    assert holding(daemon.core.folder, WORDS) == []
    assert sorted(path.name for path in former.parent.iterdir()) == ["linked", "memoryd.sqlite"]
    copy = apsw.Connection(str(former))
    assert copy.execute("SELECT id FROM memories").fetchall() == [(kept.id,)]
    assert copy.execute("SELECT count(*) FROM history WHERE memory = ?", (added.id,)).get == 1  # that it was erased
    assert copy.execute("PRAGMA integrity_check").get == "ok"
    copy.close()


def test_a_copy_with_an_empty_log_beside_it_is_not_named(daemon: "Daemon", client: Client) -> None:
    client.add("Herons fish at dawn")
    copy = client.backup().path
    Path(f"{copy}-wal").touch()
    Path(f"{copy}-shm").write_bytes(bytes(32_768))
    assert erase(client, ids=[client.add(SECRET).id]).copies == []


def test_a_copy_that_is_made_meanwhile_is_named(core: Core) -> None:
    target = core.folder / copies.FOLDER / copies.name_at(0.0)
    target.parent.mkdir()
    id = add(core, SECRET).id
    began, gate = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        assert gate.wait(60)

    copying = threading.Thread(target=copies.copy, args=(core.store, target, hold))
    copying.start()
    assert began.wait(60)
    erased, parts = None, erasing.erase(core, Erase(ids=[id]))
    try:
        for _ in range(20):
            next(parts)
    except StopIteration as ended:
        erased = ended.value
    gate.set()
    erased = erased or finish(parts)
    copying.join()
    assert erased.copies == [str(target)]


def test_a_copy_that_begins_while_something_is_erased_waits_for_its_end(core: Core) -> None:
    target = core.folder / copies.FOLDER / copies.name_at(0.0)
    target.parent.mkdir()
    parts = erasing.erase(core, Erase(ids=[add(core, SECRET).id]))
    while search(core, "quokkafarm").hits:
        next(parts)
    waits = threading.Event()
    copying = threading.Thread(target=copies.copy, args=(core.store, target, waits.set))
    copying.start()
    assert waits.wait(60)
    copying.join(0.3)
    assert not target.exists()
    assert finish(parts).copies == []
    copying.join()
    assert holding(target.parent, WORDS) == []


def test_a_copy_that_is_asked_for_within_an_erase_waits_for_its_parts(
    start_daemon: Callable[..., "Daemon"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "_PART", 1)
    daemon = start_daemon()
    with daemon.client() as client, daemon.client(timeout_s=20) as other:
        ids = [client.add(f"The shelf {number} holds the jar {number * 7}").id for number in range(15)]
        erased: list[Erased] = []
        erasing_all = threading.Thread(target=lambda: erased.append(erase(client, ids=ids)))
        erasing_all.start()
        wait_until(daemon.core.store.copying.locked)
        assert other.call(Backup()).memories == 0
        erasing_all.join(20)
        assert erased[0].count == 15


def test_more_is_erased_from_a_copy_than_one_statement_takes(core: Core) -> None:
    ids = [add(core, SECRET).id, *(f"{number:032x}" for number in range(33_000))]
    target = core.folder / copies.FOLDER / copies.name_at(0.0)
    target.parent.mkdir()
    copies.copy(core.store, target, lambda: None)
    leftovers.rewrite(target, ids, OtherTraces(), 0.0)
    assert holding(target.parent, WORDS) == []


def test_an_erase_that_was_cut_short_and_is_made_again_takes_copies_along(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "_PART", 1)
    add(core, SECRET, metadata={"session": "s"})
    add(core, "The wombatfarm is closed", metadata={"session": "s"})
    target = core.folder / copies.FOLDER / copies.name_at(0.0)
    target.parent.mkdir()
    copies.copy(core.store, target, lambda: None)
    parts = erasing.erase(core, Erase(session="s", copies=True))
    next(parts)
    next(parts)  # the first part is done
    parts.close()
    done = ask(core, Erase(session="s", copies=True))
    assert (done.count, done.rewritten) == (1, [str(target)])
    assert holding(core.folder, WORDS) == []


def test_a_namespace_that_is_named_outright_is_erased_with_what_was_deleted_there(
    daemon: "Daemon", client: Client
) -> None:
    for namespace in ("acme", "acme/api", "other"):
        with daemon.client(namespace) as there:
            there.add(f"The vault of {namespace} is open")
            there.delete(there.add(f"The quokkafarm of {namespace} is closed").id)
    with pytest.raises(Invalid, match="The filter is empty"):
        erase(client, reach="subtree")
    with pytest.raises(Invalid, match="The filter is empty"):
        erase(client, namespace="acme")
    assert erase(client, namespace="acme", reach="subtree", tier=["L2"], dry_run=True).count == 0
    assert erase(client, namespace="acme", reach="subtree", path_prefix="/a", dry_run=True).count == 0
    assert erase(client, namespace="acme", reach="subtree").count == 4
    assert [memory.namespace for memory in client.list(reach="all")] == ["other"]
    assert b"quokkafarm of acme" not in (daemon.core.folder / "memoryd.sqlite").read_bytes()


def test_what_moved_away_is_not_erased_with_the_namespace_that_it_left(daemon: "Daemon", client: Client) -> None:
    with daemon.client("team/ben") as ben:
        kept, gone = ben.add("Deploys run on Tuesdays").id, ben.add("Ben likes tea").id
        ben.share(kept, to="team", move=True)
    assert erase(client, namespace="team/ben", reach="subtree", dry_run=True).ids == [gone]
    assert erase(client, namespace="team/ben", reach="exact", matching="Deploys", dry_run=True).count == 0
    assert erase(client, namespace="team/ben", reach="subtree", copies=True).count == 1
    assert [memory.id for memory in client.list(reach="all")] == [kept]


def test_skipped_turns_are_erased_within_the_other_filters(daemon: "Daemon", client: Client) -> None:
    for session in ("s1", "s2"):
        client.observe([{"role": "user", "content": text} for text in ("ok", "thanks")], session=session)
    assert erase(client, session="s1", matching="ok").skipped == 1
    assert erase(client, matching="ok", namespace="acme").skipped == 0
    assert erase(client, matching="ok", type=["lesson"]).skipped == 0
    assert [(skip.session, skip.content) for skip in client.turns(skipped=True).skipped] == [
        ("s2", "thanks"),
        ("s2", "ok"),
        ("s1", "thanks"),
    ]
