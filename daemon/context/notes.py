"""What may go into a context: the memories that a task needs, and those that every task does.

*Standing* is what is pinned and what corrected an agent once: it is in every context, in the order in which it came
in, so that a context begins with the same bytes as long as none of these memories changes. The rest is what a search
for the task finds, as far as it is relevant: by meaning above the model's floor, or by most of the task's rare words.
"""

from typing import Any, NamedTuple

import msgspec

from memoryd.client.protocol import GetContext, Hit, Search, Trace, method_name
from memoryd.client.protocol.base import Filtered
from memoryd.daemon.core.core import Core
from memoryd.daemon.search import pipeline
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import queries
from memoryd.daemon.store.filters import compile_filter
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L0

CORRECTION = "correction"
CONSIDERED = 40  # hits of the search
_NAME_CHARS = 60
_STANDING = 64  # memories, the latest


class Found(NamedTuple):
    """The relevant hits, best first, with the state of the search that found them."""

    hits: list[Hit]
    retrieval: Retrieval
    trace: Trace


def find_standing(core: Core, call: GetContext) -> list[Row]:
    """Return what every context within reach holds, the latest first."""
    chosen = compile_filter(call, core.store.namespaces)
    with core.store.reading() as connection:
        return queries.find_standing(connection, chosen, core.clock.read_elapsed(), CORRECTION, _STANDING)


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


def find(sources: Sources, call: GetContext) -> Found:
    """Return what a search for the task finds that is relevant."""
    filters = {name: getattr(call, name) for name in Filtered.__struct_fields__}
    search = Search(query=call.task, limit=CONSIDERED, deadline_ms=call.deadline_ms, **filters)
    retrieval, kept = pipeline.run(sources, search)
    about = kept.trace
    about.kind, about.session, about.given = method_name(type(call)), call.session, []
    about.touch = call.touch
    relevant = [hit for hit in retrieval.hits if retrieval.is_relevant(hit.similarity, hit.bm25)]
    return Found(relevant, retrieval, about)
