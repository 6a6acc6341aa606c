"""A vault of Obsidian with 300 notes needs no option: all is found, dated, tagged and linked."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from notes import Watched, write

from memoryd.client.errors import Conflict, Invalid
from memoryd.client.protocol import Get, List, Memory, NewTurn
from memoryd.client.protocol.workspaces import AddWorkspace, Flush, IndexWorkspace, Remember, Workspaces
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.workspaces import calls, flushing, registry
from workbench import ask, found, search, wait_until

NAMES = ["Café Münster", "日記", "Über uns", "Проект", "🌱 Garden", "naïve Bayes", "a & b (draft)", "100% done"]


def make_vault(root: Path) -> None:
    """Write 300 notes as people have them: daily notes, front matter, links, tags, names in any script."""
    write(root, ".obsidian/daily-notes.json", json.dumps({"folder": "Journal/Daily", "format": "YYYY/YYYY-MM-DD"}))
    write(root, ".obsidian/plugins/readme.md", "Not a note about plugins\n")
    write(root, ".trash/old.md", "A note about trash\n")
    write(root, "Files/picture.png", "no text")
    write(root, ".gitignore", "Private/\n")
    write(root, "Private/secret.md", "A note about what nobody reads\n")
    for number in range(120):
        day = date(2026, 1, 1) + timedelta(days=number)
        write(
            root, f"Journal/Daily/{day:%Y}/{day}.md", f"# {day}\n\n- walked {number} km with [[Person {number % 9}]]\n"
        )
    for number in range(100):
        front = f"---\ndate: 2025-03-{number % 28 + 1:02}\ntags: [project, p{number}]\naliases:\n  - P{number}\n---\n"
        write(
            root, f"Projects/P{number:03}.md", f"{front}# Project {number}\n\nBudget of {number} crowns #money/plan\n"
        )
    for number in range(9):
        write(root, f"People/Person {number}.md", f"---\ncreated: 2024-02-03T10:00\n---\nLikes tea number {number}.\n")
    for number in range(8):
        write(root, f"{NAMES[number]}.md", f"A thought numbered {number} about {NAMES[number]}\n")
    for number in range(63):
        write(root, f"Areas/Deep/er/2023-05-{number % 31 + 1:02} Meeting {number}.md", f"Minutes of meeting {number}\n")


@pytest.fixture
def core(watched: Watched, root: Path) -> Core:
    make_vault(root)
    ask(watched.core, AddWorkspace(path=str(root)))
    index(watched.core, root)
    return watched.core


def index(core: Core, path: Path, wait: bool = False) -> None:
    done = ask(core, IndexWorkspace(workspace=str(path), wait=wait), report=lambda event: None)
    assert [one.problem for one in done] == [""]


def note(core: Core, name: str) -> Memory:
    [one] = ask(core, List(where={"memory.path": f"{registry.list_all(core)[0].root}/{name}"})).memories
    return reading.get(core, Get(id=one.id))


def at(*day: int) -> float:
    return datetime(*day, tzinfo=UTC).timestamp()  # type: ignore[arg-type, misc]


def test_a_vault_is_indexed_whole_and_what_is_left_out_has_a_reason(core: Core, root: Path) -> None:
    status = calls.examine(core, registry.find(core, str(root)))
    assert (status.globs, status.files, status.problems) == (["**/*.md"], 300, [])
    assert {one.path: one.problem for one in status.left_out} == {
        ".obsidian/": "It is hidden.",
        ".trash/": "It is hidden.",
        "Private/": "Git ignores it.",
        "*": "1 file is not Markdown: 1 .png.",
    }
    [vault] = ask(core, Workspaces(workspace=str(root), files=5, offset=295))
    assert (vault.files, [one.chunks for one in vault.listed]) == (300, [1] * 5)
    assert [found(core, f"{name} {name} {name}", limit=1)[0].partition(" about ")[2] for name in NAMES] == NAMES
    assert not search(core, "trash plugins").hits or "trash" not in search(core, "trash plugins").hits[0].content


def test_notes_have_the_dates_tags_and_links_that_they_say(core: Core) -> None:
    daily = note(core, "Journal/Daily/2026/2026-02-10.md")
    project = note(core, "Projects/P012.md")
    assert daily.created_at == at(2026, 2, 10)
    assert [path.rpartition("/")[2] for path in daily.links] == ["Person 4.md"]
    assert project.created_at == at(2025, 3, 13)
    assert project.metadata["tags"] == ["project", "p12", "money/plan"]
    assert project.metadata["aliases"] == ["P12"]
    assert note(core, "Areas/Deep/er/2023-05-04 Meeting 3.md").created_at == at(2023, 5, 4)
    person = note(core, "People/Person 4.md")
    assert person.created_at == at(2024, 2, 3, 10)
    assert len(person.linked_from) > 0
    tagged = ask(core, List(where={"tags": "money/plan"}))
    assert tagged.total == 100


@pytest.mark.slow
def test_a_file_that_is_written_again_as_it_was_keeps_its_date(core: Core, root: Path) -> None:
    path = root / "Projects" / "P012.md"
    path.write_bytes(path.read_bytes())
    index(core, root)
    assert note(core, "Projects/P012.md").created_at == at(2025, 3, 13)


def test_what_is_remembered_goes_where_the_daily_notes_are(core: Core, root: Path) -> None:
    done = ask(core, Remember(text="The cache is Valkey", workspace=str(root)))
    assert done.path == f"{root}/Journal/Daily/2027/2027-01-15.md"
    assert found(core, "valkey")[0] == "- The cache is Valkey"


@pytest.mark.slow
def test_one_file_is_indexed_by_itself(core: Core, root: Path) -> None:
    write(root, "New.md", "A note on herons\n")
    index(core, root / "New.md")
    assert found(core, "herons")[0] == "A note on herons"
    with pytest.raises(Invalid, match="hidden"):
        index(core, root / ".trash" / "old.md")


@pytest.mark.slow
def test_globs_are_changed_in_place(core: Core, root: Path) -> None:
    with pytest.raises(Conflict, match="already"):
        ask(core, AddWorkspace(path=str(root)))
    changed = ask(core, AddWorkspace(path=str(root), globs=["People/*.md"]))
    assert changed.globs == ["People/*.md"]
    index(core, root)
    assert ask(core, Workspaces(workspace=str(root))).workspaces[0].files == 9
    write(root, "People/Zoe.md", "Zoe likes herons\n")
    wait_until(lambda: found(core, "herons")[:1] == ["Zoe likes herons"])
    wait_until(lambda: {"Projects/", "日記.md"} <= _list_unmatched(core, root))  # by the pass of who watches it now


def _list_unmatched(core: Core, root: Path) -> set[str]:
    status = calls.examine(core, registry.find(core, str(root)))
    return {one.path for one in status.left_out if "No pattern" in one.problem}


@pytest.mark.slow
def test_indexing_can_wait_for_the_vectors(core: Core, root: Path) -> None:
    write(root, "New.md", "A note on herons\n")
    index(core, root, wait=True)
    assert calls.examine(core, registry.find(core, str(root))).pending_embeddings == 0


@pytest.mark.slow
def test_what_is_worth_keeping_of_a_conversation_goes_into_todays_note(core: Core, root: Path) -> None:
    said = [
        NewTurn(role="user", content="hi there"),
        NewTurn(role="user", content="We decided to cache sessions in Valkey."),
        NewTurn(role="assistant", content="The sessions are in Valkey now."),
    ]
    call = Flush(turns=said, workspace=str(root))
    done = ask(core, call)
    assert (done.text, done.by) == (
        "- Asked: We decided to cache sessions in Valkey.\n- Answer: The sessions are in Valkey now.",
        "rules",
    )
    assert done.note is not None
    assert done.note.path == f"{root}/Journal/Daily/2027/2027-01-15.md"
    assert Path(done.note.path).read_text() == f"{done.text}\n"
    assert found(core, "valkey")[0] == done.text
    again = ask(core, call)
    assert (again.text, again.note) == ("", None)
    with pytest.raises(Invalid, match="hidden"):
        flushing.begin(core, Flush(turns=said, workspace=str(root), file=".obsidian/x.md"))
