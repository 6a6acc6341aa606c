"""Texts that hold a credential and texts that only look so: the lines of `tests/data/credentials`."""

import re
from pathlib import Path

_DATA = Path(__file__).parents[2] / "data" / "credentials"
_RUNS = {
    "m": "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo0iYe" * 10,
    "l": "q7rt2zkp9wxc4vbn8mls3hdj6gfy1tae5uko0iye" * 4,
    "u": "Q7RT2ZKP9WXC4VBN8MLS3HDJ6GFY1TAE5UKO0IYE" * 3,
    "h": "9f86d081884c7d659a2feaa0c55ad015" * 12,
    "k": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


def write(line: str) -> str:
    """Return the text that a line of the data stands for."""
    line = re.sub(r"\{([mluhk])(\d+)\}", lambda run: _RUNS[run[1]][: int(run[2])], line.replace("¦", ""))
    return re.sub(r"\\(u[0-9a-f]{4}|.)", lambda one: _ESCAPED.get(one[1]) or chr(int(one[1][1:], 16)), line)


def _read(name: str) -> list[str]:
    lines = (_DATA / name).read_text("utf-8").splitlines()
    return [line for line in lines if not line.startswith("# ")]


# What the credentials of a text are called, and the text with them between « and ».
HOLDING = [(kind, write(text)) for kind, text in (line.split("\t", 1) for line in _read("holding.txt"))]
HARMLESS = [write(line) for line in _read("harmless.txt")]


def unmark(marked: str) -> str:
    """Return a text of `HOLDING` without its marks."""
    return marked.replace("«", "").replace("»", "")
