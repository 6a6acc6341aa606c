"""Postings in RAM: in which memories each stem occurs, for the ranking of full text.

FTS5 has the index, but its bm25() costs 0.7 µs per memory with a stem, in every search. Here the postings of a stem are
read once (0.2 µs per occurrence) and cached as arrays by position (`positions`), from which NumPy ranks in a few ns
each. The cache has `MAX_KEPT` postings of 6 bytes, or `_PER_MEMORY` for each memory if that is more, enough for the
commonest stems. The least recently used are evicted first.

Updates: a commit records the new stems of the memories whose text it changed; a cached posting applies the changes
recorded since it was read when it is next asked for. After more than `_NOTED` changes it is read again.

Threads: the writer calls `note_changes` after each commit, before it replies. A reader calls `note_snapshot` before its
snapshot begins: what it then reads may have changes that are recorded later, and applying these twice does no harm.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memoryd.client.protocol import CountedText
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.arrays.positions import Places, Positions, find_distinct, grow
from memoryd.daemon.store.stopwords import STOP_WORDS
from memoryd.daemon.store.tokenizer import count_tokens, is_part, stem_words

MAX_KEPT = 3_000_000  # postings, which take 18 MB
_PER_MEMORY = 10
WEIGHTS = {"content": 1.0, "metadata": 0.5, "neighbours": 0.35}
UNITS = 20  # units per weight of 1, so that weighted counts are whole numbers
_NOTED = 1_000  # changes that are recorded
_MAX_COUNTED = 20_000  # stems whose number of memories is cached
_PART = 10_000  # rows read at once
_PLACES = (
    "SELECT group_concat(doc * 4 + (col = 'metadata') + 2 * (col = 'neighbours')) FROM memories_places WHERE term = ?"
)
_PLACES_OF_PART = f"{_PLACES.removesuffix('= ?')}IN (SELECT term FROM memories_terms WHERE instr(term, ?))"
_DOCUMENTS = "SELECT doc FROM memories_terms WHERE term = ?"
_SIZES = "SELECT id, sz FROM memories_fts_docsize"
_TEXTS = f"SELECT row, {', '.join(WEIGHTS)} FROM memories WHERE row IN ({{}})"
_UNITS_OF = np.array([round(weight * UNITS) for weight in WEIGHTS.values()], np.int64)
_MOST = int(np.iinfo(np.uint16).max)

Counts = NDArray[np.uint16]


class Posting(NamedTuple):
    """The memories that have a stem.

    `shortest` bounds the scores: for each count the least length of a memory with this count, which may also be that of
    a memory that has changed since.
    """

    places: NDArray[np.int32]  # positions, ascending
    counts: Counts  # of occurrences in the text, weighted by column, in units
    shortest: dict[int, float]
    seen: int  # the number of changes that it includes

    def select_held(self, places: Places) -> NDArray[np.bool_]:
        """Return which of some positions it has."""
        if not len(self.places):
            return np.zeros(len(places), np.bool_)
        queried = places.astype(self.places.dtype, copy=False)  # otherwise the whole posting would be converted
        inside: NDArray[np.bool_] = self.places.take(self.places.searchsorted(queried), mode="clip") == queried
        return inside

    def count_at(self, places: Places) -> NDArray[np.float64]:
        """Return how often the memories at some positions have the stem, weighted by column."""
        if not len(self.places):
            return np.zeros(len(places))
        at = self.places.searchsorted(places.astype(self.places.dtype, copy=False))
        counts: NDArray[np.float64] = self.counts.take(at, mode="clip") * self.select_held(places) / UNITS
        return counts


class Postings:
    """The postings of one database."""

    def __init__(self, connection: apsw.Connection, positions: Positions) -> None:
        self._positions = positions
        self._lock = threading.Lock()
        self._local = threading.local()
        self._kept: OrderedDict[str, Posting] = OrderedDict()
        self._size = 0  # postings in `_kept`
        self._counted: dict[str, int] = {}
        self._changes = 0  # how many there ever were
        self._noted: deque[tuple[int, Counter[str]]] = deque(maxlen=_NOTED)
        self._lengths = np.zeros(1, np.float32)  # words by position; 0: no memory, or one without a word
        self._documents, self._words = 0, 0.0
        # A damaged index is found by the check after every start, and its rebuild counts as a change of all texts.
        with suppress(apsw.CorruptError, apsw.SQLError):
            cursor = connection.execute(_SIZES)
            while part := list(islice(cursor, _PART)):
                self._put_lengths(part)

    # Readers ----------------------------------------------------------------------------------------------------------

    def note_snapshot(self) -> None:
        """Record that this thread is about to begin a snapshot."""
        self._local.seen = self._changes

    def find(self, connection: apsw.Connection, stem: str) -> Posting:
        """Return the posting of a stem as of this thread's snapshot, or later."""
        with self._lock:
            posting = self._kept.get(stem)
            if posting is not None:
                self._kept.move_to_end(stem)
            missed = None if posting is None else self._find_changes(posting.seen)
            changes = self._changes
        if posting is None or missed is None:
            posting = self._read(connection, stem)
        elif missed:
            posting = self._update(posting, stem, dict(missed), changes)
        else:
            return posting
        if len(stem) > 1 or not is_part(stem):  # changes do not list single characters, so these are not cached
            self._keep(stem, posting)
        return posting

    def count_documents(self, connection: apsw.Connection, stem: str) -> int:
        """Return approximately how many memories have a stem, without reading which; 0 is exact."""
        posting = self._kept.get(stem)
        if posting is not None and len(posting.places):
            return len(posting.places)
        if is_part(stem):
            return len(self.find(connection, stem).places)
        number = self._counted.get(stem)
        if not number:
            count = connection.execute(_DOCUMENTS, (stem,)).get
            number = count if isinstance(count, int) else 0
            if len(self._counted) >= _MAX_COUNTED:
                self._counted.clear()
            self._counted[stem] = number
        return number

    def read_lengths(self, places: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Return the lengths in words of the memories at some positions."""
        return self._lengths.take(places, mode="clip")

    def measure_corpus(self, reached: Mask | None) -> tuple[int, float]:
        """Return how many memories (all, or those of a mask) have words, and their average length in words."""
        documents, words = self._documents, self._words
        if reached is not None:
            lengths = self.read_lengths(np.flatnonzero(reached.allowed))
            documents, words = int(np.count_nonzero(lengths)), float(lengths.sum(dtype=np.float64))
        return documents, max(1.0, words / max(1, documents))

    def _read(self, connection: apsw.Connection, stem: str) -> Posting:
        text = connection.execute(_PLACES_OF_PART if is_part(stem) else _PLACES, (stem,)).get
        numbers = np.fromstring(text, np.int64, sep=",") if isinstance(text, str) else np.zeros(0, np.int64)
        places, units = self._positions.find(numbers >> 2), _UNITS_OF[numbers & 3]
        if (places < 0).any() or (np.diff(places) < 0).any():
            is_there = places >= 0
            order = np.argsort(places[is_there], kind="stable")
            places, units = places[is_there][order], units[is_there][order]
        first = np.flatnonzero(np.diff(places, prepend=-1))
        counts = np.minimum(np.add.reduceat(units, first), _MOST) if len(first) else units
        places, counts_kept = places[first], counts.astype(np.uint16)
        return Posting(
            places.astype(np.int32), counts_kept, self._measure_shortest(places, counts_kept), self._local.seen
        )

    def _update(self, posting: Posting, stem: str, latest: dict[int, Counter[str]], stamp: int) -> Posting:
        """Return a posting updated with the present stems of changed memories, by position."""
        new_places = np.array(sorted(latest), np.int32)
        holding = np.array(sorted(place for place, stems in latest.items() if stem in stems), np.int32)
        at = np.searchsorted(posting.places, new_places)
        at = (
            at[posting.places[np.minimum(at, len(posting.places) - 1)] == new_places] if len(posting.places) else at[:0]
        )
        if not len(at) and not len(holding):
            return posting._replace(seen=stamp)
        places, counts = np.delete(posting.places, at), np.delete(posting.counts, at)
        fresh = np.array([min(latest[place][stem], _MOST) for place in holding.tolist()], np.uint16)
        at = np.searchsorted(places, holding)
        shortest = dict(posting.shortest)
        for count, length in self._measure_shortest(holding, fresh).items():
            shortest[count] = min(length, shortest.get(count, length))
        return Posting(np.insert(places, at, holding), np.insert(counts, at, fresh), shortest, stamp)

    def _measure_shortest(self, places: NDArray[np.integer[Any]], counts: Counts) -> dict[int, float]:
        lengths = self.read_lengths(places)
        return {count: float(lengths[counts == count].min()) for count in find_distinct(counts).tolist()}

    # The writer -------------------------------------------------------------------------------------------------------

    def note_changes(self, connection: apsw.Connection, rows: Iterable[int]) -> None:
        """Record that a commit changed, added or removed the texts of these rows."""
        numbers = sorted(rows)
        for part in split_evenly(numbers, _PART):
            sizes: dict[int, bytes] = dict(connection.execute(f"{_SIZES} WHERE id IN ({', '.join(map(str, part))})"))
            self._put_lengths([(row, sizes.get(row, b"")) for row in part])
        if len(numbers) > _NOTED:
            self._forget()
        elif numbers:
            self._note(_read_stems(connection, numbers))

    def _note(self, stems: dict[int, Counter[str]]) -> None:
        places = self._positions.find(stems).tolist()
        by_place = {place: stems[row] for place, row in zip(places, stems, strict=True) if place >= 0}
        with self._lock:
            if (self._changes + len(by_place)) // _NOTED > self._changes // _NOTED:
                self._counted = {}
            self._noted.extend(by_place.items())
            self._changes += len(by_place)

    def _forget(self) -> None:
        with self._lock:
            self._changes += 1  # an unrecorded change, so that postings that are just being read are outdated too
            self._noted.clear()
            self._kept.clear()
            self._size, self._counted = 0, {}

    def _put_lengths(self, sizes: list[Any]) -> None:
        if not sizes:
            return
        places = self._positions.find([row for row, _ in sizes])
        words = np.array([_sum_of_varints(data) for _, data in sizes], np.float32)[places >= 0]
        places = places[places >= 0]
        self._lengths = grow(self._lengths, int(places.max(initial=0)) + 1)
        before = self._lengths[places]
        self._lengths[places] = words
        self._documents += int(np.count_nonzero(words)) - int(np.count_nonzero(before))
        self._words += float(words.sum(dtype=np.float64) - before.sum(dtype=np.float64))

    # Both -------------------------------------------------------------------------------------------------------------

    def _find_changes(self, stamp: int) -> list[tuple[int, Counter[str]]] | None:
        """Return the changes recorded since, None if they are not all there any more."""
        missed = self._changes - stamp
        return [self._noted[-place] for place in range(missed, 0, -1)] if missed <= len(self._noted) else None

    def _limit(self) -> int:
        return max(MAX_KEPT, _PER_MEMORY * self._documents)

    def is_full(self) -> bool:
        """Return whether the cache is nearly full."""
        return self._size > 0.9 * self._limit()

    def _keep(self, stem: str, posting: Posting) -> None:
        with self._lock:
            former = self._kept.pop(stem, None)
            self._kept[stem] = posting
            self._size += _cost(posting) - (_cost(former) if former else 0)
            while self._size > self._limit():
                _, oldest = self._kept.popitem(last=False)
                self._size -= _cost(oldest)


def _cost(posting: Posting) -> int:
    return len(posting.places) + 40  # the objects around the arrays take as much memory as 40 postings


def read_common_stems(connection: apsw.Connection, limit: int) -> list[str]:
    """Return the stems that most memories have, the commonest first, without stop words."""
    terms: Any = connection.execute("SELECT term FROM memories_terms ORDER BY doc DESC LIMIT ?", (limit,))
    stop_stems = set(stem_words(connection, " ".join(STOP_WORDS)))
    return [stem for (stem,) in terms if stem not in stop_stems]


def _read_stems(connection: apsw.Connection, numbers: list[int]) -> dict[int, Counter[str]]:
    """Return for each row its stems with their counts in units; a row that no longer exists has none."""
    stems: dict[int, Counter[str]] = {row: Counter() for row in numbers}
    for row, *texts in connection.execute(_TEXTS.format(", ".join(map(str, numbers)))):
        for text, units in zip(texts, _UNITS_OF.tolist(), strict=True):
            for stem in stem_words(connection, text):
                stems[row][stem] += units
    return stems


def count_stems(connection: apsw.Connection, content: str, metadata: Mapping[str, Any]) -> CountedText:
    """Return the words of a memory that is not in the index, as the index counts them."""
    counted = CountedText(length=0.0)
    for name, text in (("content", content), ("metadata", msgspec.json.encode(metadata).decode())):
        counted.length += count_tokens(connection, text)
        for stem in stem_words(connection, text):
            counted.counts[stem] = counted.counts.get(stem, 0.0) + WEIGHTS[name]
    return counted


def _sum_of_varints(data: bytes) -> int:
    """Return the number of words of a memory, which FTS5 stores as a varint for each column."""
    if data.isascii():
        return sum(data)
    total = value = 0
    for byte in data:
        value = value << 7 | byte & 127
        if byte < 128:
            total, value = total + value, 0
    return total
