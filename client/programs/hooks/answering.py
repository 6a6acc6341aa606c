"""Turn an event of a host into calls for the daemon and an answer for the agent.

The context is requested before the prompt is recorded, or it would contain the prompt. A prompt that looks as if a
program wrote it is neither answered nor recorded.

If the host writes a file for each session, the daemon gets its path and reads messages from it that events do not
include; if the call cannot be sent, the path is spooled without any texts. For other hosts, only the texts in events
are recorded; so they are with a token, since a caller with a token may not have files read.

Each tool event is a separate process, so the files that tools write are collected on disk, in a file of paths per
session, until the next answer takes them. That file is not synced, since a crash would only lose names of files.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import msgspec

from memoryd.client.patterns import compile_late
from memoryd.client.programs.hooks import hosts
from memoryd.client.programs.hooks.hosts import HOSTS, Host
from memoryd.client.programs.hooks.wire import DaemonLink
from memoryd.client.programs.sessions.prompts import clean_prompt
from memoryd.client.projects.known import take_origin
from memoryd.client.projects.project import namespace_of_environment, project_namespace, project_root
from memoryd.client.transport import paths, trust

CallFields = dict[str, Any]

DEADLINE_MS = 400  # for the search for memories about a prompt
# Events after which the session's file is read, and their meaning for the reader.
_MOMENTS = {
    hosts.START: "start",
    hosts.PROMPT: "turn",
    hosts.STOP: "turn",
    hosts.COMPACT: "turn",
    hosts.END: "end",
}
_READ = (".jsonl", ".messages.json", ".db")  # before 2026, Gemini CLI wrote `.json`, and rewrote it each time
_LOST = ("compact", "clear")  # sources of a start after which the session's context is gone
_MAX_PROMPT_CHARS = 4000
MAX_TEXT_CHARS, MAX_SESSION_CHARS = 60_000, 64  # the longest text, and name of a session, of a recorded turn
_MAX_SPEAKER_BYTES = 128
PATCHED = compile_late(r"^\*\*\* (?:(?:Add|Update) File|Move to): (.+)$", re.MULTILINE)
_MEMORY_FILES = frozenset({"CLAUDE.md", "AGENTS.md", "GEMINI.md", "MEMORY.md"})
MOST_FILES, MOST_BYTES = 100, 12_000  # written files that are recorded with one answer, and the length of their paths
_EXPIRES_AFTER_S = 7 * 86_400.0
_NAME_CHARS = 200


class EventContext(msgspec.Struct, frozen=True):
    """An event of a host, with its folder, namespace and session; `given` is the host's JSON."""

    event: str
    host: Host
    given: dict[str, Any]
    folder: str
    namespace: str
    session: str
    at: float
    agent: str

    def text(self, name: str) -> str:
        """Return a text field, empty if missing, without NUL bytes, which the daemon refuses."""
        value = self.given.get(name)
        return value.replace("\0", "") if isinstance(value, str) else ""


def read_event(event: str, agent: str, data: bytes) -> EventContext:
    """Read an event; raise msgspec's error if it is not a JSON object."""
    host, fields = HOSTS[agent], _decode(data)
    session = next((fields[name] for name in host.session if isinstance(fields.get(name), str)), "")
    folder = _folder(fields)
    return EventContext(
        event, host, fields, folder, _namespace(folder), session[:MAX_SESSION_CHARS], time.time(), agent
    )


