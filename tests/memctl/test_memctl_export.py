"""export and import: what memctl writes it takes back, into the same daemon or another; what others edited is safe."""

import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_daemon import Memctl, everything

from each import each
from memoryd.client import Client
from memoryd.client.programs.memctl.export_folder import JOURNAL
from memoryd.client.programs.memctl.sending import open_spool
from memoryd.client.protocol import Erase
from waiting import wait_until
from workbench import Daemon


@pytest.fixture(autouse=True)
def _at_the_daemon(daemon: "Daemon") -> None:
    """Every command here speaks to the real server."""


def fill(client: Client) -> None:
    client.add("We use Valkey, not Redis", type="decision", metadata={"tags": ["cache"], "n": 1.0})
    client.add("Deploys take 30 seconds", dedup_threshold=0.5)
    client.add("Deploys take 60 seconds", dedup_threshold=0.5, pinned=True)
    client.add("---\n\nA rule \r\n\n", source="session_summary", expires_at=5.0)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != JOURNAL
    }


@pytest.mark.parametrize("way", ["markdown", "jsonl", "json", "stdin"])
def test_what_is_exported_and_deleted_comes_back_exactly(
    memctl: Memctl, client: Client, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(client)
    before = everything(client)
    assert len(before) == 4
    source = str(tmp_path / "out")
    if way == "markdown":
        assert memctl("export", "--markdown", source).code == 0
    else:
        done = memctl("export", *(["--json"] if way == "json" else []))
        out = done.out
        assert done.err == ("" if way == "json" else "memctl: Exported 4 memories.\n")
        assert way == "json" or len(out.splitlines()) == 4
        Path(source).write_text(out, newline="")
    client.delete(*(record.id for record in before))
    assert everything(client) == []
    if way == "stdin":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(source).read_bytes())))
    done = memctl("import", "-" if way == "stdin" else source, "--mine", "--json").json
    assert (done["created"], done["replaced"], done["unchanged"]) == (4, 0, 0)
    assert everything(client) == before
    assert "4 memories unchanged" in memctl("import", "--dry-run", str(source)).out
    memctl("undo", str(done["operation"]))
    assert everything(client) == []


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_text_steers_the_terminal_that_shows_an_export(
    memctl: Memctl, client: Client, tmp_path: Path, options: tuple[str, ...]
) -> None:
    text = "a\x1b[2Jb\x7fc\x9b2Jd\u202ee\u2066f ü €"
    client.add(text)
    out = memctl("export", *options).out
    assert all(c == "\n" or c.isprintable() for c in out)
    (tmp_path / "in.jsonl").write_text(out)
    client.undo()
    assert memctl("import", str(tmp_path / "in.jsonl")).code == 0
    assert everything(client)[0].content == text


