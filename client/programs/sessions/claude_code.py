"""Claude Code: `projects/*/*.jsonl`, one line for each part of a message. Subagents have separate lines or files.

The elements, sentences and fields listed here are those in version 2.1.332 of the package `@anthropic-ai/claude-code`;
those of older versions (2.0 to 2.1.218) were found in their transcripts. The elements are not documented; of the fields
the page on hooks (https://code.claude.com/docs/en/hooks) documents `prompt`, `session_id`, `transcript_path` and `cwd`.

The person's words are in six places: user entries; attachments `queued_command` (typed while the agent worked, since
2.1.60); texts next to a `tool_result` (the same, before 2.1.41); `queue-operation` lines alone (the same, before
2.1.60); results of AskUserQuestion; and results of tools, or of ExitPlanMode, that were refused with a reason.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.client.patterns import compile_late
from memoryd.client.programs.sessions.branches import Branches
from memoryd.client.programs.sessions.building import (
    SUBAGENT,
    THINKING,
    TOOLS,
    Session,
    get_object,
    get_text,
    list_objects,
    parse_time,
    read_lines,
)
from memoryd.client.programs.sessions.claude_code_prompts import FIRST, judge, judge_plan
from memoryd.client.programs.sessions.prompts import (
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
    SYNTHETIC,
    TYPED,
)

_WRITES = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}

_REFUSED = ("The user doesn't want to proceed with this tool use.", "Permission for this tool use was denied.")
_REASON = compile_late(r"(?:To tell you how to proceed, the user|The user) said:\n(.*)\Z", re.DOTALL)
_REASON_NOTE = "\n\nNote: The user's next message may contain a correction or preference."
_CLARIFY = "The user wants to clarify these questions."  # a text of the program; nothing was typed
_ACCEPTED = "User has approved your plan."
_TYPES = frozenset(  # of entries without messages
    "agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-resumed api-request-shape"
    " artifact-autoreact-ledger artifact-comment-monitor atis-latch attachment attribution-snapshot bridge-session"
    " content-replacement continued-in cost-state custom-title data-flow-incomplete data-flow-records derived-from"
    " dev-mods ended-by-model file-history-delta file-history-snapshot fork-context-ref frame-link history-suppression"
    " hybrid-organization isolation-latch last-prompt memory-mode mode observer-ref permission-mode pr-link progress"
    " queue-operation relocated repl-mode resume-head-vouch session-owner summary system tag tools-used"
    " worktree-state".split()
)
_BLOCKS = frozenset(
    "text image document tool_use tool_result thinking redacted_thinking server_tool_use web_search_tool_result"
    " tool_reference fallback connector_text".split()
)
# The author of a prompt according to its entry (`origin`, since 2.1.200); for a person `human` or missing.
_ORIGINS = {"task-notification": NOTICE, "auto-continuation": HANDED_PLAN, "plugin": NOTICE, "voice-call": NOTICE}
_PERSONS = ("", "human", "unclassified")
_TURNS = {  # origin of the turn (`turnOrigin`, since 2.1.300), if not a person
    "scheduled": NOTICE,
    "task_notification": NOTICE,
    "host_synthetic": NOTICE,
    "system": NOTICE,
    "peer": PEER,
}
_PROGRAMS = ("sdk-cli", "sdk-py", "sdk-ts", "claude-code-github-action")
_OBSERVERS = compile_late(r"[/-]\.?claude-mem[/-]observer")  # the folder of the observer of the plugin claude-mem
_OBSERVES = ("You are a Claude-Mem,", "Hello memory agent, you are continuing to observe the primary Claude session")


# A session -----------------------------------------------------------------------------------------------------------


def read(path: Path, home: Path, start: int = 0) -> Iterator[Session]:
    """Yield the session of a file, read from an offset on."""
    reading = _Reading(Session("claude-code", path.stem))
    for offset, entry in read_lines(path, reading.session.left_out, start):
        reading.take(offset, entry)
    yield reading.end(bool(start))


class _Reading:
    """Reads the entries of a session in order."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.branches = Branches(session)
        self.queue: list[tuple[str, float | None, int]] = []  # queued prompts: text, time, offset
        self.only_queued: dict[str, str] = {}  # text -> id of utterances found only in the queue so far
        self.said: set[str] = set()  # texts of attachments typed while the agent worked
        self.writes: dict[str, tuple[Any, str]] = {}  # id of a tool call -> file that it writes, and folder
        self.is_working = False  # whether the agent has called a tool after its last message
        self.entry_points: set[str] = set()
        self.keys: Counter[str] = Counter()  # utterances per entry

    def take(self, offset: int, entry: dict[str, Any]) -> None:
        """Process one entry."""
        session, kind = self.session, get_text(entry, "type")
        session.offset = offset
        session.version = get_text(entry, "version") or session.version
        session.folder = session.folder or get_text(entry, "cwd")
        origin = get_text(get_object(entry, "forkedFrom"), "sessionId") or get_text(entry, "requestSessionId")
        if origin not in ("", session.name):
            session.forked_from = origin
        if kind == "queue-operation":
            self._take_queued(entry)
            return
        if entry.get("isSidechain"):
            session.left_out[SUBAGENT] += kind in ("user", "assistant")
            return
        if not self.branches.add(entry):  # a resumed session repeats its lines
            return
        if kind == "worktree-state" and (made := get_object(entry, "worktreeSession")):
            session.worktrees[get_text(made, "worktreePath")] = get_text(made, "originalCwd")
        elif kind == "user":
            self._take_user(entry)
        elif kind == "assistant":
            self._take_answer(entry)
        elif kind == "attachment" and get_object(entry, "attachment").get("type") == "queued_command":
            self._take_attached(entry)
        elif kind not in _TYPES:
            session.unknown[f"entries of type {kind[:40]}"] += 1

    def end(self, is_part: bool) -> Session:
        """Return the session after the last entry; `is_part`: the file was not read from its beginning."""
        session = self.session
        session.close()
        self.branches.mark(is_part)
        session.settled = min([session.settled, *(offset for _, _, offset in self.queue)])
        session.automated = _find_automated(session, self.entry_points)
        return session

    # The person ------------------------------------------------------------------------------------------------------

    def _take_user(self, entry: dict[str, Any]) -> None:
        message = get_object(entry, "message")
        blocks = list_objects(message, "content")
        self._count_unknown(blocks)
        if entry_point := get_text(entry, "entrypoint"):
            self.entry_points.add(entry_point)
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            self._take_result(entry, block)
        texts = [get_text(message, "content"), *(get_text(block, "text") for block in blocks)]
        texts = [text for text in texts if text.strip()]
        if program := _find_program(entry):
            self._take_program(program, bool(entry.get("isMeta")))
        elif texts:
            self._take_prompt(entry, texts, QUEUED if results or entry.get("promptSource") == "queued" else TYPED)

    def _take_prompt(self, entry: dict[str, Any], texts: list[str], kind: str) -> None:
        """Add a prompt of one or more texts, some of which may be a program's."""
        is_plan = get_text(entry, "planContent") or _find_origin(entry) == "auto-continuation"
        judged = [judge_plan(text) if is_plan else judge(text) for text in texts]
        said = [one for one in judged if one.is_person]
        if not said:
            self._take_program(judged[0].kind, judged[0].kind == COMMAND)
            return
        for one, text in zip(judged, texts, strict=True):
            if (found := FIRST.match(one.text)) and f"</{found[1]}>" in text:
                self.session.unknown[f"prompts that begin with <{found[1][:40]}>"] += 1
        kind = said[0].kind if said[0].kind != TYPED else kind
        text = "\n".join(one.text for one in said)
        self._say(kind, text, parse_time(entry.get("timestamp")), self._make_key(entry), get_text(entry, "cwd"))
        self.branches.note_prompt(entry)

    def _take_program(self, kind: str, is_beside: bool) -> None:
        """Count a text of a program.

        A side text (`is_beside`: commands, skills, output of hooks) is answered only if the agent was finished.
        """
        session = self.session
        if not is_beside and kind not in (CONTEXT, SYNTHETIC):
            session.program_says(kind)
        elif session.is_answered and not self.is_working:
            (session.program_says if kind == FEEDBACK else session.command)(kind)
        else:
            session.left_out[kind] += 1
        self.is_working = False

    def _take_attached(self, entry: dict[str, Any]) -> None:
        """Add a prompt that the person or a program queued while the agent worked."""
        attached = get_object(entry, "attachment")
        texts = [get_text(attached, "prompt"), *(get_text(one, "text") for one in list_objects(attached, "prompt"))]
        texts = [text for text in texts if text.strip()]
        origin = get_text(get_object(attached, "origin"), "kind")
        if attached.get("commandMode", "prompt") != "prompt" or attached.get("isMeta") or origin not in _PERSONS:
            self.session.program_says(_ORIGINS.get(origin, NOTICE if not origin else PEER))
        elif texts:
            self._take_prompt(entry, texts, QUEUED)

    def _say(self, kind: str, text: str, at: float | None, key: str, folder: str) -> None:
        """Add a message of the person; it replaces an utterance that was found only in the queue."""
        if kind == QUEUED:
            if self.is_working:
                self.session.drop_interim()
            self.said.add(text)
            if id := self.only_queued.pop(text, None):
                self.session.utterances = [said for said in self.session.utterances if said.id != id]
        self.session.says(kind, text, at, key, folder)
        self.is_working = False

    def _take_queued(self, entry: dict[str, Any]) -> None:
        """Follow the queue of prompts: `remove` means that a prompt was sent, `popAll` that all are edited again.

        Before 2.1.60 a prompt from the queue has no other entry; later versions also write an attachment.
        """
        text, at = get_text(entry, "content"), parse_time(entry.get("timestamp"))
        match entry.get("operation"):
            case "enqueue":
                self.queue.append((text, at, self.session.offset))
            case "popAll":
                self.queue.clear()
            case "dequeue":  # the prompt follows as an entry of its own
                self._take_from_queue(text)
            case "remove":
                text, at, self.session.offset = self._take_from_queue(text)
                judged = judge(text)
                if not judged.is_person or text.lstrip().startswith("{"):  # a task that ended, as JSON
                    self.session.left_out[NOTICE] += 1
                elif judged.text not in self.said:
                    if self.is_working:
                        self.session.drop_interim()
                    key = f"queue\0{at}\0{text}"
                    self.only_queued[judged.text] = self.session.says(QUEUED, judged.text, at, key).id

    def _take_from_queue(self, text: str) -> tuple[str, float | None, int]:
        """Remove the first prompt from the queue, or the one with this text."""
        at = next((number for number, one in enumerate(self.queue) if one[0] == text), 0) if text else 0
        return self.queue.pop(at) if self.queue else (text, None, self.session.offset)

    def _take_result(self, entry: dict[str, Any], block: dict[str, Any]) -> None:
        """Add the person's words in the result of a tool: a reply, the reason for a refusal, an accepted plan."""
        session = self.session
        session.left_out[TOOLS] += 1
        result = entry.get("toolUseResult")
        written = self.writes.pop(get_text(block, "tool_use_id"), None)
        text = get_text(block, "content") or "\n".join(get_text(one, "text") for one in list_objects(block, "content"))
        at, folder = parse_time(entry.get("timestamp")), get_text(entry, "cwd")
        if block.get("is_error"):
            if reason := _find_reason(text):
                session.says(REASON, reason, at, self._make_key(entry), folder)
        elif written:
            session.write(*written)
        elif pairs := _list_replies(result):
            question = pairs[0][0] if len(pairs) == 1 else ""
            replied = pairs[0][1] if question else "\n".join(f"{asked}\n{reply}" for asked, reply in pairs)
            session.says(REPLY, replied, at, self._make_key(entry), folder, question)
        elif text.startswith(_ACCEPTED) and (plan := get_text(result, "plan")):
            session.agent_plans(plan, at, self._make_key(entry), folder)

    def _make_key(self, entry: dict[str, Any]) -> str:
        """Return the key of an utterance: the entry's id (or its offset), with a number from the second one on."""
        key = get_text(entry, "uuid") or f"{self.session.offset}"
        self.keys[key] += 1
        return key if self.keys[key] == 1 else f"{key}\0{self.keys[key]}"

    # Of the agent ----------------------------------------------------------------------------------------------------

    def _take_answer(self, entry: dict[str, Any]) -> None:
        session, message, folder = self.session, get_object(entry, "message"), get_text(entry, "cwd")
        blocks = list_objects(message, "content")
        self._count_unknown(blocks)
        for block in blocks:
            if block.get("type") in ("thinking", "redacted_thinking"):
                session.left_out[THINKING] += 1
            elif block.get("type") == "tool_use":
                self.is_working = True
                if field := _WRITES.get(get_text(block, "name")):
                    self.writes[get_text(block, "id")] = get_object(block, "input").get(field), folder
        texts = [get_text(message, "content"), *(get_text(one, "text") for one in blocks if one.get("type") == "text")]
        if entry.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            session.left_out[SYNTHETIC] += 1
        else:
            text = "\n".join(text for text in texts if text)
            if text.strip():
                self.is_working = any(block.get("type") == "tool_use" for block in blocks)
            session.agent_says(text, parse_time(entry.get("timestamp")), self._make_key(entry), folder)

    # Unknown kinds ---------------------------------------------------------------------------------------------------

    def _count_unknown(self, blocks: list[dict[str, Any]]) -> None:
        for block in blocks:
            kind = get_text(block, "type")
            if kind not in _BLOCKS:
                self.session.unknown[f"parts of type {kind[:40]}"] += 1


