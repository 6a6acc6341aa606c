"""Which spooled call is being sent, and at which the daemon died or hung: after the second time it is set aside.

So is one that a daemon which answers others left unanswered `MOST_UNANSWERED` times: it would hold up the rest.

The file holds a digest of the call that is under way, and how often the daemon was lost at which call. It is written
before a call is sent, so it also records a hook that was killed meanwhile. Its lock, held while a hook sends, keeps
other hooks from sending the same and from counting one loss twice.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from memoryd.client.transport import paths, trust

MOST_LOSSES = 2
MOST_UNANSWERED = 20  # so often a daemon is hardly ever only busy


class _Written(msgspec.Struct, omit_defaults=True):
    sending: str = ""
    lost: dict[str, int] = {}
    unanswered: dict[str, int] = {}


class Attempts:
    """What the file says; made by `sole`, which holds its lock."""

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
def hold() -> Iterator[Attempts | None]:
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
