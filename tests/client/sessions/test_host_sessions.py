"""Sessions of Codex, Gemini CLI, OpenCode, Copilot CLI and Cline: each situation is a file as the host writes it."""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from each import each
from memoryd.client.programs.sessions import cline, codex, copilot, gemini, opencode
from memoryd.client.programs.sessions.building import Session, parse_time
from memoryd.client.programs.sessions.compressed import find_zstd

ID = "0b6cf8a4-3c1e-4d1f-9a7e-5f0d2c4b6a81"
OTHER = "1c7d09b5-4d2f-4e20-8b8f-60e1d3c5b792"
THIRD = "2d8e1ac6-5e30-4f31-9c90-71f2e4d6c803"
T0 = 1_772_366_400  # 2026-03-01T12:00:00Z
Said = list[tuple[str, str]]


def at(second: int) -> str:
    return datetime.fromtimestamp(T0 + second, UTC).isoformat().replace("+00:00", "Z")


def put(path: Path, entries: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries))
    return path


def said(session: Session) -> Said:
    """Return what was said and not taken back, by its kind."""
    return [(turn.kind, turn.text) for turn in session.utterances if not turn.taken_back]


# Codex ---------------------------------------------------------------------------------------------------------------


class Rollout:
    """A rollout as Codex writes it, a second for each line."""

    def __init__(self, **header: Any) -> None:
        self.lines: list[Any] = []
        self.add("session_meta", {"id": ID, "cwd": "/w", "cli_version": "0.140.0", "source": "cli", **header})

    def add(self, kind: str, payload: dict[str, Any]) -> "Rollout":
        self.lines.append({"timestamp": at(len(self.lines)), "type": kind, "payload": payload})
        return self

    def event(self, kind: str, **fields: Any) -> "Rollout":
        return self.add("event_msg", {"type": kind, **fields})

    def item(self, kind: str, **fields: Any) -> "Rollout":
        return self.add("response_item", {"type": kind, **fields})

    def user(self, *texts: str) -> "Rollout":
        return self.item("message", role="user", content=[{"type": "input_text", "text": text} for text in texts])

    def prompt(self, text: str, is_new: bool = True) -> "Rollout":
        if is_new:
            self.event("task_started", turn_id=f"{len(self.lines)}").add("turn_context", {"cwd": "/w"})
        return self.user(text).event("user_message", message=text, images=[])

    def answer(self, text: str, phase: str = "final_answer") -> "Rollout":
        content = [{"type": "output_text", "text": text}]
        self.event("agent_message", message=text, phase=phase)
        return self.item("message", role="assistant", content=content, phase=phase)

    def call(self, name: str, given: dict[str, Any], output: Any) -> "Rollout":
        self.item("function_call", name=name, arguments=json.dumps(given), call_id=f"c{len(self.lines)}")
        id = self.lines[-1]["payload"]["call_id"]
        return self.item("function_call_output", call_id=id, output=output)

    def put(self, folder: Path) -> Path:
        return put(folder / f"rollout-2026-03-01T12-00-00-{ID}.jsonl", self.lines)

    def read(self, folder: Path) -> Session:
        (session,) = codex.read(self.put(folder), folder)
        return session


CONTEXT = "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"
ABORTED = "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>"
ASKED = {"questions": [{"id": "where", "question": "Which cluster?", "options": []}]}

