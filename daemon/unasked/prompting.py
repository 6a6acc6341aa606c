"""Memories shown unasked beside a prompt: only those that are surely about it, mostly none.

A line is a memory that was saved on purpose, or of another session what an agent stated, or what the user laid down and
the agent took up: no guess, no question, nothing that was taken back or changed later. It is as sure as `sureness`
rates it or the search says; and where the session has something surer already, it needs nothing else.
"""

import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from memoryd.client.inert import make_inert
from memoryd.client.protocol import GetUnasked, Search, StageTrace, Trace, UnaskedLine, method_name
from memoryd.daemon.agreement import claims
from memoryd.daemon.agreement.changes import NEAR, find_change, find_common
from memoryd.daemon.context.lines import (
    MOST_CHARS,
    CandidateTurn,
    ContextLine,
    build_saved_line,
    choose_sentences,
    find_outdated,
)
from memoryd.daemon.conversations.tables import sessions
from memoryd.daemon.core.core import Core
from memoryd.daemon.language.tongues import find_language, is_telling
from memoryd.daemon.search import pipeline
from memoryd.daemon.search.related import links_of
from memoryd.daemon.search.retrieval import Retrieval, Sources, elapsed_ms
from memoryd.daemon.store import queries, turns
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.queries import DRAWN, Provenance
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L0
from memoryd.daemon.store.tokenizer import stem_words
from memoryd.daemon.unasked import sureness
from memoryd.daemon.unasked.starting import PREFERENCE, describe_saved, is_for_project, name_asker
from memoryd.daemon.unasked.sureness import Measured

CHANGED = "change:"  # before the id of a memory that a session was told of because a prompt changes it
_CHANGED_WORDS = 10
_SURELY_CHANGED = 0.7  # from which on that is told
_CONSIDERED = 40  # hits of the search
# The confidence of an answer is seldom above half: of a prompt that asks it counts as if this many hits had it.
_ANSWERS = 4
# Among few memories any word is rare, and a search is sure too soon: there a hit counts if it stands out.
_FEW = 100
_STANDS_OUT = 3.0  # standard deviations of its cosine above others
MORE = 0.15  # how much surer it must be of a second line
_FOLLOWING = 2  # turns that may take back what was said
_OF_AGENTS = ("agent", "file")  # origins of what an agent may save itself while its session runs
_OTHER_COUNTS = "the other turn of its exchange counts in its place"
_NOT_TAKEN_UP = (
    "what a user says comes up where an agent's reply says it too, and no reply near the prompt does;"
    " `memctl add` keeps it on purpose"
)
_NOT_FOR_PROJECT = (
    "of / only your own preferences and what you pinned come up, and of what an agent of another project saved here"
    " only what you confirmed"
)
_ASKS = "it asks, guesses or does not know"


class PromptLines(NamedTuple):
    """The lines about a prompt, the surest first, with the state of the search that found them and its trace.

    `rows` is what the search found, the nearest first; `left_out` says why one stays out, by id. `changed` is the line
    on the saved memory that the prompt itself changes.
    """

    lines: list[ContextLine]
    degraded: list[str]
    trace: Trace
    rows: list[Row]
    left_out: dict[str, str]
    changed: list[ContextLine]

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
        """Return what came nearest to the prompt of all that stays out, and why it does.

        A turn for which the other one of its exchange counts is passed over: that one has a reason, or is given.
        A question or request is named only where there is nothing else, as it never comes up.
        """
        rows = [row for row in self.rows if self.left_out.get(row.id, _OTHER_COUNTS) != _OTHER_COUNTS]
        if not rows:
            return None
        row = next(filter(_may_state, rows), rows[0])
        return UnaskedLine(id=row.id, text=" ".join(row.content[:MOST_CHARS].split()), why=self.left_out[row.id])


class _Rated(NamedTuple):
    """A memory or turn that may come up, how sure it is that it is about the prompt, and what is known of it there."""

    row: Row
    kind: Provenance
    sure: float
    measured: Measured | None
    stated: tuple[str, ...] = ()  # by a turn
    partner: Row | None = None  # what it replies to, or its reply

    def is_among(self, given: dict[str, bytes]) -> bool:
        """Return whether it, or the other turn of its exchange, is among what was given, as it was then."""
        return any(given.get(row.id) == row.content_hash for row in (self.row, self.partner) if row)


