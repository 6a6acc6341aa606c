"""What hooks could not send to the daemon: one line of JSON per call, in order, sent when it answers again.

One file of mode 0600 beside the database. Its lock is held to append a line and to take out lines, never while the
daemon is asked: a daemon that hangs delays no other hook. A turn has its id and time from the moment it was said, so
what is sent twice (a hook killed between sending and taking out) is taken once. Over `MAX_BYTES` new lines are refused.
A call at which the daemon died or hung twice is set aside in a file of its own, so that the rest arrives; so is one
that a daemon which answers others left unanswered `MOST_UNANSWERED` times, and a line that is no call of hooks, whoever
wrote it there: it is never sent.
"""

import fcntl
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from memoryd.client.agents.hooks.answering import list_noted
from memoryd.client.agents.hooks.wire import Broken, CallRefused, DaemonLink, Silent
from memoryd.client.transport import paths, trust

if TYPE_CHECKING:
    from memoryd.client.wording import Wording

MAX_BYTES = 16 * 1024 * 1024
METHODS = frozenset({"observe", "end_session", "reset_session", "pause_observing"})  # of calls that hooks spool
# What the daemon will refuse again, however often it is asked.
_HOPELESS = frozenset({"invalid", "conflict", "not_found", "forbidden", "bad_frame", "unknown_method"})
MOST_LOSSES = 2
MOST_UNANSWERED = 20  # so often a daemon is hardly ever only busy
PROBE_S = 0.5  # in which a daemon that is only busy with a call reports its status on another connection


def path() -> str:
    """Return where the spool is."""
    return os.path.join(paths.data_folder(), "hooks.spool")


def aside_path() -> str:
    """Return where that is which was set aside."""
    return os.path.join(paths.data_folder(), "hooks.aside")


def append(call: dict[str, Any]) -> bool:
    """Keep a call for later, without credentials; say whether there was room. It is on disk when this returns.

    Raise `Untrusted` where the folder or the spool belongs to another user.
    """
    from memoryd.client.credentials import redact_tree  # its rules take 10 ms to read

    folder = os.path.dirname(path())
    os.makedirs(folder, mode=0o700, exist_ok=True)
    trust.check_data_folder(folder)
    return _add(path(), msgspec.json.encode(redact_tree(call, Counter())) + b"\n", MAX_BYTES)


