"""What a session starts with: what is pinned, what was saved on purpose, what the latest sessions came to.

Of what was saved these `KINDS` come up. Each kind has its turn, the newest memory of a subject before its older ones,
so that whatever the budget leaves out is of each kind the least of it. Facts, notes and what a project is made of are
for prompts: nobody knows yet which of them matters.

Of the latest session come its last statement (what is open) and the agent's longest one (what was found or done), of
the last sessions what the user laid down and the agent took up, unless it was changed later or enough was saved on
purpose. People and agents say most where it matters and sum up at the end; that holds in any language. A session in
which nothing was stated gives way to the one before it.
"""

from collections.abc import Sequence
from itertools import pairwise

from memoryd.client.protocol import GetUnasked
from memoryd.daemon.agreement import claims
from memoryd.daemon.context.lines import (
    CandidateTurn,
    ContextLine,
    build_saved_line,
    find_outdated,
    show_turn,
)
from memoryd.daemon.conversations.tables import sessions
from memoryd.daemon.core.core import Core
from memoryd.daemon.language import rating
from memoryd.daemon.store import queries, turns
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.namespaces import check
from memoryd.daemon.store.rows import Row

PINNED, LATEST, LAID_DOWN = "Always", "Last session", "Laid down in sessions"
# Heading → the types under it, and why such a memory is there.
KINDS: dict[str, frozenset[str]] = {
    "Rules": frozenset({"rule", "convention", "policy", "constraint", "correction", "behavior"}),
    "Preferences": frozenset({"preference", "goal"}),
    "Decisions": frozenset({"decision"}),
    "Lessons": frozenset({"lesson", "mistake-pattern"}),
}
HEADINGS = (PINNED, *KINDS, LAID_DOWN, LATEST)
_MOST_SAVED = 200
_ENOUGH_SAVED = 5  # memories for the project: whoever saves that many has saved what matters
_MOST_TURNS = 80
_FAREWELL_CHARS = 60  # of a reply that is one at most
_LATEST_CHARS = 240  # of a line on the latest session
PREFERENCE = "preference"  # the type of what a person wants everywhere


def choose(core: Core, call: GetUnasked) -> tuple[list[ContextLine], list[ContextLine]]:
    """Return the lines on what was saved, and those on the latest session, the most important first."""
    only = core.config.hooks.only
    selection = Filter(core.store.namespaces.reach(check(call.namespace), call.reach))
    with core.store.reading() as connection:
        saved = _find_saved(core, connection, call, selection)
        outdated = find_outdated(connection, saved, selection, core.clock())
        saved = [row for row in saved if row.id not in outdated]
        spoken = _read_sessions(core, connection, call)
    lines = [
        build_saved_line(row, heading, why)
        for row, heading, why in _order(core, saved, call.namespace)
        if not only or row.type in only or (row.pinned and "pinned" in only)
    ]
    if only and turns.TYPE not in only:
        return lines, []
    latest = next(filter(None, map(_choose_latest, spoken)), [])
    of_project = sum(not _is_persons(core, row, call.namespace) for row in saved)
    laid_down = _choose_laid_down(spoken, latest) if of_project < _ENOUGH_SAVED else []
    return lines, [*latest, *laid_down]


def is_for_project(core: Core, row: Row, namespace: str) -> bool:
    """Return whether a memory may come up in a namespace: of the person, the root, what holds everywhere."""
    return not _is_persons(core, row, namespace) or bool(row.pinned) or (row.type == PREFERENCE and row.turns == 0)


def name_asker(call: GetUnasked) -> str:
    """Return the agent that asks as the source of its own notes, which it is not told."""
    return call.agent.lower().replace(" ", "-")


def describe_saved(core: Core, row: Row, namespace: str) -> str:
    """Return what a memory is that was saved on purpose, and where."""
    whose = "of yours, from /" if _is_persons(core, row, namespace) else "that was saved here"
    if row.source in queries.OF_HOSTS:
        whose = f"in the notes of {row.source}"
    return f"a {row.type} {whose}"


def _is_persons(core: Core, row: Row, namespace: str) -> bool:
    return namespace != "" and core.store.namespaces.name(row.namespace) == ""


def _find_saved(core: Core, connection: Connection, call: GetUnasked, selection: Filter) -> list[Row]:
    types = sorted(set().union(*KINDS.values()))
    saved = queries.find_saved(connection, selection, core.clock(), types, name_asker(call), _MOST_SAVED)
    return [row for row in saved if is_for_project(core, row, call.namespace)]


def _order(core: Core, saved: Sequence[Row], namespace: str) -> list[tuple[Row, str, str]]:
    """Return memories with their headings and why they come up: what is pinned first, then each kind in turn.

    Of each kind the newest of a subject comes before all older ones of it.
    """
    alike = _find_older_of_subject(core, saved)
    ranks: dict[tuple[str, int], int] = {}
    keyed: list[tuple[tuple[int, int], Row, str, str]] = []
    for row in sorted(saved, key=lambda row: (-row.created_at, row.row, row.id)):
        if row.pinned:
            keyed.append(((-1, 0), row, PINNED, "it is pinned"))
            continue
        heading = next(heading for heading, types in KINDS.items() if row.type in types)
        older = alike.get(row.id, 0)
        place = ranks[heading, older] = ranks.get((heading, older), -1) + 1
        keyed.append(((older, place), row, heading, describe_saved(core, row, namespace)))
    return [(row, heading, why) for _, row, heading, why in sorted(keyed, key=lambda one: one[0])]


