"""The spool: calls that hooks could not send to the daemon, one line of JSON each, sent in order when it answers again.

It is one file of mode 0600 in the data folder. Its lock is held to append and remove lines, never during a call, so a
daemon that hangs does not delay other hooks. Turns get their id and time when they are said, so a call that is sent
twice, because a hook was killed before it removed the line, is stored once. If the host writes a file for the session,
the line has the path of that file and no texts.

If the first call gets no answer it is moved to the end, so that it does not block the others. Calls that the daemon
refuses permanently, invalid lines, and calls beyond `MAX_BYTES` are dropped; each adds a line without content to
`dropped_path`, which `hooks status` and doctor count.
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
METHODS = ("observe", "listen", "end_session", "reset_session", "pause_observing")  # calls that hooks spool
# Error codes for which repeating the call is useless.
_PERMANENT = frozenset({"invalid", "not_found", "forbidden", "bad_frame", "unknown_method"})


def path() -> str:
    """Return the path of the spool."""
    return os.path.join(paths.data_folder(), "hooks.spool")


def dropped_path() -> str:
    """Return the path of the file with a line for each dropped call: time, method and reason."""
    return os.path.join(paths.data_folder(), "hooks.dropped")


def append(call: dict[str, Any]) -> bool:
    """Append a call, without private passages and credentials, and sync; return whether there was room.

    Turns that can be read later from the session's file are left out. Raise `Untrusted` if the folder or the spool
    belongs to another user.
    """
    from memoryd.client.credentials import redact_tree  # takes 10 ms to import
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
    """Append a line to a file and sync it; return whether there was room."""
    with _lock(where, os.O_RDWR | os.O_CREAT) as file:
        size = os.fstat(file).st_size
        if size + len(line) > MAX_BYTES:
            return False
        if size and os.pread(file, 1, size - 1) != b"\n":
            line = b"\n" + line  # the last writer was killed before it finished its line
        os.pwrite(file, line, size)
        os.fdatasync(file)
    return True


def count_waiting() -> int:
    """Return the number of calls in the spool."""
    return _read(path()).count(b"\n")


def count_dropped() -> int:
    """Return the number of dropped calls."""
    return _read(dropped_path()).count(b"\n")


# Sending -------------------------------------------------------------------------------------------------------------


def replay(link: DaemonLink, until: float) -> int:
    """Send the calls in the spool, oldest first, until a time of the monotonic clock, and remove those that were sent.

    Return how many were sent; none if another hook is sending.
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
                    unanswered = (
                        b"" if done else line
                    )  # only the first call of the spool is moved, to keep the order if possible
                    break
            done += len(line)
    finally:
        _take_out(data[: done + len(unanswered)], unanswered)
    return sent


def _decode(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, None if it is not one, such as an incomplete line."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def send_call(link: DaemonLink, call: dict[str, Any]) -> bool:
    """Send a call; return whether it is finished: accepted, or dropped since it is refused permanently."""
    try:
        return _send(link, call)
    except Silent:
        return False


def _send(link: DaemonLink, call: dict[str, Any]) -> bool:
    """Send a call; return False if the daemon accepts no calls now. Raise `Silent` if it does not answer this one."""
    try:
        link.call(**call)
    except CallRefused as refused:
        code = str(refused)
        if code == "internal":
            raise Silent(code) from None
        if code in _PERMANENT:
            _note_dropped(call["method"], f"refused by the daemon ({code})")
        return code in _PERMANENT or code == "conflict"  # a conflict means that the daemon has the turn already
    return True


def _size(where: str) -> int:
    """Return the size of a file, 0 if it belongs to another user, whose calls must not be sent."""
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
    """Remove `beginning` from the spool unless it has changed, and append the line `unanswered`.

    After a crash lines may be there twice, but none is lost.
    """
    if not beginning:
        return
    with _lock(path(), os.O_RDWR) as file:
        data = os.pread(file, os.fstat(file).st_size, 0)
        if data.startswith(beginning):
            rest = data[len(beginning) :] + unanswered
            os.pwrite(file, rest, 0)
            os.ftruncate(file, len(rest))


class SpooledText(msgspec.Struct, frozen=True):
    """The text of a spooled call, and its session."""

    session: str
    text: str


def list_sessions() -> list[str]:
    """Return the names of the sessions in the spool and in lists of written files."""
    calls = [_decode(line) or {} for line in _read(path()).splitlines()]
    noted = {session for _, session, _ in list_noted()}
    return sorted({str(call["session"]) for call in calls if call.get("session")} | noted)


def erase(ids: set[str], session: str | None, matching: str | None = None, dry_run: bool = False) -> list[SpooledText]:
    """Remove turns from the spool: those with the given ids, those of a session, or those (in it) that contain a text.

    Matching lists of written files are deleted too. Return the text of each changed call; `dry_run` changes nothing.
    """
    from memoryd.client.text_match import Wording  # not needed by hooks

    wording = None if matching is None else Wording(matching)
    concerned = list(_erase_files(session, wording, dry_run))
    if os.path.exists(path()):
        with _lock(path(), os.O_RDWR) as file:
            data = os.pread(file, os.fstat(file).st_size, 0)
            stripped = [_strip_line(line, ids, session, wording) for line in data.splitlines(keepends=True)]
            concerned += [said for _, said in stripped if said]
            rest = b"".join(left for left, _ in stripped)
            if rest != data and not dry_run:
                os.pwrite(file, rest.ljust(len(data), b"\n"), 0)  # overwrites the removed lines on disk
                os.fdatasync(file)
                os.ftruncate(file, len(rest))
    return concerned


def _erase_files(session: str | None, wording: "Wording | None", dry_run: bool) -> Iterator[SpooledText]:
    """Delete the lists of written files of a session, or of all sessions whose list contains the text."""
    for path, name, names in list_noted():
        if session in (None, name) and (wording.is_in(f"{name}\n{names}") if wording else session is not None):
            if not dry_run:
                with suppress(FileNotFoundError):  # an answer has just taken it
                    os.unlink(path)
            yield SpooledText(name, names)


def _strip_line(
    line: bytes, ids: set[str], session: str | None, wording: "Wording | None"
) -> tuple[bytes, SpooledText | None]:
    """Return the rest of a line, and the removed text: for a call without turns its method and session."""
    call = _decode(line)
    if call is None:
        return line, None
    name, turns = str(call.get("session") or ""), call.get("turns")
    turns = [turn for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []
    is_in_session = session in (None, name)
    if is_in_session and (wording.is_in(name) if wording else session is not None):
        left, removed = [], turns
    else:
        removed = [turn for turn in turns if _matches(turn, ids, wording if is_in_session else None)]
        if not removed:
            return line, None
        left = [turn for turn in turns if turn not in removed]
    said = " ".join(str(turn.get("content")) for turn in removed) or f"{call.get('method')} {name}"
    return msgspec.json.encode({**call, "turns": left}) + b"\n" if left else b"", SpooledText(name, said)


def _matches(turn: dict[str, Any], ids: set[str], wording: "Wording | None") -> bool:
    """Return whether a turn has one of the ids or contains the text."""
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
