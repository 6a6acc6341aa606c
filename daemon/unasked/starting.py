"""Choose what a session is shown at its start: the memories saved for its project, and an excerpt of the last session.

Memories that the person saved or confirmed come first: pinned ones, then each of `KINDS`, then all others, the newest
first. Memories saved by agents follow, in at most a third of the tokens. Those that do not fit are counted by subject.
From the root only the person's preferences and pinned memories are shown.

The excerpt has the first question of the last session, its last substantial answer, and what it left open, in whole
sentences.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from memoryd.client.prompt_text import FRAME
from memoryd.client.protocol import GetUnasked
from memoryd.client.protocol.base import SAVED_FROM
from memoryd.daemon.agreement import claims
from memoryd.daemon.context.counting import Counter
from memoryd.daemon.context.unasked_lines import (
    AGENTS,
    CandidateTurn,
    ContextLine,
    FittedLines,
    KnownTexts,
    build_saved_line,
    find_outdated,
    show_turn,
    write_line,
)
from memoryd.daemon.conversations.tables import sessions
from memoryd.daemon.core.core import Core
from memoryd.daemon.language import rating
from memoryd.daemon.language.sentences import split_sentences
from memoryd.daemon.search.apart import Contradictions
from memoryd.daemon.search.remotes import Remotes, build_row
from memoryd.daemon.store import queries, turns
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.namespaces import check
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L3
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.unasked.subjects import count_subjects

PINNED, OTHERS = "Always", "Decisions and facts"
LATEST = "Last session"
# Heading → the types under it.
KINDS: dict[str, frozenset[str]] = {
    "Rules": frozenset({"rule", "convention", "policy", "constraint", "correction", "behavior"}),
    "Preferences": frozenset({"preference", "goal"}),
}
PREFERENCE = "preference"  # the type of memories that are shown in all projects
_MAX_SAVED = 500
_MAX_TURNS = 80
_SHARE = 3  # memories of agents get at most 1 / _SHARE of the tokens, and so does the last session
_MIN_TOKENS, _MAX_TOO_LONG = 8, 20  # no further line is tried if fewer tokens are left, or after so many too long lines
_LEFT_OUT_TOKENS = 40  # kept for the line that counts what is left out
_ASKED_CHARS, _LATEST_CHARS = 200, 240  # of a line on the latest session
_LAST_ANSWERS = 3  # searched for open points
_MIN_BYTES = 60  # of a substantial answer


def choose(core: Core, call: GetUnasked, had: Mapping[str, bytes]) -> tuple[list[ContextLine], list[ContextLine]]:
    """Return the lines on saved memories and those on the last session, both in order.

    From shared roots, the person's own memories are used, which are in RAM, except those that the session `had`.
    """
    selection = Filter(core.store.namespaces.reach(check(call.namespace), call.reach))
    notes = sorted(set().union(*KINDS.values()))
    with core.store.reading() as connection:
        saved = queries.find_saved(connection, selection, core.clock(), notes, name_asker(call), _MAX_SAVED)
        saved = [row for row in saved if is_for_project(core, row, call.namespace)]
        outdated = find_outdated(connection, saved, selection, core.clock())
        shared, vectors = _list_shared(core, call)
        outdated |= _find_outdated_apart(core, connection, saved, shared, vectors)
        told = [row for row in shared if had.get(row.id) != row.content_hash]
        ordered = _order([row for row in (*saved, *told) if row.id not in outdated])
        latest = next(filter(None, map(_choose_latest, _read_sessions(core, connection, call))), [])
    return [_build_line(core, row, heading, call.namespace) for row, heading in ordered], latest


def _list_shared(core: Core, call: GetUnasked) -> tuple[list[Row], dict[int, Vector]]:
    """Return the memories of shared roots that may be shown, as rows of no table, and vectors of the newest."""
    remotes: Remotes = core.state(Remotes)
    told = [one for remote in remotes.all for one in remote.list_told(call)]
    generation, vectors = core.embedding.active, dict[int, Vector]()
    for number, (_, text) in enumerate(told, start=1):
        if generation and text and text.vector is not None and text.model == generation.name:
            vectors[-number] = text.vector
    rows = [build_row(one.memory, -number, core.store.namespaces) for number, one in enumerate(told, start=1)]
    return rows, vectors


def _find_outdated_apart(
    core: Core, connection: Connection, saved: Sequence[Row], shared: Sequence[Row], vectors: Mapping[int, Vector]
) -> set[str]:
    """Return the ids of memories, except pinned ones, that a newer one contradicts, one of the two in a shared root."""
    generation = core.embedding.active
    if generation is None or not vectors:
        return set()
    by_number = {row.row: row for row in (*saved, *shared)}
    here = dict(zip(*generation.read_exact(connection, [row.row for row in saved]), strict=True))
    contradictions: Contradictions = core.state(Contradictions)
    pairs = contradictions.find(list(by_number.values()), {**here, **vectors}, generation.embedder.floors)
    return {by_number[older].id for _, older in pairs if not by_number[older].pinned}


def is_for_project(core: Core, row: Row, namespace: str) -> bool:
    """Return whether a memory may be shown in a namespace.

    From the root, these are only the person's preferences and pinned memories. Memories that an agent of another
    project saved here must have been confirmed by the person.
    """
    if f'"{SAVED_FROM}":' in row.metadata and not row.is_persons:
        return False
    if not _is_of_root(core, row, namespace):
        return True
    return row.is_persons and (bool(row.pinned) or (row.type == PREFERENCE and row.turns == 0))


def name_asker(call: GetUnasked) -> str:
    """Return the calling agent in the form of a source, by which its own notes are recognised and not repeated."""
    return call.agent.lower().replace(" ", "-")


def describe_saved(core: Core, row: Row, namespace: str) -> str:
    """Describe the type of a saved memory and where it was saved."""
    whose = "of yours, from /" if _is_of_root(core, row, namespace) else "that was saved here"
    if row.tier == L3:
        whose = f"{'of yours' if row.confirmed_at is None else 'that you confirmed'}, from the shared root"
    if row.source in queries.OF_HOSTS:
        whose = f"in the notes of {row.source}"
    return f"a {row.type} {whose}"


def fit(
    saved: Sequence[ContextLine], latest: Sequence[ContextLine], known: KnownTexts, max_tokens: int, by: Counter
) -> FittedLines:
    """Return the text of a start within a budget, without texts that the session has; adds the text to `known`.

    Tokens go to the last session first, up to its share, then to the person's memories, then to those of agents.
    """
    own = [line for line in saved if line.heading != AGENTS]
    others = [line for line in saved if line.heading == AGENTS]
    share = max_tokens // _SHARE
    excerpt, spent = _take(latest, share, KnownTexts(), by)
    room = max_tokens - by.count("".join(FRAME)) - spent - _LEFT_OUT_TOKENS
    chosen, spent = _take(own, room, known, by)
    chosen += _take(others, min(room - spent, share), known, by)[0]
    excerpt = [line for line in excerpt if not known.has(line.text)]
    while chosen or excerpt:
        left_out = count_subjects([line.text for line in saved if line not in chosen])
        subjects = ", ".join(f"{name} ({count})" for name, count in left_out)
        more = f"More is saved: {subjects}. `memory_search` finds it.\n" if left_out else ""
        text = "".join((FRAME[0], _write_lines(chosen), more, _write_lines(excerpt), FRAME[1]))
        if (tokens := by.count(text)) <= max_tokens:
            return FittedLines(text, tokens, [*chosen, *excerpt])
        (chosen or excerpt).pop()  # a text may have more tokens than the sum of its lines
    return FittedLines("", 0, [])


def _take(lines: Iterable[ContextLine], room: int, known: KnownTexts, by: Counter) -> tuple[list[ContextLine], int]:
    """Return the new lines that fit into `room` tokens, tried in order, and how many tokens they have."""
    taken: list[ContextLine] = []
    spent = too_long = 0
    for line in lines:
        if room - spent < _MIN_TOKENS or too_long > _MAX_TOO_LONG:
            break
        if known.has(line.text):
            continue
        has_heading = any(line.heading == one.heading for one in taken)
        tokens = by.count(_write_line(line) if has_heading else _write_lines([line]))
        if spent + tokens <= room:
            taken.append(line)
            known.add(line.text)
            spent += tokens
        else:
            too_long += 1
    return taken, spent


def _write_lines(lines: Iterable[ContextLine]) -> str:
    parts = groupby(lines, key=lambda line: line.heading)
    return "".join(f"{heading}:\n{''.join(map(_write_line, part))}" for heading, part in parts)


def _write_line(line: ContextLine) -> str:
    """Return a line; its id, a third of its tokens, is included only if the agent needs it to settle a change."""
    return write_line(line, with_id=line.is_changed)


# What was saved -------------------------------------------------------------------------------------------------------


def _is_of_root(core: Core, row: Row, namespace: str) -> bool:
    return row.tier != L3 and namespace != "" and core.store.namespaces.name(row.namespace) == ""


def _build_line(core: Core, row: Row, heading: str, namespace: str) -> ContextLine:
    why = "it is pinned" if row.pinned else describe_saved(core, row, namespace)
    line = build_saved_line(row, heading, why)
    return line._replace(note="") if row.origin == "agent" else line  # its heading says it


def _order(saved: Sequence[Row]) -> list[tuple[Row, str]]:
    """Return memories with their headings in the order of the text."""
    headings = (PINNED, *KINDS, OTHERS)
    placed: list[tuple[tuple[bool, int, float, int], Row, str]] = []
    for row in saved:
        of_kind = next((heading for heading, types in KINDS.items() if row.type in types), OTHERS)
        heading = PINNED if row.pinned else of_kind
        rank = not row.is_persons, headings.index(heading), -row.created_at, -row.row
        placed.append((rank, row, heading if row.is_persons else AGENTS))
    return [(row, heading) for _, row, heading in sorted(placed, key=lambda one: one[0])]


# The latest session --------------------------------------------------------------------------------------------------


def _read_sessions(core: Core, connection: Connection, call: GetUnasked) -> list[list[CandidateTurn]]:
    """Return the turns of the namespace's other sessions, the latest session first, each from its first turn."""
    number = core.store.namespaces.find_number(call.namespace)
    if number is None:
        return []
    rows = [turns.to_row(turn) for turn in core.active.list_turns(frozenset([number]))]
    ids = {row.id for row in rows}
    stored = sessions.find_last_turns(connection, number, core.clock(), _MAX_TURNS)
    rows += [row for row in stored if row.id not in ids]
    by_session: dict[str, list[CandidateTurn]] = {}
    for turn in map(CandidateTurn.read, sorted(rows, key=turns.sort_key, reverse=True)):
        if turn.session and turn.session != call.session and turn.role != "tool":
            by_session.setdefault(turn.session, []).append(turn)
    return [one[::-1] for one in by_session.values()]


