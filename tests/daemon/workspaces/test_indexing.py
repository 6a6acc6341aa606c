"""Indexing: files become chunks, an edit changes what it touched, what is gone from the files leaves the index."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from notes import sections, write

from each import each
from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.protocol import Get, List, Search
from memoryd.client.times import seconds
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs import expiring
from memoryd.daemon.memories import reading
from memoryd.daemon.workspaces import calls, committing, indexing, registry
from memoryd.daemon.workspaces.documents.document import Limits
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace
from workbench import CountingEmbedder, WordEmbedder, ask, found, running, wait_until


def chunks(core: Core) -> dict[str, str]:
    """Return the content of each chunk in the index by path and lines."""
    page = ask(core, List(tier=["documents"], limit=1000))
    return {f"{m.path}:{m.start_line}-{m.end_line}": m.content for m in page}


def ids_of(core: Core) -> dict[str, str]:
    """Return the id of each chunk in the index by path and lines."""
    return {f"{m.path}:{m.start_line}-{m.end_line}": m.id for m in ask(core, List(tier=["documents"], limit=1000))}


def added(core: Core, root: Path, **options: Any) -> StoredWorkspace:
    workspace = registry.add(core, str(root), options.get("namespace"), options.get("globs", ()))
    indexing.index(core, workspace)
    return workspace


def embedded(core: Core, root: Path) -> StoredWorkspace:
    workspace = added(core, root)
    wait_until(lambda: core.embedding.count_pending() == 0)
    return workspace


class Counting(NamedTuple):
    """A core, and its embedder, which counts."""

    core: Core
    embedder: CountingEmbedder


@pytest.fixture
def counting(folder: Path) -> Iterator[Counting]:
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        yield Counting(core, embedder)


def test_a_pass_that_waited_while_the_globs_were_changed_goes_by_the_new_ones(core: Core, root: Path) -> None:
    write(root, "bees.md", "Bees dance.\n")
    before = added(core, root, globs=["memory/*.md"])
    assert indexing.index(core, registry.add(core, str(root), None, ["*.md"])).indexed == 1
    assert indexing.index(core, before).unchanged == 1
    assert list(chunks(core)) == [f"{root}/bees.md:1-1"]
    assert calls.examine(core, before).left_out == []


def test_files_that_the_globs_name_are_chunks_with_their_place(core: Core, root: Path) -> None:
    write(root, "MEMORY.md", "# Birds\n\nHerons stand still.\n")
    write(root, "memory/2026-03-05.md", "Saw an egret.\n")
    write(root, "README.md", "Not a memory.\n")
    workspace = added(core, root)
    assert workspace.namespace == "notes"
    page = ask(core, List(sort="created", ascending=True))
    assert [(m.path, m.start_line, m.end_line) for m in page] == [
        (str(root / "memory/2026-03-05.md"), 1, 1),
        (str(root / "MEMORY.md"), 1, 3),
    ]
    daily, birds = page
    assert (daily.tier, daily.source, daily.type, daily.namespace) == ("documents", "file", "note", "notes")
    assert daily.created_at == 1772668800.0
    assert birds.created_at == pytest.approx((root / "MEMORY.md").stat().st_mtime, abs=0.001)


def test_a_touched_file_is_read_and_only_its_times_change(core: Core, root: Path) -> None:
    path = write(root, "memory/a.md", "one\n")
    workspace = added(core, root)
    os.utime(path, (1000, 1000))
    counts = indexing.index(core, workspace)
    assert (counts.read, counts.indexed, counts.unchanged) == (1, 0, 1)
    [memory] = ask(core, List())
    assert memory.created_at == 1000


def test_editing_one_line_of_a_hundred_chunks_embeds_at_most_two(counting: Counting, root: Path) -> None:
    core, embedder = counting
    path = write(root, "memory/long.md", sections(100))
    workspace = embedded(core, root)
    assert len(chunks(core)) >= 100
    embedder.texts.clear()
    path.write_text(sections(100, changed=50, word="xylophone"))
    counts = indexing.index(core, workspace)
    wait_until(lambda: core.embedding.count_pending() == 0)
    assert 1 <= len(embedder.texts) <= 2
    assert counts.chunks_new == len(embedder.texts)
    assert "xylophone" in found(core, "xylophone")[0]
    assert not [text for text in chunks(core).values() if "Number 50 original" in text]


def test_lines_of_chunks_below_an_inserted_line_follow_and_nothing_else_is_embedded(
    counting: Counting, root: Path
) -> None:
    core, embedder = counting
    path = write(root, "memory/long.md", sections(20))
    workspace = embedded(core, root)
    before = {memory.content: memory for memory in ask(core, List(limit=1000))}
    embedder.texts.clear()
    path.write_text(f"# First\n\nA new beginning.\n\n{sections(20)}")
    indexing.index(core, workspace)
    wait_until(lambda: core.embedding.count_pending() == 0)
    assert len(embedder.texts) == 1
    after = {memory.content: memory for memory in ask(core, List(limit=1000))}
    moved = after.keys() & before.keys()
    assert len(moved) == len(before)
    assert all(after[text].start_line == (before[text].start_line or 0) + 4 for text in moved)
    assert all(after[text].id == before[text].id for text in moved)


def test_a_renamed_file_costs_no_embedding_and_a_removed_one_leaves(counting: Counting, root: Path) -> None:
    core, embedder = counting
    path = write(root, "memory/a.md", sections(5))
    workspace = embedded(core, root)
    embedder.texts.clear()
    path.rename(root / "memory/b.md")
    counts = indexing.index(core, workspace)
    assert (counts.removed, counts.indexed) == (1, 1)
    assert core.embedding.count_pending() == 0
    assert embedder.texts == []
    assert all(place.startswith(str(root / "memory/b.md")) for place in chunks(core))
    (root / "memory/b.md").unlink()
    assert indexing.index(core, workspace).removed == 1
    assert chunks(core) == {}
    assert found(core, "Number 3 original") == []


def test_a_file_that_is_moved_keeps_the_ids_of_its_chunks_also_into_another_namespace(core: Core, root: Path) -> None:
    path = write(root, "memory/a.md", sections(5))
    write(root, "memory/twin.md", "# Twin\n\nIt is there twice.\n")
    workspace = added(core, root)
    indexing.index(core, workspace)
    before = ids_of(core)
    path.rename(root / "memory/2026-03-15.md")
    write(root, "memory/twin-2.md", "# Twin\n\nIt is there twice.\n")  # a copy, which is no move
    counts = indexing.index(core, workspace)
    assert (counts.removed, counts.indexed, counts.chunks_kept) == (1, 2, 5)
    after = ids_of(core)
    assert set(before.values()) < set(after.values())
    assert {name for name in after if "/a.md" in name} == set()
    assert seconds("2026-03-15") in {memory.created_at for memory in ask(core, List(limit=100)).memories}
    (root / "memory/team").mkdir()
    (root / "memory/2026-03-15.md").rename(root / "memory/team/plan.md")
    indexing.index(core, workspace)
    assert set(ids_of(core).values()) == set(after.values())
    moved = [memory for memory in ask(core, List(limit=100)).memories if "/team/" in (memory.path or "")]
    assert {memory.namespace for memory in moved} == {"notes/team"}
    hits = ask(core, Search(query="Number 3 original", namespace="notes/team", reach="exact"))
    assert {hit.path for hit in hits} == {str(root / "memory/team/plan.md")}
    write(root, "memory/a.md", sections(5))  # the same text at the former place is another
    indexing.index(core, workspace)
    assert len(set(ids_of(core).values())) == len(after) + 5
    assert core.store.find_problems() == []


def test_names_and_front_matter_date_a_note(core: Core, root: Path) -> None:
    texts = {
        "20260315.md": "a", "20260316-call.md": "b", "202603171230 Idea.md": "c", "20261345.md": "d",
        "2026-03-18.md": "---\nmodified: 2026-11-01\n---\ne", "plan.md": "+++\nmodified = 2026-03-19\n+++\nf",
        "2026-03-20.md": "---\nCreated: 2026-03-21\n---\ng", "123456789.md": "h",
    }  # fmt: skip
    for name, text in texts.items():
        write(root, f"memory/{name}", text)
    indexing.index(core, added(core, root))
    memories = ask(core, List(limit=100)).memories
    days = {memory.content: int((memory.created_at - seconds("2026-03-15")) // 86_400) for memory in memories}
    assert {name: days[name] for name in "abcefg"} == dict(zip("abcefg", (0, 1, 2, 3, 4, 6), strict=True))
    assert min(days["d"], days["h"]) > 6


def test_a_folder_that_is_not_there_keeps_its_index(core: Core, root: Path) -> None:
    write(root, "memory/a.md", "one\n")
    workspace = added(core, root)
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(indexing.Gone, match="cannot be read"):
        indexing.index(core, workspace)
    with pytest.raises(indexing.Gone):
        indexing.reindex(core, workspace, ["memory/a.md"])
    assert len(chunks(core)) == 1
    root.with_name("elsewhere").rename(root)
    assert indexing.index(core, workspace).unchanged == 1


def test_a_subfolder_of_memory_is_a_namespace_inside(core: Core, root: Path) -> None:
    write(root, "memory/alpha/a.md", "one\n")
    write(root, "memory/alpha/deep/b.md", "two\n")
    write(root, "memory/c.md", "three\n")
    added(core, root)
    assert {m.content.strip(): m.namespace for m in ask(core, List())} == {
        "one": "notes/alpha",
        "two": "notes/alpha",
        "three": "notes",
    }


def test_a_removed_workspace_leaves_nothing_but_its_files(core: Core, root: Path) -> None:
    write(root, "memory/a.md", sections(40))
    added(core, root)
    _, removed = registry.remove(core, "notes")
    assert removed >= 40
    assert chunks(core) == {}
    assert (root / "memory/a.md").exists()
    with pytest.raises(NotFound):
        registry.find(core, "notes")


def test_chunks_of_a_workspace_that_a_crash_left_behind_are_swept(core: Core, root: Path) -> None:
    write(root, "memory/a.md", "one\n")
    added(core, root)
    core.store.write(lambda t: t.connection.execute("DELETE FROM workspaces")).result()
    assert committing.sweep(core) == 1
    assert chunks(core) == {}


@pytest.mark.parametrize("prefix", ["", "inner"])
def test_workspaces_do_not_share_folders_or_namespaces(core: Core, root: Path, prefix: str) -> None:
    (root / "inner").mkdir()
    other = root.with_name("other")
    other.mkdir()
    registry.add(core, str(root / prefix), "one", ())
    for path in (root, root / "inner"):
        with pytest.raises(Conflict, match=r"already|inside|holds"):
            registry.add(core, str(path), "two", ())
    with pytest.raises(Conflict, match=r"is that of the workspace .* `memctl workspace remove "):
        registry.add(core, str(other), "one", ())


@each(
    ("path", "says"),
    [
        ("/nowhere/at/all", "does not exist"),
        ("relative", "not absolute"),
        ("/" * 5000, "longer than 4096"),
        ("/etc/passwd", "no.* folder"),
    ],
)
def test_what_is_no_folder_is_refused(core: Core, path: str, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        registry.add(core, path, None, ())


@each("glob", ["/etc/*.md", "../*.md", "a/../../b.md", "/"])
def test_patterns_that_lead_out_of_the_folder_are_refused(core: Core, root: Path, glob: str) -> None:
    with pytest.raises(Invalid, match="pattern"):
        registry.add(core, str(root), None, [glob])


def test_an_added_memory_is_never_merged_into_a_file(core: Core, root: Path) -> None:
    from workbench import add

    write(root, "memory/a.md", "Herons stand still in shallow water.\n")
    added(core, root)
    result = add(core, "Herons stand still in shallow water.", "notes", type="note")
    assert result.outcome == "created"
    near = add(core, "Herons stand still in the shallow water.", "notes", type="note")
    assert near.id != next(m.id for m in ask(core, List(tier=["documents"])))


def test_a_namespace_and_a_path_inside_find_a_workspace(core: Core, root: Path) -> None:
    write(root, "memory/a.md", "one\n")
    workspace = added(core, root, namespace="acme/notes")
    assert registry.find(core, "acme/notes") == workspace
    assert registry.find(core, str(root / "memory/a.md")) == workspace
    with pytest.raises(NotFound, match="acme/notes"):
        registry.find(core, "notes")


def test_get_shows_links_both_ways(core: Core, root: Path) -> None:
    write(root, "MEMORY.md", "See [[Herons]] and [[nothing]].\n")
    write(root, "memory/herons.md", "They stand still, as [egrets](egrets.md) do.\n")
    write(root, "memory/alpha/egrets.md", "Like [[herons]].\n")
    added(core, root)
    by_path = {memory.path: memory.id for memory in ask(core, List())}
    start = reading.get(core, Get(id=by_path[str(root / "MEMORY.md")]))
    assert start.links == [str(root / "memory/herons.md"), "nothing (not found)"]
    assert start.linked_from == []
    herons = reading.get(core, Get(id=by_path[str(root / "memory/herons.md")]))
    assert herons.links == [str(root / "memory/alpha/egrets.md")]
    assert herons.linked_from == [str(root / "MEMORY.md"), str(root / "memory/alpha/egrets.md")]
    bounded = reading.get(core, Get(id=herons.id, namespace="notes"))
    assert bounded.links == ["egrets (not found)"]
    assert bounded.linked_from == [str(root / "MEMORY.md")]


def test_what_cannot_be_read_leaves_the_index_and_is_told(core: Core, root: Path) -> None:
    path = write(root, "memory/a.md", "one\n")
    write(root, "memory/b.md", "two\n")
    workspace = added(core, root)
    secret = write(root.parent, "secret.md", "outside\n")
    path.unlink()
    path.symlink_to(secret)
    indexing.reindex(core, workspace, ["memory/a.md"])  # as the watcher does
    assert list(chunks(core).values()) == ["two"]
    for _ in range(2):
        counts = indexing.index(core, workspace)
        [problem] = calls.examine(core, workspace).problems
        assert problem.path == "memory/a.md"
        assert "link" in problem.problem
    assert (counts.read, counts.removed) == (0, 0)
    path.unlink()
    path.write_text("one again\n")
    indexing.index(core, workspace)
    assert sorted(chunks(core).values()) == ["one again", "two"]
    assert calls.examine(core, workspace).problems == []


def test_a_file_that_is_too_large_is_told_and_comes_back_when_it_shrinks(
    folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(root, "memory/a.md", "word " * 100)
    monkeypatch.setattr("memoryd.daemon.workspaces.live.Limits", partial(Limits, max_bytes=100))
    with running(folder, WordEmbedder()) as core:
        workspace = added(core, root)
        assert chunks(core) == {}
        assert "more than 100 bytes" in calls.examine(core, workspace).problems[0].problem
        path.write_text("small\n")
        indexing.index(core, workspace)
        assert list(chunks(core).values()) == ["small"]
        assert calls.examine(core, workspace).problems == []


def test_front_matter_says_what_a_file_is(core: Core, root: Path) -> None:
    write(root, "memory/a.md", "---\ntype: decision\ntags: [db, cache]\npinned: true\nowner: ops\n---\nUse Valkey.\n")
    added(core, root)
    [memory] = ask(core, List())
    assert (memory.type, memory.pinned, memory.start_line) == ("decision", True, 7)
    assert memory.metadata == {"tags": ["db", "cache"], "owner": "ops"}


def test_an_expired_file_leaves_search_and_is_not_deleted_by_the_job(core: Core, root: Path) -> None:
    write(root, "memory/a.md", "---\nexpires: 2020-01-01\n---\nLong over.\n")
    workspace = added(core, root)
    assert found(core, "Long over") == []
    assert list(expiring.plan(core, core.clock())) == []
    assert indexing.index(core, workspace, force=True).chunks_kept == 1


@pytest.mark.slow
def test_what_is_read_later_wins_however_many_read_at_once(core: Core, root: Path) -> None:
    path = write(root, "memory/a.md", "version 0\n")
    workspace = added(core, root)
    ended = threading.Event()

    def work(step: Callable[[], object]) -> None:
        while not ended.is_set():
            step()

    steps = (
        lambda: indexing.reindex(core, workspace, ["memory/a.md"]),
        lambda: indexing.reindex(core, workspace, ["memory/a.md"], force=True),
        lambda: indexing.index(core, workspace),
    )
    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(work, step) for step in steps]
        for version in range(1, 40):
            path.write_text(f"version {version}\n" * version)
            indexing.reindex(core, workspace, ["memory/a.md"])
            assert f"version {version}\n" in "".join(chunks(core).values()) + "\n"
        ended.set()
    for thread in working:
        thread.result()
    assert "".join(chunks(core).values()).count("version 39") == 39
