"""memctl erase and observe off: shown, asked, also out of what hooks have not sent yet."""

import io
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client.programs.hooks import spool
from memoryd.client.programs.hooks.answering import list_noted, note_files
from memoryd.client.protocol import PauseObserving
from memoryd.daemon.conversations import extracting
from waiting import wait_until

Memctl = Any
SAID = [
    {"role": "user", "content": "We decided that the vault is behind the painting.", "id": "ab" * 16},
    {"role": "assistant", "content": "Noted: the vault is behind the painting.", "id": "cd" * 16},
]

NOTHING = "No memory or turn matches; the database has no copies here.\n"


def test_it_asks_shows_and_erases(memctl: Memctl, client: Any) -> None:
    client.observe(SAID, session="work-1")
    kept = client.add("Herons fish at dawn").id
    assert memctl("erase").code == 2
    refused = memctl("erase", "abab")
    assert (refused.code, "cannot be undone" in refused.err) == (2, True)
    assert memctl("erase", "--session", "work-1", "--dry-run", "--json").json["count"] == 2
    told = memctl("erase", kept[:8], "--dry-run").out
    assert told == f"{kept[:8]}  fact  /  2027-01-15  Herons fish at dawn\n"
    assert "Erased 2 memories." in memctl("erase", "--session", "work-1", "--yes").out
    assert [memory["id"] for memory in memctl("list", "--json").json] == [kept]
    assert memctl("erase", "--where", "nothing=here", "--yes").out == NOTHING


def test_what_was_erased_before_is_named_and_not_counted(memctl: Memctl, client: Any) -> None:
    gone = client.add("Herons fish at dawn").id
    memctl("erase", gone, "--yes")
    before = len(memctl("history", "--json").json)
    assert memctl("erase", gone, "--yes").out == f"Erased already: {gone[:8]}. Nothing here has it any more.\n"
    assert memctl("erase", gone, "--dry-run").out == f"Erased already: {gone[:8]}. Nothing here has it any more.\n"
    assert len(memctl("history", "--json").json) == before


def test_where_the_copies_are_that_go_along_is_said(memctl: Memctl, client: Any) -> None:
    own = memctl("add", "Herons fish at dawn", "--namespace", "acme/api", "--json").json["id"]
    memctl("share", own, "--to", "acme")
    assert "Also erased, derived from it (in acme):" in memctl("erase", own, "--dry-run").out
    within = memctl("erase", "--namespace", "acme/api", "--reach", "subtree", "--dry-run").out
    assert within.count("Herons fish at dawn") == 2  # the copy is outside, and not deleted
    assert "Also erased: 1 memory derived from it (in acme)." in memctl("erase", own, "--yes").out


def test_all_that_mentions_a_word_is_shown_and_erased(memctl: Memctl, client: Any) -> None:
    client.observe(SAID, session="work-1")
    kept = client.add("Herons fish at dawn").id
    shown = memctl("erase", "--matching", "VAULT", "--dry-run").out
    assert "abababab  prompt  /  2027-01-15  We decided that the vault is behind the painting." in shown
    assert "cdcdcdcd  answer  /  2027-01-15  Noted: the vault is behind the painting." in shown
    assert "Erased 2 memories." in memctl("erase", "--matching", "vault", "--yes").out
    assert [memory["id"] for memory in memctl("list", "--json").json] == [kept]
    assert memctl("erase", "--matching", "vault").out == NOTHING
    assert memctl("erase", "--matching", "").code == 1


def test_observing_is_paused_shown_and_resumed(memctl: Memctl, client: Any, folder: Path) -> None:
    assert memctl("observe", "status").out == "Everything is observed.\n"
    given = "Memories are still shown to agents."
    assert memctl("observe", "off").out == f"Observing is paused everywhere; `memctl observe on` ends that.\n{given}\n"
    memctl("observe", "on")
    paused = f"Observing is paused in the folder {folder}; `memctl observe on --folder {folder}` ends that."
    told = memctl("observe", "off", "--folder", str(folder)).out
    assert told == f"{paused}\nEverything else is observed. {given}\n"
    assert memctl("observe", "off", "--session", "s1", "--json").json["pauses"][-1]["name"] == "s1"
    assert memctl("observe", "We decided to ship on Monday", "--session", "s1", "--json").json["accepted"] == 0
    assert memctl("observe", "We decided to ship on Monday", "--folder", str(folder)).code == 2
    memctl("observe", "on", "--session", "s1")
    assert memctl("observe", "We decided to ship on Monday", "--session", "s1", "--json").json["accepted"] == 1