def _choose_latest(turns: Sequence[CandidateTurn]) -> list[ContextLine]:
    """Return the lines on a session: its first question, its last substantial answer, and what it left open."""
    asked = next(
        (turn for turn in turns if turn.role == "user" and rating.importance(turn.row.content) >= rating.QUESTION), None
    )
    stated = [
        (turns[at], list(told))
        for at in range(len(turns) - 1, -1, -1)
        if turns[at].role == "assistant" and (told := turns[at].list_statements(turns[at + 1 :]))
    ]
    if not stated:
        return []
    left = [(turn, [one for one in told if claims.is_open(one)]) for turn, told in stated[:_LAST_ANSWERS]]
    left_open = next(((turn, told) for turn, told in left if told), None)
    answers = [
        (turn, rest)
        for turn, told in stated
        if (rest := [one for one in told if left_open is None or turn is not left_open[0] or one not in left_open[1]])
    ]
    telling = [one for one in answers if len(" ".join(one[1]).encode()) >= _MIN_BYTES]
    lines = [
        show_turn(*answer, LATEST, "the last answer of the latest session", _LATEST_CHARS) for answer in telling[:1]
    ]
    lines += [show_turn(*left_open, LATEST, "what the latest session left open", _LATEST_CHARS)] if left_open else []
    if asked is not None:
        sentences = split_sentences(asked.row.content)
        line = show_turn(asked, sentences, LATEST, "what the latest session was asked first", _ASKED_CHARS)
        lines.insert(0, line._replace(note="asked first"))
    return [line for line in lines if line.text]
