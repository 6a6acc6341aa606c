"""What hooks could not send to the daemon: one line of JSON per call, in order, sent when it answers again.

One file of mode 0600 beside the database. Its lock is held to append a line and to take out lines, never while the
daemon is asked: a daemon that hangs delays no other hook. A turn has its id and time from the moment it was said, so
what is sent twice (a hook killed between sending and taking out) is taken once. Where the host keeps a file of the
session, a line says that there is something to read in it, and holds no words.

A call that comes first and gets no answer goes behind the others, so that it does not keep them from being sent. A call
that the daemon refuses for good, a line that no hook wrote and a call for which there is no room (over `MAX_BYTES`) are
dropped; each adds a line without content to the file `dropped_path`, which `hooks status` and doctor count.
"""

import fcntl
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from memoryd.client.programs.hooks.answering import list_noted
from memoryd.client.programs.hooks.wire import CallRefused, DaemonLink, Silent
from memoryd.client.transport import paths, trust

if TYPE_CHECKING:
    from memoryd.client.text_match import Wording

MAX_BYTES = 16 * 1024 * 1024
METHODS = ("observe", "listen", "end_session", "reset_session", "pause_observing")  # of calls that hooks spool
# What the daemon will refuse again, however often it is asked.
_FOR_GOOD = frozenset({"invalid", "not_found", "forbidden", "bad_frame", "unknown_method"})


def path() -> str:
    """Return where the spool is."""
    return os.path.join(paths.data_folder(), "hooks.spool")


def dropped_path() -> str:
    """Return the file with a line for each call that was dropped: when, its method, and why."""
    return os.path.join(paths.data_folder(), "hooks.dropped")


def append(call: dict[str, Any]) -> bool:
    """Keep a call for later, without private passages and credentials; say whether there was room.

    What the file of a session will have is left out of it. It is on disk when this returns. Raise `Untrusted` where the
    folder or the spool belongs to another user.
    """
    from memoryd.client.credentials import redact_tree  # its rules take 10 ms to read
    from memoryd.client.credentials.private import cut_private_tree

    if call["method"] == "listen":
        call = {**call, "turns": []}
    folder = os.path.dirname(path())
    os.makedirs(folder, mode=0o700, exist_ok=True)
    trust.check_data_folder(folder)
    has_room = _add(path(), msgspec.json.encode(redact_tree(cut_private_tree(call, Counter()), Counter())) + b"\n")
    if not has_room:
        _note_dropped(call["method"], "the spool is full")
    return has_room


def _note_dropped(method: str, reason: str) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    _add(dropped_path(), f"{at} {method}: {reason}\n".encode())


def _add(where: str, line: bytes) -> bool:
    """Put a line at the end of a file; say whether there was room. It is on disk when this returns."""
    with _lock(where, os.O_RDWR | os.O_CREAT) as file:
        size = os.fstat(file).st_size
        if size + len(line) > MAX_BYTES:
            return False
        if size and os.pread(file, 1, size - 1) != b"\n":
            line = b"\n" + line  # whoever wrote there last was killed half-way
        os.pwrite(file, line, size)
        os.fdatasync(file)
    return True


def count_waiting() -> int:
    """Return how many calls wait."""
    return _read(path()).count(b"\n")


def count_dropped() -> int:
    """Return how many calls were dropped."""
    return _read(dropped_path()).count(b"\n")


# Sending -------------------------------------------------------------------------------------------------------------