def test_a_folder_that_does_not_exist_is_not_paused(memctl: Memctl, client: Any, folder: Path) -> None:
    (folder / "file").touch()
    for name in ("none", "file"):
        refused = memctl("observe", "off", "--folder", str(folder / name))
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith(f"memctl: There is no folder {folder / name}, so nothing is paused.")
    assert memctl("observe", "status").out == "Everything is observed.\n"
    (folder / "gone").mkdir()
    memctl("observe", "off", "--folder", str(folder / "gone"))
    (folder / "gone").rmdir()
    assert memctl("observe", "on", "--folder", str(folder / "gone")).out == "Everything is observed.\n"


def test_of_many_paused_sessions_the_latest_are_shown_and_the_others_counted(
    memctl: Memctl, client: Any, folder: Path
) -> None:
    for number in range(1, 6):
        client.call(PauseObserving(kind="session", name=f"s{number}"))
    client.call(PauseObserving(kind="folder", name=str(folder)))
    *shown, last = memctl("observe", "status").out.splitlines()
    assert [line.partition(";")[0] for line in shown[:-1]] == [
        f"Observing is paused in the folder {folder}",
        "Observing is paused in the session s3",
        "Observing is paused in the session s4",
        "Observing is paused in the session s5",
    ]
    assert shown[-1] == "2 earlier sessions are paused too; `memctl observe status --json` lists them."
    assert last.startswith("Everything else is observed.")
    assert len(memctl("observe", "status", "--json").json["pauses"]) == 6


def test_what_waits_to_be_sent_is_erased_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder))
    call = {"method": "observe", "turns": SAID, "session": "work-1"}
    for one in (call, {**call, "turns": SAID[:1], "session": "work-2"}, {"method": "end_session", "session": "work-3"}):
        assert spool.append(one)
    spool.erase({"ab" * 16}, "work-3")
    assert spool.count_waiting() == 1
    assert b"We decided" not in (folder / "hooks.spool").read_bytes()
    assert b"Noted" in (folder / "hooks.spool").read_bytes()
    spool.erase(set(), "work-1")
    assert (folder / "hooks.spool").read_bytes() == b""
    assert spool.append({**call, "turns": [*SAID, {"role": "user", "content": "Herons"}]})
    spool.erase(set(), None, "The VAULT")
    assert b"vault" not in (folder / "hooks.spool").read_bytes()
    assert b"Herons" in (folder / "hooks.spool").read_bytes()


def test_what_files_a_session_wrote_since_its_last_answer_is_erased_too(memctl: Memctl, client: Any) -> None:
    for session, path in (("4f74c0de-1", "/src/vault.py"), ("77aabb", "/src/herons.py"), ("88bb", "/src/plums.py")):
        note_files(session, [path])
    assert "/src/vault.py" in memctl("erase", "--matching", "VAULT", "--dry-run").out
    assert memctl("erase", "--matching", "VAULT", "--yes").out.startswith("Erased 1 message")
    assert memctl("erase", "--session", "77aa", "--yes").code == 0
    assert [session for _, session, _ in list_noted()] == ["88bb"]


def test_a_session_may_be_shortened_and_must_be_known(memctl: Memctl, client: Any) -> None:
    for session in ("f621b098-1", "f621b098-2", "77aa"):
        client.observe(
            [{"role": "user", "content": f"We decided that the vault of {session} is open."}], session=session
        )
    several = memctl("erase", "--session", "f621", "--yes")
    assert (several.code, "f621b098-1, f621b098-2" in several.err) == (1, True)
    unknown = memctl("erase", "--session", "f62", "--dry-run")
    said = "memctl: No session is called 'f62', and a beginning has 4 characters or more.\n"
    assert (unknown.code, unknown.err) == (1, said)
    assert "Erased 1 memory" in memctl("erase", "--session", "f621b098-2", "--yes").out
    assert "Erased 1 memory" in memctl("erase", "--session", "f621b0", "--yes").out
    assert [turn.session for turn in client.turns()] == ["77aa"]


