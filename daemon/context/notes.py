"""What may go into a context: the memories that a task needs, and those that every task does.

*Standing* is what is pinned and what corrected an agent once: it is in every context, in the order in which it came
in, so that a context begins with the same bytes as long as none of these memories changes. The rest is what a search
for the task finds, as far as it is relevant: by meaning above the model's floor, or by most of the task's rare words.

What comes up though nobody asked, at a session's start or beside a prompt, costs the attention of whoever reads it, so
it is held to more. Turns of low importance are left out. By the confidence of its hits a short prompt gets much, little
or nothing: where the best is surely about it, all that is not far less sure; else the best `FEW` in at most
`FEW_TOKENS`, unless they have nothing to do with it. A long prompt says too much for its words to be counted.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from memoryd.client.protocol import GetContext, Hit, Search, Trace, method_name
from memoryd.client.protocol.base import Filtered
from memoryd.daemon.core.core import Core
from memoryd.daemon.search import pipeline
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import queries, turns
from memoryd.daemon.store.filters import compile_filter
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L0

CORRECTION = "correction"
CONSIDERED = 40  # hits of the search
_NAME_CHARS = 60
_STANDING = 64  # memories, the latest
SUMMARY = "session_summary"
_LATEST, _OPENING = 200, 12  # memories that are considered before there is a task, and that are given
_FADES_S = 14 * 86400.0  # what is important counts half as much after two weeks
FEW, FEW_TOKENS = 2, 50
_SHORT_WORDS = 20
_SURE, _LEAST = 0.30, 0.05  # confidence
_OF_BEST = 0.2
_BEST = 3  # hits of which one has to be sure


class Found(NamedTuple):
    """The relevant hits, best first, with the state of the search that found them."""

    hits: list[Hit]
    retrieval: Retrieval
    trace: Trace
    sure: bool = True  # that one is about the task


def find_standing(core: Core, call: GetContext) -> list[Row]:
    """Return what every context within reach holds, the latest first."""
    chosen = compile_filter(call, core.store.namespaces)
    with core.store.reading() as connection:
        return queries.find_standing(connection, chosen, core.clock.read_elapsed(), CORRECTION, _STANDING)


def read_latest(core: Core, call: GetContext) -> list[Row]:
    """Return what is worth knowing before there is a task, best first: the last session's summary, then the important
    of late. Turns of low importance are left out, and parts of files: agents read those that matter to them anyway."""
    now, least = core.clock(), core.config.tiers.promote_from
    chosen = compile_filter(call, core.store.namespaces)
    with core.store.reading() as connection:
        recent = queries.find_latest(connection, chosen, core.clock.read_elapsed(), least, _LATEST)
    summary = next((row for row in recent if row.source == SUMMARY), None)
    own = call.session or None
    others = [row for row in recent if row.source != SUMMARY and (own is None or session_of(row) != own)]
    others.sort(key=lambda row: -row.importance * 0.5 ** ((now - row.created_at) / _FADES_S))
    return [*([summary] if summary else []), *others[:_OPENING]]


def session_of(row: Row) -> str | None:
    """Return the session that a memory came out of, if any."""
    if '"session"' not in row.metadata:
        return None
    about: dict[str, Any] = msgspec.json.decode(row.metadata)
    return str(about.get("session", ""))


def find_speaker(row: Row) -> str:
    """Return who said a turn: its speaker's name, or the role; empty for what nobody said."""
    if row.turns != 1 and row.tier != L0:
        return ""
    about: dict[str, Any] = msgspec.json.decode(row.metadata)
    return str(about.get("speaker") or about.get("role") or "")[:_NAME_CHARS]


def find(sources: Sources, call: GetContext, promote_from: float) -> Found:
    """Return what a search for the task finds that is relevant, or worth to come up unasked."""
    filters = {name: getattr(call, name) for name in Filtered.__struct_fields__}
    search = Search(query=call.task, limit=CONSIDERED, deadline_ms=call.deadline_ms, **filters)
    retrieval, kept = pipeline.run(sources, search)
    about = kept.trace
    about.kind, about.session, about.given = method_name(type(call)), call.session, []
    about.touch = call.touch
    relevant = [hit for hit in retrieval.hits if retrieval.is_relevant(hit.similarity, hit.bm25)]
    found = Found(relevant, retrieval, about)
    return _select_unasked(found, call, promote_from) if call.unasked or call.opening else found


def _select_unasked(found: Found, call: GetContext, promote_from: float) -> Found:
    """Return what of the hits comes up though nobody asked; where none is sure, no more than `FEW`."""
    if not is_short(call.task):
        return found._replace(hits=select_important(found.hits, promote_from))
    worth, sure = select_worth(select_important(found.retrieval.hits, promote_from))
    if call.opening:
        return found._replace(hits=worth if sure else [])
    return found._replace(hits=worth if sure else worth[:FEW], sure=sure)


def is_short(task: str) -> bool:
    """Return whether a task says so little that it is like a question."""
    return len(task.split()) <= _SHORT_WORDS


def select_important(hits: Sequence[Hit], promote_from: float) -> list[Hit]:
    """Return the hits without turns of low importance."""
    return [hit for hit in hits if hit.type != turns.TYPE or hit.importance >= promote_from]


def select_worth(hits: Sequence[Hit]) -> tuple[list[Hit], bool]:
    """Return the hits of a short task that are worth to come up unasked, and whether one is surely about it."""
    best = max((hit.confidence for hit in hits[:_BEST]), default=0.0)
    least = max(_LEAST, _OF_BEST * best)
    return [hit for hit in hits if hit.confidence >= least], best >= _SURE
