"""Texts joined from parts of another text: without invisible characters, or without the line breaks in a key."""

import itertools
from bisect import bisect_right
from collections.abc import Sequence

from memoryd.client.credentials.rules import CredentialMatch
from memoryd.client.patterns import compile_late

INVISIBLE = compile_late(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]+"
)


class TextView:
    """Parts of a text, joined; `locate` finds the place of a credential in the whole text."""

    def __init__(self, text: str, spans: Sequence[tuple[int, int]]) -> None:
        """Join the parts of these spans."""
        self.text = "".join([text[start:end] for start, end in spans])
        self._spans = spans
        self._ends = [*itertools.accumulate(end - start for start, end in spans)]

    def locate(self, found: CredentialMatch) -> CredentialMatch:
        """Return a credential of the joined text with its place in the whole text."""
        return CredentialMatch(found.kind, self._place(found.start), self._place(found.end - 1) + 1)

    def _place(self, at: int) -> int:
        number = bisect_right(self._ends, at)
        return self._spans[number][1] - self._ends[number] + at


def view_visible(text: str) -> TextView | None:
    """Return a text without its invisible characters, None if it has none."""
    if text.isascii() or not INVISIBLE.search(text):
        return None
    marks = [match.span() for match in INVISIBLE.finditer(text)]
    starts, ends = [0, *(end for _, end in marks)], [*(start for start, _ in marks), len(text)]
    return TextView(text, list(zip(starts, ends, strict=True)))
