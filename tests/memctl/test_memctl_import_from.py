"""import --from: files as other systems wrote them (tests/data/imports, with what made them) come in whole, once."""

import json
import os
import pickle
import shutil
import sqlite3
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl, everything

from memoryd.client import Client
from memoryd.client.extras import advise
from memoryd.client.programs.importing.markdown import split_entries, split_front_matter
from memoryd.client.programs.importing.mem0 import Inert, load_plain
from memoryd.client.programs.importing.systems import SYSTEMS
from workbench import Daemon

SAMPLES = Path(__file__).parent.parent / "data" / "imports"

# System, PATH, and how many memories of which namespace and type come of it.
EXPECTED: list[tuple[str, str, dict[tuple[str, str], int]]] = [
    (
        "claude-mem",
        "claude-mem.db",
        {("x/api", "fact"): 1, ("x/api", "decision"): 1, ("x/web", "fact"): 1, ("x/api", "session-summary"): 1},
    ),
    (
        "memori",
        "memori.db",
        {
            ("x/customer-support", "fact"): 2,
            ("x/team-platform", "fact"): 1,
            ("x/release-agent", "fact"): 1,
            ("x/team-platform", "relation"): 1,
            ("x/customer-support", "session-summary"): 1,
        },
    ),
    *(
        (
            "mem0",
            f"mem0/{store}",
            {
                ("x/reader", "preference"): 1,
                ("x/reader", "fact"): 1,
                ("x/reader/coder", "fact"): 1,
                ("x/coder/run-7", "fact"): 1,
            },
        )
        for store in ("qdrant", "faiss", "chroma")
    ),
    ("mem0", "mem0/history.db", {("x", "fact"): 4}),
    (
        "mem0",
        "mem0/get_all.json",
        {("x/reader", "preference"): 1, ("x/reader", "fact"): 1, ("x/reader/coder", "fact"): 1},
    ),
    ("basic-memory", "basic-memory/notes", {("x/notes", "note"): 3, ("x/notes", "fact"): 3}),
    ("mcp-memory", "memory.jsonl", {("x", "fact"): 5, ("x", "relation"): 1}),
    ("memory-md", "memory-md/claude", {("x", "note"): 1, ("x", "fact"): 2}),
    ("memory-md", "memory-md/claw/MEMORY.md", {("x", "note"): 3}),
    (
        "memory-md",
        "memory-md",
        {("x/claude", "note"): 1, ("x/claude", "fact"): 2, ("x/claw", "note"): 7, ("x/claw/reader", "note"): 1},
    ),
]


@pytest.fixture(autouse=True)
def _at_the_daemon(daemon: "Daemon") -> None:
    """Every command here speaks to the real server."""


def bring(memctl: Memctl, system: str, path: str | Path, *options: str) -> dict[str, Any]:
    done: dict[str, Any] = memctl("import", "--from", system, str(path), "--namespace", "x", "--json", *options).json
    return done


def refused(memctl: Memctl, system: str, path: str | Path) -> str:
    outcome = memctl("import", "--from", system, str(path))
    assert outcome.code == 1
    assert len(outcome.err.splitlines()) == 1
    return outcome.err


def test_every_system_has_a_module_that_reads_and_a_sample_that_is_tested() -> None:
    assert {system for system, _, _ in EXPECTED} == set(SYSTEMS)
    for system in SYSTEMS.values():
        assert callable(import_module(f"memoryd.client.programs.importing.{system.module}").read)


@pytest.mark.slow
@pytest.mark.parametrize(("system", "path", "expected"), EXPECTED, ids=[f"{s} {p}" for s, p, _ in EXPECTED])
def test_what_a_system_kept_comes_in_once_and_goes_with_one_undo(
    memctl: Memctl, client: Client, system: str, path: str, expected: dict[tuple[str, str], int]
) -> None:
    number = sum(expected.values())
    planned = bring(memctl, system, SAMPLES / path, "--dry-run")
    assert (planned["created"], planned["dry_run"], everything(client)) == (number, True, [])
    done = bring(memctl, system, SAMPLES / path)
    before = everything(client)
    assert done["created"] == number
    assert Counter((memory.namespace, memory.type) for memory in before) == expected
    assert {memory.source for memory in before} == {system}
    again = bring(memctl, system, SAMPLES / path)
    assert (again["created"], again["replaced"], again["unchanged"], again["operation"]) == (0, 0, number, None)
    assert everything(client) == before
    assert memctl("undo", done["operation"]).code == 0
    assert everything(client) == []


