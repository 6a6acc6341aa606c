"""Stage: small bonuses for memories that fit the time or identifier that a question mentions.

`CUES` is the table: the bonus is added if the condition holds, and the trace names it. A question without any cue costs
nothing; otherwise the beginnings of the best `_POOL` candidates are read. A search by meaning alone (`vector_weight` is
1) ignores cues.

The bonuses are set by hand. Learned weights of some thirty features, linear or in small trees, gained up to 4 points of
nDCG@10 on one kind of conversation, and lost as much on another.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from memoryd.client.dates import day_of, find_spans, tells_time
from memoryd.daemon.language.names import is_named
from memoryd.daemon.search.fuse import order
from memoryd.daemon.search.hints import LONGEST_DAYS, Hints
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store.rows import Beginning, Row, read_beginnings

_POOL = 30  # candidates
_READ_CHARS = 1_000  # of a memory
_SPEAKER = re.compile(r"([^\W\d_][^\n:]{0,39}): ")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class SpeakerCues(NamedTuple):
    """The speaker and time of a memory."""

    speaker: str
    role: str
    at: datetime
    text: str


class Cue(NamedTuple):
    """A row of the table."""

    name: str
    holds: Callable[[Hints, SpeakerCues], bool]
    bonus: float


def _is_dated(hints: Hints, statement: SpeakerCues) -> bool:
    if not hints.spans:
        return False
    spans = [
        day_of(statement.at),
        *(span for span in find_spans(statement.text, statement.at) if span.days <= LONGEST_DAYS),
    ]
    return any(one.overlaps(other) for one in hints.spans for other in spans)


def _has_identifiers(hints: Hints, statement: SpeakerCues) -> bool:
    """Return whether the memory holds every identifier and number of the question."""
    text = statement.text.casefold()
    return bool(hints.named.identifiers) and all(is_named(one, text) for one in hints.named.identifiers)


CUES = (
    Cue("identifier", _has_identifiers, 0.25),
    # English, German, Chinese and Japanese.
    Cue("date", _is_dated, 0.15),
    Cue("when", lambda asked, said: asked.when and tells_time(said.text), 0.03),
)


def cues(retrieval: Retrieval, sources: Sources) -> None:
    """Add the bonuses, and sort again."""
    hints = retrieval.hints
    is_weighted = retrieval.method == "weighted" and retrieval.weight < 1.0
    if not is_weighted or not retrieval.profile.cues or not hints.has_cues():
        return
    pool = retrieval.ranked[:_POOL]
    numbers = [candidate.row for candidate in pool if candidate.row > 0]
    with sources.store.reading() as connection:
        texts: dict[int, Row | Beginning] = {**retrieval.recent, **read_beginnings(connection, numbers, _READ_CHARS)}
    counts: dict[str, int] = {}
    for candidate in pool:
        if (memory := texts.get(candidate.row)) is None:  # deleted meanwhile
            continue
        statement = read_said(memory)
        for cue in (cue for cue in CUES if cue.holds(hints, statement)):
            candidate.score += cue.bonus
            candidate.parts[cue.name] = cue.bonus
            candidate.cues += (cue.name,)
            counts[cue.name] = counts.get(cue.name, 0) + 1
    retrieval.ranked.sort(key=order)
    retrieval.notes.update(counts)


def read_said(memory: Row | Beginning) -> SpeakerCues:
    """Return the speaker and time of a memory."""
    about = _decode(memory.metadata) if "speaker" in memory.metadata or "role" in memory.metadata else {}
    text = memory.content[:_READ_CHARS]
    match = _SPEAKER.match(text)
    label = match[1].casefold() if match else ""
    speaker, role = str(about.get("speaker") or label).casefold(), str(about.get("role") or "")
    return SpeakerCues(speaker, role or label, datetime.fromtimestamp(memory.created_at, UTC), text)
