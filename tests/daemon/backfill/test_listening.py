"""The call `listen`: what an event tells is kept at once, the file of the session adds the rest, and nothing twice."""

import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conversing import problems
from memoryd.client.errors import Forbidden, Invalid
from memoryd.client.programs.sessions.agents import AGENTS, LINES
from memoryd.client.protocol import Delete, Erase, PauseObserving, Turns
from memoryd.client.protocol.backfill import Backfill, Listen, PastTurn
from memoryd.client.times import iso
from memoryd.daemon.backfill import listening, opening
from memoryd.daemon.core.core import Core
from telling import HOSTS, SESSION, Told
from workbench import Clock, ask, undo

PROMPT = "Move the nightly report to the old cluster, please"
ANSWER = "The nightly report runs on the old cluster from tonight on"
QUEUED = "And keep the mail service where it is for now"


EVERY = pytest.mark.parametrize("told", HOSTS, indirect=True)


@pytest.fixture
def told(
    core: Core, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Told]:
    name = getattr(request, "param", "claude-code")
    # No file of lines has a time that is yet to come; others are erased from at the present time.
    clock.now = 1_750_000_000.0 if AGENTS[name].kind == LINES else time.time()
    monkeypatch.setenv(AGENTS[name].home.partition("/")[0], str(tmp_path / "home"))
    monkeypatch.setattr(listening, "_FLUSHED_AFTER_S", 0.0)
    monkeypatch.setattr(listening, "_AFTER_S", 0.0)
    home = AGENTS[name].find_home()
    home.mkdir(parents=True)
    yield HOSTS[name](core, home)
    assert problems(core) == []


def heard(core: Core) -> list[tuple[str, str]]:
    """Return what is in L0, in the order in which it came."""
    return [(turn.role, turn.content) for turn in core.active.list_turns(None)[::-1]]


