"""Choose the memories that are shown with a prompt: only those that are very likely about it, usually none.

Only memories that were saved on purpose are considered, since turns of sessions are hardly ever what a prompt needs. A
memory is shown if its probability, from `sureness` or from the search's confidence, reaches the floor and that of every
hit that the session was given before.
"""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from memoryd.client.protocol import GetUnasked, Search, StageTrace, Trace, UnaskedLine, method_name
from memoryd.daemon.context.unasked_lines import MAX_CHARS, ContextLine, build_saved_line, find_outdated
from memoryd.daemon.core.core import Core
from memoryd.daemon.language.sentences import is_question, split_sentences
from memoryd.daemon.search import pipeline
from memoryd.daemon.search.precedence import find_apart
from memoryd.daemon.search.retrieval import Retrieval, Sources, elapsed_ms
from memoryd.daemon.store import queries
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.queries import DRAWN
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L0
from memoryd.daemon.unasked import sureness
from memoryd.daemon.unasked.starting import PREFERENCE, describe_saved, is_for_project, name_asker
from memoryd.daemon.unasked.sureness import Measured

_LIMIT = 40  # hits of the search
# Confidences are seldom above one half. For a prompt that asks a question c is raised to 1 - (1 - c) ** _EXPONENT.
_EXPONENT = 4
# In a small store all words are rare, and the search is too confident: its confidence counts only for outliers.
_FEW = 100
_STANDS_OUT = 3.0  # standard deviations of the cosine above the mean of the others
_CLOSER = 0.1  # added to the floor `join`: memories with a higher cosine are about the same thing
_OF_AGENTS = ("agent", "file")  # origins of memories that an agent may have saved in its own session
_NOT_SAVED = "only memories that were saved on purpose are shown; `memctl add` saves one"
_NOT_FOR_PROJECT = (
    "from / only your own preferences and pinned memories are shown, and of what an agent of another project saved here"
    " only what you confirmed"
)


class PromptLines(NamedTuple):
    """The lines for a prompt, the most probable first, and the trace of the search that found them.

    `rows` are the rows that the search found, the nearest first; `left_out` has by id why a row is not shown.
    """

    lines: list[ContextLine]
    degraded: list[str]
    trace: Trace
    rows: list[Row]
    left_out: dict[str, str]

    def note_given(self, given: Sequence[ContextLine], new: Sequence[ContextLine], most: int) -> None:
        """Record in the trace which lines are given, of those new to the session at most `most`."""
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
        """Return the memory nearest to the prompt that is not shown, and why; None if there is none."""
        row = next((row for row in self.rows if row.id in self.left_out), None)
        if row is None:
            return None
        return UnaskedLine(id=row.id, text=" ".join(row.content[:MAX_CHARS].split()), why=self.left_out[row.id])


class _Rated(NamedTuple):
    """A memory that may be shown, the probability that it is about the prompt, and the measurements behind it."""

    row: Row
    sure: float
    measured: Measured | None


def find(core: Core, sources: Sources, call: GetUnasked, ids: dict[str, bytes]) -> PromptLines:
    """Return the lines for a prompt; `ids` maps the memories that the session was given to their content hashes."""
    began_at = time.perf_counter()
    search = Search(
        query=call.prompt,
        namespace=call.namespace,
        reach=call.reach,
        limit=_LIMIT,
        deadline_ms=call.deadline_ms,
        touch=call.touch,
    )
    retrieval, stages = pipeline.retrieve(sources, search, is_prompt=True)
    took_ms = elapsed_ms(began_at)
    left_out: dict[str, str] = {}
    with core.store.reading() as connection:
        rated = _rate_all(core, sources, connection, retrieval, call, left_out)
        given_before = [one for one in rated if ids.get(one.row.id) == one.row.content_hash]
        floor = core.config.hooks.prompt_floor
        least = max([floor, *(one.sure for one in given_before)])
        best = [one for one in rated if one not in given_before and one.sure >= least]
    lines = []
    for one in best:
        why = f"{describe_saved(core, one.row, call.namespace)}, {one.sure:.0%} confident that it is about the prompt"
        if (line := build_saved_line(one.row, "", why, call.prompt)).text:
            lines.append(line)
    because = ", as the session already received a line of that confidence" if least > floor else ""
    needed = f"{least:.0%} needed{because}"
    for one in rated:
        if one.sure < least:  # rounded down, so that it is not shown as equal to the floor
            sure = f"{math.floor(one.sure * 100)}%"
            left_out[one.row.id] = f"{sure} confident that it is about the prompt, {needed}"
    left_out |= {one.row.id: "the session already received it" for one in given_before}
    stage_ms = elapsed_ms(began_at) - took_ms
    found = [one.record for one in retrieval.ranked if one.record]
    measured = {one.row.id: one.measured._asdict() if one.measured else {} for one in rated}
    notes = {one.row.id: {"sure": one.sure, **measured[one.row.id]} for one in rated}
    stages.append(StageTrace(name="sureness", took_ms=stage_ms, entered=len(rated), left=len(lines), notes=notes))
    about = pipeline.keep_trace(sources, retrieval, stages, took_ms).trace
    about.kind, about.session, about.touch = method_name(type(call)), call.session, call.touch
    return PromptLines(lines, retrieval.degraded, about, found, left_out)


