"""The arrays of one database. The store calls `read` when it opens, and the other methods as it reads and commits."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import apsw

from memoryd.daemon.arrays.columns import FilterColumns, Mask
from memoryd.daemon.arrays.positions import Positions
from memoryd.daemon.arrays.postings import Postings, read_common_stems
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.store import Store

_WARMED_STEMS = 1_000
_BREATH_S = 0.001  # a pause between two of these reads


class Arrays:
    """The positions of the memories, and by position the columns for filters and the postings of words."""

    positions: Positions
    columns: FilterColumns
    postings: Postings

    def read(self, connection: apsw.Connection) -> None:
        """Build the arrays from a database."""
        self.positions = Positions()
        self.columns = FilterColumns(connection, self.positions)
        self.postings = Postings(connection, self.positions)

    def note_snapshot(self) -> None:
        """Record that a reader is about to begin a snapshot."""
        self.postings.note_snapshot()

    def follow(self, connection: apsw.Connection, rows: set[int], texts: set[int]) -> None:
        """Update the arrays for changed memories and changed texts, on the writer's thread."""
        self.columns.refresh(connection, rows)
        self.postings.note_changes(connection, texts)

    def warm_up(self, reading: Callable[[], AbstractContextManager[apsw.Connection]], closing: threading.Event) -> None:
        """Preload the postings of the commonest stems; each is read on a connection of its own."""
        with reading() as connection:
            stems = read_common_stems(connection, _WARMED_STEMS)
        for stem in stems:
            if closing.wait(_BREATH_S) or self.postings.is_full():
                break
            with reading() as connection:
                self.postings.find(connection, stem)

    def build_mask(self, store: Store, selection: Filter, now: float) -> Mask:
        """Return the mask of the living memories that a filter matches."""
        mask = self.columns.build_mask(selection, now)
        return mask.restrict(store.select_rows(selection, now)) if selection.further else mask
