"""Where each stem occurs, in RAM: what full text is ranked from.

FTS5 keeps the index and knows which memories hold a stem; its bm25() costs 0.7 µs for each of them, in every
search. Here the postings of a stem are read once (0.25 µs a place) and kept as arrays, from which NumPy
ranks at about 20 ns each. The commonest stems fit: `MAX_KEPT` postings of 8 bytes, the longest unasked go first.

Kept in step: a commit notes what stems the memories now hold whose text it changed; a posting takes in what was noted
since it was read when it is next asked for. After more than `_NOTED` changes it is read again.

Threads: the writer calls `changed` after each commit, before anybody gets a reply. A reader calls `opening` before its
snapshot begins: what it then reads may hold changes noted later, and taking those in twice does no harm.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.store.facts import Mask, select_passing
from memoryd.daemon.store.tokenizer import is_part, stems_of

MAX_KEPT = 3_000_000  # postings: 24 MB
WEIGHTS = {"content": 1.0, "metadata": 0.5, "neighbours": 0.35}
_NOTED = 1_000  # changes
_MAX_COUNTED = 20_000  # stems whose number of memories is kept
_IN_LIMIT = 10_000
_PLACES = (
    "SELECT group_concat(doc * 4 + (col = 'metadata') + 2 * (col = 'neighbours')) FROM memories_places WHERE term = ?"
)
_PLACES_OF_PART = f"{_PLACES.removesuffix('= ?')}IN (SELECT term FROM memories_terms WHERE instr(term, ?))"
_DOCUMENTS = "SELECT doc FROM memories_terms WHERE term = ?"
_SIZES = "SELECT id, sz FROM memories_fts_docsize"
_TEXTS = f"SELECT row, {', '.join(WEIGHTS)} FROM memories WHERE row IN ({{}})"
_WEIGHT_OF = np.array(list(WEIGHTS.values()), np.float32)

Rows = NDArray[np.int32]
Counts = NDArray[np.float32]


class Posting(NamedTuple):
    """The memories that hold a stem, in no order."""

    rows: Rows
    counts: Counts  # in how many places, each with the weight of its column
    seen: int  # changes that are in it


class Postings:
    """The postings of one database."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._lock = threading.Lock()
        self._local = threading.local()
        self._kept: OrderedDict[str, Posting] = OrderedDict()
        self._size = 0  # postings in `_kept`
        self._counted: dict[str, int] = {}
        self._changes = 0  # ever
        self._noted: deque[tuple[int, Counter[str]]] = deque(maxlen=_NOTED)
        self._lengths = np.zeros(1024, np.float32)  # words by row number; 0: no memory, or one without a word
        self._documents, self._words = 0, 0.0
        # The check that follows every start finds the damage, and an index that was rebuilt is a changed one.
        with suppress(apsw.CorruptError, apsw.SQLError):
            self._put_lengths(connection.execute(_SIZES).fetchall())

    # Readers ----------------------------------------------------------------------------------------------------------

    def note_snapshot(self) -> None:
        """Note that this thread is about to begin a snapshot."""
        self._local.seen = self._changes

    def find(self, connection: apsw.Connection, stem: str) -> Posting:
        """Return the posting of a stem as of this thread's snapshot, or later."""
        with self._lock:
            posting = self._kept.get(stem)
            if posting is not None:
                self._kept.move_to_end(stem)
            news = None if posting is None else self._changes_since(posting.seen)
            changes = self._changes
        if posting is None or news is None:
            posting = _read(connection, stem, self._local.seen)
        elif news:
            posting = _update(posting, stem, dict(news), changes)
        else:
            return posting
        if len(stem) > 1 or not is_part(stem):  # a single character is no word of a longer run, so it is not followed
            self._keep(stem, posting)
        return posting

    def documents(self, connection: apsw.Connection, stem: str) -> int:
        """Return in about how many memories a stem occurs, without reading where; 0 is exact."""
        posting = self._kept.get(stem)
        if posting is not None and len(posting.rows):
            return len(posting.rows)
        if is_part(stem):
            return len(self.find(connection, stem).rows)
        known = self._counted.get(stem)
        if not known:
            found = connection.execute(_DOCUMENTS, (stem,)).get
            known = found if isinstance(found, int) else 0
            if len(self._counted) >= _MAX_COUNTED:
                self._counted.clear()
            self._counted[stem] = known
        return known

    def lengths(self, rows: Rows) -> Counts:
        """Return how many words each of some rows has."""
        return self._lengths.take(rows, mode="clip")

    def corpus(self, reached: Mask | None) -> tuple[int, float]:
        """Return how many memories (all, or those of a mask) have words, and how many words on average."""
        documents, words = self._documents, self._words
        if reached is not None:
            lengths = self._lengths
            found = lengths[: len(reached)][reached[: len(lengths)]]
            documents, words = int(np.count_nonzero(found)), float(found.sum())
        return documents, max(1.0, words / max(1, documents))

    # The writer -------------------------------------------------------------------------------------------------------

    def note_changes(self, connection: apsw.Connection, rows: Iterable[int]) -> None:
        """Take in that a commit changed, added or removed the texts of these rows."""
        numbers = sorted(rows)
        for start in range(0, len(numbers), _IN_LIMIT):
            part = numbers[start : start + _IN_LIMIT]
            found: Any = connection.execute(f"{_SIZES} WHERE id IN ({', '.join(map(str, part))})").fetchall()
            sizes: dict[int, bytes] = dict(found)
            self._put_lengths([(row, sizes.get(row, b"")) for row in part])
        if len(numbers) > _NOTED:
            self._forget()
        elif numbers:
            self._note(_stems_of(connection, numbers))

    def _note(self, held: dict[int, Counter[str]]) -> None:
        with self._lock:
            if (self._changes + len(held)) // _NOTED > self._changes // _NOTED:
                self._counted = {}
            self._noted.extend(held.items())
            self._changes += len(held)

    def _forget(self) -> None:
        with self._lock:
            self._changes += 1  # more than was noted: what is being read meanwhile is out of date as well
            self._noted.clear()
            self._kept.clear()
            self._size, self._counted = 0, {}

    def _put_lengths(self, sizes: list[Any]) -> None:
        if not sizes:
            return
        rows = np.array([row for row, _ in sizes], np.int64)
        if rows.max() >= len(self._lengths):
            larger = np.zeros(max(2 * len(self._lengths), int(rows.max()) + 1), np.float32)
            larger[: len(self._lengths)] = self._lengths
            self._lengths = larger
        before, after = self._lengths[rows], np.array([_sum_of_varints(data) for _, data in sizes], np.float32)
        self._lengths[rows] = after
        self._documents += int(np.count_nonzero(after)) - int(np.count_nonzero(before))
        self._words += float(after.sum(dtype=np.float64) - before.sum(dtype=np.float64))

    # Both -------------------------------------------------------------------------------------------------------------

    def _changes_since(self, seen: int) -> list[tuple[int, Counter[str]]] | None:
        """Return what was noted since, None if that is not known any more."""
        missed = self._changes - seen
        return [self._noted[-place] for place in range(missed, 0, -1)] if missed <= len(self._noted) else None

    def _keep(self, stem: str, posting: Posting) -> None:
        with self._lock:
            former = self._kept.pop(stem, None)
            self._kept[stem] = posting
            self._size += _cost(posting) - (_cost(former) if former else 0)
            while self._size > MAX_KEPT:
                _, oldest = self._kept.popitem(last=False)
                self._size -= _cost(oldest)


