"""Memories shown unasked beside a prompt: only those that are surely about it, mostly none.

A line is a memory that was saved on purpose: what was said in sessions is hardly ever what a prompt needs. It is as
sure as `sureness` rates it or the search says; and where the session has something surer already, it needs nothing
else.
"""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from memoryd.client.protocol import GetUnasked, Search, StageTrace, Trace, UnaskedLine, method_name
from memoryd.daemon.agreement import claims
from memoryd.daemon.context.lines import MOST_CHARS, ContextLine, build_saved_line, find_outdated
from memoryd.daemon.core.core import Core
from memoryd.daemon.search import pipeline
from memoryd.daemon.search.retrieval import Retrieval, Sources, elapsed_ms
from memoryd.daemon.store import queries
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.queries import DRAWN
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L0
from memoryd.daemon.unasked import sureness
from memoryd.daemon.unasked.starting import PREFERENCE, describe_saved, is_for_project, name_asker
from memoryd.daemon.unasked.sureness import Measured

_CONSIDERED = 40  # hits of the search
# The confidence of an answer is seldom above half: of a prompt that asks it counts as if this many hits had it.
_ANSWERS = 4
# Among few memories any word is rare, and a search is sure too soon: there a hit counts if it stands out.
_FEW = 100
_STANDS_OUT = 3.0  # standard deviations of its cosine above others
_CLOSER = 0.1  # by how much the cosine of what is about the same is above that of one subject
_OF_AGENTS = ("agent", "file")  # origins of what an agent may save itself while its session runs
_NOT_SAVED = "only what was saved on purpose comes up; `memctl add` keeps it so"
_NOT_FOR_PROJECT = (
    "of / only your own preferences and what you pinned come up, and of what an agent of another project saved here"
    " only what you confirmed"
)


class PromptLines(NamedTuple):
    """The lines about a prompt, the surest first, with the state of the search that found them and its trace.

    `rows` is what the search found, the nearest first; `left_out` says why one stays out, by id.
    """

    lines: list[ContextLine]
    degraded: list[str]
    trace: Trace
    rows: list[Row]
    left_out: dict[str, str]

    def note_given(self, given: Sequence[ContextLine], new: Sequence[ContextLine], most: int) -> None:
        """Note in the trace which lines are given, of those that are new to the session, `most` at most."""
        self.trace.given = [line.id for line in given]
        for line in self.lines:
            if line.id in self.trace.given or line.id in self.left_out:
                continue
            if line not in new:
                self.left_out[line.id] = "its words are given already"
            else:
                before = "others come first, and " if most else ""
                is_many = line not in new[:most]
                self.left_out[line.id] = f"{before}`prompt_lines` is {most}" if is_many else "no tokens are left for it"
        self.trace.left_out = self.left_out

    def name_nearest(self) -> UnaskedLine | None:
        """Return what came nearest to the prompt of all that stays out, and why it does."""
        row = next((row for row in self.rows if row.id in self.left_out), None)
        if row is None:
            return None
        return UnaskedLine(id=row.id, text=" ".join(row.content[:MOST_CHARS].split()), why=self.left_out[row.id])


class _Rated(NamedTuple):
    """A memory that may come up, how sure it is that it is about the prompt, and what is known of it there."""

    row: Row
    sure: float
    measured: Measured | None


def find(core: Core, sources: Sources, call: GetUnasked, ids: dict[str, bytes]) -> PromptLines:
    """Return what is surely about a prompt; `ids` are what its session had, each with the hash of its content."""
    began_at = time.perf_counter()
    retrieval, stages = pipeline.retrieve(sources, _build_search(call))
    took_ms = elapsed_ms(began_at)
    left_out: dict[str, str] = {}
    with core.store.reading() as connection:
        rated = _rate_all(core, connection, retrieval, call, left_out)
        had = [one for one in rated if ids.get(one.row.id) == one.row.content_hash]
        floor = core.config.hooks.prompt_floor
        least = max([floor, *(one.sure for one in had)])
        best = [one for one in rated if one not in had and one.sure >= least]
    lines = [line for one in best if (line := _build_line(core, one, call)).text]
    needed = f"{least:.0%} needed" + (", as the session was given what is so sure" if least > floor else "")
    left_out |= {one.row.id: _say_unsure(one, needed) for one in rated if one.sure < least}
    left_out |= {one.row.id: "the session was given it" for one in had}
    stage_ms = elapsed_ms(began_at) - took_ms
    found = [one.record for one in retrieval.ranked if one.record]
    stages.append(
        StageTrace(name="sureness", took_ms=stage_ms, entered=len(rated), left=len(lines), notes=_explain(rated))
    )
    about = pipeline.keep_trace(sources, retrieval, stages, took_ms).trace
    about.kind, about.session, about.touch = method_name(type(call)), call.session, call.touch
    return PromptLines(lines, retrieval.degraded, about, found, left_out)