def test_what_events_tell_and_the_file_has_is_heard_once(told: Told, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    assert heard(core) == [("user", PROMPT)]
    told.types(PROMPT)
    told.says("Let me look at the report first")
    told.stop(ANSWER)
    told.says(ANSWER)  # hosts write it after the event
    told.listen("end")
    told.listen("end")
    assert heard(core) == [("user", PROMPT), ("assistant", ANSWER)]


def test_what_no_event_tells_is_heard_from_the_file(told: Told, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.queues(QUEUED)
    told.stop(ANSWER)
    assert heard(core) == [("user", PROMPT), ("assistant", ANSWER), ("user", QUEUED)]


@EVERY
def test_an_answer_that_no_event_tells_is_heard_once_somebody_speaks_after_it(told: Told, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.says("Let me look at the report first")
    told.listen()
    assert heard(core) == [("user", PROMPT)]
    told.says(ANSWER)
    told.prompt(QUEUED)
    told.types(QUEUED)
    told.listen()
    assert heard(core) == [("user", PROMPT), ("user", QUEUED), ("assistant", ANSWER)]


@EVERY
def test_the_last_answer_is_heard_when_the_session_ends(told: Told, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.says(ANSWER)
    told.listen("end")
    assert heard(core) == [("user", PROMPT), ("assistant", ANSWER)]


@pytest.mark.parametrize("told", ["claude-code", "gemini", "cline"], indirect=True)  # OpenCode's database has it all
def test_the_rest_of_a_session_that_ended_is_heard_when_another_begins_there(
    told: Told, core: Core, tmp_path: Path
) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.listen("end")
    told.says(ANSWER)
    type(told)(core, told.home, str(uuid.uuid4())).listen("start")
    assert heard(core) == [("user", PROMPT), ("assistant", ANSWER)]


def test_a_session_that_goes_on_elsewhere_is_not_read_to_its_end(told: Told, core: Core, tmp_path: Path) -> None:
    told.listen("start")
    told.listen("end")
    told.listen("start")  # it is resumed
    told.types(PROMPT)
    told.says("Let me look at the report first")
    type(told)(core, told.home, str(uuid.uuid4())).listen("start")
    assert heard(core) == []
    told.stop()
    assert heard(core) == [("user", PROMPT)]


@EVERY
def test_what_the_file_had_when_it_was_first_named_is_left_to_a_backfill(told: Told, core: Core, clock: Clock) -> None:
    told.types("An older prompt about the billing service")
    told.says("An older answer about the billing service")
    clock.advance(60)
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.says(ANSWER)
    told.listen("end")
    assert heard(core) == [("user", PROMPT), ("assistant", ANSWER)]


def test_a_prompt_that_was_taken_back_is_deleted_with_the_reason_and_an_undo_brings_it_back(
    told: Told, core: Core
) -> None:
    told.listen("start")
    root = told.last
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.last = root
    told.prompt(QUEUED)
    told.types(QUEUED)
    told.says(ANSWER)
    told.stop(ANSWER)
    told.listen("end")
    assert heard(core) == [("user", QUEUED), ("assistant", ANSWER)]
    [skipped] = ask(core, Turns(reach="all", skipped=True)).skipped
    assert (skipped.content, skipped.reason) == (PROMPT, "taken back")
    with core.store.reading() as connection:
        operation: Any = connection.execute("SELECT id FROM operations WHERE kind = 'taken back'").get
    undo(core, operation)
    told.listen("end")
    assert ("user", PROMPT) in heard(core)


def test_a_rewind_of_codex_that_begins_a_further_file_deletes_what_it_took_back(
    told: Told, core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    day = tmp_path / "codex" / "sessions" / "2025" / "06" / "15"
    day.mkdir(parents=True)
    header = {"id": SESSION, "cwd": str(told.folder), "source": "cli", "history_mode": "paginated"}
    told.path = day / f"rollout-2025-06-15T10-00-00-{SESSION}.jsonl"

    def put(*said: tuple[str, dict[str, Any]]) -> None:
        with told.path.open("a", encoding="utf-8") as file:
            for type, payload in said:
                file.write(json.dumps({"timestamp": iso(core.clock()), "type": type, "payload": payload}) + "\n")

    def say(text: str) -> tuple[str, dict[str, Any]]:
        content = [{"type": "input_text", "text": text}]
        return "response_item", {"type": "message", "role": "user", "content": content}

    put(("session_meta", header))
    told.listen("start", agent="codex")
    kept = told.path.stat().st_size
    put(say(PROMPT))
    told.listen(agent="codex", role="user", text=PROMPT)
    assert heard(core) == [("user", PROMPT)]
    told.path = day / f"rollout-2025-06-15T10-05-00-{SESSION}_{SESSION[:-1]}2.jsonl"
    told.listen("start", agent="codex")
    put(("session_meta", {**header, "history_base": {"thread_id": SESSION, "end_byte_offset": kept}}), say(QUEUED))
    told.listen(agent="codex", role="user", text=QUEUED)
    assert heard(core) == [("user", QUEUED)]


def test_answers_that_a_later_rewind_took_back_are_deleted(told: Told, core: Core) -> None:
    told.listen("start")
    said = [
        (f"Move report {number} to the old cluster", f"Report {number} is moved, all is well") for number in range(4)
    ]
    roots = []
    for prompt, answer in said:
        roots.append(told.last)
        told.prompt(prompt)
        told.types(prompt)
        told.says(answer)
        told.stop(answer)
    told.last = roots[1]
    told.prompt(QUEUED)
    told.types(QUEUED)
    told.says(ANSWER)
    told.stop(ANSWER)
    told.listen("end")
    assert heard(core) == [("user", said[0][0]), ("assistant", said[0][1]), ("user", QUEUED), ("assistant", ANSWER)]


def test_an_event_that_two_hooks_tell_is_heard_once(told: Told, core: Core) -> None:
    question = "Which cluster does the nightly report run on?"
    told.listen("start")
    told.prompt(question)
    told.prompt(question)
    told.types(question)
    told.stop(ANSWER)
    assert heard(core) == [("user", question), ("assistant", ANSWER)]


def test_an_entry_that_is_read_before_its_event_comes_is_heard_once(told: Told, core: Core) -> None:
    question = "Which cluster does the nightly report run on?"
    told.listen("start")
    told.types(question)
    told.stop()
    told.prompt(question)
    told.says(ANSWER)
    told.listen("end")
    assert heard(core) == [("user", question), ("assistant", ANSWER)]


@EVERY
def test_a_question_that_is_asked_again_is_heard_again(told: Told, core: Core) -> None:
    question = "Is the old cluster up?"
    told.listen("start")
    for answer in ("It is down at the moment.", "It is up by now."):
        told.prompt(question)
        told.types(question)
        told.says(answer)
        told.stop(answer)
    told.listen("end")
    assert [text for _, text in heard(core)].count(question) == 2


@pytest.mark.parametrize("change", ["replaced", "shrunk", "changed"])
def test_a_file_that_was_rewritten_is_read_again_and_gives_nothing_twice(change: str, told: Told, core: Core) -> None:
    told.listen("start")
    for prompt, answer in ((PROMPT, ANSWER), (QUEUED, "The mail service stays where it is")):
        told.prompt(prompt)
        told.types(prompt)
        told.says(answer)
        told.stop(answer)
    before = heard(core)
    lines = told.path.read_bytes().splitlines(keepends=True)
    if change == "replaced":
        told.path.with_suffix(".new").write_bytes(b"".join(lines))
        os.replace(told.path.with_suffix(".new"), told.path)
    elif change == "shrunk":
        told.path.write_bytes(b"".join(lines[:2]))
    else:
        told.path.write_bytes(b"".join([lines[0].replace(b"2.1.100", b"2.1.101"), *lines[1:]]))
    told.queues("A last word about the invoices of March")
    told.stop()
    assert heard(core) == [*before, ("user", "A last word about the invoices of March")]


# Hosts whose files are no lines of entries with their parents ---------------------------------------------------------

OTHERS = pytest.mark.parametrize("told", [name for name in HOSTS if name != "claude-code"], indirect=True)
REVERTING = pytest.mark.parametrize("told", ["gemini", "opencode"], indirect=True)


@OTHERS
def test_replies_and_words_typed_while_the_agent_works_are_heard_from_the_file(told: Any, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.asks("Which cluster?", "Harbor")
    told.says("Let me look at the report first")
    told.queues(QUEUED)
    told.says(ANSWER)
    told.stop(ANSWER)
    told.listen("end")
    assert [said for said in heard(core) if said[0] == "user"] == [
        ("user", PROMPT),
        ("user", "Which cluster?\nHarbor"),
        ("user", QUEUED),
    ]
    assert ("assistant", ANSWER) in heard(core)
    assert backfilled(told) == []


@REVERTING
def test_turns_that_were_taken_back_in_the_file_are_deleted(told: Any, core: Core) -> None:
    told.listen("start")
    ids = []
    for number in range(4):
        prompt, answer = f"Move report {number} to the old cluster", f"Report {number} is moved, all is well"
        told.prompt(prompt)
        ids.append(told.types(prompt))
        told.says(answer)
        told.stop(answer)
    told.takes_back(ids[1])
    told.prompt(QUEUED)
    told.types(QUEUED)
    told.says(ANSWER)
    told.stop(ANSWER)
    kept = [
        ("user", "Move report 0 to the old cluster"),
        ("assistant", "Report 0 is moved, all is well"),
        ("user", QUEUED),
        ("assistant", ANSWER),
    ]
    assert heard(core) == kept
    assert {turn.reason for turn in ask(core, Turns(reach="all", skipped=True)).skipped} == {"taken back"}
    told.listen("end")
    assert heard(core) == kept
    assert backfilled(told) == []


@OTHERS
def test_what_was_said_while_the_daemon_was_away_is_heard_in_the_first_session_too(
    told: Any, core: Core, clock: Clock
) -> None:
    began, size = clock(), told.path.stat().st_size if told.path.exists() else 0
    told.types(PROMPT)
    told.says(ANSWER)
    clock.advance(100)
    told.listen("start", at=began, size=size)
    told.listen("end")
    assert heard(core) == [("user", PROMPT), ("assistant", ANSWER)]


@pytest.mark.parametrize("told", ["gemini"], indirect=True)
def test_the_answer_of_gemini_is_the_one_in_its_file_or_the_told_one_where_there_is_none(told: Any, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.says("Let me look at the report first")
    told.says(ANSWER)
    told.stop(ANSWER)
    assert heard(core) == [("user", PROMPT), ("assistant", ANSWER)]
    told.path.unlink()
    told.prompt(QUEUED)
    told.stop("The mail service stays where it is")
    assert heard(core)[2:] == [
        ("user", QUEUED),
        ("assistant", "Let me look at the report first\nThe mail service stays where it is"),
    ]


@pytest.mark.parametrize("told", ["gemini"], indirect=True)
def test_a_chat_of_gemini_that_is_resumed_gives_nothing_twice(told: Any, core: Core) -> None:
    converse(told)
    before = heard(core)
    lines = [json.loads(line) for line in told.path.read_text().splitlines()]
    told.add(lines[0])
    told.add({"$set": {"messages": [{**line, "timestamp": iso(core.clock() + 9)} for line in lines[1:]]}})
    told.listen("start")
    told.prompt("Then check the invoices of March as well")
    told.types("Then check the invoices of March as well")
    told.listen("end")
    assert heard(core) == [*before, ("user", "Then check the invoices of March as well")]


@pytest.mark.parametrize("told", ["opencode"], indirect=True)
def test_what_opencode_only_reverted_may_come_back_and_stays(told: Any, core: Core) -> None:
    converse(told)
    before = heard(core)
    [(first,)] = told.connection.execute("SELECT id FROM message ORDER BY id LIMIT 1").fetchall()
    told.reverts(first)
    told.listen()
    assert heard(core) == before
    told.reverts(None)
    told.listen()
    assert heard(core) == before


@pytest.mark.parametrize("told", ["opencode"], indirect=True)
def test_a_message_of_opencode_that_is_not_complete_is_no_answer_yet(told: Any, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.says("Let me look at the report first", time={"created": told.tick()})
    told.prompt(QUEUED)
    told.types(QUEUED)
    told.listen()
    assert heard(core) == [("user", PROMPT), ("user", QUEUED)]
    told.says(ANSWER)
    told.stop(ANSWER)
    told.listen("end")
    assert heard(core)[2:] == [("assistant", ANSWER), ("assistant", "Let me look at the report first")]


@pytest.mark.parametrize("told", ["opencode"], indirect=True)
def test_sessions_of_one_database_are_heard_each_for_itself(told: Any, core: Core) -> None:
    other = type(told)(core, told.home, "ses_2")
    told.listen("start")
    other.types("The other session speaks of the billing service")
    told.types(PROMPT)
    told.listen("end")
    assert heard(core) == [("user", PROMPT)]
    other.listen("start", at=core.clock() - 5)
    other.listen("end")
    assert heard(core) == [("user", PROMPT), ("user", "The other session speaks of the billing service")]
    for table, name in (("part", "session_id"), ("message", "session_id"), ("session", "id")):
        told.connection.execute(f"DELETE FROM {table} WHERE {name} = ?", (told.session,))
        told.listen("end")
    assert len(heard(core)) == 2  # a session that was deleted as a whole took nothing back


def test_what_the_file_has_by_the_time_that_too_much_was_told_unread_is_left_out(
    told: Told, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_MAX_UNMATCHED", 2)
    told.path.touch(mode=0)
    prompts = [f"Move report {number} to the old cluster" for number in range(4)]
    for prompt in prompts:
        told.prompt(prompt)
        told.path.chmod(0o600)
        told.types(prompt)
        told.path.chmod(0 if prompt != prompts[-1] else 0o600)
    told.listen("end")
    assert heard(core) == [("user", prompt) for prompt in prompts]


# Pauses, deletions, erasures ------------------------------------------------------------------------------------------


def backfilled(told: Told) -> list[str]:
    """Return what a backfill of the session takes in."""
    core, given = told.core, []
    for session in AGENTS[told.agent].read(told.path):
        given = [
            PastTurn(role=said.role, content=said.content, id=said.id, created_at=said.at, folder=said.folder)
            for said in session.utterances
            if not said.taken_back
        ]
    before = {id for (id,) in read_ids(core)}
    ask(core, Backfill(turns=given, session=told.session, namespace="api"))
    return sorted(text for text in (read_text(core, id) for id in {id for (id,) in read_ids(core)} - before))


def read_ids(core: Core) -> list[Any]:
    with core.store.reading() as connection:
        return list(connection.execute("SELECT id FROM memories"))


def read_text(core: Core, id: str) -> str:
    with core.store.reading() as connection:
        return str(connection.execute("SELECT content FROM memories WHERE id = ?", (id,)).get)


def converse(told: Told) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.queues(QUEUED)
    told.says(ANSWER)
    told.stop(ANSWER)


@EVERY
def test_a_backfill_of_what_was_heard_adds_nothing_nor_does_listening_after_a_backfill(told: Told, core: Core) -> None:
    converse(told)
    told.listen("end")
    assert backfilled(told) == []
    told.types("Then check the invoices of March as well")
    assert backfilled(told) == ["Then check the invoices of March as well"]
    before = heard(core)
    told.listen("end")
    assert heard(core) == before


@EVERY
@pytest.mark.parametrize("kind", ["namespace", "folder", "session"])
def test_what_was_said_in_a_pause_stays_out_live_and_later(kind: str, told: Told, core: Core, clock: Clock) -> None:
    converse(told)
    clock.advance(10)
    name = {"namespace": "api", "folder": str(told.folder), "session": told.session}[kind]
    ask(core, PauseObserving(kind=kind, name=name))  # type: ignore[arg-type]
    clock.advance(10)
    told.prompt("The vault is opened with kestrel")
    told.types("The vault is opened with kestrel")
    told.queues("And the safe with granite")
    clock.advance(10)
    told.says("I will remember that about the vault")
    ask(core, PauseObserving(kind=kind, name=name, resume=True))  # type: ignore[arg-type]
    clock.advance(10)
    told.prompt("Check the invoices of March now")
    told.types("Check the invoices of March now")
    told.listen("end")
    kept = [PROMPT, ANSWER, QUEUED, "Check the invoices of March now"]
    assert sorted(text for _, text in heard(core)) == sorted(kept)
    assert backfilled(told) == []


@EVERY
@pytest.mark.parametrize("when", ["before it is read", "after it is read"])
@pytest.mark.parametrize("by", ["delete", "erase"])
def test_what_was_deleted_or_erased_stays_out_live_and_later(
    by: str, when: str, told: Told, core: Core, clock: Clock
) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    if when == "after it is read":
        told.types(PROMPT)
        told.stop()
    [turn] = core.active.list_turns(None)
    ask(core, Delete(ids=[turn.key]) if by == "delete" else Erase(ids=[turn.key]))
    clock.advance(10)
    if when == "before it is read":
        told.types(PROMPT)
    told.queues(QUEUED)
    told.listen("end")
    assert heard(core) == [("user", QUEUED)]
    assert PROMPT not in backfilled(told)
    told.path.write_bytes(told.path.read_bytes())
    told.says(ANSWER)
    told.listen("end")
    assert heard(core) == [("user", QUEUED), ("assistant", ANSWER)]


@EVERY
def test_what_an_erased_session_said_and_nobody_heard_stays_out(told: Told, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.queues(QUEUED)
    ask(core, Erase(session=told.session))
    told.listen("end")
    assert heard(core) == []


@EVERY
def test_private_words_and_their_answer_stay_out_and_credentials_are_cut(told: Told, core: Core) -> None:
    told.listen("start")
    told.queues("<private>The vault is opened with kestrel</private>")
    told.says("I will remember that about the vault")
    told.queues("The token is ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a for the old cluster")
    told.listen("end")
    [(_, text)] = heard(core)
    assert text.startswith("The token is ")
    assert "ghp_" not in text


# What is read --------------------------------------------------------------------------------------------------------


def test_a_session_that_a_program_ran_is_deleted_at_its_end_and_left_to_a_backfill(told: Told, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT, entrypoint="sdk-cli")
    told.says(ANSWER)
    told.stop(ANSWER)
    assert heard(core) == [("user", PROMPT), ("assistant", ANSWER)]
    told.listen("end")
    assert heard(core) == []
    assert {turn.reason for turn in ask(core, Turns(reach="all", skipped=True)).skipped} == {"sdk-cli with one prompt"}
    assert backfilled(told) == [PROMPT, ANSWER]


def test_what_a_program_writes_is_no_turn(told: Told, core: Core) -> None:
    told.listen("start")
    told.prompt(PROMPT)
    told.types(PROMPT)
    told.says(ANSWER)
    told.stop(ANSWER)
    told.notice()
    told.says("The background task is done")
    told.stop("The background task is done")
    told.listen("end")
    assert heard(core) == [("user", PROMPT), ("assistant", ANSWER), ("assistant", "The background task is done")]
    assert core.active.list_turns(None)[0].importance < 0.3


def test_only_a_file_where_its_agent_keeps_sessions_is_read(told: Told, core: Core, tmp_path: Path) -> None:
    converse(told)
    agent = AGENTS["claude-code"]
    with opening.find(agent, str(told.path)) as found:
        assert opening.check(found).st_size == told.path.stat().st_size
    home = told.home
    (home / "projects" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.jsonl").write_text("{}")
    outside = [tmp_path / "elsewhere" / "a.jsonl", home / "settings.jsonl", home / "projects" / ".." / "a" / "b.jsonl"]
    for path in outside:
        with pytest.raises(Forbidden), opening.find(agent, str(path)):
            pass
    with (
        pytest.raises(OSError, match="Not a directory"),
        opening.find(agent, str(home / "projects" / "linked" / "a.jsonl")),
    ):
        pass
    link, fifo = told.path.with_name("link.jsonl"), told.path.with_name("fifo.jsonl")
    link.symlink_to(told.path)
    os.mkfifo(fifo)
    for path in (link, fifo):
        with opening.find(agent, str(path)) as found, pytest.raises(OSError, match="not a regular file"):
            opening.check(found)


@pytest.mark.parametrize("what", ["missing", "link", "fifo", "rights", "garbage"])
def test_a_file_that_cannot_be_read_costs_nothing_but_what_is_in_it(what: str, told: Told, core: Core) -> None:
    told.listen("start")
    match what:
        case "link":
            told.path.symlink_to("/dev/zero")
        case "fifo":
            os.mkfifo(told.path)
        case "rights":
            told.path.write_text("{}\n")
            told.path.chmod(0)
        case "garbage":
            told.path.write_bytes(b"\xff\x00{" * 100 + b'\n[1]\n{"type":"user"}\n{"type":')
    told.listen(role="user", text=PROMPT, size=0)
    told.listen("end", size=0)
    assert heard(core) == [("user", PROMPT)]


@pytest.mark.parametrize("fields", [{"agent": "nobody"}, {"file": "a.jsonl"}, {"session": ""}, {"size": -1}])
def test_what_names_no_session_is_refused(fields: dict[str, Any], told: Told, core: Core) -> None:
    given: dict[str, Any] = {"agent": "claude-code", "file": str(told.path), "session": SESSION}
    with pytest.raises(Invalid):
        ask(core, Listen(**{**given, **fields}))


def test_many_utterances_are_taken_in_by_parts(told: Told, core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_PART", 3)
    told.listen("start")
    for number in range(20):
        told.types(f"Move report {number} to the old cluster")
        told.says(f"Report {number} is on the old cluster now")
    told.listen("end")
    assert len(heard(core)) + len(read_ids(core)) == 40