def test_what_was_skipped_of_a_session_is_counted_and_erased(memctl: Memctl, client: Any) -> None:
    """In copies too; a dry run leaves it."""
    client.observe([{"role": "user", "content": "ok"}], session="work-1")
    assert "1 skipped turn" in memctl("erase", "--session", "work-1", "--dry-run").out
    assert len(client.turns(skipped=True).skipped) == 1
    copy = client.backup().path
    assert f"Rewritten: {copy}" in memctl("erase", "--session", "work-1", "--copies", "--yes").out
    assert not client.turns(skipped=True).skipped
    assert memctl("erase", "--session", "work-1", "--dry-run").code == 1
    assert b"work-1" not in Path(copy).read_bytes()


def test_a_session_that_only_waits_is_erased_and_may_be_shortened(memctl: Memctl, client: Any) -> None:
    assert spool.append({"method": "observe", "turns": SAID, "session": "4f74c0de-1"})
    assert "1 message that hooks have not sent yet" in memctl("erase", "--session", "4f74", "--dry-run").out
    assert "Erased 1 message" in memctl("erase", "--session", "4f74", "--yes").out
    assert memctl("erase", "--session", "4f74").code == 1
    assert spool.append({"method": "observe", "turns": SAID, "session": "4f74c0de-1"})
    client.observe(SAID, session="4f74c0de-2")
    assert "4f74c0de-1, 4f74c0de-2" in memctl("erase", "--session", "4f74", "--yes").err


def test_a_session_that_only_copies_have_may_be_shortened(memctl: Memctl, client: Any) -> None:
    client.observe(SAID, session="4f74c0de-1")
    copy = client.backup().path
    assert f"(--copies rewrites all):\n  {copy}" in memctl("erase", "--session", "4f74", "--yes").out
    assert f"Rewritten: {copy}." in memctl("erase", "--session", "4f74", "--copies", "--yes").out
    assert memctl("erase", "--session", "4f74", "--yes").code == 1


def test_skipped_turns_that_go_with_a_memory_are_counted(memctl: Memctl, client: Any) -> None:
    kept = client.add("Herons fish at dawn near the mill").id
    client.observe([{"role": "user", "content": "Herons fish at dawn near the mill"}], session="work-1")
    assert len(client.turns(skipped=True).skipped) == 1
    assert memctl("erase", kept, "--dry-run").out.endswith("In all: 1 memory, 1 skipped turn.\n")
    assert "Erased 1 memory, 1 skipped turn." in memctl("erase", kept, "--yes").out
    assert not client.turns(skipped=True).skipped


def test_what_was_just_said_is_said_to_be_kept_again(memctl: Memctl, client: Any) -> None:
    client.observe(SAID, session="work-1")
    told = memctl("erase", "--matching", "vault", "--yes").out
    assert "within the last hour, in session work-1: if it is said there again, it is recorded again." in told
    assert "`memctl observe off --session work-1` prevents that." in told
    client.add("The vault is empty")
    assert "last hour" not in memctl("erase", "--matching", "vault", "--yes").out
    client.observe(SAID, session="work-2")
    client.call(PauseObserving(kind="session", name="work-2"))
    assert "last hour" not in memctl("erase", "--session", "work-2", "--yes").out


def test_what_was_said_around_others_is_shown_and_erased(memctl: Memctl, client: Any) -> None:
    id = client.add("Herons fish at dawn", neighbours=["The vault is behind the painting"]).id
    assert memctl("erase", "--matching", "vault", "--dry-run").out.splitlines() == [
        "These memories stay, but the text of their neighbours, which searches use too, is removed:",
        f"  {id[:8]}  fact  /  2027-01-15  (in its neighbours: the turns before and after it)"
        " The vault is behind the painting",
        "In all: the neighbours of 1 memory.",
    ]
    done = memctl("erase", "--matching", "vault", "--yes")
    assert done.out.startswith("Erased the neighbours of 1 memory. memoryd does not")
    assert [memory["id"] for memory in memctl("list", "--json").json] == [id]
    assert memctl("erase", "--matching", "vault").out == NOTHING


