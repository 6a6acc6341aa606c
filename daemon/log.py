"""Structured logs on stderr: one line per event, `key=value`, with systemd's priority prefix when it collects them."""

import logging
import os
import sys
import time

_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _Line(logging.Formatter):
    def __init__(self, under_systemd: bool) -> None:
        super().__init__()
        self._under_systemd = under_systemd

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; an exception follows as an escaped field, so that a line stays one event."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        part = record.name.removeprefix("memoryd.daemon.")
        fields = f"level={record.levelname.lower()} part={part} msg={_quoted(record.getMessage())}"
        if record.exc_info:
            fields += f" trace={_quoted(self.formatException(record.exc_info))}"
        if self._under_systemd:
            return f"<{_PRIORITIES.get(record.levelno, 6)}>{fields}"
        return f"time={at}.{int(record.msecs):03d}Z {fields}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if not escaped.isprintable():  # control characters could end the line or steer a terminal
        escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)
    return f'"{escaped}"'


def _collected_by_systemd() -> bool:
    """Tell whether stderr itself goes to the journal; the variable alone may be inherited from anywhere."""
    try:
        status = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def set_up(level: str) -> None:
    """Send the logs of the process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line(_collected_by_systemd()))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