def _decode(data: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        from memoryd.client.programs.memctl.escapes import decode_json

        return decode_json(data, dict[str, Any])


def _folder(fields: dict[str, Any]) -> str:
    roots = fields.get("workspace_roots")
    for place in (fields.get("cwd"), *(roots if isinstance(roots, list) else ())):
        if isinstance(place, str) and place.startswith("/") and "\0" not in place:
            return place
    try:
        return os.getcwd()
    except OSError:  # the current folder no longer exists
        return "/"


def _namespace(folder: str) -> str:
    """Return the namespace that the environment sets (empty with a token, which has its own), else the project's."""
    named = namespace_of_environment()
    return project_namespace(folder) if named is None else named


# The answer for the agent ------------------------------------------------------------------------------------------


def context(link: DaemonLink, event: EventContext) -> str:
    """Return the context for the agent, empty if there is none."""
    call = _build_query(event)
    if call is None or event.event not in event.host.injects:
        return ""
    if event.event == hosts.PROMPT and _is_recording_off():  # before the search, of which the daemon would keep a trace
        link.call("pause_observing", kind="session", name=event.session)
    place = {
        "namespace": event.namespace,
        "session": event.session,
        "folder": event.folder,
        "agent": event.host.title,
        "deadline_ms": DEADLINE_MS,
    }
    text = str(link.call("get_unasked", **place, **call)["text"])
    return "\n".join(filter(None, [_introduce(), _ask_origin(event), text])) if event.event == hosts.START else text


def _introduce() -> str:
    """Return the one-time privacy notice: that sessions are recorded, where, and how to turn that off."""
    folder = paths.data_folder()
    try:
        os.close(os.open(os.path.join(folder, "hooks.introduced"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:  # an earlier session has shown the notice, or there is no data folder yet
        return ""
    return (
        f"memoryd keeps what is said in sessions, on this machine alone, in {folder}. Say so to the user once:"
        " `memctl observe off` pauses that, `memctl erase` deletes for good."
    )


def _ask_origin(event: EventContext) -> str:
    """Return a note, once for each new project, about the known project that it may be.

    It is empty if the environment names a namespace.
    """
    if namespace_of_environment() is not None or not (found := take_origin(project_root(event.folder))):
        return ""
    from shlex import quote  # rarely needed

    project, origin = found
    return (
        f"memoryd knows this folder as a new project, {project['namespace']}. If it is the project {origin}, moved or"
        f" with another remote, its memories are not found here until `memctl project move {quote(origin)}` is run in"
        " this folder. Say so to the user once."
    )


def _build_query(event: EventContext) -> CallFields | None:
    if event.event == hosts.START:
        return {"fresh": event.text("source") in _LOST}
    prompt = _read_prompt(event)
    if event.event == hosts.PROMPT and prompt:
        return {"prompt": prompt[:_MAX_PROMPT_CHARS]}
    return None


def _read_prompt(event: EventContext) -> str:
    """Return the person's prompt, empty for commands to the host and texts that a program wrote."""
    prompt = event.text("prompt")
    if event.host.prompts:
        judge = import_module(f"memoryd.client.programs.sessions.{event.host.prompts}").judge
        return str(judge(prompt).text)
    return clean_prompt(prompt)


# The calls to the daemon ---------------------------------------------------------------------------------------------


def list_calls(event: EventContext) -> list[CallFields]:
    """Return the calls that must reach the daemon, now or later."""
    turns = _list_turns(event)
    if turns and _is_recording_off():
        # Without a pause a backfill, which does not know this environment, would record the session later.
        session = {"kind": "session", "name": event.session}
        return [{"method": "pause_observing", **session}] if event.event == hosts.PROMPT and event.session else []
    place = {"namespace": event.namespace, "session": event.session}
    calls: list[CallFields] = []
    if event.event in _MOMENTS and (file := find_file(event)) and not _is_recording_off():
        calls = [{"method": "listen", "agent": event.agent, **file, **place, "folder": event.folder, "turns": turns}]
        calls[0]["moment"] = "stop" if event.event == hosts.STOP and event.host.joins else _MOMENTS[event.event]
    elif turns:
        calls = [{"method": "observe", **place, "folder": event.folder, "turns": [_identify(turn) for turn in turns]}]
    if event.event == hosts.COMPACT and event.session:
        triggers = event.host.compactions
        if not triggers or event.text("trigger") in triggers:
            calls.append({"method": "reset_session", **place})
    elif event.event == hosts.END and event.session:
        take_files(event.session)  # no further answer will name them
        calls.append({"method": "end_session", **place})
    return calls


def find_file(event: EventContext) -> CallFields:
    """Return the path and size of the host's file of the session, empty if there is none that the daemon may read.

    The daemon reads only files below the host's own folder.
    """
    host, session = event.host, event.session
    (moved, default), token = host.keeps, os.environ.get("MEMORYD_TOKEN")
    if not default or not session or "/" in session or token:
        return {}
    variable, _, below = moved.partition("/")
    given = os.environ.get(variable)
    folder = (os.path.join(given, below) if given else os.path.expanduser(f"~/{default}")).rstrip("/")
    path = event.text("transcript_path") or (host.file and f"{folder}/{host.file.format(session)}")
    if not path.startswith((f"{folder}/", f"{os.path.realpath(folder)}/")) or not path.endswith(_READ):
        return {}
    try:
        size = os.lstat(path).st_size
    except OSError:  # the host has not created it yet
        size = 0
    return {"file": path, "size": size, "at": event.at}


def _list_turns(event: EventContext) -> list[CallFields]:
    """Return the turn that the event reports, if any."""
    if event.event not in (hosts.PROMPT, hosts.STOP):
        return []
    is_prompt = event.event == hosts.PROMPT
    text = _read_prompt(event) if is_prompt else event.text(event.host.message)
    if not text.strip():
        return []
    turn: CallFields = {"role": "user" if is_prompt else "assistant", "content": text[:MAX_TEXT_CHARS]}
    turn["created_at"] = event.at
    if is_prompt and (speaker := find_speaker()):
        turn["speaker"] = speaker
    if not is_prompt and (files := take_files(event.session)):
        turn["files"] = files
    return [turn]


def _identify(turn: CallFields) -> CallFields:
    """Return a turn with an id, by which the daemon recognises it when it is sent again."""
    if os.environ.get("MEMORYD_TOKEN"):  # callers with a token may not choose ids
        return turn
    return {**turn, "id": os.urandom(16).hex()}


def _is_recording_off() -> bool:
    """Return whether the environment turns recording off for the session."""
    return os.environ.get("MEMORYD_OBSERVE", "").strip().lower() in ("off", "0", "no", "false")


def find_speaker() -> str:
    """Return the user's name, empty if it is not known."""
    name = os.environ.get("USER", "")
    return name if name.isprintable() and len(name.encode(errors="replace")) <= _MAX_SPEAKER_BYTES else ""


# Files ---------------------------------------------------------------------------------------------------------------


def list_edited(event: EventContext) -> list[str]:
    """Return the files that a tool wrote, as absolute paths."""
    if event.event != hosts.TOOL:
        return []
    given = event.given.get("tool_input")
    given = given if isinstance(given, dict) else {}
    patch = given.get("command")
    named = [given.get("file_path"), given.get("path"), event.given.get("file_path")]
    named += PATCHED.findall(patch) if isinstance(patch, str) else []
    paths = [os.path.normpath(os.path.join(event.folder, path)) for path in named if isinstance(path, str) and path]
    return [path for path in paths if "\0" not in path]


def list_written(event: EventContext) -> list[str]:
    """Return the memory files that a tool wrote, as absolute paths."""
    return [path for path in list_edited(event) if _is_memory(path)]


def _is_memory(path: str) -> bool:
    folder, name = os.path.split(path)
    return name in _MEMORY_FILES or (name.endswith(".md") and "memory" in folder.split("/"))


def note_files(session: str, files: Iterable[str]) -> None:
    """Add files that a tool wrote to the session's list, unless recording is off.

    Raise `Untrusted` if the data folder belongs to another user.
    """
    named = [path for path in files if is_path(path)]
    if not session or not named or _is_recording_off():
        return
    folder = paths.data_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    trust.check_data_folder(folder)
    os.makedirs(_files_folder(), mode=0o700, exist_ok=True)
    number = os.open(_files_path(session), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        os.write(number, "".join(f"{path}\n" for path in named).encode(errors="surrogateescape"))
    finally:
        os.close(number)


def take_files(session: str) -> list[str]:
    """Return the files that a session wrote since the last call, each once, and delete the list."""
    where = _files_path(session)
    taken = f"{where}.{os.getpid()}"
    try:
        os.rename(where, taken)
        with open(taken, "rb") as file:
            lines = file.read().decode(errors="replace").splitlines()
        os.unlink(taken)
    except OSError:  # there is no list
        return []
    found: list[str] = []
    size = 0
    for path in dict.fromkeys(lines):
        size += len(path.encode())
        if len(found) < MOST_FILES and size <= MOST_BYTES and is_path(path):
            found.append(path)
    return found


def list_noted() -> Iterator[tuple[str, str, str]]:
    """Yield the lists that no answer has taken yet: path of the list, session, content."""
    with suppress(FileNotFoundError):
        for entry in os.scandir(_files_folder()):
            with suppress(OSError, ValueError):  # an answer has just taken it, or the file is not one of ours
                session = bytes.fromhex(entry.name.partition(".")[0]).decode(errors="replace")
                with open(entry.path, encoding="utf-8", errors="replace") as file:
                    yield entry.path, session, file.read()


def forget_files() -> None:
    """Delete old lists of sessions that ended without an answer."""
    with suppress(OSError):
        for entry in os.scandir(_files_folder()):
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > _EXPIRES_AFTER_S:
                os.unlink(entry.path)


def is_path(path: str) -> bool:
    """Return whether a path can be recorded."""
    return path.isprintable() and bool(path.strip())


def _files_folder() -> str:
    return os.path.join(paths.data_folder(), "hooks.files")


def _files_path(session: str) -> str:
    """Return the file of a session. Its name is not a hash, because importing hashlib takes three milliseconds."""
    return os.path.join(_files_folder(), session.encode(errors="replace").hex()[:_NAME_CHARS])
