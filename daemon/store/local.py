"""What this machine has and does alone, where capabilities share memories with other machines."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import apsw
import msgspec

from memoryd.daemon.capability import installed
from memoryd.daemon.store.rows import Row


@contextmanager
def change_locally(connection: apsw.Connection) -> Iterator[None]:
    """Change this machine's copy alone within a transaction: nothing of it becomes a change for other machines."""
    with ExitStack() as contexts:
        for capability in installed():
            contexts.enter_context(capability.change_locally(connection))
        yield


def build_own() -> str:
    """Return the SQL condition of memories `m` that no other machine has."""
    return f"NOT ({' OR '.join(['FALSE', *(capability.shares for capability in installed())])})"


def select_own(connection: apsw.Connection, records: Sequence[Row]) -> list[Row]:
    """Return those of some memories that no other machine has."""
    sql = f"SELECT m.row FROM memories m WHERE m.row IN (SELECT value FROM json_each(?)) AND {build_own()}"
    own = {row for (row,) in connection.execute(sql, (msgspec.json.encode([row.row for row in records]).decode(),))}
    return [row for row in records if row.row in own]
