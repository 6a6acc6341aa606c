"""Lines for contexts that are shown automatically: whole sentences of memories, within a budget."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from memoryd.client.prompt_text import FRAME, describe_origin, make_inert, say_later
from memoryd.daemon.agreement import claims
from memoryd.daemon.context.counting import Counter
from memoryd.daemon.language import condensing
from memoryd.daemon.language.sentences import is_whole, split_sentences
from memoryd.daemon.store import later, rows
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.conversion import read_contradictions
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.namespaces import condition
from memoryd.daemon.store.rows import Row

_decode = msgspec.json.Decoder(dict[str, Any]).decode

AGENTS = "Saved by agents, unconfirmed"  # the heading of memories that the person has not confirmed
MAX_CHARS = 320  # of a line; a longer text is reduced to its most important sentences
_MIN_BYTES = 20  # a shorter sentence may occur in other texts by chance
_ENDS = tuple(".!?…。！？:;,")
_BETWEEN = "; "  # after a list item, which has no full stop
_PROMPT_WEIGHT = 2.0  # of the words of the prompt, relative to the sentence's centrality


class ContextLine(NamedTuple):
    """A line: its memory with the content hash, its heading, the text, and why it is shown.

    `note` is appended to the text but does not count when lines are compared with what a session has.
    """

    id: str
    row: int  # 0 or less for a turn of L0
    key: bytes
    heading: str
    text: str
    why: str
    note: str = ""
    is_changed: bool = False  # the text includes a later statement that seems to change the memory
    also: tuple[tuple[str, bytes], ...] = ()  # id and hash of a second memory in the line


class CandidateTurn(NamedTuple):
    """A turn that may become a line."""

    row: Row
    role: str
    session: str

    @classmethod
    def read(cls, row: Row) -> "CandidateTurn":
        """Read a turn, stored or in L0."""
        about = _decode(row.metadata)
        return cls(row, str(about.get("role", "")), str(about.get("session", "")))

    def list_statements(self, following: "Sequence[CandidateTurn]" = ()) -> tuple[str, ...]:
        """Return its statements, none if one of the `following` turns retracts it."""
        if claims.is_taken_back([(turn.role, turn.row.content) for turn in following]):
            return ()
        return claims.list_statements(self.role, self.row.content)


class FittedLines(NamedTuple):
    """A text for an agent's context, how many tokens it has, and its lines in order."""

    text: str
    tokens: int
    lines: list[ContextLine]


class KnownTexts:
    """The texts that a session has already, and their sentences."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: set[str] = set()
        self._sentences: set[str] = set()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a text."""
        self._texts.add(_normalise(text))
        self._sentences.update(_list_sentences(text))

    def has(self, text: str) -> bool:
        """Return whether the session has a text, or a sentence of it."""
        if not self._texts:
            return False
        whole = _normalise(text)
        if whole in self._texts or any(one in whole for one in self._sentences):
            return True
        parts = _list_sentences(text)
        return any(one in had for had in self._texts for one in parts)


def _normalise(text: str) -> str:
    return make_inert(text).casefold().rstrip(" .!?…。！？")


def _list_sentences(text: str) -> list[str]:
    parts = map(_normalise, split_sentences(text))
    return [part for part in parts if len(part.encode()) >= _MIN_BYTES]


def choose_sentences(sentences: Sequence[str], most_chars: int = MAX_CHARS, prompt: str = "") -> str:
    """Return the sentences most central to the text and nearest to the prompt that fit, in their order."""
    words = [claims.find_stems(sentence) for sentence in sentences]
    near = condensing.measure_centrality(words, [1.0] * len(words))
    prompt_words = claims.find_stems(prompt)
    worth = [
        centrality + _PROMPT_WEIGHT * len(prompt_words & sentence_words) / (len(sentence_words) or 1)
        for centrality, sentence_words in zip(near, words, strict=True)
    ]
    chosen: list[int] = []
    room = most_chars
    for at in sorted(range(len(sentences)), key=lambda at: -worth[at]):
        if len(sentences[at]) <= room:
            chosen.append(at)
            room -= len(sentences[at]) + len(_BETWEEN)
    *first, last = [sentences[at] for at in sorted(chosen)] or [""]
    return "".join(f"{one} " if one.endswith(_ENDS) else f"{one}{_BETWEEN}" for one in first) + last