def _say_unsure(one: _Rated, needed: str) -> str:
    """Return why a memory stays out that is less sure than it has to be; rounded down, so that it is less."""
    return f"{math.floor(one.sure * 100)}% sure to be about the prompt, {needed}"


def _explain(rated: Sequence[_Rated]) -> dict[str, dict[str, float]]:
    """Return how sure it is of each memory that it is about the prompt, and why."""
    return {one.row.id: {"sure": one.sure, **(one.measured._asdict() if one.measured else {})} for one in rated}


def _build_search(call: GetUnasked) -> Search:
    """Return the search for what may be about a prompt."""
    return Search(
        query=call.prompt,
        namespace=call.namespace,
        reach=call.reach,
        limit=_CONSIDERED,
        deadline_ms=call.deadline_ms,
        touch=call.touch,
    )


def _rate_all(
    core: Core,
    connection: Connection,
    retrieval: Retrieval,
    call: GetUnasked,
    left_out: dict[str, str],
) -> list[_Rated]:
    """Return what may come up of the hits, the surest first; why another does not is noted in `left_out`, by its id."""
    found: list[tuple[Row, float | None, float]] = []
    for candidate in retrieval.ranked:
        if (row := candidate.record) is None:
            continue
        if not _is_saved(row):
            left_out[row.id] = _NOT_SAVED
        elif not (is_for_project(core, row, call.namespace) and row.source != name_asker(call)):
            left_out[row.id] = _NOT_FOR_PROJECT
        else:
            found.append((row, candidate.similarity, candidate.confidence))
    standing = sureness.read_standing(connection, retrieval, _hold_person_back(core, retrieval, call))
    times = _ANSWERS if any(map(claims.is_question, claims.split_sentences(call.prompt))) else 1
    measured = sureness.measure(retrieval, standing, [(row, similarity) for row, similarity, _ in found])
    rated = [
        _Rated(row, _rate(one, 1.0 - (1.0 - confidence) ** times), one)
        for (row, _, confidence), one in zip(found, measured, strict=True)
    ]
    outdated = find_outdated(connection, [one.row for one in rated], retrieval.chosen, retrieval.passed)
    began = _find_beginning(core, call)
    left_out |= dict.fromkeys(outdated, "something newer contradicts it")
    left_out |= dict.fromkeys(_find_older(connection, retrieval, rated), "something newer is about the same")
    left_out |= {one.row.id: "it is of this session" for one in rated if _is_of_session(core, one.row, call, began)}
    return sorted((one for one in rated if one.row.id not in left_out), key=lambda one: -one.sure)


def _find_older(connection: Connection, retrieval: Retrieval, rated: Sequence[_Rated]) -> set[str]:
    """Return the ids of those memories that may be out of date: a newer one of them is about the same."""
    if retrieval.generation is None:
        return set()
    rows = {one.row.row: one.row for one in rated}
    numbers, matrix = retrieval.generation.read_exact(connection, list(rows))
    found = [rows[number] for number in numbers]
    near = matrix @ matrix.T >= retrieval.generation.embedder.floors.join + _CLOSER
    return {found[old].id for old, new in np.argwhere(near).tolist() if found[old].created_at < found[new].created_at}


def _rate(one: Measured | None, answers: float) -> float:
    """Return how sure it is that a memory is about a prompt; `answers`: how sure the search is of it."""
    if one is None:
        return answers
    return max(one.sure, answers) if one.above >= _STANDS_OUT or one.others >= math.log(_FEW) else one.sure


def _is_saved(row: Row) -> bool:
    """Return whether a memory was saved on purpose."""
    return row.turns == 0 and row.tier != L0 and row.source not in DRAWN


def _hold_person_back(core: Core, retrieval: Retrieval, call: GetUnasked) -> Filter:
    """Return the filter of the search without the memories of the person that do not come up unasked."""
    person = core.store.namespaces.find_number("")
    if not call.namespace or person is None:
        return retrieval.chosen
    return queries.hold_back(retrieval.chosen, person, PREFERENCE)


def _find_beginning(core: Core, call: GetUnasked) -> float | None:
    """Return when the session began, None if that is not known."""
    if not call.session:
        return None
    number = core.store.namespaces.find_number(call.namespace)
    turns = core.active.list_turns(frozenset([number])) if number is not None else []
    first = [turn.created_at for turn in turns if turn.session == call.session]
    return min(first, default=None)


def _is_of_session(core: Core, row: Row, call: GetUnasked, began: float | None) -> bool:
    """Return whether a memory was saved for the project of the session while that ran.

    It counts only if agents save so: the user may have saved the rest elsewhere.
    """
    is_own = core.store.namespaces.name(row.namespace) == call.namespace
    return is_own and row.origin in _OF_AGENTS and began is not None and row.created_at >= began


def _build_line(core: Core, one: _Rated, call: GetUnasked) -> ContextLine:
    why = f"{describe_saved(core, one.row, call.namespace)}, {one.sure:.0%} sure to be about the prompt"
    return build_saved_line(one.row, "", why, call.prompt)