def find(core: Core, sources: Sources, call: GetUnasked, ids: dict[str, bytes]) -> PromptLines:
    """Return what is surely about a prompt; `ids` are what its session had, each with the hash of its content."""
    began_at = time.perf_counter()
    retrieval, stages = pipeline.retrieve(sources, _build_search(call))
    took_ms = elapsed_ms(began_at)
    left_out: dict[str, str] = {}
    changed = _find_changed(core, retrieval, call, ids)
    with core.store.reading() as connection:
        rated = _rate_all(core, connection, retrieval, call, left_out)
        had = [one for one in rated if one.is_among(ids)]
        floor = core.config.hooks.prompt_floor
        least = max([floor, *(one.sure for one in had)])
        surest = [one for one in rated if one not in had and one.sure >= least]
        # Beside a first line a second one has to be worth more: the prompt may have got what it needs.
        best = [one for at, one in enumerate(surest) if at == 0 or one.sure >= floor + MORE]
        lines = [line for one in best if (line := _make_line(core, connection, one, call, left_out)).text]
    needed = f"{least:.0%} needed" + (", as the session was given what is so sure" if least > floor else "")
    left_out |= {one.row.id: _say_unsure(one, needed) for one in rated if one.sure < least}
    left_out |= {
        one.row.id: _say_unsure(one, f"{floor + MORE:.0%} needed beside a first line")
        for one in surest
        if one not in best
    }
    left_out |= {one.row.id: "the session was given it" for one in had}
    stage_ms = elapsed_ms(began_at) - took_ms
    found = [row for one in retrieval.ranked for row in (one.record, *one.related) if row]
    stages.append(
        StageTrace(name="sureness", took_ms=stage_ms, entered=len(rated), left=len(lines), notes=_explain(rated))
    )
    about = pipeline.keep_trace(sources, retrieval, stages, took_ms).trace
    about.kind, about.session, about.touch = method_name(type(call)), call.session, call.touch
    lines = [line for line in lines if line.id not in {one.id for one in changed}]
    return PromptLines(lines, retrieval.degraded, about, found, left_out, changed)


def _find_changed(core: Core, retrieval: Retrieval, call: GetUnasked, ids: dict[str, bytes]) -> list[ContextLine]:
    """Return a short line on the saved memory that a prompt says is changed, once a session."""
    saved = [
        (row, NEAR if candidate.similarity is None else candidate.similarity)
        for candidate in retrieval.ranked
        if (row := candidate.record) and _find_kind(row) == "saved" and _may_come_up(core, row, call)
    ]
    common = find_common([row.content for row, _ in saved])
    found = [
        (change.sure, near, row)
        for row, near in saved
        if f"{CHANGED}{row.id}" not in ids
        and (change := find_change(row.content, call.prompt, (), near, "user", common))
        and change.sure >= _SURELY_CHANGED
    ]
    if not found:
        return []
    row = max(found, key=lambda one: one[:2])[2]
    day = f"{datetime.fromtimestamp(row.created_at, UTC):%Y-%m-%d}"
    words = make_inert(row.content).split()
    told = " ".join(words[:_CHANGED_WORDS]) + (" …" if len(words) > _CHANGED_WORDS else "")
    text = f"Saved on {day}; this prompt may change it: {told}"
    return [ContextLine(row.id, row.row, row.content_hash, "", text, "the prompt seems to change it")]


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
    """Return what may come up of the hits and of the answers that come with them, the surest first.

    Why another does not is noted in `left_out`, by its id.
    """
    by_id: dict[str, tuple[Row, Provenance, float | None, float]] = {}
    for candidate in retrieval.ranked:
        shown = [row for row in (candidate.record, *candidate.related) if row]
        asks = any(_is_question(row.content) for row in shown if CandidateTurn.read(row).role == "user")
        for row in shown:
            kind = _find_kind(row)
            if row.id in by_id:
                continue
            if kind is None:
                left_out[row.id] = "only what was saved on purpose or stated in a session comes up"
            elif not _may_come_up(core, row, call):
                left_out[row.id] = _NOT_FOR_PROJECT
            # What comes with a question answers it; what comes with a statement has to be about the same.
            elif kind == "said" and not asks and not _holds_word(connection, retrieval, row.content):
                left_out[row.id] = "it has no word of the prompt that tells anything"
            else:
                similarity = candidate.similarity if row is candidate.record else None
                by_id[row.id] = row, kind, similarity, candidate.confidence
    standing = sureness.read_standing(connection, retrieval, _hold_person_back(core, retrieval, call))
    inputs = [sureness.Given(kind, row.row, row.content, similarity) for row, kind, similarity, _ in by_id.values()]
    times = _ANSWERS if _is_question(call.prompt) else 1
    rated = [
        _Rated(row, kind, _rate(one, 1.0 - (1.0 - confidence) ** times), one)
        for (row, kind, _, confidence), one in zip(
            by_id.values(), sureness.measure(retrieval, standing, inputs), strict=True
        )
    ]
    outdated = find_outdated(connection, [one.row for one in rated], retrieval.chosen, retrieval.passed)
    began = _find_beginning(core, call)
    left_out |= dict.fromkeys(outdated, "something newer contradicts it")
    left_out |= {one.row.id: "it is of this session" for one in rated if _is_of_session(core, one.row, call, began)}
    new = [one for one in rated if one.row.id not in left_out]
    return sorted(_leave_out_changed(_choose_of_exchanges(new, left_out), left_out), key=lambda one: -one.sure)


def _leave_out_changed(rated: Sequence[_Rated], left_out: dict[str, str]) -> list[_Rated]:
    """Return memories without turns of which a later one in the same namespace tells that something changed."""
    said = [(CandidateTurn.read(one.row).order, one) for one in rated if one.kind == "said"]
    for order, one in said:
        others = [other for its, other in said if its > order and other.row.namespace == one.row.namespace]
        changes = claims.list_changes(sentence for other in others for sentence in other.stated)
        if any(claims.is_changed(sentence, changes) for sentence in one.stated):
            left_out[one.row.id] = "a later statement tells that something changed"
    return [one for one in rated if one.row.id not in left_out]