def test_an_export_comes_below_the_namespace_that_is_given(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    first = client.add("We use Valkey, not Redis").id
    second = memctl("add", "Deploys take 30 seconds", "--namespace", "acme/api", "--json").json["id"]
    (tmp_path / "all.jsonl").write_text(memctl("export").out, newline="")
    client.delete(first, second)
    assert memctl("import", str(tmp_path / "all.jsonl"), "--namespace", "old/").code == 0
    assert {record.namespace for record in everything(client)} == {"old", "old/acme/api"}


def test_an_export_again_writes_only_what_changed(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    fill(client)
    first = memctl("export", "--markdown", str(folder), "--json").json
    assert (first["written"], first["unchanged"], first["removed"]) == (4, 0, 0)
    again = memctl("export", "--markdown", str(folder), "--json").json
    assert (again["written"], again["unchanged"], again["removed"]) == (0, 4, 0)
    ids = {record.content[:13]: record.id for record in everything(client)}
    client.update(ids["We use Valkey"], content="Another text altogether")
    client.delete(next(id for words, id in ids.items() if words.startswith("---")))
    client.share(next(id for words, id in ids.items() if words.startswith("Deploys")), to="acme", move=True)
    third = memctl("export", "--markdown", str(folder), "--json").json
    assert (third["written"], third["unchanged"], third["removed"]) == (2, 1, 2)
    assert len(files(folder)) == 3
    assert (folder / "acme").is_dir()
    client.delete(*(record.id for record in everything(client) if record.namespace))
    memctl("export", "--markdown", str(folder))
    assert not (folder / "acme").exists()


def test_what_a_person_edited_is_left_until_it_is_imported(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    added = client.add("We use Valkey")
    memctl("export", "--markdown", str(folder))
    [name] = files(folder)
    (folder / name).write_text((folder / name).read_text().replace("Valkey", "Valkey 8"))
    (folder / "README.md").write_text("mine")
    out = memctl("export", "--markdown", str(folder))
    assert (out.code, "Valkey 8" in (folder / name).read_text()) == (1, True)
    assert name in out.err
    kept = memctl("import", str(folder))
    assert "1 memory left as stored" in kept.out
    assert "README.md: not a memory of an export" in kept.err
    assert memctl("import", str(folder), "--overwrite").code == 0
    assert client.get(added.id).content == "We use Valkey 8"
    wait_until(lambda: client.get(added.id).access_count > 0)  # what the daemon counts is no difference
    assert memctl("export", "--markdown", str(folder)).code == 0
    assert (folder / "README.md").read_text() == "mine"


def test_an_import_names_what_it_changes_keeps_and_leaves_out(
    memctl: Memctl, client: Client, tmp_path: Path, clock: Any
) -> None:
    changed, kept, deleted = (client.add(text).id for text in ("We use Valkey", "Deploys on Tuesday", "Herons fish"))
    file = tmp_path / "old.jsonl"
    file.write_text(memctl("export").out.replace("We use Valkey", "We use Valkey 8"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        line["updated_at"] = "2300-01-01T00:00:00Z" if line["id"] == changed else line["updated_at"]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    clock.advance(60)
    client.update(kept, content="Deploys on Wednesday")
    client.delete(deleted)
    for words in (["--dry-run"], []):
        out = memctl("import", str(file), *words).out
        assert "0 new, 1 changed.\n" in out
        assert f"Changed: {changed[:8]}. `memctl history ID` shows what was here before.\n" in out
        assert f"(--overwrite replaces them): {kept[:8]}\n" in out
        assert f"1 memory left out that was deleted here: {deleted[:8]} (--overwrite imports them).\n" in out
    assert client.get(changed).content == "We use Valkey 8"


def test_an_edited_file_of_a_deleted_memory_is_not_removed(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    added = client.add("We use Valkey")
    memctl("export", "--markdown", str(folder))
    [name] = files(folder)
    (folder / name).write_text("my notes")
    client.delete(added.id)
    assert memctl("export", "--markdown", str(folder)).code == 1
    assert (folder / name).read_text() == "my notes"
    assert memctl("export", "--markdown", str(folder), "--force").code == 0
    assert files(folder) == {}


def test_the_files_of_what_was_erased_go_though_they_are_most(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for number in range(26):
        client.add(f"Memory number {number}", dedup=False)
    memctl("export", "--markdown", str(folder))
    ids = [record.id for record in everything(client)]
    client.delete(*ids[:12])
    client.call(Erase(ids=ids[12:24]))
    told = memctl("export", "--markdown", str(folder), "--json")
    assert (told.code, told.json["removed"], told.json["stale"]) == (1, 12, 12)
    assert "12 files of deleted memories stay" in told.err
    shutil.copytree(folder, tmp_path / "copy")
    forced = memctl("export", "--markdown", str(tmp_path / "copy"), "--force", "--json").json
    assert (forced["removed"], forced["stale"]) == (12, 0)
    client.call(Erase(ids=ids[:12]))
    told = memctl("export", "--markdown", str(folder), "--json")
    assert (told.code, told.json["removed"], told.json["stale"]) == (0, 12, 0)


def test_a_folder_that_is_no_export_is_refused(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    client.add("We use Valkey")
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.md").write_text("mine")
    refused = memctl("export", "--markdown", str(full))
    assert (refused.code, files(full)) == (1, {"notes.md": b"mine"})
    assert "not empty" in refused.err
    assert memctl("export", "--markdown", str(full), "--force").code == 0
    assert len(files(full)) == 2
    assert memctl("export", "--markdown", str(full / "notes.md")).err.endswith("is not a folder.\n")
    other = memctl("export", "--markdown", str(full), "--namespace", "acme")
    assert (other.code, "something else" in other.err) == (1, True)
    (full / JOURNAL).write_text("nonsense")
    assert "not the journal" in memctl("export", "--markdown", str(full)).err
    (full / JOURNAL).write_text('{"memoryd_export": 2, "scope": {}}\n')
    assert "newer memoryd" in memctl("export", "--markdown", str(full)).err


def test_an_export_that_was_broken_off_goes_on(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    fill(client)
    memctl("export", "--markdown", str(folder))
    whole = files(folder)
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    (folder / JOURNAL).write_bytes(b"".join(lines[:2]) + lines[2][:20])
    names = list(whole)
    (folder / names[0]).unlink()
    (folder / names[1]).write_bytes(b"")  # as a power failure leaves it
    assert memctl("export", "--markdown", str(folder)).code == 0
    assert files(folder) == whole


def test_a_journal_does_not_lead_out_of_its_folder(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    folder, outside = tmp_path / "out", tmp_path / "outside.md"
    outside.write_text("mine")
    memctl("export", "--markdown", str(folder))
    with (folder / JOURNAL).open("a") as journal:
        for path in ("../outside.md", str(outside)):
            journal.write(msgspec.json.encode({"path": path, "id": "a" * 32, "sha256": ""}).decode() + "\n")
    memctl("export", "--markdown", str(folder), "--force")
    assert outside.read_text() == "mine"


def test_files_are_private_and_no_drafts_stay(memctl: Memctl, daemon: "Daemon", tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with daemon.client(namespace="acme/api/deep") as client:
        client.add("We use Valkey")
    memctl("export", "--markdown", str(folder))
    made = [folder, *folder.rglob("*")]
    assert {(path.is_dir(), path.stat().st_mode & 0o777) for path in made} == {(True, 0o700), (False, 0o600)}
    assert sum(path.is_file() for path in made) == 2


def test_memories_whose_short_ids_and_words_are_the_same_have_files_of_their_own(
    memctl: Memctl, client: Client, tmp_path: Path
) -> None:
    for last in "12":
        client.add("The same words", id="3f9a02c4" + "0" * 23 + last, dedup=False)
    memctl("export", "--markdown", str(tmp_path / "out"))
    assert len(files(tmp_path / "out")) == 2
    assert memctl("export", "--markdown", str(tmp_path / "out"), "--json").json["unchanged"] == 2


def test_an_export_of_nothing_is_empty(memctl: Memctl, tmp_path: Path) -> None:
    assert memctl("export").out == ""
    assert memctl("export", "--json").json == []
    assert "Exported 0 memories" in memctl("export", "--markdown", str(tmp_path / "out")).out
    assert memctl("import", str(tmp_path / "out")).err == "memctl: There are no memories to import.\n"


def test_what_is_inside_the_namespace_of_an_export_is_not_left_out_in_silence(
    memctl: Memctl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for place in ("team", "team/ben", "team/ben/notes", "team/ada"):
        memctl("add", f"It lies in {place}", "--namespace", place)
    hint = "Left out: 1 memory inside the namespace: `--reach subtree`.\n"
    assert memctl("export", "--namespace", "team/ben").err == f"memctl: Exported 2 memories.\n{hint}"
    monkeypatch.setenv("MEMORYD_TOKEN", memctl("token", "add", "ben", "--namespace", "team/ben").out.strip())
    assert memctl("export").err == f"memctl: Exported 2 memories.\n{hint}"
    assert memctl("export", "--markdown", str(tmp_path / "out")).out.endswith(hint)
    assert memctl("export", "--reach", "subtree").err == "memctl: Exported 2 memories.\n"
    assert "inside" not in memctl("export", "--namespace", "team").err  # what others have there is not told


def line(**fields: Any) -> str:
    given = {"id": "3f9a" + "0" * 28, "namespace": "", "type": "fact", "content": "x", "created_at": 5, "updated_at": 5}
    return msgspec.json.encode({**given, **fields}).decode() + "\n"


@each(
    ("text", "reason"),
    [
        (line() + "nonsense\n", "line 2: Not a JSON object"),
        (line() + line(), "line 2 and"),
        (line(id="3f9a"), "line 1: The id '3f9a' is not"),
        (line(content=" "), "line 1: The content is empty"),
        (line(colour="red"), "line 1: A memory has no field colour"),
        (line(tier="L0"), "line 1: It is a turn of L0"),
    ],
)
def test_an_import_that_is_refused_says_where_and_imports_nothing(
    memctl: Memctl, client: Client, tmp_path: Path, text: str, reason: str
) -> None:
    (tmp_path / "in.jsonl").write_text(text)
    refused = memctl("import", str(tmp_path / "in.jsonl"))
    assert refused.code == 1
    assert reason in refused.err
    assert everything(client) == []


def test_a_file_that_is_not_there_is_one_sentence(memctl: Memctl, tmp_path: Path) -> None:
    assert memctl("import", str(tmp_path / "none")).err == f"memctl: {tmp_path / 'none'}: No such file or directory.\n"
    assert memctl("export", "--force").code == 2


def test_hidden_and_linked_files_are_not_imported(memctl: Memctl, client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    fill(client)
    memctl("export", "--markdown", str(folder))
    names = list(files(folder))
    (folder / names[0]).rename(folder / f".{names[0]}")
    (folder / names[1]).rename(tmp_path / names[1])
    os.symlink(tmp_path / names[1], folder / names[1])
    assert memctl("import", str(folder), "--dry-run", "--json").json["unchanged"] == 2


def test_a_daemon_that_does_not_answer_leaves_no_folder(
    memctl: Memctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_SOCKET", str(tmp_path / "no"))
    assert memctl("export", "--markdown", str(tmp_path / "out"), "--no-autostart").code == 3
    assert not (tmp_path / "out").exists()


def test_what_is_read_before_it_is_sent_waits_beside_the_data_and_has_no_name(folder: Path) -> None:
    with open_spool() as spool:
        spool.write(b"a memory")
        assert os.readlink(f"/proc/self/fd/{spool.fileno()}").startswith(f"{folder}/data/tmp/")
        assert list((folder / "data" / "tmp").iterdir()) == []
    for made in (folder / "data", folder / "data" / "tmp"):
        assert made.stat().st_mode & 0o777 == 0o700
