"""Claude Code: whose words are in what the program wrote (tests/data/backfill/cases), and in what older ones wrote."""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.programs.sessions import claude_code, claude_code_prompts
from memoryd.client.programs.sessions.agents import AGENTS
from memoryd.client.programs.sessions.building import ANSWER, PLAN, Session
from memoryd.client.programs.sessions.prompts import (
    ARGUMENT,
    COMMAND,
    COMPACTION,
    CONTEXT,
    FEEDBACK,
    HANDED_PLAN,
    NOTICE,
    PEER,
    QUEUED,
    REASON,
    REPLY,
    TYPED,
)

CASES = Path(__file__).parents[2] / "data" / "backfill" / "cases" / "claude-code"
AT = "2026-03-01T12:00:00.000Z"
ASKED = "Which port shall staging use?"

SAID = {
    "tools": [
        (TYPED, "Please write two notes about the deploy."),
        (ANSWER, "I write both notes."),
        (REASON, "not here, use the docs folder"),
        (ANSWER, "Understood: the notes go into the docs folder."),
        (TYPED, "Now ask me about the port."),
        (ANSWER, "One thing is open."),
        (REPLY, f"{ASKED}\n6000"),
        (ANSWER, "Staging gets that port."),
        (TYPED, "And ask me again about it."),
        (ANSWER, "One thing is open."),
        (REPLY, f"{ASKED}\ntake 7777 instead"),
        (ANSWER, "Staging gets that port."),
        (TYPED, "Now take your time with the slow one."),
        (QUEUED, "also look at the logs of the queue"),
        (ANSWER, "The slow command is done, and the logs of the queue are clean."),
        (TYPED, "Write one note about the date."),
        (QUEUED, "put the date in front of it"),
        (ANSWER, "All of that is written."),
    ],
    "rewind": [
        (TYPED, "We move the queue to the new cluster on Monday."),
        (ANSWER, "Noted: We move the queue to the new cluster on Monday."),
        ("taken back", "This one is wrong and will be taken back."),
        ("taken back", "Noted: This one is wrong and will be taken back."),
        (TYPED, "This one is right and stands instead of it."),
        (ANSWER, "Noted: This one is right and stands instead of it."),
        (TYPED, "After the compaction we go on with the release."),
        (ANSWER, "Noted: After the compaction we go on with the release."),
    ],
    "plan": [
        (TYPED, "Make a plan for the queue."),
        (ANSWER, "This is the plan."),
        (REASON, "drain the old queue first"),
        (ANSWER, "I would drain the old queue first then."),
        (TYPED, "Then make a plan with that."),
        (ANSWER, "This is the plan."),
        (PLAN, "# Plan: move the queue\n\n1. Stop the old workers.\n2. Start the new ones.\n"),
        (ANSWER, "I have stopped the old workers and begun with the new ones."),
        (TYPED, "One more plan for the other queue."),
        (ANSWER, "This is the plan."),
        ("to a program", "I have begun with the plan, with the old queue drained first."),
    ],
    "forks": [
        (TYPED, "The gateway listens on port 8443 from now on."),
        (ANSWER, "Noted: The gateway listens on port 8443 from now on."),
        (TYPED, "In the left terminal we look at the gateway."),
        (ANSWER, "Noted: In the left terminal we look at the gateway."),
        (TYPED, "In the right terminal we look at the gateway."),
        (ANSWER, "Noted: In the right terminal we look at the gateway."),
        (TYPED, "In the left again terminal we look at the gateway."),
        (ANSWER, "Noted: In the left again terminal we look at the gateway."),
        (TYPED, "In the right again terminal we look at the gateway."),
        (ANSWER, "Noted: In the right again terminal we look at the gateway."),
        (TYPED, "The gateway listens on port 8443 from now on."),
        (ANSWER, "Noted: The gateway listens on port 8443 from now on."),
        (TYPED, "In the fork we try port 9443 for the gateway."),
        (ANSWER, "Noted: In the fork we try port 9443 for the gateway."),
    ],
    "programs": [
        ("sdk-cli with one prompt", "Count the lines of all files."),
        ("sdk-cli with one prompt", "Noted: Count the lines of all files."),
        ("sdk-ts in the folder of an observer", "Observe what happened."),
        ("sdk-ts in the folder of an observer", "Noted: Observe what happened."),
        (TYPED, "I type this in an editor."),
        (ANSWER, "Noted: I type this in an editor."),
        (TYPED, "And this as well, after the answer."),
        (ANSWER, "Noted: And this as well, after the answer."),
    ],
}


def read(path: Path, start: int = 0) -> Session:
    (session,) = claude_code.read(path, path.parent, start)
    return session


