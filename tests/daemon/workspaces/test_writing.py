"""remember and forget: notes go into files and come out of them, and the index follows at once."""

import os
from pathlib import Path
from typing import Any

import pytest
from notes import FILLER, Watched, equal, sections, write

from each import each
from memoryd.client.errors import Conflict, Forbidden, Invalid, NotFound
from memoryd.client.protocol import Delete, Get, List, Memory, Share, Tag, Update
from memoryd.client.protocol.workspaces import Forget, Forgotten, Remember, Remembered
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import changing, reading, sharing
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.workspaces import indexing, registry
from memoryd.daemon.workspaces.live import get_live
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace
from workbench import add, ask, found, search, undo, wait_until

TODAY = "2027-01-15"  # of the tests' clock
LIMIT_S = 30


def remember(core: Core, text: str, workspace: str = "notes", **options: Any) -> Remembered:
    caller = options.pop("caller", None)
    call = Remember(text=text, workspace=workspace, **options)
    return ask(core, call, caller=caller) if caller else ask(core, call)


def forget(core: Core, *ids: str, **options: Any) -> Forgotten:
    return ask(core, Forget(ids=list(ids), **options))


def holder(core: Core, words: str) -> Memory:
    """Return the chunk that holds some words."""
    [one] = [memory for memory in ask(core, List(tier=["documents"], limit=1000)) if words in memory.content]
    return one


# remember ------------------------------------------------------------------------------------------------------------


def test_a_note_goes_to_the_days_file_and_is_found_at_once(watched: Watched, root: Path) -> None:
    workspace = watched.add(root)
    told = remember(watched.core, "The cache is Valkey")
    assert told.path == f"{root}/memory/{TODAY}.md"
    assert (told.start_line, told.end_line, told.namespace) == (1, 1, "notes")
    assert Path(told.path).read_text() == "- The cache is Valkey\n"
    assert found(watched.core, "valkey") == ["- The cache is Valkey"]
    assert search(watched.core, "valkey").hits[0].id == told.id
    again = remember(watched.core, "Deploys are on Tuesday\nat nine", workspace=str(root))
    assert (again.start_line, again.end_line) == (2, 3)
    assert Path(told.path).read_text() == "- The cache is Valkey\n- Deploys are on Tuesday\n  at nine\n"
    assert again.id is not None
    assert "Tuesday" in reading.get(watched.core, Get(id=again.id)).content
    assert equal(watched.core, workspace)


@pytest.fixture
def noted(watched: Watched, root: Path) -> StoredWorkspace:
    return watched.add(root)


@each(
    ("file", "path"),
    [
        ("MEMORY.md", "MEMORY.md"),
        ("MEMORY", "MEMORY.md"),
        ("cache", "memory/cache.md"),
        ("memory/cache.md", "memory/cache.md"),
        ("alpha/today", f"memory/alpha/{TODAY}.md"),
        ("deep/er/cache", "memory/deep/er/cache.md"),
    ],
)
def test_a_file_may_be_named(noted: StoredWorkspace, watched: Watched, root: Path, file: str, path: str) -> None:
    told = remember(watched.core, "The cache is Valkey", file=file)
    assert told.path == f"{root}/{path}"
    assert told.namespace == {"alpha": "notes/alpha", "deep": "notes/deep"}.get(file.split("/")[0], "notes")
    assert remember(watched.core, "More", file=told.path).path == told.path
    assert equal(watched.core, noted)


@pytest.fixture
def linked(watched: Watched, root: Path, folder: Path) -> Watched:
    write(root, "memory/a.md", "- a\n")
    write(root, ".gitignore", "private.md\n")
    (folder / "elsewhere").mkdir()
    (root / "memory/linked").symlink_to(folder / "elsewhere")
    (root / "memory/link.md").symlink_to(folder / "elsewhere" / "a.md")
    (root / "memory/folder.md").mkdir()
    watched.add(root)
    return watched