def _find_program(entry: dict[str, Any]) -> str:
    """Return the kind of an entry that a program wrote, by its fields; empty if it may be a person's prompt."""
    origin = _find_origin(entry)
    if entry.get("isCompactSummary"):
        return COMPACTION
    if entry.get("wakeupSource") or entry.get("scheduledTaskId"):
        return NOTICE
    if (
        origin not in _PERSONS and origin != "auto-continuation"
    ):  # such an entry may have the person's remarks on a plan
        return _ORIGINS.get(origin, PEER)
    if entry.get("isMeta") or entry.get("isVisibleInTranscriptOnly") or entry.get("isVirtual"):
        text = get_text(get_object(entry, "message"), "content").lstrip()
        return FEEDBACK if text.partition("\n")[0].endswith(" hook feedback:") else COMMAND
    if entry.get("promptSource") == "system" or entry.get("textNotTyped"):
        return NOTICE
    return _TURNS.get(get_text(entry, "turnOrigin"), "")


def _find_origin(entry: dict[str, Any]) -> str:
    return get_text(get_object(entry, "origin"), "kind")


def _find_reason(text: str) -> str:
    """Return the person's reason for refusing a tool, empty if there is none."""
    found = _REASON.search(text) if text.startswith(_REFUSED) else None
    reason = found[1].partition(_REASON_NOTE)[0].strip() if found else ""
    return "" if reason.startswith(_CLARIFY) else reason