def list_said(session: Session) -> Iterator[tuple[str, str]]:
    for said in session.utterances:
        kind = "taken back" if said.taken_back else "to a program" if said.to_program else said.kind
        yield session.automated or kind, said.content


def lines(path: Path, *entries: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries))
    return path


def entry(role: str, content: Any, number: int = 0, parent: int | None = None, **fields: Any) -> dict[str, Any]:
    ids = {"uuid": make_id(number), "parentUuid": None if parent is None else make_id(parent)} if number else {}
    return {"type": role, "message": {"role": role, "content": content}, "cwd": "/w", "timestamp": AT, **ids, **fields}


def make_id(number: int) -> str:
    return f"0b6cf8a4-3c1e-4d1f-9a7e-{number:012x}"


@pytest.mark.parametrize("case", SAID)
def test_of_what_the_program_wrote_each_word_has_its_speaker(case: str) -> None:
    sessions = sorted(map(read, (CASES / case).glob("*.jsonl")), key=lambda one: (one.forked_from, *_order(one)))
    assert [one for session in sessions for one in list_said(session)] == SAID[case]
    assert not [dict(session.unknown) for session in sessions if session.unknown]


def _order(session: Session) -> tuple[bool, float]:
    return not session.automated, session.utterances[0].at


def test_files_count_that_were_written() -> None:
    (path,) = (CASES / "tools").glob("*.jsonl")
    written = [[Path(file).name for file in said.files] for said in read(path).utterances if said.files]
    assert written == [["n2.md"], ["n3.md"]]  # n1.md was refused


@pytest.mark.parametrize("case", SAID)
def test_a_file_that_grows_is_read_on_from_where_nothing_changes_any_more(case: str, folder: Path) -> None:
    """Whatever was written when it was read first: what is heard then and later is what is heard at once."""
    for path in (CASES / case).glob("*.jsonl"):
        gone = {said.id for said in read(path).utterances if said.taken_back}
        data, whole = path.read_bytes(), {said.id: said.content for said in read(path).utterances}
        grown = folder / path.name
        for cut in range(0, len(data), 701):
            grown.write_bytes(data[:cut])
            first = read(grown)
            grown.write_bytes(data)
            rest = read(grown, first.settled)
            heard = {said.id: said.content for said in (*first.utterances, *rest.utterances)}
            assert {id: text for id, text in whole.items() if heard.get(id) != text} == {}
            left = gone & {said.id for said in first.utterances} - {said.id for said in rest.utterances}
            assert rest.is_torn or not left - {said.id for said in first.utterances if said.taken_back}


def test_one_prompt_is_judged_by_what_the_program_puts_into_it() -> None:
    """Each row: the text, as an entry or a hook has it, its kind, and what the person said."""
    plan = (
        "Implement the following plan:\n\n# Plan\n\n\nIf you need specific details from before exiting plan mode, read"
    )
    notice = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
    rows = [
        ("Which port?", TYPED, "Which port?"),
        ("<ide_opened_file>The user opened /w/a.py.</ide_opened_file>\nWhich port?", TYPED, "Which port?"),
        ("<ide_selection>port = 1</ide_selection>", CONTEXT, ""),
        ("<system-reminder>Be kind.</system-reminder>Which port?", TYPED, "Which port?"),
        ("Which port?\n<system-reminder>Be kind.</system-reminder>", TYPED, "Which port?"),
        ("What does <system-reminder> mean?", TYPED, "What does <system-reminder> mean?"),
        ("<app-header> is too high", TYPED, "<app-header> is too high"),
        ("<system-reminder>It was cut", NOTICE, ""),
        ("Why?\n<system-reminder>Message sent at noon.</system-reminder>", TYPED, "Why?"),
        ("<div>\n<p>Why is this empty?</p>\n</div>", TYPED, "<div>\n<p>Why is this empty?</p>\n</div>"),
        (notice, NOTICE, ""),
        (f"{notice}\nFull transcript available at: /tmp/x", NOTICE, ""),
        ('<teammate-message teammate_id="a">Done.</teammate-message>', PEER, ""),
        ("Another Claude session sent a message:\n<cross-session-message>x</cross-session-message>", PEER, ""),
        ("<ci-monitor-event>failed</ci-monitor-event>", NOTICE, ""),
        ("[SYSTEM NOTIFICATION - NOT USER INPUT] A task ended.", NOTICE, ""),
        ("[Request interrupted by user for tool use]", NOTICE, ""),
        ("This session is being continued from a previous conversation that ran out", COMPACTION, ""),
        ("Stop hook feedback:\nRun the tests", FEEDBACK, ""),
        ("Operation stopped by hook: busy", FEEDBACK, ""),
        ("Caveat: The messages below were generated by the user while running local commands.", COMMAND, ""),
        ("<bash-input>git pull</bash-input>", COMMAND, ""),
        ("<local-command-stdout>done</local-command-stdout>", COMMAND, ""),
        ("<command-name>/model</command-name>\n<command-args>opus</command-args>", COMMAND, ""),
        ("<command-message>fix</command-message>\n<command-name>/fix</command-name>", COMMAND, ""),
        ("<command-name>/fix</command-name>\n<command-args>the login page</command-args>", ARGUMENT, "the login page"),
        ("/fix the login page", ARGUMENT, "the login page"),
        ("/compact keep the names", COMMAND, ""),
        ("/etc/hosts is wrong", TYPED, "/etc/hosts is wrong"),
        ("<user-memory-input>always use uv</user-memory-input>", TYPED, "always use uv"),
        (plan, HANDED_PLAN, ""),
        (f"{plan} it\n\nUser feedback on this plan: drain it first", TYPED, "drain it first"),
        ("Implement the following plan:\n1. Begin.", TYPED, "Implement the following plan:\n1. Begin."),
        ("<memories>\nThe port is 5433.\n</memories>\nWhich port?", TYPED, "Which port?"),
    ]
    judged = [(text, claude_code_prompts.judge(text)) for text, _, _ in rows]
    assert [row for row, (_, one) in zip(rows, judged, strict=True) if row[1:] != (one.kind, one.text)] == []


