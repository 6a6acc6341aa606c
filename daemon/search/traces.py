"""Traces of recent retrievals, kept by id, the oldest forgotten first."""

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import msgspec

from memoryd.client.errors import NotFound
from memoryd.client.protocol import Trace
from memoryd.daemon.store.rows import Row

CAPACITY = 256
_FORGOTTEN = "Searches are forgotten when the daemon ends and when something is erased or redacted."

Origin = Literal["words", "meaning", "hot", "L0", "graph"]


class Candidate(msgspec.Struct, gc=False):
    """A memory on its way through the stages. Ranks count from 1; `lost` says why it left, `lost_in` at which.

    The garbage collector need not look at them: a search makes a hundred, and `TraceStore.keep` lets go what they hold.
    """

    row: int
    similarity: float | None = None
    similarity_rank: int | None = None
    bm25: float | None = None
    bm25_rank: int | None = None
    score: float = 0.0
    parts: dict[str, float] = {}  # of the score
    confidence: float = 0.0  # of a hit: how likely it is to the point
    usefulness: float = 1.0  # what feedback made of the score
    origins: tuple[Origin, ...] = ()
    cues: tuple[str, ...] = ()  # that hold
    stems: Collection[str] = ()  # of a turn of L0: the words in it
    record: Row | None = None
    related: tuple[Row, ...] = ()  # what is shown with it
    shown_with: str = ""  # the id of the hit that shows it too
    formers: "tuple[Candidate, ...]" = ()  # older ones that it stands before or for: it is as likely as they are
    lost: str = ""
    lost_in: str = ""

    def rescore(self, score: float, because: str) -> None:
        """Give it another score, and keep among its parts what that changed."""
        if self.parts or not self.score:
            self.parts[because] = self.parts.get(because, 0.0) + score - self.score
        self.score = score


class StoredTrace(NamedTuple):
    """A trace without its candidates' texts, and the candidates to look them up for when it is read."""

    trace: Trace
    candidates: list[Candidate]
    recent: dict[int, Row]  # turns of L0 among them
    owner: bytes = b""  # the token of who searched

    def is_seen_by(self, namespace: str, owner: bytes) -> bool:
        """Return whether a caller may read it: at the root all, elsewhere its namespace's, with a token its own."""
        return (not namespace or self.trace.namespace == namespace) and owner in (b"", self.owner)


class TraceStore:
    """A bounded store of traces; each belongs to the namespace that searched."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, StoredTrace] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, trace: StoredTrace) -> None:
        """Keep a trace; the texts of its candidates are let go."""
        for candidate in trace.candidates:
            candidate.record, candidate.related, candidate.formers, candidate.stems = None, (), (), ()
        with self._lock:
            self._kept[trace.trace.id] = trace
            while len(self._kept) > CAPACITY:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget all traces."""
        with self._lock:
            self._kept.clear()

    def list_latest(self, namespace: str, owner: bytes, kinds: Sequence[str], limit: int) -> list[Trace]:
        """Return the latest traces, newest first, of those that `find` finds."""
        with self._lock:
            traces = [one for one in reversed(self._kept.values()) if one.is_seen_by(namespace, owner)]
        return [one.trace for one in traces if not kinds or one.trace.kind in kinds][:limit]

    def find(self, prefix: str | None, namespace: str, owner: bytes = b"") -> StoredTrace:
        """Return a trace by id or prefix, None for the latest that was no mere look."""
        with self._lock:
            for trace in reversed(self._kept.values()):
                is_meant = trace.trace.id.startswith(prefix) if prefix else trace.trace.touch
                if is_meant and trace.is_seen_by(namespace, owner):
                    return trace
        if not prefix:
            raise NotFound(f"No search is kept. {_FORGOTTEN}", {"id": prefix})
        raise NotFound(f"No such trace is kept; run the search again. {_FORGOTTEN}", {"id": prefix})
