"""Copilot CLI: `session-state/*/events.jsonl`, a line for each event of a session.

Its events are described in `@github/copilot-sdk` (`dist/generated/session-events.d.ts`); the sentences that its tools
return to the agent are those of `@github/copilot` 1.0.4 to 1.0.102. A rewind removes the retracted events.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.client.patterns import compile_late
from memoryd.client.programs.sessions.building import (
    SUBAGENT,
    THINKING,
    TOOLS,
    Session,
    get_object,
    get_text,
    list_objects,
    parse_time,
    read_header_and_lines,
)
from memoryd.client.programs.sessions.copilot_prompts import judge
from memoryd.client.programs.sessions.prompts import (
    COMMAND,
    COMPACTION,
    CONTEXT,
    FEEDBACK,
    NOTICE,
    PEER,
    QUEUED,
    REASON,
    REPLY,
    SYNTHETIC,
    TYPED,
)

_WRITES = ("create", "edit")
_TYPED = ("", "user")  # `source` of a `user.message` that the user wrote
# Beginnings of the `source` of a `user.message` that a program wrote.
_SOURCES = {
    "agent-": PEER,
    "skill": COMMAND,
    "command": COMMAND,
    "system": NOTICE,
    "schedule": NOTICE,
    "autopilot": SYNTHETIC,
    "thinking-exhausted-continuation": SYNTHETIC,
    "snippy-blocking": NOTICE,
    "jit-instruction": CONTEXT,
    "immediate-prompt": NOTICE,
    "hook": FEEDBACK,
}
_REPLIED = compile_late(r"User (?:selected|responded): (.*)", re.DOTALL)
_NOBODY = "The user is not available to respond and will review your work later."  # Copilot's reply in autopilot mode
# Beginning of a refusal with the user's reason, and the sentence that Copilot adds at its end.
_REFUSALS = {
    "The user rejected this tool call. User feedback: ": ".",
    "Plan not approved. User feedback:": "Please update the plan based on this feedback and try again.",
}
_APPROVED = "Plan approved"
_KINDS = ("session.", "assistant.", "hook.", "tool.", "subagent.", "permission.", "skill.", "model.", "factory.")
_EVENTS = frozenset(
    "abort system.message user_input.requested user_input.completed tool_search.activated"
    " human_response.recorded".split()
)


def read(path: Path, home: Path, start: int = 0) -> Iterator[Session]:
    """Yield the one session of a file, or its part from an offset on."""
    reading = _Reading(Session("copilot", path.parent.name))
    for offset, event in read_header_and_lines(path, reading.session.left_out, start):
        reading.take(offset, event)
    reading.end()
    yield reading.session


class _Reading:
    """State while the events of a session are read.

    `calls` are unfinished tool calls: name, arguments and offset in the file. `is_working`: tools were called after the
    agent's last text. `forms` has the values of forms that the user filled in, by the id of the agent's call.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.calls: dict[str, tuple[str, dict[str, Any], int]] = {}
        self.forms: dict[str, dict[str, Any]] = {}
        self.is_working = False

    def take(self, offset: int, event: dict[str, Any]) -> None:
        """Process an event; one of a subagent has an `agentId`, or the id of the call that started it."""
        session, kind, data = self.session, get_text(event, "type"), get_object(event, "data")
        session.offset = offset
        at, key = parse_time(event.get("timestamp")), get_text(event, "id")
        source = get_text(data, "source")
        if (event.get("agentId") or data.get("parentToolCallId")) and not kind.startswith("session."):
            session.left_out[SUBAGENT] += kind.endswith(".message")
        elif kind in ("session.start", "session.resume", "session.context_changed"):
            self._read_header(data)
        elif kind == "user.message" and source in _TYPED and not data.get("isAutopilotContinuation"):
            self._read_prompt(data, at, key)
        elif kind == "user.message":
            self._count_message(next((of for begin, of in _SOURCES.items() if source.startswith(begin)), NOTICE))
            if source and not source.startswith(tuple(_SOURCES)):
                session.unknown[f"messages of {source[:40]}"] += 1
        elif kind == "assistant.message":
            if text := get_text(data, "content"):
                session.agent_says(text, at, key)
                self.is_working = False
            self.is_working |= bool(list_objects(data, "toolRequests"))
        elif kind == "assistant.reasoning":
            session.left_out[THINKING] += 1
        elif kind == "system.notification":
            self._count_message(NOTICE)
        elif kind == "tool.execution_start":
            self.calls[get_text(data, "toolCallId")] = get_text(data, "toolName"), get_object(data, "arguments"), offset
        elif kind == "human_response.recorded":
            self.forms[get_text(data, "toolCallId")] = get_object(data, "response")
        elif kind == "tool.execution_complete":
            self._read_result(data, at, key)
        elif kind == "session.compaction_complete":
            session.left_out[COMPACTION] += 1
        elif not kind.startswith(_KINDS) and kind not in _EVENTS:
            session.unknown[f"events of type {kind[:40]}"] += 1

    def _read_header(self, data: dict[str, Any]) -> None:
        session = self.session
        session.folder = get_text(get_object(data, "context"), "cwd") or get_text(data, "cwd") or session.folder
        session.version = get_text(data, "copilotVersion") or session.version
        session.began = session.began or parse_time(data.get("startTime"))

    def _read_prompt(self, data: dict[str, Any], at: float | None, key: str) -> None:
        judged = judge(get_text(data, "content"))
        if not judged.is_person:
            self._count_message(judged.kind)
            return
        is_queued = get_text(data, "delivery") in ("steering", "queued")
        self._add_message(judged.text, at, key, QUEUED if is_queued and judged.kind == TYPED else judged.kind)

    def _add_message(self, text: str, at: float | None, key: str, kind: str, question: str = "") -> None:
        if kind in (QUEUED, REPLY, REASON) and self.is_working:
            self.session.drop_interim()
        self.session.says(kind, text, at, key, question=question)
        self.is_working = False

    def _count_message(self, reason: str) -> None:
        """Count a program's message; while the agent is working, it does not end the agent's answer."""
        if self.is_working:
            self.session.left_out[reason] += 1
        else:
            self.session.program_says(reason)

    def _read_result(self, data: dict[str, Any], at: float | None, key: str) -> None:
        session = self.session
        session.left_out[TOOLS] += 1
        id = get_text(data, "toolCallId")
        name, given, _ = self.calls.pop(id, ("", {}, 0))
        form = self.forms.pop(id, {})
        output = get_text(get_object(data, "result"), "content") or get_text(get_object(data, "error"), "message")
        if name in _WRITES and data.get("success"):
            for path in [edit.get("path") for edit in list_objects(data, "fileEdits")] or [given.get("path")]:
                session.write(path)
        elif name == "ask_user" and (replies := _list_replies(form)):
            self._add_message("\n".join(replies), at, key, REPLY, get_text(form, "message"))
        elif name == "ask_user" and (found := _REPLIED.match(output)) and not found[1].startswith(_NOBODY):
            question = get_text(given, "question") or get_text(given, "message")
            self._add_message(found[1].strip(), at, key, REPLY, question)
        elif name == "exit_plan_mode" and output.startswith(_APPROVED) and (plan := get_text(given, "summary")):
            session.agent_plans(plan, at, key)
        for begin, end in _REFUSALS.items():
            if output.startswith(begin) and (reason := output.removeprefix(begin).strip().removesuffix(end).strip()):
                self._add_message(reason, at, key, REASON)

    def end(self) -> None:
        """End the session."""
        self.session.close()
        asking = [begun for name, _, begun in self.calls.values() if name in ("ask_user", "exit_plan_mode")]
        self.session.settled = min([self.session.settled, *asking])
        self.session.note_automated()


def _list_replies(form: dict[str, Any]) -> list[str]:
    """Return the values of a form, with the titles of the fields if there are several."""
    fields = get_object(get_object(form, "requestedSchema"), "properties")
    filled = {name: held for name, held in get_object(form, "content").items() if held not in ("", None, [])}
    texts = {name: ", ".join(map(str, held)) if isinstance(held, list) else f"{held}" for name, held in filled.items()}
    if len(texts) < 2:
        return list(texts.values())
    return [f"{get_text(get_object(fields, name), 'title') or name}: {text}" for name, text in texts.items()]