def replay(link: DaemonLink, until: float) -> int:
    """Send what waits, oldest first, to a moment of the monotonic clock; what the daemon has is taken out.

    Return how many calls were sent. While one hook sends another leaves it to that one.
    """
    if not _size(path()):
        return 0
    sending = os.path.join(paths.data_folder(), "hooks.sending")
    try:
        with _lock(sending, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return _send_waiting(link, until)
    except BlockingIOError:
        return 0


def _send_waiting(link: DaemonLink, until: float) -> int:
    data, done, sent, unanswered = _read(path()), 0, 0, b""
    try:
        for line in data.splitlines(keepends=True):
            if time.monotonic() > until:
                break
            call = _decode(line)
            if call is None or call.get("method") not in METHODS or "self" in call:
                _note_dropped("line", "no call of a hook")
            else:
                try:
                    if not _send(link, call):
                        break
                    sent += 1
                except Silent:
                    unanswered = b"" if done else line  # what is sent before it stays before it, if a daemon ends
                    break
            done += len(line)
    finally:
        _take_out(data[: done + len(unanswered)], unanswered)
    return sent


def _decode(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, None for what is none, as half of one."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def send_call(link: DaemonLink, call: dict[str, Any]) -> bool:
    """Send a call; say whether it is done with: taken, or dropped as the daemon will never take it."""
    try:
        return _send(link, call)
    except Silent:
        return False


def _send(link: DaemonLink, call: dict[str, Any]) -> bool:
    """Send a call; return False where the daemon takes none now. Raise `Silent` where it fails at this one."""
    try:
        link.call(**call)
    except CallRefused as refused:
        code = str(refused)
        if code == "internal":
            raise Silent(code) from None
        if code in _FOR_GOOD:
            _note_dropped(call["method"], f"refused by the daemon ({code})")
        return code in _FOR_GOOD or code == "conflict"  # it has a turn of this id already
    return True


def _size(where: str) -> int:
    """Return the size of a file, 0 for one that is another user's: what it says is not sent."""
    try:
        status = os.lstat(where)
    except OSError:
        return 0
    return status.st_size if trust.is_trusted(status.st_uid) else 0


def _read(where: str) -> bytes:
    if not _size(where):
        return b""
    with _lock(where, os.O_RDWR) as file:
        return os.pread(file, os.fstat(file).st_size, 0)


def _take_out(beginning: bytes, unanswered: bytes) -> None:
    """Take the beginning of the spool out, unless it was changed meanwhile, and put one line of it at the end.

    A crash in between leaves lines twice, none lost.
    """
    if not beginning:
        return
    with _lock(path(), os.O_RDWR) as file:
        data = os.pread(file, os.fstat(file).st_size, 0)
        if data.startswith(beginning):
            rest = data[len(beginning) :] + unanswered
            os.pwrite(file, rest, 0)
            os.ftruncate(file, len(rest))


class Said(msgspec.Struct, frozen=True):
    """What was said in a call that waits, and in which session."""

    session: str
    text: str


def list_sessions() -> list[str]:
    """Return the names of the sessions of which something waits, names of files too."""
    calls = [_decode(line) or {} for line in _read(path()).splitlines()]
    noted = {session for _, session, _ in list_noted()}
    return sorted({str(call["session"]) for call in calls if call.get("session")} | noted)


def erase(ids: set[str], session: str | None, matching: str | None = None, dry_run: bool = False) -> list[Said]:
    """Take turns with some ids, all calls of a session or what mentions a text (with both: of that session) out of what
    waits, and the files that their next answer was to name; return what was said in each call concerned. With `dry_run`
    leave them."""
    from memoryd.client.text_match import Wording  # no hook needs it

    wording = None if matching is None else Wording(matching)
    concerned = list(_erase_files(session, wording, dry_run))
    if os.path.exists(path()):
        with _lock(path(), os.O_RDWR) as file:
            data = os.pread(file, os.fstat(file).st_size, 0)
            stripped = [_strip_line(line, ids, session, wording) for line in data.splitlines(keepends=True)]
            concerned += [said for _, said in stripped if said]
            rest = b"".join(left for left, _ in stripped)
            if rest != data and not dry_run:
                os.pwrite(file, rest.ljust(len(data), b"\n"), 0)  # nothing is left beyond its end either
                os.fdatasync(file)
                os.ftruncate(file, len(rest))
    return concerned


def _erase_files(session: str | None, wording: "Wording | None", dry_run: bool) -> Iterator[Said]:
    """Delete the names of files that were noted in a session, or in each session that noted one with the text."""
    for path, name, names in list_noted():
        if session in (None, name) and (wording.is_in(f"{name}\n{names}") if wording else session is not None):
            if not dry_run:
                with suppress(FileNotFoundError):  # an answer took them meanwhile
                    os.unlink(path)
            yield Said(name, names)


def _strip_line(
    line: bytes, ids: set[str], session: str | None, wording: "Wording | None"
) -> tuple[bytes, Said | None]:
    """Return what stays of a line, and what was said in what goes: of a call without turns its name."""
    call = _decode(line)
    if call is None:
        return line, None
    name, turns = str(call.get("session") or ""), call.get("turns")
    turns = [turn for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []
    is_there = session in (None, name)
    if is_there and (wording.is_in(name) if wording else session is not None):
        left, gone = [], turns
    else:
        gone = [turn for turn in turns if _is_meant(turn, ids, wording if is_there else None)]
        if not gone:
            return line, None
        left = [turn for turn in turns if turn not in gone]
    said = " ".join(str(turn.get("content")) for turn in gone) or f"{call.get('method')} {name}"
    return msgspec.json.encode({**call, "turns": left}) + b"\n" if left else b"", Said(name, said)


def _is_meant(turn: dict[str, Any], ids: set[str], wording: "Wording | None") -> bool:
    """Return whether a turn has one of the ids or mentions the text."""
    if wording is None or turn.get("id") in ids:
        return turn.get("id") in ids
    texts = [turn.get("content"), turn.get("speaker"), *(turn.get("files") or ())]
    return any(wording.is_in(text) for text in texts if isinstance(text, str))


@contextmanager
def _lock(where: str, flags: int, how: int = fcntl.LOCK_EX) -> Iterator[int]:
    file = os.open(where, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        trust.check_owner(where, os.fstat(file).st_uid)
        fcntl.flock(file, how)
        yield file
    finally:
        os.close(file)
