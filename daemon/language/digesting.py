"""Summarise a conversation in two lines without a language model: the first request and the last substantial answer.

The lines quote the turns. Code, small talk and short reports ("Pushed to origin/main.") are skipped.
"""

from collections.abc import Iterable, Iterator, Sequence

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import rating
from memoryd.daemon.language.sentences import BOUNDARY

ASKED, ANSWER, FILES = "Asked: ", "Answer: ", "Files: "
_CHARS_PER_TOKEN = 4
_ASKED_SHARE = 3  # share of the text for the request: one part in so many
_LEAST_BYTES = 60  # minimum length of a substantial answer; if all are shorter, the longest one is used
_CODE = compile_late(r"```[\s\S]*?(?:```|\Z)|^[ \t]*>.*$", 8)  # re.MULTILINE; also quoted lines


def summary(turns: Sequence[tuple[str, str]], previous: str, max_tokens: int) -> str:
    """Return the lines within about so many tokens; empty without turns.

    The request stays as in the former summary, and so do its other lines, and its answer if there is no later one.
    """
    chars = max_tokens * _CHARS_PER_TOKEN
    before = previous.splitlines()
    asked = find_line(before, ASKED) or next(_list_said(turns, "user", rating.QUESTION), "")
    answers = list(_list_said(turns, "assistant", rating.STATEMENT))
    telling = [one for one in answers if len(one.encode()) >= _LEAST_BYTES]
    answer = telling[-1] if telling else find_line(before, ANSWER) or max(answers, key=len, default="")
    asked = _cut(asked, chars // _ASKED_SHARE - len(ASKED))
    answer = _cut(answer, chars - len(asked) - len(ASKED + ANSWER) - 1)
    lines = [f"{label}{text}" for label, text in ((ASKED, asked), (ANSWER, answer)) if text]
    return "\n".join([*lines, *(line for line in before if not line.startswith((ASKED, ANSWER)))])


def find_line(lines: Iterable[str], label: str) -> str:
    """Return the first line with a label, without it; empty if there is none."""
    return next((line.removeprefix(label) for line in lines if line.startswith(label)), "")


def _list_said(turns: Iterable[tuple[str, str]], role: str, least: float) -> Iterator[str]:
    """Yield the important turns of one side, each as one line."""
    for who, content in turns:
        text = " ".join(_CODE.sub("\n", content).split()) if who == role else ""
        if text and rating.importance(text) >= least:
            yield text


def _cut(text: str, chars: int) -> str:
    """Return the first sentences of a text that fit; if the first one is too long, its first words."""
    if len(text) <= chars:
        return text
    ends = [match.start() for match in BOUNDARY.finditer(text[: chars + 1]) if match.start()]
    return text[: ends[-1]] if ends else text[: chars - 1].rpartition(" ")[0] + "…"
