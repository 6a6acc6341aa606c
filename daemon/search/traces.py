"""Traces of recent searches in RAM, by id; the oldest are evicted first."""

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import msgspec

from memoryd.client.errors import NotFound
from memoryd.client.protocol import Trace
from memoryd.daemon.store.rows import Row

CAPACITY = 256
_FORGOTTEN = "Traces are cleared when the daemon stops and when something is erased or redacted."

Origin = Literal["words", "meaning", "hot", "L0", "graph"]


class Candidate(msgspec.Struct, gc=False):
    """A memory on its way through the stages. Ranks count from 1; `lost` is the reason why a stage dropped it.

    Not tracked by the garbage collector, since a search makes a hundred; `TraceStore.keep` clears their references.
    """

    row: int
    similarity: float | None = None
    similarity_rank: int | None = None
    bm25: float | None = None
    bm25_rank: int | None = None
    score: float = 0.0
    parts: dict[str, float] = {}  # summands of the score, by name
    confidence: float = 0.0
    usefulness: float = 1.0  # the factor of feedback
    origins: tuple[Origin, ...] = ()
    cues: tuple[str, ...] = ()  # that apply
    stems: Collection[str] = ()  # of the words in a turn of L0
    record: Row | None = None
    related: tuple[Row, ...] = ()  # shown with it
    shown_with: str = ""  # the id of the hit that it is shown with
    formers: "tuple[Candidate, ...]" = ()  # older ones that it was moved before or replaces
    lost: str = ""
    lost_in: str = ""  # the stage

    def rescore(self, score: float, because: str) -> None:
        """Set the score, and add the difference to its parts under `because`."""
        if self.parts or not self.score:
            self.parts[because] = self.parts.get(because, 0.0) + score - self.score
        self.score = score


class StoredTrace(NamedTuple):
    """A trace without texts, and its candidates, whose texts are read when the trace is shown."""

    trace: Trace
    candidates: list[Candidate]
    recent: dict[int, Row]  # turns of L0 among them
    owner: bytes = b""  # the caller's token

    def is_seen_by(self, namespace: str, owner: bytes) -> bool:
        """Return whether a caller may read the trace: that of a search in `namespace`, or any trace from the root.

        A caller with a token may read only its own traces.
        """
        return (not namespace or self.trace.namespace == namespace) and owner in (b"", self.owner)


class TraceStore:
    """A bounded store of traces; each belongs to the namespace that searched."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, StoredTrace] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, trace: StoredTrace) -> None:
        """Store a trace and clear the texts of its candidates."""
        for candidate in trace.candidates:
            candidate.record, candidate.related, candidate.formers, candidate.stems = None, (), (), ()
        with self._lock:
            self._kept[trace.trace.id] = trace
            while len(self._kept) > CAPACITY:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Drop all traces."""
        with self._lock:
            self._kept.clear()

    def list_latest(self, namespace: str, owner: bytes, kinds: Sequence[str], limit: int) -> list[Trace]:
        """Return the latest traces that the caller may read, newest first."""
        with self._lock:
            traces = [one for one in reversed(self._kept.values()) if one.is_seen_by(namespace, owner)]
        return [one.trace for one in traces if not kinds or one.trace.kind in kinds][:limit]

    def find(self, prefix: str | None, namespace: str, owner: bytes = b"") -> StoredTrace:
        """Return a trace by id or prefix; with None the latest search that had side effects (`touch`)."""
        with self._lock:
            for trace in reversed(self._kept.values()):
                matches = trace.trace.id.startswith(prefix) if prefix else trace.trace.touch
                if matches and trace.is_seen_by(namespace, owner):
                    return trace
        if not prefix:
            raise NotFound(f"No search is kept. {_FORGOTTEN}", {"id": prefix})
        raise NotFound(f"No such trace is kept; run the search again. {_FORGOTTEN}", {"id": prefix})