def _cost(posting: Posting) -> int:
    return len(posting.rows) + 40  # the objects around the arrays take as much as so many postings


def common_stems(connection: apsw.Connection, limit: int) -> list[str]:
    """Return the stems that most memories hold, the commonest first."""
    found: Any = connection.execute("SELECT term FROM memories_terms ORDER BY doc DESC LIMIT ?", (limit,))
    return [stem for (stem,) in found]


def restrict(posting: Posting, reached: Mask | None) -> tuple[Rows, Counts]:
    """Return the part of a posting that is in a mask by row number."""
    if reached is None:
        return posting.rows, posting.counts
    inside = select_passing(reached, posting.rows)
    return posting.rows[inside], posting.counts[inside]


def _read(connection: apsw.Connection, stem: str, seen: int) -> Posting:
    text = connection.execute(_PLACES_OF_PART if is_part(stem) else _PLACES, (stem,)).get
    places = np.fromstring(text, np.int64, sep=",") if isinstance(text, str) else np.zeros(0, np.int64)
    rows, at = np.unique(places >> 2, return_inverse=True)
    counts = np.bincount(at, _WEIGHT_OF[places & 3], len(rows)).astype(np.float32)
    return Posting(rows.astype(np.int32), counts, seen)


def _update(posting: Posting, stem: str, latest: dict[int, Counter[str]], seen: int) -> Posting:
    """Return a posting with the changed memories as they are now."""
    kept = ~np.isin(posting.rows, np.fromiter(latest, np.int32))
    holding = {row: stems[stem] for row, stems in latest.items() if stem in stems}
    rows = np.concatenate([posting.rows[kept], np.fromiter(holding, np.int32)])
    counts = np.concatenate([posting.counts[kept], np.fromiter(holding.values(), np.float32)])
    return Posting(rows, counts, seen)


def _stems_of(connection: apsw.Connection, numbers: list[int]) -> dict[int, Counter[str]]:
    """Return for each row its stems with their weighted counts; none for a row that no longer exists."""
    held: dict[int, Counter[str]] = {row: Counter() for row in numbers}
    found: Any = connection.execute(_TEXTS.format(", ".join(map(str, numbers))))
    for row, *texts in found:
        for text, weight in zip(texts, WEIGHTS.values(), strict=True):
            for stem in stems_of(connection, text):
                held[row][stem] += weight  # type: ignore[assignment]
    return held


def _sum_of_varints(data: bytes) -> int:
    """Return the number of words of a memory, as FTS5 keeps it: a varint for each column."""
    if data.isascii():
        return sum(data)
    total = value = 0
    for byte in data:
        value = value << 7 | byte & 127
        if byte < 128:
            total, value = total + value, 0
    return total