def test_fields_of_an_entry_say_that_nobody_typed_it(folder: Path) -> None:
    marks: list[dict[str, Any]] = [
        {"isMeta": True},
        {"isCompactSummary": True},
        {"isSidechain": True},
        {"isVisibleInTranscriptOnly": True},
        {"origin": {"kind": "task-notification"}},
        {"origin": {"kind": "peer"}},
        {"origin": {"kind": "channel"}},
        {"origin": {"kind": "auto-continuation"}},
        {"planContent": "# Plan"},
        {"promptSource": "system"},
        {"wakeupSource": "loop"},
        {"scheduledTaskId": "t1"},
        {"textNotTyped": True},
        {"turnOrigin": "host_synthetic"},
    ]
    path = lines(folder / "s.jsonl", *(entry("user", "Go on with the release.", **mark) for mark in marks))
    assert list(list_said(read(path))) == []
    kept: list[dict[str, Any]] = [
        {"origin": {"kind": "human"}, "promptSource": "sdk"},
        {"promptSource": "typed", "turnOrigin": "human"},
        {"promptSource": "suggestion_accepted"},
        {},
    ]
    path = lines(folder / "t.jsonl", *(entry("user", "Go on with the release.", **mark) for mark in kept))
    assert len(read(path).utterances) == len(kept)