@each(
    ("file", "reason"),
    [
        ("README.md", "not a file that notes indexes"),
        ("../outside.md", "not a path below"),
        ("/etc/passwd", "outside the workspace"),
        ("memory/../../x.md", "not a path below"),
        ("", "not a path below"),
        ("memory/", "not a path below"),
        (".hidden.md", "hidden"),
        ("memory/.git/x.md", "hidden"),
        ("private", "ignored by git"),
        ("a\nb", "cannot be the name"),
        ("a\0b", "not a path below"),
        ("x" * 300, "cannot be the name"),
        ("memory/" + "x/" * 2100 + "a", "longer than 4096 bytes"),
        ("linked/a", "symbolic link"),
        ("link", "symbolic link"),
        ("folder", "is a folder"),
        ("cache.md", "not a file that notes indexes"),
        ("docs/cache.md", "not a file that notes indexes"),
    ],
)
def test_a_file_that_cannot_be_is_refused(linked: Watched, root: Path, folder: Path, file: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        remember(linked.core, "The cache is Valkey", file=file)
    assert list((folder / "elsewhere").iterdir()) == []
    assert (root / "memory/a.md").read_text() == "- a\n"


def test_a_text_that_cannot_be_is_refused(watched: Watched, root: Path) -> None:
    watched.add(root)
    for text in ("", " \n", "a\0b", "x" * (1024 * 1024 + 1)):
        with pytest.raises(Invalid):
            remember(watched.core, text)
    assert list(root.iterdir()) == []


def test_a_file_in_another_encoding_is_left_alone(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", "")
    watched.add(root)
    path.write_bytes("ä".encode("utf-16"))
    with pytest.raises(Invalid, match="UTF-16"):
        remember(watched.core, "b", file="a")
    path.write_bytes(b"- caf\xe9\n")
    remember(watched.core, "b", file="a")
    assert path.read_bytes() == b"- caf\xe9\n- b\n"


@pytest.mark.slow
def test_a_file_that_would_be_too_large_to_index_is_left_alone(watched: Watched, root: Path) -> None:
    watched.add(root)
    path = write(root, "memory/a.md", "x" * (16 * 1024 * 1024 - 2))
    with pytest.raises(Invalid, match="larger files are not indexed"):
        remember(watched.core, "b", file="a")
    assert path.stat().st_size == 16 * 1024 * 1024 - 2


def test_a_workspace_that_is_not_there_is_refused_and_not_made(watched: Watched, root: Path) -> None:
    with pytest.raises(NotFound, match="no workspace"):
        remember(watched.core, "a")
    watched.add(root)
    for path in (f"{root}\0", f"{root}{'/' * 4096}"):
        with pytest.raises(NotFound, match="no workspace"):
            remember(watched.core, "a", path)
    os.rmdir(root)
    with pytest.raises(Conflict, match="cannot be read"):
        remember(watched.core, "a")
    assert not root.exists()


def test_a_bound_caller_writes_where_it_may_change_memories(watched: Watched, root: Path) -> None:
    watched.add(root, namespace="acme")
    agent, lead = Caller("agent", "acme/api"), Caller("lead", "acme/api")
    with pytest.raises(Forbidden, match="is shared"):
        remember(watched.core, "a", "acme", caller=agent)
    assert remember(watched.core, "a", "acme", caller=lead).namespace == "acme"
    assert remember(watched.core, "a", "acme", caller=agent, file="api/today").namespace == "acme/api"
    for name in ("acme", str(root)):
        with pytest.raises(NotFound, match="There is no workspace") as refused:
            remember(watched.core, "a", name, caller=Caller("agent", "other"))
        assert "are:" not in str(refused.value)


# forget --------------------------------------------------------------------------------------------------------------


def test_what_is_remembered_and_forgotten_leaves_the_file_as_it_was(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", "# Log\n\nAn old story.\n")
    workspace = watched.add(root)
    told = remember(watched.core, "The cache is Valkey", file="a")
    assert told.id is not None
    shown = forget(watched.core, told.id, text="Valkey", dry_run=True)
    assert (shown.dry_run, "Valkey" in path.read_text()) == (True, True)
    gone = forget(watched.core, told.id, text="Valkey")
    assert path.read_text() == "# Log\n\nAn old story.\n"
    assert [part.text for part in gone.removed] == [part.text for part in shown.removed] == ["\nThe cache is Valkey\n"]
    assert not watched.finds("valkey", "Valkey")
    assert equal(watched.core, workspace)


def test_a_chunk_goes_with_its_heading_and_all_its_lines(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", sections(5, 2, "changed"))
    workspace = watched.add(root)
    before = path.read_text()
    gone = forget(watched.core, holder(watched.core, "changed").id)
    assert "Section 2" not in path.read_text()
    assert "changed" not in path.read_text()
    [part] = gone.removed
    lines = before.splitlines(keepends=True)
    assert "".join(lines[part.start_line - 1 : part.end_line]) == part.text
    assert path.read_text() + part.text != before
    assert not watched.finds("changed", "changed")
    assert equal(watched.core, workspace)


def test_each_line_belongs_to_one_chunk_so_that_all_can_be_forgotten(watched: Watched, root: Path) -> None:
    items = "".join(f"- item {n} {FILLER[:180]}\n" for n in range(40))
    path = write(root, "memory/a.md", f"# Items\n\n{items}")
    workspace = watched.add(root)
    chunks = sorted(ask(watched.core, List(limit=1000)), key=lambda memory: memory.start_line or 0)
    assert len(chunks) > 5
    taken: list[str] = []
    for chunk in [chunks[3], *chunks[:3], *chunks[4:]]:
        now = [m for m in ask(watched.core, List(limit=1000)) if m.content == chunk.content]
        if now:
            taken += [part.text for part in forget(watched.core, now[0].id).removed]
    while left := list(ask(watched.core, List(limit=1000))):
        taken += [part.text for part in forget(watched.core, left[0].id).removed]
    text = "".join(taken)
    assert all(text.count(f"item {n} ") == 1 for n in range(40))
    assert path.read_text().strip() == ""
    assert equal(watched.core, workspace)


def test_lines_may_be_named_and_items_go_with_what_belongs_to_them(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", "- one\n- two\n  more of two\n- three\n- four\n")
    watched.add(root)
    id = holder(watched.core, "two").id
    gone = forget(watched.core, id, text="- two")
    assert [part.text for part in gone.removed] == ["- two\n  more of two\n"]
    id = holder(watched.core, "three").id
    assert forget(watched.core, id, start_line=2, end_line=3).removed[0].text == "- three\n- four\n"
    assert path.read_text() == "- one\n"


@pytest.fixture
def three_lines(watched: Watched, root: Path) -> Path:
    path = write(root, "memory/a.md", "- one\n- two\n- three\n")
    watched.add(root)
    return path


@each(
    ("options", "reason"),
    [
        ({"text": "ten"}, "does not stand"),
        ({"text": "t"}, "is in lines 2, 3"),
        ({"text": " "}, "not empty"),
        ({"text": "one", "start_line": 1}, "either"),
        ({"start_line": 3, "end_line": 2}, "cannot be the last"),
        ({"end_line": 2}, "cannot be the last"),
        ({"start_line": 9}, "is lines 1 to 3"),
        ({"start_line": 2, "end_line": 9}, "is lines 1 to 3"),
    ],
)
def test_what_does_not_name_lines_is_refused(
    watched: Watched, three_lines: Path, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises((Invalid, Conflict), match=reason):
        forget(watched.core, holder(watched.core, "two").id, **options)
    assert three_lines.read_text() == "- one\n- two\n- three\n"


def test_a_piece_of_a_long_line_is_not_forgotten_by_itself(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", FILLER * 20 + "\n")
    watched.add(root)
    ids = [memory.id for memory in ask(watched.core, List(limit=1000))]
    assert len(ids) > 3
    with pytest.raises(Conflict, match="part of line 1"):
        forget(watched.core, ids[1])
    forget(watched.core, ids[1], start_line=1)
    assert path.read_text() == ""


def test_a_file_that_was_edited_since_is_read_as_it_is(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", "- one\n- two\n")
    workspace = watched.add(root)
    id = holder(watched.core, "two").id
    with registry_paused(watched, workspace):
        path.write_text("# New\n\nintro\n\n- one\n- two\n")
        gone = forget(watched.core, id)
    assert (gone.removed[0].start_line, path.read_text()) == (4, "# New\n\nintro\n")
    write(root, "memory/b.md", "- three\n- four\n")
    wait_until(lambda: watched.finds("three", "three"))
    id = holder(watched.core, "three").id
    with registry_paused(watched, workspace):
        (root / "memory/b.md").write_text("- three changed\n- four\n")
        with pytest.raises(Conflict, match="was changed"):
            forget(watched.core, id)
    assert (root / "memory/b.md").read_text() == "- three changed\n- four\n"
    assert equal(watched.core, workspace)  # what was refused brought the index up to date


class registry_paused:
    """The watcher's thread does nothing: a change is met by the call itself."""

    def __init__(self, watched: Watched, workspace: StoredWorkspace) -> None:
        self.live = get_live(watched.core, workspace)

    def __enter__(self) -> None:
        self.live.passing.acquire()

    def __exit__(self, *failure: object) -> None:
        self.live.passing.release()


def test_several_memories_of_several_files_go_at_once_and_others_are_deleted(watched: Watched, root: Path) -> None:
    write(root, "memory/a.md", sections(4))
    write(root, "memory/b.md", sections(2))
    watched.add(root)
    plain = add(watched.core, "An ordinary memory").id
    chosen = [m.id for m in ask(watched.core, List(tier=["documents"])) if "Section 1" in m.content]
    chosen += [m.id for m in ask(watched.core, List(tier=["documents"])) if "Section 3" in m.content]
    gone = forget(watched.core, *chosen, plain)
    assert (len(gone.removed), gone.deleted) == (3, [plain])
    assert "Section 1" not in (root / "memory/a.md").read_text() + (root / "memory/b.md").read_text()
    assert (root / "memory/a.md").read_text().count("Section") == 2
    undo(watched.core, gone.operation)
    assert reading.get(watched.core, Get(id=plain)).content == "An ordinary memory"


def test_all_or_none_is_checked_before_anything_changes(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", "- one\n")
    watched.add(root)
    plain = add(watched.core, "An ordinary memory").id
    with pytest.raises(NotFound):
        forget(watched.core, holder(watched.core, "one").id, plain, "dead")
    with pytest.raises(Invalid, match="belongs to no file"):
        forget(watched.core, plain, text="ordinary")
    with pytest.raises(Invalid, match="exactly one id"):
        forget(watched.core, plain, holder(watched.core, "one").id, text="x")
    with pytest.raises(Invalid, match="Give the ids"):
        forget(watched.core)
    assert (path.read_text(), watched.finds("ordinary", "ordinary")) == ("- one\n", True)


def test_a_file_that_is_gone_meanwhile_is_an_error_and_leaves_the_index(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", "- one\n")
    workspace = watched.add(root)
    id = holder(watched.core, "one").id
    with registry_paused(watched, workspace):
        path.unlink()
        with pytest.raises(NotFound):
            forget(watched.core, id)
    assert ask(watched.core, List()).total == 0


def test_a_chunk_that_is_indexed_again_meanwhile_is_forgotten_all_the_same(
    watched: Watched, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(root, "memory/a.md", "- one\n")
    workspace = watched.add(root)
    id, find = holder(watched.core, "one").id, registry.find

    def find_late(core: Core, name: str) -> StoredWorkspace:
        monkeypatch.undo()
        remember(core, "two", file="memory/a.md")  # the chunk of before is no more
        return find(core, name)

    monkeypatch.setattr(registry, "find", find_late)
    removed = forget(watched.core, id, text="one").removed
    assert ([part.text for part in removed], path.read_text()) == (["- one\n"], "- two\n")
    assert equal(watched.core, workspace)


def test_an_agent_forgets_only_what_is_its_own(watched: Watched, root: Path) -> None:
    write(root, "memory/a.md", "- one\n")
    watched.add(root, namespace="acme")
    call = Forget(ids=[holder(watched.core, "one").id], namespace="acme/api")
    with pytest.raises(Forbidden):
        ask(watched.core, call, caller=Caller("agent", "acme/api"))
    assert len(ask(watched.core, call, caller=Caller("lead", "acme/api")).removed) == 1


# Other calls on chunks -----------------------------------------------------------------------------------------------


def test_a_part_of_a_file_is_changed_only_in_the_file(watched: Watched, root: Path) -> None:
    path = write(root, "memory/a.md", "# Caches\n\nThe cache is Valkey\n")
    workspace = watched.add(root, namespace="acme/notes")
    core, id = watched.core, holder(watched.core, "Valkey").id
    for work in (
        lambda: changing.update(core, Update(id=id, content="x")),
        lambda: changing.tag(core, Tag(id=id, tags=["x"])),
        lambda: changing.delete(core, Delete(ids=[id])),
        lambda: sharing.share(core, Share(ids=[id], to="acme", move=True)),
    ):
        with pytest.raises(Conflict, match=r"part of the file .*memctl forget"):
            work().result(LIMIT_S)
    with pytest.raises(Conflict):
        add(core, "The cache is Redis", supersedes=id, dedup=False)
    assert (path.read_text(), equal(core, workspace)) == ("# Caches\n\nThe cache is Valkey\n", True)


# What differs --------------------------------------------------------------------------------------------------------


def test_what_the_index_has_not_followed_is_told_and_left(core: Core, root: Path) -> None:
    for name in "abc":
        write(root, f"memory/{name}.md", f"- {name} one\n- {name} two\n")
    workspace = registry.add(core, str(root), None, ())
    assert [how for _, how in indexing.find_differences(core, workspace)] == ["It is not in the index yet."] * 3
    indexing.index(core, workspace)
    assert indexing.find_differences(core, workspace) == []
    (root / "memory/a.md").unlink()
    write(root, "memory/b.md", "- b one\n- b changed\n")
    write(root, "memory/d.md", "- d\n")
    for _ in range(2):
        assert indexing.find_differences(core, workspace) == [
            ("memory/a.md", "It no longer exists, or is excluded now."),
            ("memory/b.md", "It has changed since it was read."),
            ("memory/d.md", "It is not in the index yet."),
        ]
    os.rename(root, root.with_name("away"))
    assert indexing.find_differences(core, workspace) == []
