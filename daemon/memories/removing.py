"""Delete memories within an operation: record them in the history, delete the rows, then update RAM."""

from collections.abc import Sequence

from memoryd.daemon.core.core import Core
from memoryd.daemon.store import history, rows
from memoryd.daemon.store.writer import Transaction


def remove(core: Core, transaction: Transaction, going: Sequence[rows.Row], operation: str) -> None:
    """Delete memories; `undo` of the operation brings them back."""
    connection = transaction.connection
    for row in going:
        history.record(connection, operation, row.id, core.store.namespaces.name(row.namespace), row)
        rows.delete(connection, [row.row])
    transaction.after_commit(lambda: core.embedding.remove_rows([row.row for row in going]))