def test_a_text_that_a_file_still_has_is_told_first(memctl: Memctl, client: Any, folder: Path) -> None:
    notes = folder / "notes"
    notes.mkdir()
    (notes / "birds.md").write_text("The heron is called quagmire.\n")
    client.add_workspace(str(notes), namespace="notes")
    wait_until(lambda: client.list(tier=["documents"]))
    told = memctl("erase", "--matching", "quagmire", "--yes")
    heading = "It is still in the index, because these files of yours have it; remove it there, then erase again:"
    assert told.out.splitlines()[:2] == [heading, f"  {notes / 'birds.md'}"]
    assert (told.code, told.err) == (1, "memctl: It is still in indexed files.\n")


def test_a_dash_reads_the_text_from_standard_input(
    memctl: Memctl, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.add("A hyphen - is harmless")
    client.add("The key is zebra77")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ZEBRA77\n")))
    assert "Erased 1 memory." in memctl("erase", "--matching", "-", "--yes").out
    assert [memory.content for memory in client.list()] == ["A hyphen - is harmless"]


def test_several_lines_are_said_to_be_one_text(memctl: Memctl, client: Any) -> None:
    for text in ("The key is quagmire", "A heron at the quagmire"):
        client.add(text)
    assert memctl("erase", "--matching", "quagmire", "--dry-run").out.endswith("In all: 2 memories.\n")
    told = memctl("erase", "--matching", "quagmire\nheron\n", "--dry-run").out
    assert told == f"{NOTHING}The 2 lines were searched for as one text; run the command once for each line.\n"


def test_words_that_removed_text_left_are_cleared_though_no_row_has_them(
    memctl: Memctl, client: Any, daemon: Any
) -> None:
    client.add("Herons fish at dawn")
    path = daemon.core.store.path
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("INSERT INTO memories_fts (rowid, content) VALUES (1000, 'quagmire')")
        connection.execute(
            "INSERT INTO memories_fts (memories_fts, rowid, content) VALUES ('delete', 1000, 'quagmire')"
        )
    assert b"quagmir" in b"".join(file.read_bytes() for file in daemon.core.folder.glob("memoryd.sqlite*"))
    assert memctl("erase", "--matching", "quagmire", "--yes").out == NOTHING
    assert b"quagmir" not in b"".join(file.read_bytes() for file in daemon.core.folder.glob("memoryd.sqlite*"))


def test_copies_that_could_not_be_rewritten_are_named(memctl: Memctl, client: Any, daemon: Any) -> None:
    copy = Path(client.backup().path)
    damaged = copy.with_name("kept-20260101T000000Z.sqlite")
    damaged.write_bytes(b"This is no database at all. " * 100)
    told = memctl("erase", client.add("Herons fish at dawn").id, "--copies", "--yes")
    assert (told.code, told.err) == (1, "memctl: It may still be in copies of the database.\n")
    assert f"Rewritten: {copy}." in told.out
    assert told.out.splitlines()[-2:] == [
        "These copies could not be rewritten and may still have it; the daemon's log says why. Delete them:",
        f"  {damaged}",
    ]


def test_each_line_says_why_it_is_meant(memctl: Memctl, client: Any) -> None:
    client.observe([{"role": "user", "content": "We decided that herons fish at dawn."}], session="quagmire-1")
    former, gone = client.add("It was quagmire").id, client.add(f"{'far ' * 60}quagmire").id
    client.update(former, content="It is something else")
    client.delete(gone)
    lines = memctl("erase", "--matching", "Quagmire", "--dry-run").out.splitlines()
    assert any("(in the name of its session) quagmire-1" in line for line in lines)
    assert f"{former[:8]}  fact  /  2027-01-15  (only in a former version) It was quagmire" in lines
    [deleted] = [line for line in lines if line.startswith(gone[:8])]
    assert f"(deleted; `memctl history {gone[:8]}` shows it) …" in deleted
    assert deleted.endswith("quagmire")


def test_a_note_of_feedback_that_says_a_text_is_found(memctl: Memctl, client: Any, daemon: Any) -> None:
    id = client.add("Herons fish at dawn").id
    memctl("feedback", id, "--useful", "--note", "The quagmire says so")
    copy = client.backup().path
    told = memctl("erase", "--matching", "quagmire", "--dry-run").out
    assert f"{id[:8]}  fact  /  2027-01-15  (in a note of feedback on it) The quagmire says so" in told
    assert "Erased 1 memory." in memctl("erase", "--matching", "quagmire", "--copies", "--yes").out
    files = [*daemon.core.folder.glob("memoryd.sqlite*"), Path(copy)]
    assert b"quagmire" not in b"".join(path.read_bytes() for path in files)


def test_white_space_and_hyphens_are_alike_to_a_text(memctl: Memctl, client: Any) -> None:
    """In memories, their metadata, a copy and what hooks have not sent. What joins no words is what it is."""
    said = [
        "zephyrine_okonkwo hart",
        "Zephyrine\nOkonkwo-Hart",
        "zephyrine  Okonkwo\u2011Hart",
        "ZEPHYRINE\u00a0Okonkwo\u2010Hart",
    ]
    ids = {client.add(f"{text} called").id for text in said}
    ids.add(client.add("Somebody called", metadata={"by": "Zephyrine\t\nOkonkwo-Hart"}).id)
    kept = client.add("ZephyrineOkonkwo Hart called").id
    assert spool.append({"method": "observe", "turns": [{**SAID[0], "content": said[0]}], "session": "work-9"})
    copy = client.backup().path
    found = memctl("erase", "--matching", "Zephyrine Okonkwo-Hart", "--dry-run", "--json").json
    assert ({one["id"] for one in found["mentions"]}, found["unsent"]) == (ids, [said[0]])
    assert memctl("erase", "--matching", said[2], "--copies", "--yes").out.startswith("Erased 5 memories, 1 message")
    assert [memory.id for memory in client.list()] == [kept]
    assert spool.count_waiting() == 0
    assert b"Okonkwo-Hart" not in Path(copy).read_bytes()
    for text in ("_", "-hart", "hart-"):
        assert memctl("erase", f"--matching={text}", "--dry-run", "--json").json["count"] == 0


def test_all_that_would_go_is_shown(memctl: Memctl, client: Any, daemon: Any) -> None:
    """What was made of it and what hooks have not sent, too; as JSON no less than as text."""
    turns = [{"role": "user", "content": f"We decided on plan {number} {'of many' * 9}."} for number in range(3)]
    client.observe(turns, session="work-1")
    client.end_session("work-1")
    assert extracting.step(daemon.core)
    [summary] = client.list()
    assert spool.append({"method": "observe", "turns": SAID, "session": "work-1"})
    assert spool.append({"method": "end_session", "session": "work-1"})
    lines = memctl("erase", "--session", "work-1", "--dry-run").out.splitlines()
    assert all(any(turn["content"][:60] in line for line in lines) for turn in turns)
    assert sorted(line.split("  ")[1] for line in lines[:4]) == ["note", "prompt", "prompt", "prompt"]
    assert lines[4:] == [
        "Messages that hooks have not sent yet:",
        f"  {SAID[0]['content']} {SAID[1]['content']}",
        "  end_session work-1",
        "In all: 4 memories, 2 messages that hooks have not sent yet.",
    ]
    assert len(memctl("erase", "--session", "work-1", "--dry-run", "--json").json["unsent"]) == 2
    turn = client.turns().turns[0].id
    made = memctl("erase", turn, "--dry-run").out.splitlines()[1:]
    assert made[0] == "Also erased, derived from it (in /):"
    assert made[1].startswith(f"  {summary.id[:8]}  note  /  2027-01-15  Session work-1, ")
    about = memctl("erase", "--matching", "plan 2 of", "--dry-run").out.splitlines()
    assert f"  {summary.id[:8]}  note  /  2027-01-15  (does not contain the text) Session work-1, " in about[2]
    assert "This erases 1 memory, with 1 memory derived from it, for good;" in memctl("erase", turn).err
    deleted = memctl("delete", turn).out.splitlines()
    assert deleted[1] == "Also deleted, derived from it:"
    assert deleted[2].startswith(f"  {summary.id[:8]}  Session work-1, ")


def test_lines_of_the_log_that_say_a_text_go(memctl: Memctl, daemon: Any) -> None:
    for name in ("memoryd.log", "memoryd.log.1"):
        (daemon.core.folder / name).write_text('msg="herons"\nmsg="the Quagmire"\nmsg="owls"\n')
    memctl("erase", "--matching", "quagmire", "--dry-run")
    assert "Quagmire" in (daemon.core.folder / "memoryd.log").read_text()
    memctl("erase", "--matching", "quagmire", "--yes")
    for name in ("memoryd.log", "memoryd.log.1"):
        assert (daemon.core.folder / name).read_text() == 'msg="herons"\nmsg="owls"\n'
