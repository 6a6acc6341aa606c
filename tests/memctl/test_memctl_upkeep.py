"""backup, restore, verify, repair, reset, against real daemons: in this process, or started by memctl."""

import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from fake_daemon import Memctl, Terminal, everything

from configs import NO_JOBS, NO_MODEL
from memoryd.client import Client
from memoryd.client.programs.memctl.upkeep import backup, repair
from memoryd.client.projects.known import change_table
from memoryd.client.projects.project import project_namespace
from memoryd.client.protocol import AddMany, NewMemory, NewTurn, Observe
from memoryd.client.rescue import RescueReport
from memoryd.daemon.store.connection import PAGE_BYTES
from workbench import Daemon, wait_until

# In this process -----------------------------------------------------------------------------------------------------


def test_a_backup_is_checked_and_listed(memctl: Memctl, client: Client, daemon: "Daemon", clock: Any) -> None:
    assert "There are no copies in " in memctl("backup", "--list").out
    added = client.add("Herons fish at dawn")
    made = memctl("backup", "--json").json
    assert (made["memories"], made["operation"]) == (1, added.operation)
    assert Path(made["path"]).parent == daemon.core.folder / "backups"
    assert Path(made["path"]).stat().st_mode & 0o777 == 0o600
    clock.advance(60)
    memctl("backup")
    listed = memctl("backup", "--list", "--json").json
    assert listed[0]["path"] == made["path"]
    assert len(listed) == 2
    assert f"memctl restore {daemon.core.folder}" in memctl("backup", str(daemon.core.folder / "one.sqlite")).out
    assert (daemon.core.folder / "one.sqlite").exists()
    assert (
        f"memctl restore '{daemon.core.folder}/one more'" in memctl("backup", str(daemon.core.folder / "one more")).out
    )


