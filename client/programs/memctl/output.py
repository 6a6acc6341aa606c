"""Output of memctl: text for people, or with --json one document, on stdout; notes and errors on stderr."""

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
# Characters that JSON does not escape: DEL, C1, and marks that reverse the direction of text.
_UNESCAPED = compile_late(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# The same, and C0 except line ends and tabs.
_CONTROL_CLASS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_CONTROL = compile_late(_CONTROL_CLASS)
_STYLE_OR_CONTROL = compile_late(rf"(\x1b\[[\d;]*m|\x1b\]8;;(?:file://[!-~]*)?\x1b\\)|{_CONTROL_CLASS}")
REASONS = {
    "vector": "results by meaning (the embedding model is not ready)",
    "fulltext": "results by words (the full-text index did not answer; if this continues: `memctl verify`)",
    "deadline": "results after the deadline",
    "pending_embeddings": "results by meaning among texts that wait for a vector (words find them)",
}
STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
TIMES = frozenset(
    "created_at updated_at last_accessed_at last_used_at expires_at at oldest_at newest_at started_at last_run_at"
    " next_run_at began_at ended_at indexed_at scanned_at since".split()
)


def show(args: argparse.Namespace, value: Any, text: Callable[[], str]) -> None:
    """Print `value` as JSON with --json, otherwise the text."""
    if args.json:
        say_json(value)
    else:
        say(text())


def say(text: str) -> None:
    """Print text to stdout, without control characters except colours and links; `?` replaces what is unencodable."""
    if sys.stdout:
        if not text.replace("\n", "").isprintable():
            text = _STYLE_OR_CONTROL.sub(lambda match: match[0] if match[1] else _REPLACEMENT, text)
        _write(f"{text}\n".encode(sys.stdout.encoding, "replace"))


def say_json(value: Any) -> None:
    """Print one JSON document, in UTF-8 whatever the locale is."""
    if sys.stdout:
        _write(escape_controls(msgspec.json.format(msgspec.json.encode(to_plain(value)), indent=2)) + b"\n")


def escape_controls(data: bytes) -> bytes:
    """Return JSON whose texts cannot control a terminal; JSON alone does not escape DEL, C1 and marks of direction."""
    if data.isascii() and b"\x7f" not in data:
        return data
    return _UNESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", data.decode()).encode()


def say_bytes(data: bytes) -> None:
    """Print bytes as they are, for other programs."""
    if sys.stdout:
        _write(data)


def _write(data: bytes) -> None:
    """Write all bytes; if Python runs unbuffered, one write may take only a part."""
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
    """Print to stderr what is missing in the results."""
    if degraded:
        print_note(f"memctl: missing in this answer: {', '.join(map(_explain_missing, degraded))}.")


def _explain_missing(name: str) -> str:
    kind, _, root = name.partition(":")
    if kind == "shared":
        return f"the shared root {make_printable(root)}, which does not answer (`memctl shared status`)"
    return REASONS.get(name, name)


def complain(text: str, code: int) -> int:
    """Print an error and return its exit code."""
    print_note(f"memctl: {text}")
    return code


def to_plain(value: Any) -> Any:
    """Return a result as plain values for JSON: times become ISO 8601 text, metadata stays as it is."""
    if type(value).__name__ == "Change":  # not isinstance, which would import its module for every command
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
    """Return whether stdout is a terminal that supports control sequences."""
    return bool(sys.stdout and sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def paint(text: str, *styles: str) -> str:
    """Return text in these styles on a terminal that supports colours, unless NO_COLOR is set."""
    if not text or not styles or os.environ.get("NO_COLOR") or not is_terminal():
        return text
    return f"\x1b[{';'.join(STYLES[style] for style in styles)}m{text}\x1b[0m"


def paused_text(pauses: Iterable[Pause]) -> str:
    """Return where somebody has paused observing, not counting sessions and the settings; empty: nowhere."""
    paused = [pause for pause in pauses if pause.since and pause.kind != "session"]
    for pause in paused:
        if pause.kind == "namespace" and not pause.name:
            return f"paused everywhere since {iso(pause.since)}; `memctl observe on` ends that"
    names = make_printable(", ".join(pause.name for pause in paused))
    return f"paused in {names}; see `memctl observe status`" if paused else ""


def undo_text(operation: str) -> str:
    """Return the command that undoes an operation, for use in a sentence."""
    return f"`{paint(f'memctl undo {operation[:8]}', 'cyan')}`"


def make_printable(text: str) -> str:
    """Return text without control characters, which could control a terminal; line ends and tabs stay."""
    return text if text.isprintable() else _CONTROL.sub(_REPLACEMENT, text)


def agrees(question: str) -> bool:
    """Ask a question; return whether the person agrees, False if there is no terminal to ask on."""
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    print_note(f"{question} [y/N]")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")