def _list_replies(result: Any) -> list[tuple[str, str]]:
    """Return the questions that the person answered, each with the reply and the note on it.

    If there was no answer in time (`afkTimeoutMs`), the program answers the questions itself.
    """
    answers = get_object(result, "answers")
    if not list_objects(result, "questions") or result.get("afkTimeoutMs"):
        return []
    notes = get_object(result, "annotations")
    pairs = []
    for asked, given in answers.items():
        replied = ", ".join(map(str, given)) if isinstance(given, list) else str(given)
        parts = [part.strip() for part in (replied, get_text(notes.get(asked), "notes")) if part.strip()]
        if parts:
            pairs.append((asked.strip(), "\n".join(parts)))
    return pairs


def _find_automated(session: Session, entry_points: set[str]) -> str:
    """Return the evidence, two signs, that a program ran a session; empty if a person may have typed in it."""
    prompts = [said for said in session.utterances if said.role == "user"]
    entry_point = next(iter(entry_points), "") if len(entry_points) == 1 else ""
    if not prompts and session.left_out[PEER]:
        return "prompts of other agents alone"
    if entry_point not in _PROGRAMS:
        return ""
    if _OBSERVERS.search(session.folder):
        return f"{entry_point} in the folder of an observer"
    if prompts and prompts[0].text.startswith(_OBSERVES):
        return f"{entry_point} with the prompt of an observer"
    return f"{entry_point} with one prompt" if len(prompts) <= 1 and entry_point != "sdk-ts" else ""