def test_the_names_in_the_list_are_whole_and_those_that_restore_takes(
    memctl: Memctl, client: Client, daemon: "Daemon", folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.add("Herons fish at dawn")
    copy = Path(memctl("backup", "--json").json["path"])
    former = daemon.core.folder / "before-restore-20270115T090000Z" / "memoryd.sqlite"
    former.parent.mkdir()
    shutil.copy(copy, former)
    monkeypatch.setenv("COLUMNS", "40")
    head, first, second, last = memctl("backup", "--list").out.splitlines()
    where = daemon.core.folder
    assert last == f"`memctl restore NAME` restores one. The copies are in {where / 'backups'}, `before-…` in {where}."
    assert head.split() == ["MADE", "MEMORIES", "SIZE", "NAME"]
    assert first.split()[:2] == ["2027-01-15T08:00:00Z", "1"]
    assert (first.split()[-1], second.split()[-1]) == (copy.name, former.parent.name)
    for name, meant in {
        copy.name: copy,
        copy.stem: copy,
        former.parent.name: former,
        str(former.parent): former,
    }.items():
        assert backup.choose_copy(daemon.core.folder, name) == meant
    (folder / "notes").mkdir()
    monkeypatch.chdir(folder)
    for name, told in {
        "notes": f"{folder}/notes is a folder without a copy: there is no memoryd.sqlite in it."
        f" If `memctl export` wrote it: `memctl import {folder}/notes`.",
        "none": f"There is no file {folder}/none. `memctl backup --list` shows the names of all copies.",
    }.items():
        assert memctl("restore", name).err == f"memctl: {told}\n"


def test_the_database_in_use_is_no_copy_to_restore(
    memctl: Memctl, client: Client, daemon: "Daemon", folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.add("Herons fish at dawn")
    data = daemon.core.folder
    (folder / "link").symlink_to(data)
    monkeypatch.chdir(data)
    for name in (str(data), str(data / "memoryd.sqlite"), "memoryd.sqlite", ".", str(folder / "link")):
        refused = memctl("restore", name)
        assert (refused.code, "is the database in use, not a copy" in refused.err) == (1, True), (name, refused)
    empty = memctl("restore", "")
    assert (empty.code, empty.err.splitlines()[0]) == (
        2,
        "memctl: FILE is empty: name a copy (`memctl backup --list`), or `latest`.",
    )


def test_words_that_a_file_left_in_a_restored_copy_are_told_where_something_was_erased_again() -> None:
    def restored(**fields: Any) -> str:
        return backup._restored_text(RescueReport(**fields), Path("/disk/a copy.sqlite"), False)

    assert "`memctl erase --matching -` with the word clears them." in restored(erased=["ab" * 16], parts=3)
    assert "clears them" not in restored(erased=["ab" * 16]) + restored(parts=3)


def test_tokens_that_are_left_out_are_kept_by_the_same_restore_with_an_option() -> None:
    said = backup._restored_text(RescueReport(tokens=["robot (writer of api)"]), Path("/disk/a copy.sqlite"), False)
    assert "robot (writer of api). To keep them run `memctl restore '/disk/a copy.sqlite' --tokens` now" in said


def test_a_backup_goes_where_it_is_told_and_never_over_a_file(
    memctl: Memctl, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.add("Herons fish at dawn")
    monkeypatch.chdir(tmp_path)
    assert memctl("backup", "here.sqlite", "--json").json["path"] == str(tmp_path / "here.sqlite")
    assert "is never written over" in memctl("backup", "here.sqlite").err
    assert memctl("backup", str(tmp_path), "--json").json["path"].startswith(f"{tmp_path}/memoryd-2027")
    assert "There is no folder" in memctl("backup", str(tmp_path / "none" / "x")).err
    assert f"There is no folder {tmp_path}/none for" in memctl("backup", f"{tmp_path}/none/").err
    assert not (tmp_path / "none").exists()
    assert memctl("backup", "x", "--list").code == 2
    assert [name for name in os.listdir(tmp_path) if name.endswith(".part")] == []


def test_a_damaged_database_is_not_copied_over_good_copies(memctl: Memctl, client: Client, daemon: "Daemon") -> None:
    client.add("Herons fish at dawn")
    damage(daemon, "UPDATE memories_fts_data SET block = x'0000' WHERE id > 10")
    refused = memctl("backup")
    assert (refused.code, "was not kept, as it is damaged" in refused.err) == (1, True)
    assert "memctl verify" in refused.err
    assert memctl("backup", "--list", "--json").json == []


def damage(daemon: "Daemon", *statements: str) -> None:
    connection = apsw.Connection(str(daemon.core.store.path))
    connection.pragma("foreign_keys", False)
    connection.set_busy_timeout(10_000)  # the daemon writes too
    for statement in statements:
        connection.execute(statement)
    connection.close()


DAMAGE = {
    "UPDATE memories_fts_data SET block = x'0000' WHERE id > 10": "full text: fts5: corruption",
    "UPDATE vec_embeddings SET vector = x'0000' WHERE id = 1": "vectors: 1 have a wrong length",
    "UPDATE vec_embeddings SET vector = zeroblob(256) WHERE id = 2": "vectors: 1 are zero",
    "UPDATE memories SET text_hash = x'00', content_hash = x'00' WHERE row = 1": "1 have hashes that are not",
    "INSERT INTO members VALUES (1, 99)": "graph: 1",
}


def test_what_is_derived_is_found_wrong_and_built_anew_while_the_daemon_goes_on(
    memctl: Memctl, client: Client, daemon: "Daemon"
) -> None:
    client.add_many([NewMemory(content=f"Crane number {number}") for number in range(30)], dedup=False)
    wait_until(lambda: client.status().pending_embeddings == 0)
    assert memctl("verify").out == "All is well: 30 memories.\n"
    good = vectors(daemon)
    for statement, told in DAMAGE.items():
        damage(daemon, statement)
        wrong = memctl("verify")
        assert (wrong.code, "memctl repair" in wrong.err, told in wrong.out) == (1, True, True), wrong
    assert len(memctl("verify", "--json").json["problems"]) >= len(DAMAGE)
    mended = memctl("repair")
    assert (mended.code, "All is well" in mended.out) == (0, True)
    wait_until(lambda: client.status().pending_embeddings == 0)
    assert len(client.search("Crane number 7", limit=30)) == 30
    assert memctl("verify").out == "All is well: 30 memories.\n"
    assert vectors(daemon) == good


def vectors(daemon: "Daemon") -> list[bytes]:
    with daemon.core.store.reading() as connection:
        return sorted(blob for (blob,) in connection.execute("SELECT vector FROM vec_embeddings"))


def test_a_reset_of_a_namespace_asks_keeps_a_copy_and_can_be_undone(
    memctl: Memctl, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.add("At the root")
    for namespace in ("acme/api", "acme/api/alpha", "acme", "acme/apiary"):
        client.call(AddMany(memories=[NewMemory(content=f"In {namespace}")], namespace=namespace))
    refused = memctl("reset", "--namespace", "acme/api")
    assert (refused.code, "2 memories in acme/api and below it" in refused.err) == (2, True)
    monkeypatch.setattr(sys, "stdin", Terminal("acme\n"))
    assert "Nothing was deleted" in memctl("reset", "--namespace", "acme/api").err
    assert len(everything(client)) == 5
    before = everything(client)
    monkeypatch.setattr(sys, "stdin", Terminal("acme/api\n"))
    done = memctl("reset", "--namespace", "acme/api")
    assert "Deleted 2 memories of acme/api" in done.out
    assert "/backups/kept-" in done.out
    assert sorted(memory.namespace for memory in everything(client)) == ["", "acme", "acme/apiary"]
    assert len(memctl("backup", "--list", "--json").json) == 1
    memctl("undo", "--yes")
    assert everything(client) == before
    assert "There is nothing in x" in memctl("reset", "--namespace", "x", "--yes").out


def test_a_reset_of_a_namespace_knows_what_goes_with_a_turn(
    memctl: Memctl, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair, "_PER_CALL", 1)
    memctl("observe", "The vault opens on Fridays", "--session", "s1", "--namespace", "acme")
    about: dict[str, Any] = {"type": "note", "source": "session_summary", "metadata": {"session": "s1"}}
    added = [NewMemory(content="Session s1: the vault", **about), NewMemory(content="Herons fish at dawn")]
    client.call(AddMany(namespace="acme", memories=added))
    assert memctl("reset", "--namespace", "acme", "--yes", "--no-backup").code == 0
    assert memctl("export", "--namespace", "acme").out == ""


def test_a_reset_of_a_namespace_leaves_no_turn_however_many_there_are(memctl: Memctl, client: Client) -> None:
    for number in range(52):  # of each namespace L0 holds 20
        turns = [NewTurn(role="user", content=f"We keep box {at} of shelf {number}") for at in range(20)]
        client.call(Observe(turns=turns, namespace=f"acme/{number}"))
    deleted = memctl("reset", "--namespace", "acme", "--yes", "--json").json["ids"]
    assert len(deleted) == len(set(deleted)) == 1040
    assert client.turns(reach="subtree").turns == []


def test_nobody_is_asked_where_there_is_no_terminal(memctl: Memctl, client: Client) -> None:
    client.add("Herons fish at dawn")
    refused = memctl("reset")
    assert (refused.code, "give --yes" in refused.err) == (2, True)
    assert len(everything(client)) == 1


# Daemons that memctl starts and stops --------------------------------------------------------------------------------


@pytest.fixture
def started(memctl: Memctl, folder: Path) -> Iterator[Path]:
    """A folder whose daemon is started by the first command and stopped at the end; gives its data directory."""
    (folder / "config.toml").write_text(NO_MODEL + NO_JOBS)
    yield folder / "data"
    memctl("down")


def contents(memctl: Memctl) -> list[str]:
    return sorted(record["content"] for record in memctl("export", "--json").json)


@pytest.mark.slow
def test_a_copy_is_restored_under_a_running_daemon_and_the_former_kept(
    memctl: Memctl, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("add", "Herons fish at dawn")
    memctl("add", "A slip of the pen")
    memctl("undo")
    memctl("backup")
    memctl("add", "Storks nest on roofs")
    before = memctl("status", "--json").json["pid"]
    monkeypatch.delenv("MEMORYD_CONFIG")  # the daemon starts again with its own places, not with those of memctl
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(started.parent / "elsewhere"))
    done = memctl("restore", "latest", "--json").json
    assert (done["memories"], done["taken_up"]) == (1, True)
    assert memctl("status", "--json").json["pid"] != before
    assert contents(memctl) == ["Herons fish at dawn"]
    assert memctl("search", "herons", "--json").json[0]["content"] == "Herons fish at dawn"
    assert memctl("verify").code == 0
    assert "undo" in [entry["kind"] for entry in memctl("history", "--json").json]
    assert Path(done["kept"]).parent == started
    again = memctl("restore", done["kept"])
    assert "The daemon was restarted for it" in again.out
    assert contents(memctl) == ["Herons fish at dawn", "Storks nest on roofs"]
    assert len(memctl("backup", "--list", "--json").json) == 3


def place_project(folder: Path, remote: str = "") -> str:
    folder.mkdir(parents=True)
    if remote:
        (folder / ".git").mkdir()
        (folder / ".git/config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    return project_namespace(folder)


def list_projects(memctl: Memctl) -> list[str]:
    return [one["namespace"] for one in memctl("project", "list", "--json").json]


@pytest.mark.slow
def test_a_copy_knows_how_the_projects_are_called(
    memctl: Memctl, started: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    url = "https://example.com/acme/api"
    assert [place_project(folder / "old/api", url), place_project(folder / "old/shop")] == ["api", "shop"]
    memctl("add", "The API caches in Valkey", "--namespace", "api")
    memctl("add", "We sell herons", "--namespace", "shop")
    memctl("project", "rename", "api", "acme/api")
    copy = str(folder / "copy.sqlite")
    memctl("backup", copy)
    memctl("project", "rename", "acme/api", "pay")
    place_project(folder / "old/later")
    done = memctl("restore", copy)
    assert "Projects without" not in done.out
    assert list_projects(memctl) == ["acme/api", "shop", "later"]
    assert project_namespace(folder / "old/api") == "acme/api"
    memctl("restore", str(next(started.glob("before-restore-*"))))
    assert list_projects(memctl) == ["pay", "shop", "later"]
    memctl("down")

    shutil.rmtree(folder / "old")
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "new/data"))
    other = folder / "new/other"
    place_project(other, "https://example.com/other/api")
    with change_table() as table:
        table["projects"][0]["namespace"] = "acme/api"
    done = memctl("restore", copy)
    assert f"No longer a folder of acme/api, which is another project in the copy: {other}." in done.out
    assert f"If both are the same project: `memctl project rename {other} acme/api --join`." in done.out
    assert f"If not: `memctl project rename {other} NEW` gives this one another name." in done.out
    assert "Projects without a folder here: acme/api (example.com/acme/api), shop. A checkout" in done.out
    memctl("up")
    assert place_project(folder / "new/api", url) == "acme/api"
    (folder / "new/market").mkdir()
    assert memctl("project", "rename", str(folder / "new/market"), "shop").code == 0
    assert project_namespace(folder / "new/market") == "shop"
    assert list_projects(memctl) == ["acme/api", "shop"]


@pytest.mark.slow
def test_copies_that_hold_what_is_erased_again_are_named_where_there_are_any(
    memctl: Memctl, started: Path, folder: Path
) -> None:
    id = memctl("add", "Herons fish at dawn", "--json").json["id"]
    copy = str(folder / "copy.sqlite")
    memctl("backup", copy)
    memctl("erase", id, "--yes")
    again = "Erased again, because erased here since the copy: 1 memory."
    assert again in memctl("restore", copy).out.splitlines()
    (started / "backups").mkdir()
    shutil.copy(copy, started / "backups/kept-20260101T000000Z.sqlite")
    hint = f"{again} `memctl erase {id[:8]} --copies` rewrites all copies in the data folder."
    assert hint in memctl("restore", copy).out.splitlines()


@pytest.mark.slow
def test_a_copy_is_restored_where_no_daemon_runs(memctl: Memctl, started: Path, folder: Path) -> None:
    memctl("add", "Herons fish at dawn")
    memctl("observe", "We decided that the cache is Valkey")
    assert memctl("backup", str(folder / "copy.sqlite")).out.startswith("Copied 1 memory, 1 turn (")
    memctl("add", "Storks nest on roofs")
    memctl("down")
    done = memctl("restore", str(folder / "copy.sqlite"))
    assert "runs again" not in done.out
    assert memctl("status").code == 3
    assert contents(memctl) == ["Herons fish at dawn", "We decided that the cache is Valkey"]


@pytest.mark.slow
def test_what_cannot_be_restored_changes_nothing(memctl: Memctl, started: Path, folder: Path) -> None:
    memctl("add", "Herons fish at dawn")
    copy = Path(memctl("backup", str(folder / "copy.sqlite"), "--json").json["path"])
    pid = memctl("status", "--json").json["pid"]
    newer, broken, other = folder / "newer.sqlite", folder / "broken.sqlite", folder / "other.sqlite"
    for path in (newer, broken):
        path.write_bytes(copy.read_bytes())
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    data = bytearray(copy.read_bytes())
    data[PAGE_BYTES * 5 : PAGE_BYTES * 20] = b"\xa5" * PAGE_BYTES * 15
    broken.write_bytes(data)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE something (id)")
    connection.close()
    (folder / "text.sqlite").write_text("no database at all" * 50)
    (folder / "cut.sqlite").write_bytes(copy.read_bytes()[:20_000])
    for name, told in {
        "newer.sqlite": "newer memoryd (schema 999",
        "broken.sqlite": "is damaged",
        "other.sqlite": "is not a database of memoryd",
        "text.sqlite": f"text.sqlite is not a database. If `memctl export` wrote it: `memctl import {folder}/text",
        "cut.sqlite": f"It has 20,000 of {len(data):,} bytes, so it may have arrived incomplete",
        "none.sqlite": "There is no file",
    }.items():
        refused = memctl("restore", str(folder / name))
        assert (refused.code, told in refused.err) == (1, True), (name, refused)
        assert len(refused.err.splitlines()) == 1
    assert f"`memctl restore {copy}` replaces the database here" in memctl("import", str(copy)).err
    assert memctl("status", "--json").json["pid"] == pid
    assert contents(memctl) == ["Herons fish at dawn"]
    assert [path.name for path in started.glob("before-*")] == []
    assert [path.name for path in started.glob("next*")] == []
    assert "There are no copies" in memctl("restore", "latest").err


def break_leaves(data: Path, first: int = 0, end: int | None = None) -> None:
    """Write over leaf pages of the table of memories."""
    file = data / "memoryd.sqlite"
    connection = apsw.Connection(str(file))
    leaves = "SELECT pageno FROM dbstat WHERE name = 'memories' AND pagetype = 'leaf'"
    pages: Any = connection.execute(leaves).fetchall()
    connection.close()
    with file.open("r+b") as opened:
        for (page,) in pages[first:end]:
            opened.seek((page - 1) * PAGE_BYTES)
            opened.write(b"\xa5" * PAGE_BYTES)


@pytest.mark.slow
def test_a_file_with_lost_pages_is_read_out_and_the_daemon_goes_on(memctl: Memctl, started: Path) -> None:
    lines = "\n".join(f'{{"content": "Crane {n} {"reeds " * 300}"}}' for n in range(60))
    (started.parent / "many.jsonl").write_text(lines)
    memctl("import", str(started.parent / "many.jsonl"))
    total = memctl("status", "--json").json["memories"]
    assert total >= 60
    memctl("down")
    break_leaves(started, 3, 4)
    found = memctl("verify")
    assert (found.code, "the file itself is damaged: `memctl repair --recover`" in found.err) == (1, True)
    told = memctl("doctor", "database", "--json").json[0]
    assert (told["fix"], told["commands"]) == ("memctl repair --recover", [])
    assert "`memctl repair --recover`" in memctl("repair").err
    recovered = memctl("repair", "--recover", "--json")
    done = recovered.json
    assert (recovered.code, done["damaged"], done["former"]) == (1, ["memories"], total)
    assert (Path(done["kept"]) / "memoryd.sqlite").exists()
    assert memctl("verify").code == 0
    left = memctl("status", "--json").json["memories"]
    assert total > left > total - 10
    assert done["memories"] == left


@pytest.mark.slow
@pytest.mark.parametrize("way_out", ["down", "restore", "recover"])
def test_a_daemon_that_cannot_read_its_memories_says_so_and_can_be_stopped_and_mended(
    memctl: Memctl, started: Path, way_out: str
) -> None:
    (started.parent / "config.toml").write_text(NO_JOBS + "[model]\nfetch = false\n")
    memctl("add", "Herons fish at dawn")
    memctl("backup")
    memctl("down")
    break_leaves(started)
    assert memctl("up").code == 0
    status = memctl("status")
    assert (status.code, "vector, database" in status.out, "`memctl doctor`" in status.out) == (0, True, True)
    if way_out == "down":
        assert memctl("down").code == 0
    elif way_out == "restore":
        assert memctl("restore", "latest").code == 0
        assert contents(memctl) == ["Herons fish at dawn"]
    else:
        done = memctl("repair", "--recover")
        assert (done.code, "Read 0 of 1 memories" in done.out, "`memctl restore latest`" in done.err) == (1, True, True)
        assert memctl("verify").out == "All is well: 0 memories.\n"


@pytest.mark.slow
def test_the_job_backup_begins_its_interval_with_a_restore(memctl: Memctl, started: Path) -> None:
    """Else it would soon copy what was restored, and delete an older copy, perhaps the one that is looked for."""
    (started.parent / "config.toml").write_text(NO_MODEL)
    memctl("add", "Herons fish at dawn")
    memctl("jobs", "run", "backup")
    copy = str(started.parent / "copy.sqlite")
    memctl("backup", copy)
    memctl("down")
    shutil.rmtree(started)
    assert "last changed 20" in memctl("restore", copy).out
    [job] = [job for job in memctl("jobs", "list", "--json").json if job["name"] == "backup"]
    assert (job.get("last"), job["state"]) == (None, "waiting")
    assert datetime.fromisoformat(job["next_run_at"]).timestamp() > time.time() + 86_000
    assert memctl("backup", "--list", "--json").json == []


@pytest.mark.slow
def test_a_reset_of_everything_keeps_the_former_database_unless_told_not_to(memctl: Memctl, started: Path) -> None:
    memctl("add", "Herons fish at dawn")
    done = memctl("reset", "--yes")
    assert "There are no memories any more" in done.out
    assert contents(memctl) == []
    [former] = memctl("backup", "--list", "--json").json
    memctl("restore", former["path"])
    assert contents(memctl) == ["Herons fish at dawn"]
    assert "Nothing was kept" in memctl("reset", "--yes", "--no-backup").out
    assert contents(memctl) == []
    assert memctl("verify").code == 0


@pytest.mark.slow
def test_what_the_daemon_refuses_does_not_happen_at_its_next_start(
    memctl: Memctl, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("add", "Herons fish at dawn")
    memctl("backup")
    memctl("add", "Storks nest on roofs")
    token = memctl("token", "add", "agent", "--namespace", "acme", "--json").json["token"]
    monkeypatch.setenv("MEMORYD_TOKEN", token)
    for command in (("restore", "latest"), ("reset", "--yes", "--no-backup")):
        assert "shutdown is for the machine's user" in memctl(*command).err
    monkeypatch.delenv("MEMORYD_TOKEN")
    memctl("up", "--restart")
    assert contents(memctl) == ["Herons fish at dawn", "Storks nest on roofs"]


@pytest.mark.slow
def test_a_restore_keeps_pauses_and_says_how_its_workspaces_are_added_again(
    memctl: Memctl, started: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "notes").mkdir()
    (folder / "notes/birds.md").write_text("# Birds\n\nHerons stand still.\n")
    memctl("workspace", "add", str(folder / "notes"), "--namespace", "acme/notes")
    copy, diary = str(folder / "copy.sqlite"), str(folder / "diary")
    memctl("observe", "We decided that the cache is Valkey")
    assert memctl("backup", copy).out.startswith("Copied 1 turn, 1 part of files (")
    (folder / "diary").mkdir()
    memctl("observe", "off", "--folder", diary)
    done = memctl("restore", copy).out
    assert done.startswith("Restored 1 turn, 1 part of files from ")
    assert f"Still not observed, because it was paused here after the copy: {diary}." in done
    assert "Left out workspaces" not in done
    assert f"folder {diary}" in memctl("observe", "status").out
    memctl("down")
    (folder / "notes").rename(folder / "elsewhere")
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "new/data"))
    done = memctl("restore", copy).out
    assert done.startswith("Restored 1 turn from ")
    assert f"  memctl workspace add PATH --namespace acme/notes  # PATH is where {folder}/notes is now\n" in done