def test_what_was_queued_before_attachments_told_of_it_is_heard_from_the_queue(folder: Path) -> None:
    def queue(operation: str, text: str = "") -> dict[str, Any]:
        return {
            "type": "queue-operation",
            "operation": operation,
            "timestamp": AT,
            **({"content": text} if text else {}),
        }

    path = lines(
        folder / "s.jsonl",
        entry("user", "Begin with the tests."),
        entry("assistant", [{"type": "text", "text": "I run them."}]),
        entry("assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]),
        queue("enqueue", "and the linter as well"),
        queue("enqueue", "this one is edit"),
        queue("popAll", "this one is edited"),
        queue("enqueue", "are you done with it?"),
        queue("enqueue", '{"task_id": "b1", "status": "completed"}'),
        queue("remove"),
        queue("remove"),
        entry("assistant", [{"type": "text", "text": "Both are green."}]),
        queue("enqueue", "then commit all of it"),
        queue("dequeue"),
        entry("user", "then commit all of it"),
        entry("user", "are you done with it?"),
    )
    said = [(TYPED, "Begin with the tests."), (QUEUED, "are you done with it?"), (ANSWER, "Both are green.")]
    typed = [(TYPED, "then commit all of it"), (TYPED, "are you done with it?")]
    assert list(list_said(read(path))) == [*said, *typed]


def test_an_answer_to_a_program_takes_the_place_of_no_other(folder: Path) -> None:
    path = lines(
        folder / "s.jsonl",
        entry("user", "Start the review."),
        entry("assistant", [{"type": "text", "text": "It runs."}]),
        entry("user", "<task-notification>done</task-notification>"),
        entry("assistant", [{"type": "text", "text": "The review found nothing."}]),
        entry("assistant", [{"type": "text", "text": "No response requested."}], isApiErrorMessage=False)
        | {"message": {"model": "<synthetic>", "content": [{"type": "text", "text": "No response requested."}]}},
        entry("assistant", [{"type": "text", "text": "API Error: 529"}], isApiErrorMessage=True),
        entry("user", "Stop hook feedback:\nRun the tests", isMeta=True),
        entry("assistant", [{"type": "text", "text": "The tests pass."}]),
    )
    said = [(TYPED, "Start the review."), (ANSWER, "It runs."), ("to a program", "The review found nothing.")]
    assert list(list_said(read(path))) == [*said, ("to a program", "The tests pass.")]


def test_of_answers_before_the_next_prompt_the_last_one_stays(folder: Path) -> None:
    def edits(id: str, path: str, tool: str = "Edit") -> dict[str, Any]:
        return entry("assistant", [{"type": "tool_use", "id": id, "name": tool, "input": {"file_path": path}}])

    path = lines(
        folder / "s.jsonl",
        entry("assistant", "I begin without being asked"),
        entry("user", "Fix the test"),
        entry("assistant", [{"type": "text", "text": "I look"}]),
        *(edits(*one) for one in (("a", "/w/a.py"), ("b", "b.py"), ("e", "D:\\w\\e.py"), ("d", "/w/d.py"))),
        edits("c", "/w/c.py", "Read"),
        entry("user", [{"type": "tool_result", "tool_use_id": id, "is_error": id == "d"} for id in "abcde"]),
        entry("assistant", [{"type": "text", "text": "It passes now"}], 1),
        entry("user", [{"type": "text", "text": "Thanks, and the other one?"}]),
    )
    session = read(path)
    assert [said.text for said in session.utterances] == [
        *("I begin without being asked", "Fix the test", "It passes now", "Thanks, and the other one?")
    ]
    assert session.utterances[2].files == ["/w/a.py", "/w/b.py", "D:\\w\\e.py"], "a path of Windows is whole"
    assert session.utterances[2].id == make_id(1).replace("-", "")
    assert session.left_out["said between tools"] == 1


def test_branches_that_grow_later_live_and_tools_make_none(folder: Path) -> None:
    answer = [{"type": "text", "text": "Yes."}]
    two_writers = [
        entry("user", "Begin", 1),
        entry("assistant", answer, 2, 1),
        entry("user", "Left", 3, 2),
        entry("user", "Right", 4, 2),
        entry("assistant", answer, 5, 3),
    ]
    assert not any(said.taken_back for said in read(lines(folder / "a.jsonl", *two_writers)).utterances)
    over_others = [
        entry("user", "Begin", 1),
        entry("assistant", answer, 2, 1),
        entry("user", "Wrong", 3, 2),
        {"type": "system", "subtype": "turn_duration", "uuid": make_id(4), "parentUuid": make_id(2)},
        entry("user", "Right", 5, 4),
    ]
    assert list(list_said(read(lines(folder / "b.jsonl", *over_others))))[2] == ("taken back", "Wrong")
    summarised = [
        *over_others[:3],
        {"type": "system", "subtype": "compact_boundary", "uuid": make_id(4), "logicalParentUuid": make_id(2)},
        entry("user", "A summary", 5, 4, isCompactSummary=True, summarizeMetadata={"direction": "from"}),
        entry("user", "Next", 6, 5),
    ]
    assert not any(said.taken_back for said in read(lines(folder / "d.jsonl", *summarised)).utterances)
    tools = [
        entry("user", "Begin", 1),
        entry("assistant", [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}], 2, 1),
        entry("assistant", [{"type": "tool_use", "id": "b", "name": "Read", "input": {}}], 3, 2),
        entry("user", [{"type": "tool_result", "tool_use_id": "a", "content": "1"}], 4, 2),
        entry("user", [{"type": "tool_result", "tool_use_id": "b", "content": "2"}], 5, 3),
        entry("assistant", answer, 6, 5),
    ]
    assert not any(said.taken_back for said in read(lines(folder / "c.jsonl", *tools)).utterances)


def test_a_line_of_many_megabytes_is_judged_by_its_ends(folder: Path) -> None:
    much = "x" * 3_000_000
    image = [{"type": "text", "text": "Look at this picture."}, {"type": "image", "source": {"data": much}}]
    result = [{"type": "tool_result", "tool_use_id": "t", "content": much}]
    path = lines(
        folder / "s.jsonl",
        entry("user", image, 1),
        entry("assistant", [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}], 2, 1),
        entry("user", result, 3, 2),
        entry("assistant", [{"type": "text", "text": "It shows a cat."}], 4, 3),
        entry("user", f'A "long" one\n{much}', 5, 4),
    )
    session = read(path)
    assert [text[:21] for _, text in list_said(session)] == [
        "Look at this picture.",
        "It shows a cat.",
        'A "long" one\nxxxxxxxx',
    ]
    assert {said.at for said in session.utterances} == {session.utterances[0].at} != {0.0}