def _find_older_of_subject(core: Core, saved: Sequence[Row]) -> dict[str, int]:
    """Return by id how many newer memories of the same type are about the same subject as one is."""
    generation = core.embedding.active
    if generation is None:
        return {}
    newest = sorted(saved, key=lambda row: (-row.created_at, row.row, row.id))
    with core.store.reading() as connection:
        numbers, matrix = generation.read_exact(connection, [row.row for row in newest])
    vectors = dict(zip(numbers, matrix, strict=True))
    floor = generation.embedder.floors.join
    placed = [row for row in newest if row.row in vectors]
    return {
        row.id: sum(
            newer.type == row.type and float(vectors[newer.row] @ vectors[row.row]) >= floor for newer in placed[:at]
        )
        for at, row in enumerate(placed)
    }


# The latest session --------------------------------------------------------------------------------------------------


def _read_sessions(core: Core, connection: Connection, call: GetUnasked) -> list[list[CandidateTurn]]:
    """Return the turns of the namespace's latest sessions but its own, the latest session and its first turn first."""
    number = core.store.namespaces.find_number(call.namespace)
    if number is None:
        return []
    rows = [turns.to_row(turn) for turn in core.active.list_turns(frozenset([number]))]
    ids = {row.id for row in rows}
    stored = sessions.find_last_turns(connection, number, core.clock(), _MOST_TURNS)
    rows += [row for row in stored if row.id not in ids]
    spoken = [CandidateTurn.read(row) for row in rows]
    by_session: dict[str, list[CandidateTurn]] = {}
    for turn in sorted(spoken, key=lambda turn: turn.order, reverse=True):
        if turn.session and turn.session != call.session and turn.role != "tool":
            by_session.setdefault(turn.session, []).append(turn)
    return [one[::-1] for one in by_session.values()]


def _choose_latest(turns: Sequence[CandidateTurn]) -> list[ContextLine]:
    """Return what the turns of a session say was done and left open, the latest first, without what was changed."""
    statements = {turn.row.id: turn.list_statements(turns[at + 1 :]) for at, turn in enumerate(turns)}
    sizes = {id: len(" ".join(sentences).encode()) for id, sentences in statements.items()}
    farewells = {reply.row.id for asked, reply in pairwise(turns) if _is_farewell(asked, reply)}
    stated = [
        turn for turn in turns if turn.role == "assistant" and statements[turn.row.id] and turn.row.id not in farewells
    ]
    chosen: list[tuple[CandidateTurn, str]] = []
    if stated:
        chosen.append((stated.pop(), "how the latest session ended"))
    if stated:
        chosen.append((max(stated, key=lambda turn: sizes[turn.row.id]), "what the latest session found or did"))
    lines: list[ContextLine] = []
    for turn, why in chosen:
        following = turns[turns.index(turn) + 1 :]
        changes = claims.list_changes(one for later in following for one in statements[later.row.id])
        kept = [one for one in statements[turn.row.id] if not claims.is_changed(one, changes)]
        lines.append(show_turn(turn, kept, LATEST, why, _LATEST_CHARS))
    return [line for line in lines if line.text]


def _choose_laid_down(spoken: Sequence[Sequence[CandidateTurn]], lines: Sequence[ContextLine]) -> list[ContextLine]:
    """Return what users laid down in sessions and agents took up, the latest first.

    Left out is what `lines` say, and what was changed later.
    """
    said = [line.text for line in lines]
    changes: list[str] = []
    found: list[ContextLine] = []
    for session in spoken:
        for at in range(len(session) - 2, -1, -1):
            turn, reply, *following = session[at : at + 4]
            if (turn.role, reply.role) != ("user", "assistant"):
                continue
            if stated := reply.list_statements(following):
                # "Yes, do that" says nothing by itself: what was agreed is in the reply.
                shown, told = (
                    (reply, stated)
                    if claims.agrees(turn.row.content)
                    else (turn, claims.list_taken_up(turn.row.content, reply.row.content))
                )
                told = [
                    one
                    for one in told
                    if not any(claims.is_echoed(one, text) for text in said) and not claims.is_changed(one, changes)
                ]
                line = show_turn(shown, told, LAID_DOWN, "what was laid down in a session", _LATEST_CHARS)
                if line.text:
                    found.append(line)
                    said.append(line.text)
            changes += claims.list_changes([*stated, *turn.list_statements()])
    return found


def _is_farewell(asked: CandidateTurn, reply: CandidateTurn) -> bool:
    """Return whether a short reply to nothing but courtesies tells nothing."""
    is_courtesy = asked.role == "user" and rating.importance(asked.row.content) <= rating.SMALL_TALK
    is_short = len(reply.row.content) <= _FAREWELL_CHARS and rating.importance(reply.row.content) <= rating.STATEMENT
    return is_courtesy and is_short
