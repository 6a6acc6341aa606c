"""What memctl prints: text for people, or with --json one document on stdout. Notes and errors go to stderr."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from memoryd.client.patterns import compile_late
from memoryd.client.protocol import Pause
from memoryd.client.times import iso

DEFAULT_COLUMNS = 100
# DEL, C1, and the marks that reverse the direction of what follows.
_STEERING = compile_late(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_REPLACED = "\N{REPLACEMENT CHARACTER}"
# C0 but line ends and tabs, DEL, C1, and the marks that reverse the direction of what follows.
_STEERS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_CONTROL = compile_late(_STEERS)
_SHOWN = compile_late(rf"(\x1b\[[\d;]*m|\x1b\]8;;(?:file://[!-~]*)?\x1b\\)|{_STEERS}")
REASONS = {
    "vector": "by meaning (the embedding model is not ready)",
    "fulltext": "by words (the full-text index did not answer; if that stays so: `memctl verify`)",
    "deadline": "whatever did not finish before the deadline",
    "pending_embeddings": "by meaning, texts that wait for their vector (words find them)",
}
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
TIMES = frozenset(
    "created_at updated_at last_accessed_at last_used_at expires_at at oldest_at newest_at started_at last_run_at"
    " next_run_at began_at ended_at indexed_at scanned_at since".split()
)


def show(args: argparse.Namespace, value: Any, text: Callable[[], str]) -> None:
    """Print `value` as JSON when that was asked for, else the text."""
    if args.json:
        say_json(value)
    else:
        say(text())


def say(text: str) -> None:
    """Print text to stdout: without control characters but for colours and links, `?` for what it cannot encode."""
    if sys.stdout:
        if not text.replace("\n", "").isprintable():
            text = _SHOWN.sub(lambda match: match[0] if match[1] else _REPLACED, text)
        _write(f"{text}\n".encode(sys.stdout.encoding, "replace"))


def say_json(value: Any) -> None:
    """Print one JSON document, in UTF-8 whatever the locale."""
    if sys.stdout:
        _write(escape_controls(msgspec.json.format(msgspec.json.encode(to_plain(value)), indent=2)) + b"\n")


def escape_controls(data: bytes) -> bytes:
    """Return JSON whose texts cannot steer a terminal: JSON itself lets DEL, C1 and marks of direction pass."""
    if data.isascii() and b"\x7f" not in data:
        return data
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", data.decode()).encode()


def say_bytes(data: bytes) -> None:
    """Print bytes as they are, for what another program is to read."""
    if sys.stdout:
        _write(data)


def _write(data: bytes) -> None:
    """Write all of it: where Python runs unbuffered, one write may take only a part."""
    sys.stdout.flush()
    view = memoryview(data)
    while view:
        view = view[sys.stdout.buffer.write(view) :]
    sys.stdout.buffer.flush()


def print_note(text: str) -> None:
    """Print one line to stderr."""
    if sys.stderr:
        print(make_printable(text), file=sys.stderr)


def say_degraded(degraded: list[str]) -> None:
    """Say on stderr what the results lack."""
    if degraded:
        print_note(f"memctl: left out of this answer: {', '.join(map(_explain_lack, degraded))}.")


def _explain_lack(name: str) -> str:
    kind, _, root = name.partition(":")
    if kind == "shared":
        return f"the shared root {make_printable(root)}, which does not answer (`memctl shared status`)"
    return REASONS.get(name, name)


def complain(text: str, code: int) -> int:
    """Print an error and return its exit code."""
    print_note(f"memctl: {text}")
    return code


def to_plain(value: Any) -> Any:
    """Return a result as plain values for JSON: its times become ISO 8601 text, metadata stays as it is."""
    if type(value).__name__ == "Change":  # its module is imported where there is one
        changes = {
            name: [_plain_value(name, old), _plain_value(name, new)] for name, (old, new) in value.changed.items()
        }
        return {**_plain_fields(value), "changed": changes}
    if isinstance(value, msgspec.Struct):
        return _plain_fields(value)
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def _plain_fields(value: msgspec.Struct) -> dict[str, Any]:
    return {name: _plain_value(name, to_plain(getattr(value, name))) for name in value.__struct_fields__}


def _plain_value(name: str, value: Any) -> Any:
    return iso(value) if name in TIMES and isinstance(value, float | int) else value


# Terminal ------------------------------------------------------------------------------------------------------------


def columns() -> int:
    """Return the width of the terminal, 100 if there is none."""
    try:
        return max(40, os.get_terminal_size(1).columns or DEFAULT_COLUMNS)
    except OSError:
        return DEFAULT_COLUMNS


def is_terminal() -> bool:
    """Return whether stdout is a terminal that understands more than text."""
    return bool(sys.stdout and sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def paint(text: str, *styles: str) -> str:
    """Return text in these styles where colours may be used: only on a terminal, and not when NO_COLOR is set."""
    if not text or not styles or os.environ.get("NO_COLOR") or not is_terminal():
        return text
    return f"\x1b[{';'.join(STYLES[style] for style in styles)}m{text}\x1b[0m"


def paused_text(pauses: Iterable[Pause]) -> str:
    """Return where somebody has paused observing, single sessions and the settings aside; empty for nowhere."""
    made = [pause for pause in pauses if pause.since and pause.kind != "session"]
    for pause in made:
        if pause.kind == "namespace" and not pause.name:
            return f"paused everywhere since {iso(pause.since)}; `memctl observe on` ends that"
    names = make_printable(", ".join(pause.name for pause in made))
    return f"paused in {names}; see `memctl observe status`" if made else ""


def undo_text(operation: str) -> str:
    """Return, for a sentence, the command that takes an operation back."""
    return f"`{paint(f'memctl undo {operation[:8]}', 'cyan')}`"


def make_printable(text: str) -> str:
    """Return text whose control characters cannot steer a terminal; line ends and tabs stay."""
    return text if text.isprintable() else _CONTROL.sub(_REPLACED, text)