CODEX: dict[str, tuple[Rollout, Said]] = {
    "what Codex puts among the prompts": (
        Rollout()
        .user("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>", CONTEXT)
        .prompt("Why is it slow?")
        .user("<skill>\n<name>coordinator</name>\n</skill>")
        .answer("It sorts twice.")
        .user(ABORTED),
        [("typed", "Why is it slow?"), ("answer", "It sorts twice.")],
    ),
    "a fragment that this version does not know": (
        Rollout().user("<weather>\nrain\n</weather>").prompt("Ask what <app-header> is").answer("An element."),
        [("typed", "Ask what <app-header> is"), ("answer", "An element.")],
    ),
    "the prompt of a review and its output": (
        Rollout()
        .prompt("Draft the runners")
        .answer("Drafted all five.")
        .event("entered_review_mode", target={"type": "uncommittedChanges"}, user_facing_hint="current changes")
        .event("user_message", message="Review the current code changes and provide prioritized findings.")
        .user("<user_action>\n  <context>User initiated a review task.</context>\n</user_action>")
        .answer("One finding: a missing block.")
        .prompt("implement changes recommended"),
        [
            ("typed", "Draft the runners"),
            ("answer", "Drafted all five."),
            ("answer", "One finding: a missing block."),
            ("typed", "implement changes recommended"),
        ],
    ),
    "a review with instructions of one's own": (
        Rollout().event("entered_review_mode", target={"type": "custom", "instructions": "look at the locks"}),
        [("argument", "look at the locks")],
    ),
    "a review in a newer version": (
        Rollout().event(
            "item_completed",
            item={"type": "EnteredReviewMode", "target": {"type": "custom", "instructions": "look at the locks"}},
        ),
        [("argument", "look at the locks")],
    ),
    "a compaction and its summary": (
        Rollout()
        .prompt("Which port?")
        .answer("5433.")
        .event("task_started")
        .item("message", role="assistant", content=[{"type": "output_text", "text": "Staging listens on 5433."}])
        .add("compacted", {"message": "Another language model made this summary:\nStaging listens on 5433."})
        .event("task_complete")
        .prompt("Go on"),
        [("typed", "Which port?"), ("answer", "5433."), ("typed", "Go on")],
    ),
    "a goal of the person, and one of the agent": (
        Rollout()
        .event("thread_goal_updated", goal={"objective": "All tests pass on 3.14"})
        .call("create_goal", {"objective": "Fix the parser"}, "{}")
        .event("thread_goal_updated", goal={"objective": "Fix the parser"})
        .event("thread_goal_updated", goal={"objective": "All tests pass on 3.14"}),
        [("argument", "All tests pass on 3.14")],
    ),
    "words typed while the agent works": (
        Rollout()
        .prompt("Move the runs")
        .answer("I look at the folder first.", "commentary")
        .prompt("and keep the old names", is_new=False)
        .answer("Moved, with the old names."),
        [("typed", "Move the runs"), ("queued", "and keep the old names"), ("answer", "Moved, with the old names.")],
    ),
    "a reply to a question, with a note": (
        Rollout()
        .prompt("Deploy it")
        .call("request_user_input", ASKED, '{"answers":{"where":{"answers":["Harbor","user_note: after six"]}}}')
        .answer("It runs there."),
        [("typed", "Deploy it"), ("reply", "Harbor, after six"), ("answer", "It runs there.")],
    ),
    "a question that was put away": (
        Rollout().prompt("Deploy it").call("request_user_input", ASKED, "request_user_input was cancelled"),
        [("typed", "Deploy it")],
    ),
    "a plan that was accepted": (
        Rollout()
        .prompt("Plan the panel")
        .answer("<proposed_plan>\n# Panel\n\nOne view.\n</proposed_plan>")
        .prompt("Implement the plan.")
        .answer("Built."),
        [
            ("typed", "Plan the panel"),
            ("plan", "# Panel\n\nOne view."),
            ("typed", "Implement the plan."),
            ("answer", "Built."),
        ],
    ),
    "a plan that was handed over": (
        Rollout()
        .prompt("A previous agent produced the plan below to accomplish the user's task. Implement it.\n\n# Panel")
        .answer("Built."),
        [("answer", "Built.")],
    ),
    "a plan that was handed over as a file": (
        Rollout()
        .prompt("Read the approved plan at /home/me/.codex/attachments/1/approved-plan.md and implement it.")
        .answer("Built."),
        [("answer", "Built.")],
    ),
    "what an editor and the desktop program put before": (
        Rollout().prompt("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix it"),
        [("typed", "Fix it")],
    ),
    "citations of memories in answers": (
        Rollout()
        .prompt("Which port?")
        .answer("5433.\n\n<oai-mem-citation>\n<citation_entries>MEMORY.md:1-2</citation_entries>\n</oai-mem-citation>"),
        [("typed", "Which port?"), ("answer", "5433.")],
    ),
    "turns that were rolled back": (
        Rollout()
        .prompt("Which port?")
        .answer("5433.")
        .prompt("Use MySQL")
        .answer("Done with MySQL.")
        .event("thread_rolled_back", num_turns=1)
        .prompt("Use Postgres")
        .answer("Done with Postgres."),
        [
            ("typed", "Which port?"),
            ("answer", "5433."),
            ("typed", "Use Postgres"),
            ("answer", "Done with Postgres."),
        ],
    ),
    "a picture before the words": (
        Rollout()
        .user("<image name=[Image #1]>", "</image>", "[Image #1] Align it in the middle")
        .event("user_message", message="[Image #1] Align it in the middle", local_images=["/w/a.png"]),
        [("typed", "[Image #1] Align it in the middle")],
    ),
    "a picture of more than a megabyte": (
        Rollout()
        .item(
            "message",
            role="user",
            content=[
                {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 1_500_000},
                {"type": "input_text", "text": "[Image #1] Align it in the middle"},
            ],
        )
        .event("user_message", message="[Image #1] Align it in the middle"),
        [("typed", "[Image #1] Align it in the middle")],
    ),
    "a newer version with items instead of events": (
        Rollout(history_mode="paginated")
        .user("<weather>\nrain\n</weather>")
        .user("Which port?")
        .event("item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": "Which port?"}]})
        .item("message", role="assistant", content=[{"type": "output_text", "text": "5433."}]),
        [("typed", "Which port?"), ("answer", "5433.")],
    ),
    "no words but those of another agent": (
        Rollout().prompt("Ask it").item("agent_message", content=[{"type": "input_text", "text": "Report: all done"}]),
        [("typed", "Ask it")],
    ),
}


def test_of_each_situation_in_codex_what_the_person_said_is_heard_and_nothing_else(folder: Path) -> None:
    heard = {name: said(rollout.read(folder)) for name, (rollout, _) in CODEX.items()}
    assert heard == {name: expected for name, (_, expected) in CODEX.items()}


def test_a_reply_has_its_question_and_kinds_that_are_not_known_are_counted(folder: Path) -> None:
    rollout = Rollout().call("request_user_input", ASKED, '{"answers":{"where":{"answers":["Harbor"]}}}')
    session = rollout.add("telepathy", {"type": "x"}).event("dreamt").item("thought").read(folder)
    assert session.utterances[0].content == "Which cluster?\nHarbor"
    assert session.unknown == {"telepathy": 1, "event_msg dreamt": 1, "response_item thought": 1}
    assert session.version == "0.140.0"


@pytest.mark.parametrize(
    ("header", "automated"),
    [
        ({"source": "exec"}, True),
        ({"source": "vscode"}, False),
        ({"source": {"custom": "a program that people type in"}}, False),
        ({"source": {"internal": "memory_consolidation"}}, True),
        ({"source": "mcp"}, True),
        ({"source": "vscode", "thread_source": "automation"}, True),
        ({"source": "vscode", "thread_source": "user"}, False),
    ],
)
def test_codex_says_where_nobody_types(header: dict[str, Any], automated: bool, folder: Path) -> None:
    session = Rollout(**header).prompt("Review all of it").answer("Fine.").read(folder)
    assert bool(session.automated) is automated
    assert len(said(session)) == 2


def test_a_subagent_of_codex_said_nothing_to_the_user(folder: Path) -> None:
    session = Rollout(source={"subagent": "review"}).user("Review all of it").read(folder)
    assert said(session) == []
    assert session.left_out["turns of subagents"] == 1


