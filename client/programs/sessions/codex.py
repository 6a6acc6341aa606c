"""Codex: `sessions/YYYY/MM/DD/rollout-*.jsonl`, a line for each item, compressed to `.jsonl.zst` after some time.

Lines are `{timestamp, type, payload}` (`codex-rs/protocol/src/protocol.rs`, `RolloutLine`). Until late 2025 each line
was the item itself, without a time; only the first line had the id and the time of the session.

A prompt is in the file twice: as an item of the model's conversation (`response_item`, role user), among items that
Codex itself adds, and as the event `user_message`. Codex writes that event for typed prompts, and for the prompt of a
review, which was not typed. So an item with an event is a prompt. In files without these events, an item is a prompt
unless it is a fragment that Codex adds (`codex-rs/core/src/context`).

Since 0.15x a rewind starts another file of the same session, named `…-SESSION_FILE`. Its header names the file that it
continues, and up to which byte (`history_base`, `codex-rs/thread-store/src/local/rollout_lineage.rs`); turns after that
are retracted. A fork refers to its origin in the same way, and does not repeat its turns.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.patterns import compile_late
from memoryd.client.programs.hooks.answering import PATCHED
from memoryd.client.programs.sessions.building import (
    HOST,
    PERSON,
    PLAN,
    SUBAGENT,
    THINKING,
    TOOLS,
    Session,
    get_object,
    get_text,
    list_objects,
    parse_time,
    read_header_and_lines,
    read_lines,
)
from memoryd.client.programs.sessions.codex_prompts import find_fragment, judge
from memoryd.client.programs.sessions.prompts import (
    ARGUMENT,
    COMMAND,
    COMPACTION,
    PEER,
    QUEUED,
    REPLY,
    TYPED,
)

# Tags around a picture (`codex-rs/protocol/src/models.rs`, `is_image_open_tag_text` …).
_PICTURE = compile_late(r"\s*(?:<image(?: name=[^>]*)?>|</image>)\s*")
_CITATION = compile_late(r"<oai-mem-citation>.*?(?:</oai-mem-citation>|\Z)", re.DOTALL)
_PROPOSED = compile_late(r"</?proposed_plan>")
_ACCEPTED = "Implement the plan."  # `PLAN_IMPLEMENTATION_CODING_MESSAGE` of the terminal
_NOTE = (
    "user_note: "  # before text that was typed next to an option (`codex-rs/tui/src/bottom_pane/request_user_input`)
)
_CWD = compile_late(r"<cwd>([^<\n]*)</cwd>|Current working directory:([^\n]*)")
_DONE = "Updated the following files"  # output of a patch that was applied
_MAX_WAITING = 10  # how many prompts an event is compared with, and how many events a prompt
_ID_CHARS = 36  # the length of the id at the end of a file's name
_FURTHER = compile_late(r"rollout-.*([0-9a-f-]{36})_([0-9a-f-]{36})\Z")  # the ids of the session and of a later file
_STARTED = compile_late(r"rollout-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)")

_LINES = frozenset(
    "session_meta response_item event_msg turn_context compacted inter_agent_communication"
    " inter_agent_communication_metadata world_state token_usage_record retained_context".split()
)
_ITEMS = frozenset(
    "message reasoning function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call"
    " web_search_call image_generation_call tool_search_call tool_search_output agent_message compaction"
    " compaction_summary context_compaction ghost_snapshot additional_tools".split()
)
_EVENTS = frozenset(
    "agent_message agent_reasoning agent_reasoning_raw_content token_count context_compacted mcp_tool_call_end"
    " exec_command_end web_search_end image_generation_end view_image_tool_call exited_review_mode"
    " sub_agent_activity error warning stream_error guardian_assessment guardian_warning undo_completed"
    " thread_name_updated dynamic_tool_call_request dynamic_tool_call_response hook_started hook_completed"
    " model_reroute collab_agent_spawn_end collab_agent_interaction_end collab_waiting_end collab_close_end"
    " collab_resume_end".split()
)


def read(path: Path, home: Path, start: int = 0) -> Iterator[Session]:
    """Yield the one session of a file, or its part from an offset on."""
    name = path.name.removesuffix(".zst")
    if name != path.name and path.with_name(name).exists():  # like Codex, prefer the uncompressed file
        return
    stem = name.removesuffix(".jsonl")
    further = _FURTHER.match(stem)
    rollout = _Rollout(Session("codex", further[1] if further else stem[-_ID_CHARS:]))
    rollout.file = further[2] if further else ""
    rollout.session.began = _find_start(path)
    for offset, line in read_header_and_lines(path, rollout.session.left_out, start):
        rollout.take(offset, line)
    rollout.end()
    session, end = rollout.session, _find_end(path, home, stem, rollout.is_in_parts)
    if end is not None:
        session.utterances[:] = [one._replace(taken_back=one.offset >= end) for one in session.utterances]
    if further:
        session.continues = [str(found) for found in _list_files(home, further[1]) if found.name != path.name]
    yield session


def _find_end(path: Path, home: Path, stem: str, is_in_parts: bool) -> int | None:
    """Return the offset from which later files of the session have retracted this one, None if it is the latest."""
    further = _FURTHER.match(stem)
    session, file = (further[1], further[2]) if further else (stem[-_ID_CHARS:], stem[-_ID_CHARS:])
    files = {_find_name(found): found for found in _list_files(home, session)} if is_in_parts else {}
    last = max(files, key=lambda name: files[name].name, default=file)
    ends: dict[str, int] = {}
    while last in files and last not in {*ends, file, session}:
        ends[last] = 0
        _, line = next(read_lines(files[last], Session("codex", "").left_out), (0, {}))
        base = get_object(get_object(line, "payload"), "history_base")
        last, end = get_text(base, "thread_id"), base.get("end_byte_offset")
        if not last or not isinstance(end, int):
            return None  # the header does not say which file it continues
        if last == file:
            return end
    return 0 if ends else None


def _find_name(path: Path) -> str:
    """Return the id by which other rollouts refer to this one."""
    return path.name.removesuffix(".zst").removesuffix(".jsonl")[-_ID_CHARS:]


def _list_files(home: Path, session: str) -> list[Path]:
    """Return all files of a session if it has more than one, else an empty list."""
    days = home / "sessions"
    for _ in ("year", "month", "day"):
        days = max((below for below in _list_folder(days)), default=days)
    with suppress(OSError):
        return list(_list_further(home, days.stat().st_mtime_ns).get(session, ()))
    return []


def _list_folder(folder: Path) -> list[Path]:
    with suppress(OSError):
        return [found for found in folder.iterdir() if found.name.isdigit()]
    return []


@lru_cache(maxsize=1)
def _list_further(home: Path, changed_at: int) -> dict[str, tuple[Path, ...]]:
    """Return the files of each session that has several.

    The result is cached until `changed_at`, the time of the day's folder, changes, as it does with each new file.
    """
    names = "rollout-*.jsonl*"
    paths = [path for below in ("sessions/*/*/*", "archived_sessions") for path in home.glob(f"{below}/{names}")]
    found: dict[str, list[Path]] = {}
    for path in paths:
        if further := _FURTHER.match(path.name.removesuffix(".zst").removesuffix(".jsonl")):
            found.setdefault(further[1], []).append(path)
    for path in paths if found else ():
        if (session := _find_name(path)) in found:
            found[session].append(path)
    return {session: tuple(sorted(files)) for session, files in found.items()}


def _find_start(path: Path) -> float:
    """Return the start of a session from the local time in its file name, else the time of the file's last change."""
    with suppress(ValueError, OverflowError):
        if found := _STARTED.match(path.name):
            return datetime.strptime(found[1], "%Y-%m-%dT%H-%M-%S").timestamp()
    return path.stat().st_mtime