def _choose_of_exchanges(rated: Sequence[_Rated], left_out: dict[str, str]) -> list[_Rated]:
    """Return what states something; of what a user laid down and the reply that took it up only the surer one.

    A reply is as sure as what it replies to.
    """
    by_id = {one.row.id: one for one in rated}
    chosen: list[_Rated] = []
    for one in rated:
        if one.kind == "saved":
            chosen.append(one)
        elif CandidateTurn.read(one.row).role == "assistant":
            asked = by_id.get(links_of(one.row).question or "")
            stated = CandidateTurn.read(one.row).list_statements()
            if asked is None or asked.sure < one.sure:
                chosen.append(one._replace(stated=stated, partner=asked.row if asked else None))
            elif told := claims.list_taken_up(asked.row.content, one.row.content):
                chosen.append(asked._replace(stated=tuple(told), partner=one.row))
            else:
                chosen.append(one._replace(stated=stated, sure=asked.sure, partner=asked.row))
    left = [one for one in chosen if one.kind == "saved" or one.stated]
    there = {one.row.id for one in left}
    others = {one.partner.id for one in left if one.partner}
    for one in rated:
        if one.row.id in others - there:
            left_out[one.row.id] = _OTHER_COUNTS
        elif one.row.id not in there:
            is_users = CandidateTurn.read(one.row).role == "user"
            left_out[one.row.id] = _NOT_TAKEN_UP if is_users and _may_state(one.row) else _ASKS
    return left


def _rate(one: Measured | None, answers: float) -> float:
    """Return how sure it is that a memory is about a prompt; `answers`: how sure the search is of it."""
    if one is None:
        return answers
    return max(one.sure, answers) if one.above >= _STANDS_OUT or one.others >= math.log(_FEW) else one.sure


def _holds_word(connection: Connection, retrieval: Retrieval, text: str) -> bool:
    """Return whether a text holds a telling word of the prompt, or is in another language."""
    asked = {word.stem for word in (retrieval.question.words if retrieval.question else ()) if is_telling(word.text)}
    languages = {find_language(text), find_language(retrieval.call.query)} - {""}
    return len(languages) > 1 or not asked.isdisjoint(stem_words(connection, text))


def _is_question(text: str) -> bool:
    return any(map(claims.is_question, claims.split_sentences(text)))


def _may_state(row: Row) -> bool:
    """Return whether a memory was not said in a session, or has a sentence that states something."""
    if _find_kind(row) != "said":
        return True
    return any(claims.is_whole(one) and not claims.is_asking(one) for one in claims.split_sentences(row.content))


def _find_kind(row: Row) -> Provenance | None:
    """Return what a memory is here: saved on purpose, said by an agent, or nothing that comes up."""
    if row.turns == 0 and row.tier != L0:
        return None if row.source in DRAWN else "saved"
    return "said" if CandidateTurn.read(row).role in ("user", "assistant") else None


def _may_come_up(core: Core, row: Row, call: GetUnasked) -> bool:
    return is_for_project(core, row, call.namespace) and row.source != name_asker(call)


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
    """Return whether a memory came out of the session itself: said in it, or kept for its project meanwhile.

    What is saved on purpose meanwhile counts only if agents save so: the user may have saved the rest elsewhere.
    """
    if not call.session:
        return False
    if CandidateTurn.read(row).session == call.session:
        return True
    is_own = core.store.namespaces.name(row.namespace) == call.namespace
    may_be_agents = _find_kind(row) != "saved" or row.origin in _OF_AGENTS
    return is_own and may_be_agents and began is not None and row.created_at >= began


def _make_line(
    core: Core, connection: Connection, one: _Rated, call: GetUnasked, left_out: dict[str, str]
) -> ContextLine:
    why = f"{one.sure:.0%} sure to be about the prompt"
    if one.kind == "saved":
        why = f"{describe_saved(core, one.row, call.namespace)}, {why}"
        return build_saved_line(one.row, "", why, call.prompt)
    turn = CandidateTurn.read(one.row)
    _, around = sessions.find_around(connection, one.row, turn.session, _FOLLOWING)
    recent = [
        CandidateTurn.read(turns.to_row(other)) for other in core.active.list_turns(frozenset([one.row.namespace]))
    ]
    later = [*map(CandidateTurn.read, around), *(other for other in recent if other.session == turn.session)]
    following = sorted((other for other in later if other.order > turn.order), key=lambda other: other.order)
    spoken = [other for other in following if other.role != "tool"][:_FOLLOWING]
    if claims.is_taken_back([(other.role, other.row.content) for other in spoken]):
        text, left_out[one.row.id] = "", "it was taken back"
    else:
        text = make_inert(choose_sentences(one.stated, MOST_CHARS, call.prompt))
    who = "an agent said so" if turn.role == "assistant" else "you decided it"
    return ContextLine(one.row.id, one.row.row, one.row.content_hash, "", text, f"{who} in another session, {why}")
