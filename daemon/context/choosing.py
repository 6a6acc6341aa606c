"""Select the memories for a context.

*Standing* memories, which are pinned ones and corrections of an agent, are in every context, in the order in which they
were added, so that contexts begin with the same bytes as long as none of them changes. The others are the relevant hits
of a search for the task: above the model's floor, or with most of the task's rare words.
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
LIMIT = 40  # hits of the search
_NAME_CHARS = 60
_SUMMARY_HEAD = re.compile(r"\ASession [^\n]*, \d{4}-\d\d-\d\d:\n")
_STANDING = 64  # memories, the latest


class RelevantNotes(NamedTuple):
    """The relevant hits, best first, with the state of the search that found them."""

    hits: list[Hit]
    retrieval: Retrieval
    trace: Trace


def find_standing(core: Core, call: GetContext) -> list[Row]:
    """Return the standing memories within reach, the latest first."""
    selection = compile_filter(call, core.store.namespaces)
    with core.store.reading() as connection:
        return queries.find_standing(connection, selection, core.clock(), CORRECTION, _STANDING)


def session_of(row: Row) -> str | None:
    """Return the session that a memory comes from, if any."""
    if '"session"' not in row.metadata:
        return None
    about: dict[str, Any] = msgspec.json.decode(row.metadata)
    return str(about.get("session", ""))


def are_named(records: Iterable[Row]) -> bool:
    """Return whether most turns begin with the name of their speaker (`Ada: …`)."""
    labels = [bool(_find_label(row.content)) for row in records if _is_turn(row)]
    return 2 * sum(labels) > len(labels)


def read_said(row: Row, named: bool) -> tuple[str, str]:
    """Return the speaker of a turn (name, else role) and its text; other memories have no speaker.

    A label at the beginning counts as the speaker's name only if turns are `named`; otherwise it may be any word. The
    first line of a session summary, which names the session, is left out, since its date is shown above.
    """
    if not _is_turn(row):
        return "", _SUMMARY_HEAD.sub("", row.content) if row.source == SUMMARY else row.content
    about: dict[str, Any] = msgspec.json.decode(row.metadata)
    speaker, role = str(about.get("speaker") or ""), str(about.get("role") or "")
    label = _find_label(row.content)
    names = {speaker.casefold(), "" if speaker else role.casefold()}
    if label and (label.casefold() in names or (named and not speaker)):
        return label, row.content[len(label) + 2 :]
    return (speaker or role)[:_NAME_CHARS], row.content


def _is_turn(row: Row) -> bool:
    return row.turns == 1 or row.tier == L0


def _find_label(text: str) -> str:
    label = talk.find_speaker(text)
    return label if text.startswith(f"{label}: ") else ""


def find(sources: Sources, call: GetContext) -> RelevantNotes:
    """Search for the task, and return the relevant hits."""
    filters = {name: getattr(call, name) for name in Filtered.__struct_fields__}
    search = Search(query=call.task, limit=LIMIT, deadline_ms=call.deadline_ms, **filters)
    retrieval, trace = pipeline.run(sources, search)
    about = trace.trace
    about.kind, about.session, about.given = method_name(type(call)), call.session, []
    about.touch = call.touch
    relevant = [hit for hit in retrieval.hits if retrieval.is_relevant(hit.similarity, hit.bm25)]
    return RelevantNotes(relevant, retrieval, about)
