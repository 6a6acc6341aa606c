"""A conversation in two lines, without a language model: what was asked first, and the last answer that says something.

The lines quote the turns. Code, small talk and short reports ("Pushed to origin/main.") are passed over.
"""

from collections.abc import Iterable, Iterator, Sequence

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import rating
from memoryd.daemon.language.sentences import BOUNDARY

ASKED, ANSWER, FILES = "Asked: ", "Answer: ", "Files: "
_CHARS_PER_TOKEN = 4
_ASKED_SHARE = 3  # one part in so many of the text is for what was asked
_LEAST_BYTES = 60  # of an answer that says something; if all are shorter, the longest one is taken
_CODE = compile_late(r"```[\s\S]*?(?:```|\Z)|^[ \t]*>.*$", 8)  # re.MULTILINE; and what is quoted


def summary(turns: Sequence[tuple[str, str]], previous: str, max_tokens: int) -> str:
    """Return the lines within about so many tokens; empty when nothing was said.

    What was asked first stays as in the summary before, and so does an answer without a later one, and other lines.
    """
    chars = max_tokens * _CHARS_PER_TOKEN
    before = previous.splitlines()
    asked = _find_line(before, ASKED) or next(_list_said(turns, "user", rating.QUESTION), "")
    answers = list(_list_said(turns, "assistant", rating.STATEMENT))
    telling = [one for one in answers if len(one.encode()) >= _LEAST_BYTES]
    answer = telling[-1] if telling else _find_line(before, ANSWER) or max(answers, key=len, default="")
    asked = _cut(asked, chars // _ASKED_SHARE - len(ASKED))
    answer = _cut(answer, chars - len(asked) - len(ASKED + ANSWER) - 1)
    lines = [f"{label}{text}" for label, text in ((ASKED, asked), (ANSWER, answer)) if text]
    return "\n".join([*lines, *(line for line in before if not line.startswith((ASKED, ANSWER)))])


def _find_line(lines: Iterable[str], label: str) -> str:
    return next((line.removeprefix(label) for line in lines if line.startswith(label)), "")


def _list_said(turns: Iterable[tuple[str, str]], role: str, least: float) -> Iterator[str]:
    """Yield what one side said of some importance, each turn on one line."""
    for who, content in turns:
        text = " ".join(_CODE.sub("\n", content).split()) if who == role else ""
        if text and rating.importance(text) >= least:
            yield text


def _cut(text: str, chars: int) -> str:
    """Return the first sentences of a text that fit; of one that is too long by itself, its first words."""
    if len(text) <= chars:
        return text
    ends = [match.start() for match in BOUNDARY.finditer(text[: chars + 1]) if match.start()]
    return text[: ends[-1]] if ends else text[: chars - 1].rpartition(" ")[0] + "…"
