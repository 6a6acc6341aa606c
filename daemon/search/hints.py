"""Read from a question which times and names it mentions, and whether it asks about the past. Pure functions."""

import re
from datetime import datetime
from typing import NamedTuple

from memoryd.client.dates import Span, day_of, find_spans
from memoryd.client.patterns import compile_late
from memoryd.daemon.language.names import Names, find_names

LONGEST_DAYS = 32  # a longer span of time does not distinguish memories
_WHEN = compile_late(r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bwann\b|什么时候|いつ|何時", re.I)
_PAST = compile_late(
    r"\b(?:original(?:ly)?|former(?:ly)?|previous(?:ly)?|used to|before)\b"
    r"|\b(?:früher\w*|ursprünglich\w*|vorher|zuvor|damals)\b"
    r"|以前|原来|之前|当初|もともと|前は",
    re.I,
)
_WAS = compile_late(r"\b(?:was|were|had|war|waren|hatten?|wurden?)\b|た(?:か|の|[。？?]|$)", re.I)


class Hints(NamedTuple):
    """The dates and names that a question mentions."""

    spans: tuple[Span, ...] = ()
    when: bool = False
    state: str = "present"  # which of two contradicting memories is asked for: "present", "past" or "" for either
    named: Names = Names((), ())

    def has_cues(self) -> bool:
        """Return whether the question mentions a time or an identifier."""
        return bool(self.spans or self.when or self.named.identifiers)


NO_HINTS = Hints()


def read_hints(question: str, now: datetime) -> Hints:
    """Return the hints of a question."""
    dates = find_spans(question, now)
    spans = tuple(span for span in dates if span.days <= LONGEST_DAYS)
    is_open = _WAS.search(question) is not None or any(not span.overlaps(day_of(now)) for span in dates)
    state = "past" if _PAST.search(question) else "" if is_open else "present"
    return Hints(spans, _WHEN.search(question) is not None, state, find_names(question))