class _Rollout:
    """State while a rollout is read.

    `unconfirmed` are prompts without an event so far, `unmatched` are texts of events without a prompt. `turns` has the
    number of each of the user's turns and the index of its first utterance. `file` is the id of the file that is read
    if it is a later file of the session, else empty. `is_in_parts`: the session may have several files.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.file = ""
        self.is_in_parts = False
        self.is_subagent = self.is_confirmed = self.is_commentary = self.has_context = False
        self.patches: dict[str, list[str]] = {}
        self.questions: dict[str, list[dict[str, Any]]] = {}
        self.unconfirmed: dict[int, str] = {}
        self.unmatched: list[str] = []
        self.goals: set[str] = set()
        self.turns: list[tuple[int, int]] = []
        self.turn = self.prompts = self.began_at = 0  # `began_at` is the offset in the file
        self.last_key = self.prompt_key = ""
        self.picture: tuple[float | None, str] | None = None  # a prompt whose text has not been read yet
        self.has_header = False
        self.doubt = ""  # why a program seems to run the session

    def take(self, offset: int, line: dict[str, Any]) -> None:
        """Process a line."""
        self.session.offset = offset
        self.last_key = key = f"{self.file}:{offset}" if self.file else f"{offset}"
        is_old = "payload" not in line
        item = line if is_old else get_object(line, "payload")
        kind, at = "response_item" if is_old else get_text(line, "type"), parse_time(line.get("timestamp"))
        if kind == "session_meta" or (is_old and not item.keys() & {"type", "record_type"}):
            if (
                not self.has_header
            ):  # a later header repeats this one with other settings, or is that of the session's origin
                self.has_header = True
                self._read_header(item)
        elif self.is_subagent:
            self.session.left_out[SUBAGENT] += kind == "response_item" and item.get("type") == "message"
        elif kind == "turn_context":
            self.has_context = True
            self.session.folder = get_text(item, "cwd") or self.session.folder
        elif kind == "response_item":
            self._read_item(item, at, key)
        elif kind == "event_msg":
            self._read_event(item, at, key)
        elif kind == "compacted":
            self._leave_out_summary(get_text(item, "message"))
        elif kind not in _LINES:
            self.session.unknown[kind] += 1

    def _read_header(self, head: dict[str, Any]) -> None:
        session, source = self.session, head.get("source")
        session.version = get_text(head, "cli_version")
        session.began = parse_time(head.get("timestamp")) or session.began
        session.folder = get_text(head, "cwd") or session.folder
        session.forked_from = get_text(head, "forked_from_id")
        self.is_in_parts = head.get("history_mode") == "paginated"
        self.is_subagent = "subagent" in source if isinstance(source, dict) else head.get("thread_source") == "subagent"
        if isinstance(source, dict) and "internal" in source:
            session.automated = "Codex's own work"
        elif source == "exec":
            session.automated = "codex exec"
        elif source == "mcp" or get_text(head, "thread_source") not in ("", "user"):
            self.doubt = f"{source if source == 'mcp' else head['thread_source']} with one prompt"

    def _read_item(self, item: dict[str, Any], at: float | None, key: str) -> None:
        session = self.session
        match get_text(item, "type"), get_text(item, "role"):
            case "message", "user":
                self._read_prompt(item, at, key)
            case "message", "assistant":
                self._read_answer(item, at, key)
            case "message", _:
                session.left_out[HOST] += 1
            case "agent_message", _:  # of another agent
                self._count_message(PEER)
            case "reasoning", _:
                session.left_out[THINKING] += 1
            case "function_call" | "custom_tool_call", _:
                self._read_call(item)
            case "function_call_output" | "custom_tool_call_output", _:
                session.left_out[TOOLS] += 1
                self._read_output(item, at, key)
            case kind, _ if kind not in _ITEMS and "record_type" not in item:
                session.unknown[f"response_item {kind}"] += 1

    def _read_prompt(self, item: dict[str, Any], at: float | None, key: str) -> None:
        texts = [text for part in list_objects(item, "content") if (text := get_text(part, "text"))]
        for text in () if self.has_context else texts:
            if text.lstrip().startswith("<environment_context>") and (found := _CWD.search(text)):
                self.session.folder = (found[1] or found[2] or "").strip()
        parts = [text for text in texts if not _PICTURE.fullmatch(text)]
        said = "\n".join(text for text in parts if not find_fragment(text))
        typed = judge(said or "".join(parts[:1]))
        if not parts and any(part.get("type") == "input_image" for part in list_objects(item, "content")):
            self.picture = at, key  # the text comes after it, and the line is too long to be read in full
            return
        if not typed.is_person:
            self._count_message(typed.kind)
            return
        self.prompt_key = key
        index = self._add_prompt(typed.text, at, key, QUEUED if self.prompts else TYPED)
        self.prompts += bool(self.turn)
        once = _squeeze(said)
        if any(event in once for event in self.unmatched):
            self.unmatched.clear()
            self.is_confirmed = True
        else:
            self.unconfirmed[index] = once

    def _add_prompt(self, text: str, at: float | None, key: str, kind: str, question: str = "") -> int:
        """Add an utterance of the user; return its index in the session."""
        session = self.session
        if kind == QUEUED and self.is_commentary:
            session.drop_interim()
        session.close()
        if text.strip() == _ACCEPTED:
            self._accept_plan()
        session.says(kind, text, at, key, question=question)
        index = len(session.utterances) - 1
        if kind != REPLY and (not self.turn or not self.turns or self.turns[-1][0] != self.turn):
            self.turns.append((self.turn, index))
        return index

    def _accept_plan(self) -> None:
        utterances = self.session.utterances
        if utterances and utterances[-1].who != PERSON:
            utterances[-1] = utterances[-1]._replace(kind=PLAN)

    def _count_message(self, reason: str) -> None:
        """Count a program's message; while the agent is working, it does not end the agent's answer."""
        if self.is_commentary:
            self.session.left_out[reason] += 1
        elif reason == COMMAND:
            self.session.command()
        else:
            self.session.program_says(reason)

    def _read_answer(self, item: dict[str, Any], at: float | None, key: str) -> None:
        text = "\n".join(get_text(part, "text") for part in list_objects(item, "content"))
        self.is_commentary = item.get("phase") == "commentary"
        self.session.agent_says(_PROPOSED.sub("", _CITATION.sub("", text)).strip(), at, key)

    def _leave_out_summary(self, message: str) -> None:
        """Count the agent's last answer as a summary if a compaction has kept it."""
        answer = self.session.answer
        if answer and message.rstrip().endswith(answer.rstrip()):
            self.session.drop_answer(COMPACTION)

    def _read_call(self, call: dict[str, Any]) -> None:
        id, name = get_text(call, "call_id"), call.get("name")
        self.patches[id] = _find_patched(call)
        if name in ("request_user_input", "create_goal"):
            given = _decode(get_text(call, "arguments"))
            self.questions[id] = list_objects(given, "questions")
            self.goals.add(get_text(given, "objective"))

    def _read_output(self, item: dict[str, Any], at: float | None, key: str) -> None:
        id = get_text(item, "call_id")
        patched = self.patches.pop(id, [])
        for path in patched if _DONE in str(item.get("output")) else ():
            self.session.write(path)
        if questions := self.questions.pop(id, []):
            answers = get_object(_decode(get_text(item, "output")), "answers")
            replies = [
                (get_text(asked, "question"), reply)
                for asked in questions
                if (reply := _join_replies(get_object(answers, get_text(asked, "id"))))
            ]
            if replies:
                asked_for, said = zip(*replies, strict=True)
                self._add_prompt("\n".join(said), at, key, REPLY, "\n".join(asked_for))

    def _read_event(self, event: dict[str, Any], at: float | None, key: str) -> None:
        match get_text(event, "type"):
            case "user_message":
                self._confirm(get_text(event, "message"))
            case "task_started" | "turn_started":
                self.session.close()  # the agent's next words answer another prompt
                self.turn, self.prompts = self.turn + 1, 0
                self.began_at = self.session.offset
            case "task_complete" | "turn_complete" | "turn_aborted":
                self.is_commentary, self.prompts = False, 0
            case "thread_rolled_back":
                self._retract(event.get("num_turns"))
            case "thread_goal_updated":  # the user's `/goal`, unless the agent has set the goal
                goal = get_text(get_object(event, "goal"), "objective")
                if goal and goal not in self.goals:
                    self.goals.add(goal)
                    self._add_prompt(goal, at, key, ARGUMENT)
            case "entered_review_mode":
                self._enter_review(event, at, key)
            case "thread_settings_applied":
                settings = get_object(event, "thread_settings")
                self.session.folder = get_text(settings, "cwd") or self.session.folder
            case "patch_apply_end":
                self._note_changes(event, bool(event.get("success")))
            case "item_completed":
                completed = get_object(event, "item")
                if completed.get("type") == "UserMessage":
                    texts = [get_text(part, "text") for part in list_objects(completed, "content")]
                    self._confirm("\n".join(texts))
                elif completed.get("type") == "EnteredReviewMode":
                    self._enter_review(completed, at, key)
                elif completed.get("type") == "FileChange":
                    self._note_changes(completed, completed.get("status") == "completed")
            case kind if kind not in _EVENTS:
                self.session.unknown[f"event_msg {kind}"] += 1

    def _enter_review(self, event: dict[str, Any], at: float | None, key: str) -> None:
        """Add the user's instructions for a `/review`."""
        if wanted := get_text(get_object(event, "target"), "instructions"):
            self._add_prompt(wanted, at, key, ARGUMENT)

    def _note_changes(self, changed: dict[str, Any], is_done: bool) -> None:
        for path in get_object(changed, "changes") if is_done else ():
            self.session.write(path)

    def _confirm(self, message: str) -> None:
        """Mark the last prompt with the text of this event as typed."""
        said = _squeeze(message)
        for index, text in islice(reversed(self.unconfirmed.items()), _MAX_WAITING):
            if said and (said in text or text in said):
                del self.unconfirmed[index]
                self.is_confirmed, self.picture = True, None
                return
        if said and self.picture:
            judged = judge(message)
            self._add_prompt(judged.text or message, *self.picture, QUEUED if self.prompts else TYPED)
        elif said:
            self.unmatched = [*self.unmatched[1 - _MAX_WAITING :], said]
        self.picture = None

    def _retract(self, number: Any) -> None:
        """Mark the user's last turns, with all their utterances, as retracted."""
        self.session.close()
        number = number if isinstance(number, int) else 0
        self.session.is_torn |= number > len(self.turns)
        if taken := self.turns[-number:] if number > 0 else []:
            del self.turns[-len(taken) :]
            utterances = self.session.utterances
            begin = taken[0][1]
            utterances[begin:] = [said._replace(taken_back=True) for said in utterances[begin:]]

    def end(self) -> None:
        """End the session; if any prompt has an event, drop those without one, except a prompt in the last line."""
        session = self.session
        session.close()
        session.settled = min(session.settled, self.began_at) if self.turn else session.settled
        wrong = set(self.unconfirmed) if self.is_confirmed else set()
        if self.prompt_key == self.last_key:
            wrong.discard(max(self.unconfirmed, default=-1))
        kept = [said for index, said in enumerate(session.utterances) if index not in wrong]
        if len(kept) < len(session.utterances):
            session.left_out[HOST] += len(wrong)
            session.unknown["message of the user without its event"] += len(wrong)
            session.utterances[:] = kept
        session.note_automated(self.doubt)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _decode(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _join_replies(answer: dict[str, Any]) -> str:
    answers: Iterable[Any] = answer.get("answers") or ()
    return ", ".join(text.removeprefix(_NOTE).strip() for text in answers if isinstance(text, str) and text.strip())


def _find_patched(call: dict[str, Any]) -> list[str]:
    """Return the files of a patch that was applied with the patch tool or in a shell command."""
    text = get_text(call, "input") or get_text(call, "arguments")
    if "*** Begin Patch" not in text:
        return []
    lines = text.replace("\\n", "\n") if text.lstrip().startswith("{") else text
    return [path.strip() for path in PATCHED.findall(lines)]
