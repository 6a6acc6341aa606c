"""The arrays of one database, in step with its commits. The store calls `read` when it is opened, then the others."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import apsw

from memoryd.daemon.arrays.columns import FilterColumns, Mask
from memoryd.daemon.arrays.positions import Positions
from memoryd.daemon.arrays.postings import Postings, read_common_stems
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.store import Store

_WARMED = 1_000  # stems
_BREATH_S = 0.001  # between two of them


class Arrays:
    """Positions of the memories, and by these the columns that filters ask and the postings of words."""

    positions: Positions
    columns: FilterColumns
    postings: Postings

    def read(self, connection: apsw.Connection) -> None:
        """Read what is kept of a database."""
        self.positions = Positions()
        self.columns = FilterColumns(connection, self.positions)
        self.postings = Postings(connection, self.positions)

    def note_snapshot(self) -> None:
        """Note that a reader begins."""
        self.postings.note_snapshot()

    def follow(self, connection: apsw.Connection, rows: set[int], texts: set[int]) -> None:
        """Bring up to date what is known of changed memories and of changed texts, on the writer's thread."""
        self.columns.refresh(connection, rows)
        self.postings.note_changes(connection, texts)

    def warm_up(self, reading: Callable[[], AbstractContextManager[apsw.Connection]], closing: threading.Event) -> None:
        """Read the postings that searches will ask for, the commonest first; each is a read of its own."""
        with reading() as connection:
            stems = read_common_stems(connection, _WARMED)
        for stem in stems:
            if closing.wait(_BREATH_S) or self.postings.is_full():
                break
            with reading() as connection:
                self.postings.find(connection, stem)

    def build_mask(self, store: Store, selection: Filter, now: float) -> Mask:
        """Return which memories a filter leaves, among what is alive."""
        mask = self.columns.build_mask(selection, now)
        return mask.restrict(store.select_rows(selection, now)) if selection.further else mask
