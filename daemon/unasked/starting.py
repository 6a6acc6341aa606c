"""What a session starts with: all that was saved on purpose for its project, and how the latest session went.

First comes what the person saved or confirmed: what is pinned, then each of `KINDS` in turn. Below it is what agents
saved, at most a third of the tokens. Of one subject the newest memory stands in its place, the older ones come after
all others. What there is no room for is counted by subject. Of `/` come only preferences and what is pinned, and those
only if they are the person's.

Of the latest session that stated something come what was asked first, the last answer that says something, and what it
left open: whole sentences, without what was changed later.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from memoryd.client.inert import FRAME
from memoryd.client.protocol import GetUnasked
from memoryd.client.protocol.base import SAVED_FROM
from memoryd.daemon.agreement import claims
from memoryd.daemon.context.counting import Counter
from memoryd.daemon.context.lines import (
    CandidateTurn,
    ContextLine,
    FittedLines,
    build_saved_line,
    find_outdated,
    show_turn,
    write_line,
)
from memoryd.daemon.conversations.tables import sessions
from memoryd.daemon.core.core import Core
from memoryd.daemon.language import rating
from memoryd.daemon.store import queries, turns
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.namespaces import check
from memoryd.daemon.store.rows import Row
from memoryd.daemon.unasked.subjects import count_subjects

PINNED, OTHERS, OLDER = "Always", "Facts", "Older ones of the same subjects"
AGENTS, LATEST = "Saved by agents, unconfirmed", "Last session"
# Heading → the types under it; all others are facts.
KINDS: dict[str, frozenset[str]] = {
    "Rules": frozenset({"rule", "convention", "policy", "constraint", "correction", "behavior"}),
    "Preferences": frozenset({"preference", "goal"}),
    "Decisions": frozenset({"decision"}),
    "Lessons": frozenset({"lesson", "mistake-pattern", "best-practice"}),
}
PREFERENCE = "preference"  # the type of what a person wants everywhere
_MOST_SAVED = 500
_MOST_TURNS = 80
_AGENTS_SHARE = 3  # one part in so many of the tokens is for what agents saved at most, and for the latest session
_COUNTED_SHARE = 16  # and for the line that counts what stays out
_SMALLEST = 8  # tokens of a line: with fewer left nothing more is tried
_HEADING_TOKENS = 8  # at most
_CHARS_PER_TOKEN = 6  # a longer text is not even counted as a whole
_ASKED_CHARS, _LATEST_CHARS = 200, 240  # of a line on the latest session
_LAST_ANSWERS = 3  # that may say what is open
_LEAST_BYTES = 60  # of an answer that says something


def choose(core: Core, call: GetUnasked) -> tuple[list[ContextLine], list[ContextLine]]:
    """Return the lines on what was saved, and those on the latest session, in their order."""
    selection = Filter(core.store.namespaces.reach(check(call.namespace), call.reach))
    notes = sorted(set().union(*KINDS.values()))
    with core.store.reading() as connection:
        saved = queries.find_saved(connection, selection, core.clock(), notes, name_asker(call), _MOST_SAVED)
        saved = [row for row in saved if is_for_project(core, row, call.namespace)]
        outdated = find_outdated(connection, saved, selection, core.clock())
        ordered = _order(core, connection, [row for row in saved if row.id not in outdated])
        latest = next(filter(None, map(_choose_latest, _read_sessions(core, connection, call))), [])
    return [_build_line(core, row, heading, call.namespace) for row, heading in ordered], latest


def is_for_project(core: Core, row: Row, namespace: str) -> bool:
    """Return whether a memory may come up in a namespace: of the root, what the person wants everywhere.

    What an agent of another project saved here comes up once the person has confirmed it.
    """
    if f'"{SAVED_FROM}":' in row.metadata and not row.is_persons:
        return False
    if not _is_of_root(core, row, namespace):
        return True
    return row.is_persons and (bool(row.pinned) or (row.type == PREFERENCE and row.turns == 0))


def name_asker(call: GetUnasked) -> str:
    """Return the agent that asks as the source of its own notes, which it is not told."""
    return call.agent.lower().replace(" ", "-")


def describe_saved(core: Core, row: Row, namespace: str) -> str:
    """Return what a memory is that was saved on purpose, and where."""
    whose = "of yours, from /" if _is_of_root(core, row, namespace) else "that was saved here"
    if row.source in queries.OF_HOSTS:
        whose = f"in the notes of {row.source}"
    return f"a {row.type} {whose}"


def fit(saved: Sequence[ContextLine], latest: Sequence[ContextLine], max_tokens: int, by: Counter) -> FittedLines:
    """Return the text of a start within a budget.

    The latest session has its share first, then what is the person's takes what it needs, then what agents saved.
    """
    others = [line for line in saved if line.heading == AGENTS]
    share = max_tokens // _AGENTS_SHARE
    if sum(len(line.text) for line in (*saved, *latest)) <= _CHARS_PER_TOKEN * max_tokens:  # all of it may fit
        text = _write(saved, [], latest)
        tokens = by.count(text) if saved or latest else 0
        if tokens <= max_tokens and (not others or by.count("".join(map(write_line, others))) <= share):
            return FittedLines(text if tokens else "", tokens, [*saved, *latest])
    own = [line for line in saved if line.heading != AGENTS]
    told, spent = _take(latest, share, by)
    room = max_tokens - by.count("".join(FRAME)) - spent - max_tokens // _COUNTED_SHARE
    chosen, spent = _take(own, room, by)
    chosen += _take(others, min(room - spent, share), by)[0]
    while chosen or told:
        text = _write(chosen, [line.text for line in saved if line not in chosen], told)
        if (tokens := by.count(text)) <= max_tokens:
            return FittedLines(text, tokens, [*chosen, *told])
        (chosen or told).pop()  # tokens of a whole need not be the sum of those of its lines
    return FittedLines("", 0, [])


def _take(lines: Iterable[ContextLine], room: int, by: Counter) -> tuple[list[ContextLine], int]:
    """Return the lines that fit into so many tokens, the first ones first, and how many tokens they have."""
    taken: list[ContextLine] = []
    spent = 0
    for line in lines:
        if room - spent < _SMALLEST:
            break
        tokens = by.count(write_line(line)) + (
            _HEADING_TOKENS if line.heading not in {one.heading for one in taken} else 0
        )
        if spent + tokens <= room:
            taken.append(line)
            spent += tokens
    return taken, spent


def _write(chosen: Sequence[ContextLine], left_out: Sequence[str], told: Sequence[ContextLine]) -> str:
    text, heading = FRAME[0], ""
    for line in chosen:
        text += f"{line.heading}:\n" if line.heading != heading else ""
        text += write_line(line)
        heading = line.heading
    if left_out:
        subjects = ", ".join(f"{name} ({count})" for name, count in count_subjects(left_out))
        text += f"More is saved: {subjects}. `memory_search` finds it.\n"
    if told:
        text += f"{LATEST}:\n" + "".join(map(write_line, told))
    return text + FRAME[1]


# What was saved -------------------------------------------------------------------------------------------------------


def _is_of_root(core: Core, row: Row, namespace: str) -> bool:
    return namespace != "" and core.store.namespaces.name(row.namespace) == ""


def _build_line(core: Core, row: Row, heading: str, namespace: str) -> ContextLine:
    why = "it is pinned" if row.pinned else describe_saved(core, row, namespace)
    line = build_saved_line(row, heading, why)
    return line._replace(note="") if row.origin == "agent" else line  # its heading says it


def _order(core: Core, connection: Connection, saved: Sequence[Row]) -> list[tuple[Row, str]]:
    """Return memories with their headings in the order in which they are told.

    Of the person what is pinned, then by kind the newest first, then the older ones of a subject; the same of agents.
    """
    newest = sorted(saved, key=lambda row: (-row.created_at, row.row, row.id))
    older = _find_older(core, connection, newest)
    kinds = [next((at for at, types in enumerate(KINDS.values()) if row.type in types), len(KINDS)) for row in newest]
    headings = (*KINDS, OTHERS)
    placed: list[tuple[tuple[bool, bool, bool, int], Row, str]] = []
    for row, kind in zip(newest, kinds, strict=True):
        is_older = not row.pinned and row.id in older
        heading = PINNED if row.pinned else OLDER if is_older else headings[kind]
        rank = not row.is_persons, not row.pinned, is_older, kind
        placed.append((rank, row, heading if row.is_persons else AGENTS))
    return [(row, heading) for _, row, heading in sorted(placed, key=lambda one: one[0])]


def _find_older(core: Core, connection: Connection, newest: Sequence[Row]) -> set[str]:
    """Return the ids of memories that have a newer one of their type about the same subject."""
    generation = core.embedding.active
    if generation is None:
        return set()
    numbers, matrix = generation.read_exact(connection, [row.row for row in newest])
    rows = {row.row: row for row in newest}
    placed = {number: at for at, number in enumerate(row.row for row in newest)}
    order = sorted(range(len(numbers)), key=lambda at: placed[numbers[at]])
    found = [rows[numbers[at]] for at in order]
    vectors = np.asarray(matrix)[order]
    near = np.tril(vectors @ vectors.T >= generation.embedder.floors.join, -1)
    return {found[old].id for old, new in np.argwhere(near).tolist() if found[old].type == found[new].type}


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
    """Return what was asked first in a session, its last answer that says something, and what that left open."""
    stated: list[tuple[CandidateTurn, list[str]]] = []
    changes: list[str] = []
    corrected: list[str] = []  # by the user later: an answer that tells a change does what was asked
    asked = next((at for at, turn in enumerate(turns) if turn.role == "user" and _is_asking(turn.row.content)), None)
    for at in range(len(turns) - 1, -1, -1):
        told = turns[at].list_statements(turns[at + 1 :])
        kept = [one for one in told if not claims.is_changed(one, changes)]
        changes += claims.list_changes(told)
        if turns[at].role == "user" and at != asked:
            corrected += claims.list_changes(told)
        elif turns[at].role == "assistant" and kept:
            stated.append((turns[at], kept))
    if not stated:
        return []
    left = [(turn, [one for one in told if claims.is_open(one)]) for turn, told in stated[:_LAST_ANSWERS]]
    left_open = next(((turn, told) for turn, told in left if told), None)
    answers = [
        (turn, rest)
        for turn, told in stated
        if (rest := [one for one in told if left_open is None or turn is not left_open[0] or one not in left_open[1]])
    ]
    telling = [one for one in answers if len(" ".join(one[1]).encode()) >= _LEAST_BYTES]
    lines = [
        show_turn(*answer, LATEST, "the last answer of the latest session", _LATEST_CHARS) for answer in telling[:1]
    ]
    lines += [show_turn(*left_open, LATEST, "what the latest session left open", _LATEST_CHARS)] if left_open else []
    if asked is not None:
        sentences = claims.split_sentences(turns[asked].row.content)
        sentences = [one for one in sentences if not claims.is_changed(one, corrected)]
        line = show_turn(turns[asked], sentences, LATEST, "what the latest session was asked first", _ASKED_CHARS)
        lines.insert(0, line._replace(note="asked first"))
    return [line for line in lines if line.text]


def _is_asking(text: str) -> bool:
    return rating.importance(text) >= rating.QUESTION