@each(("output", "files"), [("Success. Updated the following files:\nA a.py\n", ["/w/a.py"]), ("error: no", [])])
def test_a_patch_of_codex_names_its_files_once_it_is_applied(output: str, files: list[str], folder: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"
    rollout = Rollout().user("Add it").item("custom_tool_call", call_id="c", name="apply_patch", input=patch)
    rollout.item("custom_tool_call_output", call_id="c", output=output).answer("I did what I could")
    assert rollout.read(folder).utterances[1].files == files


def test_a_fork_of_codex_names_its_origin_and_keeps_its_own_folder(folder: Path) -> None:
    rollout = Rollout(forked_from_id=OTHER).add("session_meta", {"id": OTHER, "cwd": "/elsewhere"})
    session = rollout.user("Which port?").event("user_message", message="Which port?").read(folder)
    assert (session.forked_from, session.folder) == (OTHER, "/w")


def test_a_rewind_that_begins_a_further_file_takes_back_what_the_former_one_has_after_it(folder: Path) -> None:
    day, names = folder / "sessions" / "2026" / "03" / "01", [ID, f"{ID}_{OTHER}", f"{ID}_{THIRD}"]
    first = Rollout(history_mode="paginated").prompt("Which port?").answer("5433.")
    kept = len(put(day / "x", first.lines).read_bytes())
    first.prompt("Use MySQL").answer("Done with MySQL.")
    second = Rollout(history_base={"thread_id": ID, "end_byte_offset": kept}).prompt("Use Maria").answer("Done.")
    third = Rollout(history_base={"thread_id": ID, "end_byte_offset": kept}).prompt("Use Postgres").answer("Done so.")
    heard, ids, origin_counts = [], set(), []
    for name, rollout in zip(names, (first, second, third), strict=True):
        rollout.lines[0]["payload"]["history_mode"] = "paginated"
        path = put(day / f"rollout-2026-03-01T12-0{names.index(name)}-00-{name}.jsonl", rollout.lines)
        (session,) = codex.read(path, folder)
        assert session.name == ID
        origin_counts.append(len(session.continues))
    for path in sorted(day.glob("rollout-*")):
        (session,) = codex.read(path, folder)
        heard += said(session)
        ids |= {turn.id for turn in session.utterances}
    assert [text for _, text in heard] == ["Which port?", "5433.", "Use Postgres", "Done so."]
    assert len(ids) == 8
    assert origin_counts == [0, 1, 2]
    put(day / f"rollout-2026-03-01T13-00-00-{ID}_{OTHER[:-1]}0.jsonl", Rollout(history_mode="paginated").lines)
    codex._list_further.cache_clear()  # the folder may have the same time
    (session,) = codex.read(day / f"rollout-2026-03-01T12-00-00-{ID}.jsonl", folder)
    assert len(said(session)) == 4  # where the last one goes on is not said


def test_a_former_rollout_has_its_time_in_the_header_and_its_folder_in_a_message(folder: Path) -> None:
    head = {"id": ID, "timestamp": "2025-05-01T10:00:00.000Z", "instructions": None}
    message = {"type": "message", "role": "user"}
    entries = [
        head,
        {"record_type": "state"},
        {**message, "content": [{"type": "input_text", "text": CONTEXT}]},
        {**message, "content": [{"type": "input_text", "text": "Why is it slow?"}]},
    ]
    (session,) = codex.read(put(folder / f"rollout-2025-05-01T12-00-00-{ID}.jsonl", entries), folder)
    session.date(session.began, T0)
    assert [(turn.text, turn.folder, turn.at) for turn in session.utterances] == [
        ("Why is it slow?", "/w", 1_746_093_600.0)
    ]
    entries[0] = {"id": ID}
    (session,) = codex.read(put(folder / f"rollout-2025-05-01T12-00-00-{ID}.jsonl", entries), folder)
    assert session.began == datetime(2025, 5, 1, 12).timestamp()


def test_a_compressed_rollout_is_read_unless_the_plain_one_is_there(folder: Path) -> None:
    rollout = Rollout().prompt("Why is it slow?").answer("It sorts twice.")
    plain = rollout.put(folder)
    packed = plain.with_name(f"{plain.name}.zst")
    packed.write_bytes(find_zstd().compress(plain.read_bytes()))
    assert list(codex.read(packed, folder)) == []
    plain.unlink()
    (session,) = codex.read(packed, folder)
    assert (session.name, said(session)) == (ID, [("typed", "Why is it slow?"), ("answer", "It sorts twice.")])
    packed.write_bytes(packed.read_bytes()[:-9])
    assert len(list(codex.read(packed, folder))) == 1
    packed.write_bytes(b"no archive at all")
    (session,) = codex.read(packed, folder)
    assert said(session) == []


def test_a_rollout_is_read_on_from_where_its_last_turn_began(folder: Path) -> None:
    rollout = Rollout().prompt("Why is it slow?").answer("It sorts twice.").prompt("Fix it")
    first = rollout.read(folder)
    (later,) = codex.read(rollout.answer("Fixed.").put(folder), folder, first.settled)
    assert said(later) == [("typed", "Fix it"), ("answer", "Fixed.")]
    assert later.utterances[0].id == first.utterances[-1].id
    assert later.folder == "/w"
    (torn,) = codex.read(rollout.event("thread_rolled_back", num_turns=2).put(folder), folder, first.settled)
    assert torn.is_torn


# Copilot CLI ---------------------------------------------------------------------------------------------------------


def event(number: int, kind: str, data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    id = f"{number:08d}-0000-4000-8000-000000000000"
    return {"type": kind, "data": data, "id": id, "timestamp": at(number), **fields}


def copilot_session(folder: Path, *events: tuple[str, dict[str, Any]], **fields: Any) -> Session:
    head = ("session.start", {"copilotVersion": "1.0.74", "startTime": at(0), "context": {"cwd": "/w"}})
    lines = [event(number, kind, data, **fields) for number, (kind, data) in enumerate((head, *events))]
    (session,) = copilot.read(put(folder / ID / "events.jsonl", lines), folder)
    assert (session.name, session.folder, session.version) == (ID, "/w", "1.0.74")
    return session


def copilot_call(name: str, given: dict[str, Any], told: str, success: bool = True) -> list[tuple[str, dict[str, Any]]]:
    outcome = {"result": {"content": told}} if success else {"error": {"message": told, "code": "denied"}}
    return [
        ("tool.execution_start", {"toolCallId": "c", "toolName": name, "arguments": given}),
        ("tool.execution_complete", {"toolCallId": "c", "success": success, **outcome}),
    ]


def copilot_user(content: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "user.message", {"content": content, **fields}


def copilot_agent(content: str, *tools: str) -> tuple[str, dict[str, Any]]:
    return "assistant.message", {"content": content, "toolRequests": [{"name": tool} for tool in tools]}


def copilot_form(filled: dict[str, Any], told: str) -> list[tuple[str, dict[str, Any]]]:
    schema = {"type": "object", "properties": {"port": {"title": "Port"}, "why": {"title": "Why"}}}
    asked = {"message": "Which port?", "requestedSchema": schema}
    begin, end = copilot_call("ask_user", asked, told)
    response = {"responseKind": "ask_user", "content": filled, **asked}
    return [begin, ("human_response.recorded", {"toolCallId": "c", "response": response}), end]


ASK = {"question": "Which cluster?", "choices": ["Harbor"]}
COPILOT: dict[str, tuple[list[tuple[str, dict[str, Any]]], Said]] = {
    "what was steered and queued": (
        [
            copilot_user("Move the runs", delivery="idle"),
            copilot_agent("I look first.", "view"),
            copilot_user("keep the old names", delivery="steering"),
            copilot_agent("Moved."),
            copilot_user("and commit", delivery="queued"),
        ],
        [("typed", "Move the runs"), ("queued", "keep the old names"), ("answer", "Moved."), ("queued", "and commit")],
    ),
    "who else writes messages": (
        [
            copilot_user("Go", delivery="idle"),
            copilot_user("<system_reminder>\nTools.\n</system_reminder>", source="system"),
            copilot_user("# Brief of the car", source=f"agent-{ID}"),
            copilot_user("<skill-context>", source="skill-pdf"),
            copilot_user("Continue", source="autopilot"),
            copilot_user("Continue", isAutopilotContinuation=True),
        ],
        [("typed", "Go")],
    ),
    "a notice has its own answer": (
        [
            copilot_user("Start it"),
            copilot_agent("It runs; I wait."),
            ("system.notification", {"content": "<system_notification>\nDone.\n</system_notification>"}),
            copilot_agent("It is done."),
        ],
        [("typed", "Start it"), ("answer", "It runs; I wait."), ("answer", "It is done.")],
    ),
    "replies to questions": (
        [
            copilot_user("Deploy"),
            *copilot_call("ask_user", ASK, "User selected: Harbor"),
            *copilot_call("ask_user", ASK, "User responded: the small one"),
            *copilot_call("ask_user", ASK, "User skipped question"),
            *copilot_form({"port": "6000"}, "User responded: port=6000"),
            *copilot_form({"port": "6000", "why": "5433 is taken"}, "User responded: port=6000, why=5433 is taken"),
            *copilot_call(
                "ask_user",
                ASK,
                "User responded: The user is not available to respond and will review your"
                " work later. Work autonomously and make good decisions.",
            ),
        ],
        [
            ("typed", "Deploy"),
            ("reply", "Harbor"),
            ("reply", "the small one"),
            ("reply", "6000"),
            ("reply", "Port: 6000\nWhy: 5433 is taken"),
        ],
    ),
    "reasons of refusals": (
        [
            copilot_user("Clean up"),
            *copilot_call("bash", {}, "The user rejected this tool call. User feedback: not the cache.", False),
            *copilot_call("bash", {}, "The user rejected this tool call.", False),
            *copilot_call(
                "exit_plan_mode", {"summary": "- delete all"}, "Plan not approved. User feedback:\nkeep b", False
            ),
            *copilot_call(
                "exit_plan_mode",
                {"summary": "- delete all"},
                "Plan not approved. User feedback:\n\nkeep c\n\nPlease update the plan based on this feedback and try"
                " again.",
            ),
        ],
        [("typed", "Clean up"), ("reason", "not the cache"), ("reason", "keep b"), ("reason", "keep c")],
    ),
    "a plan that was accepted": (
        [copilot_user("Plan it"), *copilot_call("exit_plan_mode", {"summary": "- one view"}, "Plan approved! Go on.")],
        [("typed", "Plan it"), ("plan", "- one view")],
    ),
}


def test_of_each_situation_in_copilot_what_the_person_said_is_heard_and_nothing_else(folder: Path) -> None:
    heard = {name: said(copilot_session(folder, *events)) for name, (events, _) in COPILOT.items()}
    assert heard == {name: expected for name, (_, expected) in COPILOT.items()}


def test_a_subagent_of_copilot_speaks_to_nobody(folder: Path) -> None:
    session = copilot_session(folder, copilot_user("# Brief"), copilot_agent("Confirmed both."), agentId="toolu_1")
    assert said(session) == []
    assert session.left_out["turns of subagents"] == 2


def test_a_prompt_that_a_template_made_is_a_programs_if_it_is_the_only_one(folder: Path) -> None:
    prompt = copilot_user("[[ ## user_query ## ]]\n\nWhat is 2+2?")
    assert copilot_session(folder, prompt, copilot_agent("4")).automated
    assert not copilot_session(folder, prompt, copilot_agent("4"), copilot_user("Why that form?")).automated


def test_unknown_events_and_sources_of_copilot_are_counted(folder: Path) -> None:
    session = copilot_session(folder, ("telepathy.started", {}), copilot_user("Hm", source="oracle"))
    assert session.unknown == {"events of type telepathy.started": 1, "messages of oracle": 1}
    assert said(session) == []


# Gemini CLI ----------------------------------------------------------------------------------------------------------


def gemini_user(number: int, content: Any, **fields: Any) -> dict[str, Any]:
    parts = [{"text": content}] if isinstance(content, str) else content
    return {"id": f"u{number}", "timestamp": at(number), "type": "user", "content": parts, **fields}


def gemini_agent(number: int, content: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"g{number}", "timestamp": at(number), "type": "gemini", "content": content, "toolCalls": list(calls)}


def gemini_call(name: str, args: dict[str, Any], output: str, status: str = "success") -> dict[str, Any]:
    result = [{"functionResponse": {"name": name, "response": {"output": output}}}]
    return {"id": f"{name}-1", "name": name, "args": args, "status": status, "result": result}


HINT = "User steering update:\n<user_input>\nuse port 5433\n</user_input>\nInternal instruction: Re-evaluate the plan."
SETUP = "<session_context>\nToday is Sunday.\n</session_context>"
AGAIN = [  # at one moment
    {**gemini_user(70, [{"text": SETUP}, {"text": "Which port?"}]), "timestamp": at(7)},
    {**gemini_agent(71, "5433."), "timestamp": at(7)},
    {**gemini_user(72, "And which host?"), "timestamp": at(7)},
    {**gemini_agent(73, "Harbor."), "timestamp": at(7)},
]
GEMINI: dict[str, tuple[list[dict[str, Any]], Said]] = {
    "contents of files that a prompt names": (
        [
            gemini_user(
                1,
                [
                    {"text": "Wrap the pictures in @README.md"},
                    {"text": "\n--- Content from referenced files ---"},
                    {"text": "\nContent from @README.md:\n"},
                    {"text": "# Shop\n"},
                    {"text": "\n--- End of content ---"},
                ],
            ),
            gemini_agent(2, "Wrapped."),
        ],
        [("typed", "Wrap the pictures in @README.md"), ("answer", "Wrapped.")],
    ),
    "what was shown where the model got something else": (
        [
            gemini_user(1, "Contents of a.py: …", displayContent=[{"text": "Fix @a.py"}]),
            gemini_agent(2, "Fixed."),
            gemini_user(3, "Review as the guide says: locks", displayContent=[{"text": "/review the locks"}]),
        ],
        [("typed", "Fix @a.py"), ("answer", "Fixed."), ("argument", "the locks")],
    ),
    "how the program has the agent go on": (
        [
            gemini_user(1, "Fix the test"),
            gemini_agent(2, "I will look."),
            gemini_user(3, "Please continue.", displayContent=[{"text": "Fix the test"}]),
            gemini_agent(4, "Fixed."),
            gemini_user(5, "Run the linter too.", displayContent=[{"text": "Fix the test"}]),
            gemini_agent(6, "Linted."),
            gemini_user(7, "Fix the test"),
        ],
        [
            ("typed", "Fix the test"),
            ("answer", "I will look."),
            ("answer", "Fixed."),
            ("answer", "Linted."),
            ("typed", "Fix the test"),
        ],
    ),
    "what hooks and the setup add": (
        [
            gemini_user(1, "<session_context>\nToday is Sunday.\n</session_context>"),
            gemini_user(2, [{"text": "Which port?"}, {"text": "<hook_context>It is 5433.</hook_context>"}]),
            {"id": "i", "timestamp": at(3), "type": "info", "content": "An update is there"},
        ],
        [("typed", "Which port?")],
    ),
    "words typed while the agent works": (
        [gemini_user(1, "Deploy"), gemini_agent(2, "I begin."), gemini_user(3, HINT), gemini_agent(4, "Done.")],
        [("typed", "Deploy"), ("answer", "I begin."), ("queued", "use port 5433"), ("answer", "Done.")],
    ),
    "words typed while a tool runs": (
        [
            gemini_user(1, "Deploy"),
            gemini_agent(2, "I begin."),
            gemini_user(3, [{"text": HINT}, {"functionResponse": {"name": "run_shell_command", "response": {}}}]),
            gemini_agent(4, "Done."),
        ],
        [("typed", "Deploy"), ("queued", "use port 5433"), ("answer", "Done.")],
    ),
    "what is recorded once more after a request was cancelled": (
        [
            gemini_user(1, "Which port?"),
            gemini_agent(2, "5433."),
            gemini_user(3, "And which host?"),
            gemini_agent(4, "Harbor."),
            gemini_user(5, "Deploy"),
            gemini_agent(6, "I begin."),
            {"id": "i", "timestamp": at(7), "type": "info", "content": "Request cancelled."},
            *AGAIN,
            {"$set": {"messages": AGAIN}},
            gemini_user(8, "Which port?"),
            gemini_agent(9, "Still 5433."),
        ],
        [
            ("typed", "Which port?"),
            ("answer", "5433."),
            ("typed", "And which host?"),
            ("answer", "Harbor."),
            ("typed", "Deploy"),
            ("answer", "I begin."),
            ("typed", "Which port?"),
            ("answer", "Still 5433."),
        ],
    ),
    "a compression": (
        [
            gemini_user(1, "Which port?"),
            gemini_agent(2, "5433."),
            {"$set": {"messages": [gemini_user(90, "Staging has 5433."), gemini_agent(91, "Got it. Thanks!")]}},
            gemini_user(3, "Deploy"),
        ],
        [("typed", "Which port?"), ("answer", "5433."), ("typed", "Deploy")],
    ),
    "replies to questions": (
        [
            gemini_user(1, "Deploy"),
            gemini_agent(
                2,
                "I ask.",
                gemini_call("ask_user", {"questions": [{"question": "Where?"}]}, '{"answers":{"0":"Harbor"}}'),
                gemini_call("ask_user", {"questions": [{"question": "When?"}]}, "User dismissed ask_user dialog"),
            ),
        ],
        [("typed", "Deploy"), ("reply", "Harbor")],
    ),
    "the reason why a plan was refused": (
        [
            gemini_user(1, "Plan it"),
            gemini_agent(
                2,
                "",
                gemini_call(
                    "exit_plan_mode", {}, "Plan rejected. User feedback: too big\n\nThe plan is stored at: /p\nRevise"
                ),
            ),
        ],
        [("typed", "Plan it"), ("reason", "too big")],
    ),
    "what was rewound": (
        [
            gemini_user(1, "Which port?"),
            gemini_agent(2, "5433."),
            gemini_user(3, "Use MySQL"),
            gemini_agent(4, "Done with MySQL."),
            {"$rewindTo": "u3"},
            gemini_user(5, "Use Postgres"),
        ],
        [("typed", "Which port?"), ("answer", "5433."), ("typed", "Use Postgres")],
    ),
}


def gemini_file(folder: Path, messages: list[dict[str, Any]]) -> Path:
    head = {"sessionId": ID, "projectHash": "x", "startTime": at(0), "kind": "main"}
    return put(folder / "tmp" / "w" / "chats" / "session-1.jsonl", [head, *messages])


def test_of_each_situation_in_gemini_what_the_person_said_is_heard_and_nothing_else(folder: Path) -> None:
    heard = {}
    for name, (messages, _) in GEMINI.items():
        (session,) = gemini.read(gemini_file(folder, messages), folder)
        heard[name] = said(session)
    assert heard == {name: expected for name, (_, expected) in GEMINI.items()}


def test_a_chat_of_gemini_that_is_read_on_line_by_line_gives_what_it_gives_as_a_whole(folder: Path) -> None:
    heard, expected, parts = {}, {}, 0
    for name, (messages, _) in GEMINI.items():
        start, told = 0, {}
        for end in range(len(messages) + 1):
            if end and messages[end - 1] in AGAIN:  # written at one moment
                continue
            path = gemini_file(folder, messages[:end])
            (session,) = gemini.read(path, folder, start)
            parts += start > 0 and not session.is_torn
            if session.is_torn:
                (session,) = gemini.read(path, folder)
            start = max(start, session.settled)
            told |= {turn.id: turn for turn in session.utterances if turn.kind != "answer" or turn.offset < start}
        (session,) = gemini.read(path, folder)
        told |= {turn.id: turn for turn in session.utterances if turn.kind == "answer" and turn.offset >= start}
        heard[name] = sorted((turn.text, turn.at) for turn in told.values())
        expected[name] = sorted((turn.text, turn.at) for turn in session.utterances)
    assert heard == expected
    assert parts > 20


def test_what_was_rewound_in_gemini_is_marked(folder: Path) -> None:
    (session,) = gemini.read(gemini_file(folder, GEMINI["what was rewound"][0]), folder)
    assert [turn.text for turn in session.utterances if turn.taken_back] == ["Use MySQL", "Done with MySQL."]


def test_a_chat_of_gemini_that_goes_on_in_lines_is_read_once(folder: Path) -> None:
    path = gemini_file(folder, [gemini_user(1, "Which port?"), {"id": "x", "type": "dream", "content": ""}])
    former = path.with_suffix(".json")
    former.write_text(json.dumps({"sessionId": ID, "messages": [gemini_user(1, "Which port?")]}))
    sessions = [session for one in (former, path) for session in gemini.read(one, folder)]
    assert [said(session) for session in sessions] == [[("typed", "Which port?")]]
    assert sessions[0].unknown == {"messages of type dream": 1}


def test_a_session_of_a_former_gemini_is_one_object_and_its_folder_a_digest(folder: Path) -> None:
    digest = hashlib.sha256(b"/home/me/shop").hexdigest()
    messages = [gemini_user(1, "Where are the prices?"), gemini_agent(2, "In prices.toml.")]
    head = {"sessionId": ID, "projectHash": digest, "messages": messages}
    path = put(folder / "tmp" / digest / "chats" / "session-1.json", [head])
    (folder / "trustedFolders.json").write_text('{"/home/me/shop": "TRUST_FOLDER"}')
    (session,) = gemini.read(path, folder)
    assert (session.name, session.folder) == (ID, "/home/me/shop")
    assert said(session) == [("typed", "Where are the prices?"), ("answer", "In prices.toml.")]


# OpenCode ------------------------------------------------------------------------------------------------------------

TABLES = """
CREATE TABLE session (id text, parent_id text, directory text, title text, version text, revert text, permission text,
  time_created integer);
CREATE TABLE message (id text, session_id text, time_created integer, data text);
CREATE TABLE part (id text, message_id text, session_id text, time_created integer, data text);
"""
Part = dict[str, Any]
Message = tuple[str, dict[str, Any], list[Part]]


def opencode_user(text: str, *parts: Part, **fields: Any) -> Message:
    return "user", fields, [*([{"type": "text", "text": text}] if text else []), *parts]


def opencode_agent(text: str, *parts: Part, finish: str = "stop", **fields: Any) -> Message:
    told = {"finish": finish, "path": {"cwd": "/w/sub"}, **fields}
    return "assistant", told, [{"type": "text", "text": text}, *parts]


def opencode_tool(name: str, given: dict[str, Any], status: str = "completed", **state: Any) -> Part:
    return {"type": "tool", "tool": name, "state": {"status": status, "input": given, **state}}


class Database:
    """A database as OpenCode has it; ids and times go up."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "opencode.db"
        self.path.unlink(missing_ok=True)
        self.number = 0
        self.connection = sqlite3.connect(self.path)
        self.connection.executescript(TABLES)

    def add(self, name: str, messages: Sequence[Message], first: int = 0, **fields: Any) -> "Database":
        """Add a session; `first` is when its first message was created."""
        row = {"id": name, "directory": "/w", "version": "1.18.33", "time_created": self.number, **fields}
        marks = ", ".join("?" * len(row))
        self.connection.execute(f"INSERT INTO session ({', '.join(row)}) VALUES ({marks})", list(row.values()))
        for number, (role, info, parts) in enumerate(messages, 1):
            self.number += 1
            id, created = f"msg_{self.number:04d}", (T0 + first + number * 10) * 1000
            data = {"role": role, "time": {"created": created, "completed": created + 5000}, **info}
            self.connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (id, name, created, json.dumps(data)))
            for at_, part in enumerate(parts):
                held = (f"prt_{self.number:04d}_{at_}", id, name, created, json.dumps(part))
                self.connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", held)
        self.connection.commit()
        return self

    def read(self) -> list[Session]:
        self.connection.close()
        return list(opencode.read(self.path, self.path.parent))


SYNTHETIC = {"type": "text", "text": "The plan has been approved. Execute the plan", "synthetic": True}
OPENCODE: dict[str, tuple[list[Message], Said]] = {
    "what OpenCode adds": (
        [
            opencode_user("Fix @a.py", {"type": "text", "text": "<file>…</file>", "synthetic": True}, {"type": "file"}),
            opencode_agent("Fixed."),
            opencode_user("", SYNTHETIC),
            opencode_agent("Executed."),
            opencode_user("", {"type": "compaction", "auto": True}),
            opencode_agent("## Goal\nA summary", summary=True),
        ],
        [("typed", "Fix @a.py"), ("answer", "Fixed."), ("answer", "Executed.")],
    ),
    "words typed while the agent works": (
        [
            opencode_user("Move the runs"),
            opencode_agent("I look first.", opencode_tool("read", {}), finish="tool-calls"),
            opencode_user("keep the old names"),
            opencode_agent("Moved."),
        ],
        [("typed", "Move the runs"), ("queued", "keep the old names"), ("answer", "Moved.")],
    ),
    "replies to questions": (
        [
            opencode_user("Deploy"),
            opencode_agent(
                "I ask.",
                opencode_tool(
                    "question",
                    {"questions": [{"question": "Where?"}, {"question": "When?"}]},
                    metadata={"answers": [["Harbor"], []]},
                ),
                finish="tool-calls",
            ),
        ],
        [("typed", "Deploy"), ("reply", "Harbor")],
    ),
    "reasons of refusals": (
        [
            opencode_user("Clean up"),
            opencode_agent(
                "I delete.",
                opencode_tool(
                    "bash",
                    {},
                    "error",
                    error="The user rejected permission to use this specific tool call with the following feedback:"
                    " not b",
                ),
                opencode_tool(
                    "bash", {}, "error", error="The user rejected permission to use this specific tool call."
                ),
            ),
        ],
        [("typed", "Clean up"), ("reason", "not b")],
    ),
    "a command that comes with OpenCode": (
        [
            opencode_user(
                "You are a code reviewer. Your job is to review code changes and tell.\n\n---\n\nInput: locks\n"
            )
        ],
        [("argument", "locks")],
    ),
}


def test_of_each_situation_in_opencode_what_the_person_said_is_heard_and_nothing_else(folder: Path) -> None:
    heard = {}
    for name, (messages, _) in OPENCODE.items():
        (session,) = Database(folder).add("ses_1", messages).read()
        heard[name] = said(session)
    assert heard == {name: expected for name, (_, expected) in OPENCODE.items()}


def test_answers_of_opencode_have_the_folder_of_their_turn(folder: Path) -> None:
    (session,) = Database(folder).add("ses_1", [opencode_user("Go"), opencode_agent("Done.")]).read()
    assert [(turn.folder, turn.at) for turn in session.utterances] == [("/w", T0 + 10.0), ("/w/sub", T0 + 20.0)]
    assert session.version == "1.18.33"


def test_what_was_reverted_in_opencode_is_taken_back(folder: Path) -> None:
    messages = [
        opencode_user("Which port?"),
        opencode_agent("5433."),
        opencode_user("Use MySQL"),
        opencode_agent("Ok."),
    ]
    (session,) = Database(folder).add("ses_1", messages, revert='{"messageID":"msg_0003"}').read()
    assert [turn.text for turn in session.utterances if turn.taken_back] == ["Use MySQL", "Ok."]


def test_a_fork_of_opencode_repeats_its_origin_with_other_ids(folder: Path) -> None:
    messages = [opencode_user("Which port?"), opencode_agent("5433.")]
    made = Database(folder).add("ses_1", messages).add("ses_2", [*messages, opencode_user("And the host?")])
    first, second, third = made.add("ses_3", messages, first=900).read()
    assert (first.forked_from, second.forked_from, third.forked_from) == ("", "ses_1", "")
    assert second.utterances[0].at == first.utterances[0].at


def test_opencode_run_is_told_by_what_it_denies(folder: Path) -> None:
    denied = [
        {"permission": name, "pattern": "*", "action": "deny"} for name in ("question", "plan_enter", "plan_exit")
    ]
    made = Database(folder).add("ses_1", [opencode_user("Go")], permission=json.dumps(denied))
    made.add("ses_2", [opencode_user("Go on")], permission=json.dumps(denied[:1]))
    run, typed, below = made.add("ses_3", [opencode_user("Explore")], parent_id="ses_2").read()
    assert (run.automated, typed.automated) == ("opencode run", "")
    assert said(below) == []


# Cline ---------------------------------------------------------------------------------------------------------------


def cline_session(folder: Path, messages: Sequence[dict[str, Any]], **described: Any) -> Session:
    place = folder / "data" / "sessions" / "1"
    held = [{"id": f"m{number}", "ts": (T0 + number) * 1000, **one} for number, one in enumerate(messages)]
    put(place / "1.messages.json", [{"agent": "lead", "origin": {"version": "3.0.65"}, "messages": held}])
    put(place / "1.json", [{"cwd": "/w", "interactive": True, **described}])
    (session,) = cline.read(place / "1.messages.json", folder)
    return session


def cline_user(*blocks: Any, **fields: Any) -> dict[str, Any]:
    parts = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"role": "user", "content": parts, **fields}


def cline_agent(text: str, *tools: tuple[str, dict[str, Any]], **fields: Any) -> dict[str, Any]:
    calls = [{"type": "tool_use", "id": name, "name": name, "input": given} for name, given in tools]
    return {"role": "assistant", "content": [{"type": "text", "text": text}, *calls], **fields}


CLINE: dict[str, tuple[list[dict[str, Any]], Said]] = {
    "what Cline puts around": (
        [
            cline_user(
                "<mode_notice>The user switched from plan mode to act mode.</mode_notice>"
                '<user_input mode="act">Fix @a.py</user_input>',
                '<file_content path="a.py">\nx = 1\n</file_content>',
            ),
            cline_agent("Fixed."),
            cline_user("[TASK RESUMPTION] This task was interrupted."),
            cline_agent("I go on."),
            cline_user("Please complete the task.", metadata={"kind": "completion_reminder"}),
            cline_agent("Complete."),
            cline_agent("The model is overloaded", metadata={"displayOnly": True, "displayRole": "error"}),
            cline_user("A summary", metadata={"kind": "compaction_summary", "displayRole": "system"}),
        ],
        [("typed", "Fix @a.py"), ("answer", "Fixed."), ("answer", "I go on."), ("answer", "Complete.")],
    ),
    "what is said with a command": (
        [
            cline_user(
                '<user_command slash="team">spawn a team of agents for the following task: port it</user_command>'
            ),
            cline_user('<user_command slash="review">the locks</user_command>'),
        ],
        [("argument", "port it"), ("argument", "the locks")],
    ),
    "replies to questions": (
        [
            cline_user('<user_input mode="act">Deploy</user_input>'),
            cline_agent("I ask.", ("ask_question", {"question": "Where?", "options": ["Harbor", "Lab"]})),
            cline_user({"type": "tool_result", "tool_use_id": "ask_question", "content": "Harbor"}),
            cline_agent("Done."),
        ],
        [("typed", "Deploy"), ("reply", "Harbor"), ("answer", "Done.")],
    ),
}


def test_of_each_situation_in_cline_what_the_person_said_is_heard_and_nothing_else(folder: Path) -> None:
    heard = {name: said(cline_session(folder, messages)) for name, (messages, _) in CLINE.items()}
    assert heard == {name: expected for name, (_, expected) in CLINE.items()}


def test_cline_with_one_prompt_and_no_terminal_was_run_by_a_program(folder: Path) -> None:
    prompt = cline_user('<user_input mode="act">Deploy</user_input>')
    assert cline_session(folder, [prompt], interactive=False).automated
    assert not cline_session(folder, [prompt, prompt], interactive=False).automated
    session = cline_session(folder, [prompt, cline_user({"type": "dream"}), {"role": "oracle"}])
    assert (session.version, session.automated) == ("3.0.65", "")
    assert session.unknown == {"blocks of type dream": 1, "messages of oracle": 1}


# Times and bad input -------------------------------------------------------------------------------------------------


@each(
    ("value", "at"),
    [(1_700_000_000, 1.7e9), (1_700_000_000_000, 1.7e9), ("2023-11-14T22:13:20Z", 1.7e9), ("soon", None), (None, None)],
)
def test_a_time_is_seconds_milliseconds_or_text(value: Any, at: float | None) -> None:
    assert parse_time(value) == at


def test_damaged_files_lose_what_is_damaged_and_nothing_else(folder: Path) -> None:
    path = Rollout().prompt("Why is it slow?").answer("It sorts twice.").prompt("Fix it").put(folder)
    whole = path.read_bytes()
    cases = {
        "cut in the middle": (whole[:-40], ["Why is it slow?", "It sorts twice.", "Fix it"]),
        "bytes that are no text": (
            whole.replace(b"sorts", b"s\xffrts"),
            ["Why is it slow?", "It s�rts twice.", "Fix it"],
        ),
        "half of a character": (
            whole.replace(b"sorts", b"s\\ud83drts"),
            ["Why is it slow?", "It s�rts twice.", "Fix it"],
        ),
        "lines that are no objects": (b"[1]\nnull\n\x00\n" + whole, ["Why is it slow?", "It sorts twice.", "Fix it"]),
        "nothing": (b"", []),
    }
    heard = {}
    for name, (content, _) in cases.items():
        path.write_bytes(content)
        (session,) = codex.read(path, folder)
        heard[name] = [turn.text for turn in session.utterances]
    assert heard == {name: expected for name, (_, expected) in cases.items()}


@pytest.mark.parametrize("reader", [codex, copilot, gemini])
def test_fields_of_other_types_break_no_reader(reader: Any, folder: Path) -> None:
    odd: list[Any] = [None, 7, "x", [], {}, [None], [{"type": 1}], {"a": {}}]
    names = ["type", "payload", "data", "message", "content", "id", "timestamp", "role", "toolCalls", "source", "$set"]
    kinds = ["response_item", "event_msg", "session_meta", "user.message", "tool.execution_complete", "user", "gemini"]
    entries = [{"type": kind, name: value} for kind in kinds for name in names[1:] for value in odd]
    entries += [
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": value}} for value in odd
    ]
    entries += [{"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": value}} for value in odd]
    path = put(folder / "p" / "chats" / "rollout-x.jsonl", entries)
    assert len(list(reader.read(path, folder))) == 1
