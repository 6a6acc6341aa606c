"""Structured logs on stderr: one line per event, `key=value`, with systemd's priority prefix if the journal reads them.

An exception is in the same line, in short: type, message, and its outermost and innermost calls; at level debug
with the whole traceback. Warnings and errors may quote input of a client, so credentials in them are redacted.
"""

import asyncio
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from memoryd.client.credentials import redact

_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
FILE_NAME = "memoryd.log"  # in the data directory, where there is one
MAX_BYTES = 5_000_000  # of one file
FILES = 3  # including the current one
_ERROR_CHARS = 500
_OUTER_CALLS, _INNER_CALLS = 2, 4
_LOOK_EVERY_S = 60.0

logger = logging.getLogger(__name__)


class _LogFile(RotatingFileHandler):
    """A log file of bounded size. Stdout and stderr are redirected to the file, also after each rotation."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for standard in (1, 2):
            os.dup2(descriptor, standard)
        return open(descriptor, "a", encoding="utf-8", errors="backslashreplace")

    def rotate(self, source: str, dest: str) -> None:
        """Rename a file; if other output has filled it beyond the limit, keep its end."""
        super().rotate(source, dest)
        with open(dest, "r+b") as file:
            if file.seek(0, os.SEEK_END) > 2 * self.maxBytes:
                file.seek(-self.maxBytes, os.SEEK_END)
                end = file.read()
                file.seek(0)
                file.write(end)
                file.truncate()

    def look(self) -> None:
        """Rotate the file if libraries, which bypass this handler, have filled it."""
        self.acquire()
        try:
            if self.stream and os.fstat(self.stream.fileno()).st_size >= self.maxBytes:
                self.doRollover()
        finally:
            self.release()


class _LineFormatter(logging.Formatter):
    def __init__(self, under_systemd: bool, traces: bool = False) -> None:
        super().__init__()
        self._under_systemd, self._traces = under_systemd, traces

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; exceptions are escaped, so that each line is one event."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        part = record.name.removeprefix("memoryd.daemon.")
        message = record.getMessage()
        said = message if record.levelno < logging.WARNING else redact(message)
        fields = f"level={record.levelname.lower()} part={part} msg={_quote(said)}"
        if record.exc_info and record.exc_info[1]:
            fields += (
                f" error={_quote(redact(_error(record.exc_info[1])))} at={_quote(_format_calls(record.exc_info[2]))}"
            )
            if self._traces:
                fields += f" trace={_quote(redact(self.formatException(record.exc_info)))}"
        if self._under_systemd:
            return f"<{_PRIORITIES.get(record.levelno, 6)}>{fields}"
        return f"time={at}.{int(record.msecs):03d}Z {fields}"


def _error(error: BaseException) -> str:
    """Return an exception and its causes."""
    text = f"{type(error).__name__}: {error}"[:_ERROR_CHARS]
    return f"{text} (from {type(error.__cause__).__name__})" if error.__cause__ else text


def _format_calls(trace: TracebackType | None) -> str:
    """Return the calls that led to an exception, `file:line function`, the innermost last."""
    calls = [
        f"{'/'.join(Path(frame.f_code.co_filename).parts[-2:])}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(trace)
    ]
    if len(calls) > _OUTER_CALLS + _INNER_CALLS:
        calls[_OUTER_CALLS:-_INNER_CALLS] = [f"({len(calls) - _OUTER_CALLS - _INNER_CALLS} more)"]
    return " > ".join(calls)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if not escaped.isprintable():  # control characters could end the line or control a terminal
        escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)
    return f'"{escaped}"'


def _is_journal() -> bool:
    """Return whether stderr is the journal; the variable alone may be inherited from another process."""
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def set_up(level: str) -> None:
    """Send the logs of the process to stderr, and uncaught exceptions of threads to the logs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LineFormatter(_is_journal(), traces=level == "debug"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    threading.excepthook = _log_end_of_thread


def keep_in_file(path: Path) -> None:
    """Send the logs and the output on stdout and stderr to a file that is rotated when it is full."""
    root = logging.getLogger()
    [stderr] = root.handlers
    handler = _LogFile(path, maxBytes=MAX_BYTES, backupCount=FILES - 1)
    handler.setFormatter(stderr.formatter)
    root.handlers = [handler]


def keep_bounded(loop: asyncio.AbstractEventLoop) -> None:
    """Check the size of the log file, if there is one; called from time to time."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _LogFile):
            handler.look()
            loop.call_later(_LOOK_EVERY_S, keep_bounded, loop)


def forget_lines(file: Path, is_meant: Callable[[str], bool]) -> None:
    """Remove the matching lines from a log file and its rotated files."""
    with ExitStack() as stack:
        for handler in logging.getLogger().handlers:
            if isinstance(handler, _LogFile) and handler.lock:
                stack.enter_context(handler.lock)
        for path in file.parent.glob(f"{file.name}*"):
            lines = path.read_bytes().split(b"\n")
            kept = [line for line in lines if not is_meant(line.decode(errors="replace"))]
            if kept != lines:
                with path.open("r+b") as opened:  # in place, since the file is open for appending
                    opened.write(b"\n".join(kept))
                    opened.truncate()


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and ended.exc_type is not SystemExit:
        name = ended.thread.name if ended.thread else "unknown"
        logger.critical("the thread %s ended", name, exc_info=ended.exc_value)