def _add(where: str, lines: bytes, most_bytes: int) -> bool:
    """Put whole lines at the end of a file; say whether there was room. They are on disk when this returns."""
    with _lock(where, os.O_RDWR | os.O_CREAT) as file:
        size = os.fstat(file).st_size
        if size + len(lines) > most_bytes:
            return False
        if size and os.pread(file, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # whoever wrote there last was killed half-way
        os.pwrite(file, lines, size)
        os.fdatasync(file)
    return True


def count_waiting() -> int:
    """Return how many calls wait."""
    return _read(path()).count(b"\n")


def count_aside() -> int:
    """Return how many calls were set aside."""
    return _read(aside_path()).count(b"\n")


def count_foreign() -> int:
    """Return how many lines were set aside that are no calls of hooks."""
    return sum(_is_foreign(line) for line in _read(aside_path()).splitlines())


def put_back() -> int | None:
    """Let what was set aside wait again and return how many calls that is; None where the spool has no room for it."""
    lines = _read(aside_path())
    if lines and not _add(path(), lines, MAX_BYTES):
        return None
    _take_out(aside_path(), lines)
    return lines.count(b"\n")


# Which call is being sent --------------------------------------------------------------------------------------------


class _Written(msgspec.Struct, omit_defaults=True):
    sending: str = ""
    lost: dict[str, int] = {}
    unanswered: dict[str, int] = {}


class Attempts:
    """Which call is being sent, and how often the daemon was lost at which; made by `hold_attempts`, under its lock.

    The file holds a digest of the call that is under way, written before it is sent, so it also records a hook that was
    killed meanwhile. Its lock keeps other hooks from sending the same and from counting one loss twice.
    """

    def __init__(self, file: int) -> None:
        self._file, self._synced = file, False
        try:
            self._state = msgspec.json.decode(os.pread(file, 1 << 20, 0), type=_Written)
        except msgspec.MsgspecError:  # it is new, or half written
            self._state = _Written()
        if self._state.sending:  # the hook that wrote it did not come to see what became of the call
            self._lose(self._state.sending)

    def is_hopeless(self, line: bytes) -> bool:
        """Return whether the daemon failed at this call so often that it is not to be sent any more."""
        digest, state = _digest(line), self._state
        return state.lost.get(digest, 0) >= MOST_LOSSES or state.unanswered.get(digest, 0) >= MOST_UNANSWERED

    def begin(self, line: bytes) -> None:
        """Note that a call is about to be sent; on disk for the first one, at which the last try may have ended."""
        self._state.sending = _digest(line)
        self._write(sync=not self._synced)

    def lose(self, line: bytes) -> None:
        """Note that the daemon was lost while it had this call."""
        self._lose(_digest(line))
        self._write(sync=True)

    def note_unanswered(self, line: bytes) -> None:
        """Note that the daemon did not answer this call in time, though it answers others."""
        digest = _digest(line)
        self._state.unanswered[digest] = self._state.unanswered.get(digest, 0) + 1

    def forget(self, line: bytes) -> None:
        """Note that a call is done with, or set aside."""
        for counts in (self._state.lost, self._state.unanswered):
            counts.pop(_digest(line), None)
        self._state.sending = ""

    def end(self) -> None:
        """Note that no call is under way."""
        self._state.sending = ""
        self._write(sync=False)

    def _lose(self, digest: str) -> None:
        self._state.lost[digest] = self._state.lost.get(digest, 0) + 1
        self._state.sending = ""

    def _write(self, sync: bool) -> None:
        data = msgspec.json.encode(self._state)
        os.pwrite(self._file, data, 0)
        os.ftruncate(self._file, len(data))
        if sync:
            os.fdatasync(self._file)
            self._synced = True


@contextmanager
def hold_attempts() -> Iterator[Attempts | None]:
    """Hold the file while calls are sent; None while another hook does."""
    path = os.path.join(paths.data_folder(), "hooks.sending")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        trust.check_owner(path, os.fstat(file).st_uid)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        attempts = Attempts(file)
        yield attempts
        attempts.end()
    finally:
        os.close(file)


def _digest(line: bytes) -> str:
    from hashlib import blake2b  # costs a millisecond, and most hooks find nothing to send

    return blake2b(line.strip(), digest_size=16).hexdigest()


# Sending -------------------------------------------------------------------------------------------------------------


def replay(link: DaemonLink, until: float) -> int:
    """Send what waits, oldest first, to a moment of the monotonic clock; what the daemon has is taken out.

    Return how many calls were sent.
    """
    if not _size(path()):
        return 0
    with hold_attempts() as tried:
        if tried is None or not _is_answering(link):
            return 0  # a daemon that hangs already hangs at none of these
        data, taken, sent = _read(path()), 0, 0
        try:
            for line in data.splitlines(keepends=True):
                if time.monotonic() > until:
                    break
                if _is_foreign(line) or tried.is_hopeless(line):
                    _set_aside(line, tried)
                elif _send_line(link, line, tried):
                    sent += 1
                else:
                    break
                taken += len(line)
        finally:
            _take_out(path(), data[:taken])
        return sent


def _set_aside(line: bytes, tried: Attempts) -> None:
    if line not in _read(aside_path()).splitlines(keepends=True):  # a hook killed in between does it once more
        _add(aside_path(), line, sys.maxsize)
    tried.forget(line)


def _send_line(link: DaemonLink, line: bytes, tried: Attempts) -> bool:
    """Send one line; say whether it is done with. Half a line never becomes a whole one."""
    tried.begin(line)
    try:
        call = _decode(line)
        done = call is None or _is_done(link, call)
    except TypeError:  # it has fields that no call has
        done = True
    except Silent as silent:
        if isinstance(silent, Broken) or _is_hung():
            tried.lose(line)
        else:
            tried.note_unanswered(line)
        return False
    if done:
        tried.forget(line)
    return done


def _decode(line: bytes) -> dict[str, Any] | None:
    """Return the call of a line, None for half of one."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _is_foreign(line: bytes) -> bool:
    call = _decode(line)
    return call is not None and (not isinstance(call.get("method"), str) or call["method"] not in METHODS)


def _is_hung() -> bool:
    """Return whether the daemon answers nobody any more."""
    try:
        probe = DaemonLink(time.monotonic() + PROBE_S)
    except Silent:
        return True
    try:
        return not _is_answering(probe)
    finally:
        probe.close()


def _is_answering(link: DaemonLink) -> bool:
    try:
        link.call("status")
    except Silent:
        return False
    except CallRefused:
        pass
    return True


def send_call(link: DaemonLink, call: dict[str, Any]) -> bool:
    """Send a call; say whether it is done with: taken, or such that the daemon will never take it."""
    try:
        return _is_done(link, call)
    except Silent:
        return False


def _is_done(link: DaemonLink, call: dict[str, Any]) -> bool:
    try:
        link.call(**call)
    except CallRefused as refused:
        return str(refused) in _HOPELESS
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


def _take_out(where: str, beginning: bytes) -> None:
    """Take the beginning out, unless another hook has done so. A crash in between leaves lines twice, none lost."""
    if not beginning:
        return
    with _lock(where, os.O_RDWR) as file:
        data = os.pread(file, os.fstat(file).st_size, 0)
        if data.startswith(beginning):
            rest = data[len(beginning) :]
            os.pwrite(file, rest, 0)
            os.ftruncate(file, len(rest))


class Said(msgspec.Struct, frozen=True):
    """What was said in a call that waits, and in which session."""

    session: str
    text: str


def list_sessions() -> list[str]:
    """Return the names of the sessions of which something waits or was set aside, names of files too."""
    calls = [_decode(line) or {} for where in (path(), aside_path()) for line in _read(where).splitlines()]
    noted = {session for _, session, _ in list_noted()}
    return sorted({str(call["session"]) for call in calls if call.get("session")} | noted)


def erase(ids: set[str], session: str | None, matching: str | None = None, dry_run: bool = False) -> list[Said]:
    """Take turns with some ids, all calls of a session or what mentions a text (with both: of that session) out of what
    waits and was set aside, and the files that their next answer was to name; return what was said in each call
    concerned. With `dry_run` leave them."""
    from memoryd.client.wording import Wording  # no hook needs it

    wording = None if matching is None else Wording(matching)
    concerned = list(_erase_files(session, wording, dry_run))
    for where in (path(), aside_path()):
        if not os.path.exists(where):
            continue
        with _lock(where, os.O_RDWR) as file:
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
def _lock(where: str, flags: int) -> Iterator[int]:
    file = os.open(where, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        trust.check_owner(where, os.fstat(file).st_uid)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)