@pytest.mark.slow
def test_files_of_the_same_name_of_two_projects_stay_apart(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tests.md").write_text(f"---\ntype: feedback\n---\nTests of {name} need its own database.\n")
        (tmp_path / name / "MEMORY.md").write_text("- Tabs, not spaces.\n")
        for _ in range(2):
            memctl("import", "--from", "memory-md", str(tmp_path / name), "--namespace", name)
    assert sorted((memory.namespace, memory.content) for memory in everything(client)) == [
        (name, text)
        for name in ("one", "two")
        for text in ("Tabs, not spaces.", f"Tests of {name} need its own database.")
    ]


def test_texts_that_were_stored_as_bytes_or_have_nul_bytes_come_in(
    memctl: Memctl, client: Client, tmp_path: Path
) -> None:
    shutil.copy(SAMPLES / "claude-mem.db", tmp_path)
    with sqlite3.connect(tmp_path / "claude-mem.db") as connection:
        values = (b"Caf\xe9 of bytes", "Titled\0 twice")
        connection.execute("UPDATE observations SET narrative = ?, title = ? WHERE type = 'bugfix'", values)
    connection.close()
    assert bring(memctl, "claude-mem", tmp_path)["created"] == 4
    [fix] = [memory for memory in everything(client) if "bugfix" in memory.metadata.get("tags", [])]
    assert "Caf\ufffd of bytes" in fix.content
    assert fix.summary == "Titled twice"


def test_times_tags_titles_and_files_of_claude_mem_are_kept(memctl: Memctl, client: Client) -> None:
    outcome = memctl("import", "--from", "claude-mem", str(SAMPLES / "claude-mem.db"))
    assert "2 left out: prompts of users" in outcome.out
    [fix] = [memory for memory in everything(client) if "bugfix" in memory.metadata.get("tags", [])]
    assert fix.created_at == fix.updated_at == 1772355600.0
    assert fix.summary == "Worker timed out on large uploads"
    assert "- Parts have 8 MiB" in fix.content
    assert (fix.type, fix.metadata["tags"]) == ("fact", ["bugfix", "problem-solution", "gotcha"])
    assert fix.metadata["files_modified"] == ["src/upload.py"]
    [summary] = [memory for memory in everything(client) if memory.type == "session-summary"]
    assert "Next steps: Raise the limit" in summary.content
    assert any("画像" in memory.content for memory in everything(client))


@pytest.mark.slow
def test_a_changed_memory_of_mem0_replaces_what_was_imported_before(
    memctl: Memctl, client: Client, tmp_path: Path
) -> None:
    old = json.loads((SAMPLES / "mem0" / "get_all.json").read_text())
    [changed] = [memory for memory in old["results"] if "PostgreSQL 16" in memory["memory"]]
    changed.update(memory="The staging database is PostgreSQL 15", updated_at=changed["created_at"])
    (tmp_path / "old.json").write_text(json.dumps(old))
    bring(memctl, "mem0", tmp_path / "old.json")
    done = bring(memctl, "mem0", SAMPLES / "mem0" / "get_all.json")
    assert (done["created"], done["replaced"]) == (0, 1)
    assert "PostgreSQL 16" in " ".join(memory.content for memory in everything(client))
    memctl("undo", done["operation"])
    assert "PostgreSQL 15" in " ".join(memory.content for memory in everything(client))


@pytest.mark.slow
def test_what_was_changed_here_since_an_import_stays(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    bring(memctl, "memori", SAMPLES / "memori.db")
    [one] = [memory for memory in everything(client) if "12 nodes" in memory.content]
    client.update(one.id, content="The cluster has 14 nodes")
    again = bring(memctl, "memori", SAMPLES / "memori.db")
    assert (again["kept"], again["unchanged"]) == ([one.id], 5)
    assert client.get(one.id).content == "The cluster has 14 nodes"


def test_links_and_observations_of_notes_are_kept(memctl: Memctl, client: Client) -> None:
    bring(memctl, "basic-memory", SAMPLES / "basic-memory" / "notes")
    memories = {memory.summary or memory.content: memory for memory in everything(client)}
    coffee, kettle = memories["Coffee brewing"], memories["Kettle"]
    assert coffee.content == "# Coffee brewing\n\nWater just below the boil, medium grind."
    assert [(link.kind, link.target) for link in coffee.relations] == [("requires", kettle.id)]
    assert coffee.metadata["relations"] == ["requires Kettle", "pairs_with Chocolate"]
    method = memories["Coffee brewing: Pour over takes 4 minutes #brewing"]
    assert (method.metadata["tags"], method.metadata["context"]) == (["method", "brewing"], "counted twice")
    assert "- [ ] Descale it" in kettle.content


@pytest.mark.slow
def test_the_database_of_basic_memory_names_projects_and_times(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "basic-memory" / "memory.db", tmp_path)
    assert "/srv/cookbook" in bring(memctl, "basic-memory", tmp_path, "--yes")["notes"][0]
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("UPDATE project SET path = ?", (str(SAMPLES / "basic-memory" / "notes"),))
        connection.execute("UPDATE entity SET created_at = '2026-03-01 09:00:00.500000'")
    connection.close()
    assert bring(memctl, "basic-memory", tmp_path, "--yes")["created"] == 6
    assert {memory.created_at for memory in everything(client)} == {1772355600.5}
    assert {memory.namespace for memory in everything(client)} == {"x/cookbook"}


def test_a_database_with_columns_that_are_computed_from_json_is_read(memctl: Memctl, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "basic-memory" / "notes", tmp_path / "notes")
    shutil.copy(SAMPLES / "basic-memory" / "memory.db", tmp_path)
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("UPDATE project SET path = ?", (str(tmp_path / "notes"),))
        for field in ("tags", "status"):
            value = f"json_extract(entity_metadata, '$.{field}')"
            connection.execute(f"ALTER TABLE entity ADD COLUMN {field} TEXT GENERATED ALWAYS AS ({value}) VIRTUAL")
            connection.execute(f"CREATE INDEX ix_entity_{field} ON entity ({field})")
    connection.close()
    assert bring(memctl, "basic-memory", tmp_path)["created"] == 6


def test_a_database_is_read_by_a_package_whose_name_is_said_where_it_is_not_installed(
    memctl: Memctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apsw.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert advise("daemon") in refused(memctl, "memori", SAMPLES / "memori.db")
    assert bring(memctl, "mem0", SAMPLES / "mem0" / "get_all.json")["created"] == 3


@pytest.mark.parametrize(
    ("encoding", "text", "read"),
    [
        ("UTF-8", "CAST(x'436166E9' AS TEXT)", "Caf\ufffd"),
        ("UTF-16le", "'Café'", "Café"),
        ("UTF-16be", "'Café'", "Café"),
    ],
)
def test_texts_come_in_whatever_their_encoding(
    memctl: Memctl, client: Client, tmp_path: Path, encoding: str, text: str, read: str
) -> None:
    with sqlite3.connect(tmp_path / "history.db") as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute(
            "CREATE TABLE history (memory_id, new_memory, event, created_at, updated_at, is_deleted, actor_id, role)"
        )
        for id, content in enumerate((text, "'Träume'")):
            connection.execute(f"INSERT INTO history VALUES ({id}, {content}, 'ADD', 1772355600, NULL, 0, NULL, NULL)")
    connection.close()
    bring(memctl, "mem0", tmp_path)
    assert {memory.content for memory in everything(client)} == {read, "Träume"}


@pytest.fixture
def brought(memctl: Memctl, tmp_path: Path) -> Path:
    """A file of the MCP server whose memories were taken over once."""
    file = tmp_path / "memory.jsonl"
    shutil.copy(SAMPLES / "memory.jsonl", file)
    bring(memctl, "mcp-memory", file)
    return file


def test_a_file_without_times_that_was_saved_again_brings_only_what_is_new(
    memctl: Memctl, client: Client, brought: Path
) -> None:
    before = everything(client)
    brought.write_text(
        brought.read_text().replace('"It is written in Go"', '"It is written in Go","It has 3 replicas"')
    )
    again = bring(memctl, "mcp-memory", brought)
    assert (again["created"], again["replaced"], again["unchanged"]) == (1, 0, 6)
    assert [memory for memory in everything(client) if memory.id in {old.id for old in before}] == before


def test_what_was_changed_here_outlives_a_file_that_is_saved_again(
    memctl: Memctl, client: Client, brought: Path
) -> None:
    [one] = [memory for memory in everything(client) if "8443" in memory.content]
    client.update(one.id, content="billing service: It listens on port 9443")
    os.utime(brought, (1_900_000_000, 1_900_000_000))
    assert bring(memctl, "mcp-memory", brought)["unchanged"] == 6
    assert client.get(one.id).content.endswith("9443")


def test_daily_files_have_their_day_and_headings_lead(memctl: Memctl, client: Client) -> None:
    bring(memctl, "memory-md", SAMPLES / "memory-md" / "claw")
    found = {(memory.content, memory.created_at) for memory in everything(client)}
    assert ("Moved the cache to Valkey 8", 1772409600.0) in found
    assert ("Moved the cache to Valkey 8", 1772496000.0) in found
    assert ("Decisions: Releases on Tuesdays", 1772409600.0) in found
    assert any("```sh\nssh vault\n```" in content for content, _ in found)


# What cannot be read -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", list(SYSTEMS))
@pytest.mark.slow
def test_what_is_not_there_or_of_another_kind_is_one_sentence(
    memctl: Memctl, client: Client, tmp_path: Path, system: str
) -> None:
    assert "no such file or folder" in refused(memctl, system, tmp_path / "none")
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe" * 40)
    (tmp_path / "cut.db").write_bytes((SAMPLES / "memori.db").read_bytes()[:700])
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE something (id INTEGER PRIMARY KEY)")
    connection.close()
    (tmp_path / "empty").mkdir()
    for name in ("image.png", "cut.db", "other.db", "empty"):
        assert str(tmp_path) in refused(memctl, system, tmp_path / name)
    assert everything(client) == []


def test_a_newer_schema_is_said_and_what_is_known_comes_in(memctl: Memctl, tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "claude-mem.db", tmp_path)
    with sqlite3.connect(tmp_path / "claude-mem.db") as connection:
        connection.execute("INSERT INTO schema_versions (version, applied_at) VALUES (999, '')")
        connection.execute("ALTER TABLE observations ADD COLUMN colour TEXT")
    connection.close()
    done = bring(memctl, "claude-mem", tmp_path)
    assert (done["created"], "schema 999, this memctl knows 52" in done["notes"][0]) == (4, True)
    with sqlite3.connect(tmp_path / "claude-mem.db") as connection:
        connection.execute("ALTER TABLE observations RENAME COLUMN created_at_epoch TO at")
    connection.close()
    assert "no column created_at_epoch in its table observations" in refused(memctl, "claude-mem", tmp_path)


def test_where_memories_are_is_said_and_to_puts_them_where_every_project_sees_them(
    memctl: Memctl, client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(
        json.dumps([{"id": "a", "memory": "Answers in German", "user_id": "ada", "categories": ["health", "misc"]}])
    )
    done = memctl("import", "--from", "mem0", str(file))
    assert "memctl: Kept in ada: agents see them in the project of this name. With --to / all projects" in done.err
    moved = memctl("import", "--from", "mem0", str(file), "--to", "/", "--overwrite")
    assert "Kept in" not in moved.err
    [record] = everything(client)
    assert (record.namespace, record.metadata["tags"]) == ("", ["health", "misc"])
    assert memctl("import", str(file), "--to", "/").code == 2


def test_lines_that_are_cut_off_are_named_and_the_others_come_in(memctl: Memctl, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    whole = (SAMPLES / "memory.jsonl").read_text()
    file.write_text(
        whole + '\n{"type":"relation","from":"a"}\n{"type":["entity"]}\n{"type":"entity","name":"x","entityT'
    )
    outcome = memctl("import", "--from", "mcp-memory", str(file))
    assert "Imported 6 memories" in outcome.out
    assert "3 left out: lines that are cut off" in outcome.out
    assert "line 5" in outcome.err
    assert "line 6" in outcome.err


def test_of_a_line_with_a_damaged_object_that_alone_is_lost(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    def entity(name: str, said: str) -> str:
        return json.dumps({"type": "entity", "name": name, "entityType": "x", "observations": [said]})

    file = tmp_path / "memory.json"
    lines = [
        entity("a", "one") + entity("b", 'two {"type"'),
        entity("c", "three")[:50] + entity("d", "four") + " " + entity("e", "five"),
        entity("f", "six") + '{"type":"relation","from":"a","to":"b","relationType":"knows"}' + entity("g", "se")[:40],
        "junk " + entity("h", "eight"),
    ]
    file.write_text("\n".join(lines))
    outcome = memctl("import", "--from", "mcp-memory", str(tmp_path))
    assert outcome.code == 0
    said = {"a: one", 'b: two {"type"', "d: four", "e: five", "f: six", "a knows b", "h: eight"}
    assert {record.content for record in everything(client)} == said
    assert "3 left out: lines that are cut off" in outcome.out


@pytest.mark.slow
def test_a_database_that_its_owner_writes_to_is_read_and_a_locked_one_is_said(memctl: Memctl, tmp_path: Path) -> None:
    file = tmp_path / "memori.db"
    shutil.copy(SAMPLES / "memori.db", file)
    owner = sqlite3.connect(file, isolation_level=None)
    owner.execute("PRAGMA journal_mode = wal")
    owner.execute("UPDATE memori_entity_fact SET content = 'In the log only' WHERE id = 1")
    owner.execute("BEGIN IMMEDIATE")
    owner.execute("UPDATE memori_entity_fact SET content = 'Not committed' WHERE id = 2")
    assert bring(memctl, "memori", file)["created"] == 6
    assert "In the log only" in memctl("export").out
    assert "Not committed" not in memctl("export").out
    owner.execute("ROLLBACK")
    owner.execute("PRAGMA journal_mode = delete")
    owner.execute("BEGIN EXCLUSIVE")
    assert "has held a lock on it" in refused(memctl, "memori", file)
    owner.close()


def test_a_pickle_runs_nothing_that_it_names(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    found = load_plain(pickle.dumps({"payload": {"data": "text"}, "other": Harmful()}))
    assert found["payload"] == {"data": "text"}
    assert isinstance(found["other"], Inert)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(ValueError, match="not a readable pickle"):
        load_plain(b"\x80\x04nonsense")


def test_the_pickle_of_an_older_mem0_is_refused_with_what_to_do(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    (tmp_path / "mem0.faiss").touch()
    (tmp_path / "mem0.pkl").write_bytes(pickle.dumps(({"3f9a": {"data": "Deploys need a green build"}}, {0: "3f9a"})))
    for path in (tmp_path, tmp_path / "mem0.pkl"):
        assert "save what get_all() returns as JSON" in refused(memctl, "mem0", path)
    assert everything(client) == []


def test_front_matter_and_entries_are_read_as_people_write_them() -> None:
    head, body = split_front_matter(
        '---\ntitle: "A: b"\ntags: [one, "two"]\nmetadata:\n  type: user\nlist:\n  - x\n---\nText\n'
    )
    assert head == {"title": "A: b", "tags": ["one", "two"], "type": "user", "list": ["x"]}
    assert body == "Text"
    assert split_front_matter("---\nno end") == ({}, "---\nno end")
    assert [entry.text for entry in split_entries("")] == []
    text = "# T\n- a\n  more\n\n  still a\n- b\n\nfree\ntext\n\n***\n## U\n~~~\n# no heading\n~~~\n1. c"
    assert [(entry.headings, entry.text) for entry in split_entries(text)] == [
        (("T",), "a\n  more\n\n  still a"),
        (("T",), "b"),
        (("T",), "free\ntext"),
        (("T", "U"), "~~~\n# no heading\n~~~"),
        (("T", "U"), "c"),
    ]