def _rate_all(
    core: Core,
    sources: Sources,
    connection: Connection,
    retrieval: Retrieval,
    call: GetUnasked,
    left_out: dict[str, str],
) -> list[_Rated]:
    """Return the hits that may be shown, the most probable first; add to `left_out` why the others may not."""
    found: list[tuple[Row, float | None, float]] = []
    for candidate in retrieval.ranked:
        if (row := candidate.record) is None:
            continue
        if row.turns or row.tier == L0 or row.source in DRAWN:
            left_out[row.id] = _NOT_SAVED
        elif not (is_for_project(core, row, call.namespace) and row.source != name_asker(call)):
            left_out[row.id] = _NOT_FOR_PROJECT
        else:
            found.append((row, candidate.similarity, candidate.confidence))
    selection, person = retrieval.chosen, core.store.namespaces.find_number("")
    if call.namespace and person is not None:  # without memories of the root that are never shown automatically
        selection = queries.hold_back(selection, person, PREFERENCE)
    standing = sureness.read_standing(connection, retrieval, selection)
    exponent = _EXPONENT if any(map(is_question, split_sentences(call.prompt))) else 1
    measured = sureness.measure(retrieval, standing, [(row, similarity) for row, similarity, _ in found])
    rated = [
        _Rated(row, _rate(one, 1.0 - (1.0 - confidence) ** exponent), one)
        for (row, _, confidence), one in zip(found, measured, strict=True)
    ]
    outdated = find_outdated(connection, [one.row for one in rated], retrieval.chosen, retrieval.passed)
    records = {one.row.row: one.row for one in rated}
    older = {pair[1] for pair in find_apart(retrieval, sources, connection, list(records.values()))}
    outdated |= {records[row].id for row in older if row in records and not records[row].pinned}
    began = _find_beginning(core, call)
    left_out |= dict.fromkeys(outdated, "something newer contradicts it")
    left_out |= dict.fromkeys(_find_older(connection, retrieval, rated), "something newer is about the same")
    left_out |= {one.row.id: "this session saved it" for one in rated if _is_of_session(core, one.row, call, began)}
    return sorted((one for one in rated if one.row.id not in left_out), key=lambda one: -one.sure)


def _find_older(connection: Connection, retrieval: Retrieval, rated: Sequence[_Rated]) -> set[str]:
    """Return the ids of memories that may be out of date, since a newer one among them is about the same thing."""
    if retrieval.generation is None:
        return set()
    rows = {one.row.row: one.row for one in rated}
    vector_of = retrieval.read_vectors(connection, list(rows))
    if not vector_of:
        return set()
    found, matrix = [rows[number] for number in vector_of], np.stack(list(vector_of.values()))
    near = matrix @ matrix.T >= retrieval.generation.embedder.floors.join + _CLOSER
    return {found[old].id for old, new in np.argwhere(near).tolist() if found[old].created_at < found[new].created_at}


def _rate(one: Measured | None, answers: float) -> float:
    """Return the probability that a memory is about a prompt; `answers` is that of the search."""
    if one is None:
        return answers
    return max(one.sure, answers) if one.above >= _STANDS_OUT or one.others >= math.log(_FEW) else one.sure


def _find_beginning(core: Core, call: GetUnasked) -> float | None:
    """Return the time of the session's first turn, None if it is unknown."""
    if not call.session:
        return None
    number = core.store.namespaces.find_number(call.namespace)
    turns = core.active.list_turns(frozenset([number])) if number is not None else []
    first = [turn.created_at for turn in turns if turn.session == call.session]
    return min(first, default=None)


def _is_of_session(core: Core, row: Row, call: GetUnasked, began: float | None) -> bool:
    """Return whether an agent saved a memory for this project since the session began, so that the agent knows it.

    Memories with other origins may have been saved by the user elsewhere.
    """
    is_own = row.namespace == core.store.namespaces.find_number(call.namespace)
    return is_own and row.origin in _OF_AGENTS and began is not None and row.created_at >= began
