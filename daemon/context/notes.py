"""What may go into a context: the memories that a task needs, and those that every task does.

*Standing* is what is pinned and what corrected an agent once: it is in every context, in the order in which it came
in, so that a context begins with the same bytes as long as none of these memories changes. The rest is what a search
for the task finds, as far as it is relevant: by meaning above the model's floor, or by most of the task's rare words.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from memoryd.client.protocol import GetContext, Hit, Search, Trace, method_name
from memoryd.client.protocol.base import Filtered
from memoryd.daemon.core.core import Core
from memoryd.daemon.language import talk
from memoryd.daemon.search import pipeline
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store import queries
from memoryd.daemon.store.filters import compile_filter
from memoryd.daemon.store.queries import SUMMARY
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L0

CORRECTION = "correction"
CONSIDERED = 40  # hits of the search
_NAME_CHARS = 60
_SUMMED_UP = re.compile(r"\ASession [^\n]*, \d{4}-\d\d-\d\d:\n")
_STANDING = 64  # memories, the latest


class RelevantNotes(NamedTuple):
    """The relevant hits, best first, with the state of the search that found them."""

    hits: list[Hit]
    retrieval: Retrieval
    trace: Trace


def find_standing(core: Core, call: GetContext) -> list[Row]:
    """Return what every context within reach holds, the latest first."""
    selection = compile_filter(call, core.store.namespaces)
    with core.store.reading() as connection:
        return queries.find_standing(connection, selection, core.clock(), CORRECTION, _STANDING)


def session_of(row: Row) -> str | None:
    """Return the session that a memory came out of, if any."""
    if '"session"' not in row.metadata:
        return None
    about: dict[str, Any] = msgspec.json.decode(row.metadata)
    return str(about.get("session", ""))


def are_named(records: Iterable[Row]) -> bool:
    """Return whether most of some turns begin with the name of who said them (`Ada: …`)."""
    labels = [bool(_find_label(row.content)) for row in records if _is_said(row)]
    return 2 * sum(labels) > len(labels)


def read_said(row: Row, named: bool) -> tuple[str, str]:
    """Return who said a turn, by name or else by role, and what was said; nobody says a memory of another kind.

    Where turns are `named`, a name before what is said is its speaker; elsewhere it may be any word. A summary of a
    session is without its first line, which says of which session: its date stands above it.
    """
    if not _is_said(row):
        return "", _SUMMED_UP.sub("", row.content) if row.source == SUMMARY else row.content
    about: dict[str, Any] = msgspec.json.decode(row.metadata)
    speaker, role = str(about.get("speaker") or ""), str(about.get("role") or "")
    label = _find_label(row.content)
    names = {speaker.casefold(), "" if speaker else role.casefold()}
    if label and (label.casefold() in names or (named and not speaker)):
        return label, row.content[len(label) + 2 :]
    return (speaker or role)[:_NAME_CHARS], row.content


def _is_said(row: Row) -> bool:
    return row.turns == 1 or row.tier == L0


def _find_label(text: str) -> str:
    label = talk.find_speaker(text)
    return label if text.startswith(f"{label}: ") else ""


def find(sources: Sources, call: GetContext) -> RelevantNotes:
    """Return what a search for the task finds that is relevant."""
    filters = {name: getattr(call, name) for name in Filtered.__struct_fields__}
    search = Search(query=call.task, limit=CONSIDERED, deadline_ms=call.deadline_ms, **filters)
    retrieval, trace = pipeline.run(sources, search)
    about = trace.trace
    about.kind, about.session, about.given = method_name(type(call)), call.session, []
    about.touch = call.touch
    relevant = [hit for hit in retrieval.hits if retrieval.is_relevant(hit.similarity, hit.bm25)]
    return RelevantNotes(relevant, retrieval, about)