def build_saved_line(row: Row, heading: str, why: str, prompt: str = "") -> ContextLine:
    """Return the line of a saved memory, with a note on its origin if it is not the person's.

    Of a long memory it has whole sentences, and may be empty.
    """
    text, note = row.content, "" if row.is_persons else describe_origin(row)
    if len(text) > MAX_CHARS:
        text = choose_sentences(list(filter(is_whole, split_sentences(text))), MAX_CHARS, prompt)
    return ContextLine(row.id, row.row, row.content_hash, heading, make_inert(text), why, note)


def show_turn(
    turn: CandidateTurn, statements: Sequence[str], heading: str, why: str, most_chars: int = MAX_CHARS
) -> ContextLine:
    """Return a line with statements of a turn."""
    text = make_inert(choose_sentences(statements, most_chars))
    return ContextLine(turn.row.id, turn.row.row, turn.row.content_hash, heading, text, why)


def append_later(
    connection: Connection, lines: Sequence[ContextLine], selection: Filter, now: float
) -> list[ContextLine]:
    """Append to lines the later statement that seems to change their memory, with its date and id.

    If that statement has its own line, the two are merged at the place of the first; if it is the person's and the
    memory an agent's, only the statement's line remains.
    """
    statements = later.read(connection, [line.id for line in lines], condition(selection.reached), now)
    places = {line.id: place for place, line in enumerate(lines)}
    result = dict(enumerate(lines))
    shown: set[str] = set()
    for place, line in enumerate(lines):
        statement = statements.get(line.id)
        if statement is None or place not in result:
            continue
        if statement.id in shown:
            statement = msgspec.structs.replace(statement, text="as above")
        shown.add(statement.id)
        its_place = places.get(statement.id, -1)
        other = result.get(its_place)
        if other is None or other.id != statement.id:
            text = f"{line.text} ({say_later(statement)})"
            result[place] = line._replace(text=text, is_changed=True)
            continue
        if line.heading != AGENTS or other.heading == AGENTS:
            first = result[min(place, its_place)]
            text = f"{line.text} ({say_later(msgspec.structs.replace(statement, text=other.text))})"
            both = line._replace(heading=first.heading, text=text, is_changed=True, also=((other.id, other.key),))
            result[min(place, its_place)] = both
            del result[max(place, its_place)]
        else:
            del result[place]
    return [result[place] for place in sorted(result)]


def find_outdated(connection: Connection, candidates: Sequence[Row], selection: Filter, now: float) -> set[str]:
    """Return the ids of memories, except pinned ones, that a newer one within reach contradicts."""
    candidates = [row for row in candidates if not row.pinned]
    links = read_contradictions(connection, [row.id for row in candidates], condition(selection.reached), now)
    others = rows.read_ids(connection, sorted({id for ids in links.values() for id in ids}))
    return {
        row.id
        for row in candidates
        if any(id in others and others[id].created_at > row.created_at for id in links.get(row.id, ()))
    }


def fit(lines: Sequence[ContextLine], max_tokens: int, by: Counter) -> FittedLines:
    """Return the text of the lines that fit into a budget, tried in order."""
    spent = by.count("".join(FRAME))
    chosen: list[ContextLine] = []
    for line in lines:
        cost = by.count(write_line(line))
        if spent + cost <= max_tokens:
            chosen.append(line)
            spent += cost
    while chosen:
        text = f"{FRAME[0]}{''.join(map(write_line, chosen))}{FRAME[1]}"
        if (tokens := by.count(text)) <= max_tokens:
            return FittedLines(text, tokens, chosen)
        chosen.pop()  # a text may have more tokens than the sum of its lines
    return FittedLines("", 0, [])


def write_line(line: ContextLine, with_id: bool = True) -> str:
    """Format a line."""
    return f"- {f'[{line.id[:8]}] ' if with_id else ''}{line.text}{line.note and f' ({line.note})'}\n"