def test_what_is_said_in_one_entry_has_ids_of_its_own(folder: Path) -> None:
    refused = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nnot so"
    results = [{"type": "tool_result", "tool_use_id": id, "is_error": True, "content": refused} for id in "ab"]
    path = lines(folder / "s.jsonl", entry("user", [*results, {"type": "text", "text": "but like this"}], 1))
    session = read(path)
    assert list(list_said(session)) == [(REASON, "not so"), (REASON, "not so"), (QUEUED, "but like this")]
    assert len({said.id for said in session.utterances}) == 3


def test_kinds_that_are_not_known_are_counted_and_cost_nothing(folder: Path) -> None:
    path = lines(
        folder / "s.jsonl",
        {"type": "hologram", "version": "9.1.0"},
        entry("user", "<novelty>of later</novelty> What now?", version="9.1.0"),
        entry("assistant", [{"type": "text", "text": "Nothing."}, {"type": "gesture"}], version="9.1.0"),
    )
    session = read(path)
    assert len(session.utterances) == 2
    assert session.version == "9.1.0"
    assert dict(session.unknown) == {
        "entries of type hologram": 1,
        "prompts that begin with <novelty>": 1,
        "parts of type gesture": 1,
    }


def test_fifos_links_and_what_is_rewritten_while_it_is_read_do_no_harm(folder: Path) -> None:
    os.mkfifo(folder / "a.jsonl")
    (folder / "real").mkdir()
    real = lines(folder / "real" / "b.jsonl", entry("user", "Begin with the tests."))
    (folder / "b.jsonl").symlink_to(real)
    for name in ("a.jsonl", "b.jsonl"):
        with pytest.raises(OSError, match=r"regular|symbolic|Too many"):
            read(folder / name)
    reading = claude_code.read_lines(real, read(real).left_out)
    next(reading)
    real.write_text('{"type": "us')
    assert list(reading) == []


def test_times_that_lack_or_lie_ahead_are_those_of_neighbours_or_of_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    times: list[Any] = [None, "2026-03-01T12:00:00Z", "2999-01-01T00:00:00Z", 0]
    path = lines(folder / "s.jsonl", *({**entry("user", "Go on with it."), "timestamp": at} for at in times))
    (session,) = AGENTS["claude-code"].read(path)
    assert {said.at for said in session.utterances} == {1_772_366_400.0}
    path = lines(folder / "t.jsonl", {**entry("user", "Go on with it."), "timestamp": None})
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (session,) = AGENTS["claude-code"].read(path)
    assert [said.at for said in session.utterances] == [1_700_000_000.0]


def test_several_replies_have_their_questions_and_nobody_is_said_to_have_answered_in_time(folder: Path) -> None:
    def replied(**fields: Any) -> dict[str, Any]:
        questions = [{"question": "Which port?"}, {"question": "Which host?"}]
        result = {"questions": questions, "answers": {"Which port?": "5433", "Which host?": ["a", "b"]}, **fields}
        return entry("user", [{"type": "tool_result", "tool_use_id": "t", "content": "…"}], toolUseResult=result)

    noted = {"Which port?": {"notes": "as before"}}
    path = lines(folder / "s.jsonl", replied(annotations=noted), replied(afkTimeoutMs=1))
    assert list(list_said(read(path))) == [(REPLY, "Which port?\n5433\nas before\nWhich host?\na, b")]


def test_values_of_any_kind_in_any_field_raise_nothing(folder: Path) -> None:
    random_ = random.Random(5)
    sources = [path.read_text().splitlines() for path in sorted(CASES.glob("*/*.jsonl"))]
    values: list[Any] = [None, 3, -1.5, "", [], {}, "x", [None, 1, {"type": "text"}], {"type": "tool_result"}, True]

    def change(value: Any, share: float) -> Any:
        if random_.random() < share:
            return random_.choice(values)
        if isinstance(value, dict):
            return {name: change(held, share) for name, held in value.items()}
        return [change(held, share) for held in value] if isinstance(value, list) else value

    for number in range(150):
        changed = [change(json.loads(line), 0.02) for line in sources[number % len(sources)]]
        session = read(lines(folder / "s.jsonl", *changed))
        session.date(None, 2e9)
        assert all(said.content for said in session.utterances)
