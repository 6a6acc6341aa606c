"""Names that a language model gave to sets of members, and what it is shown of them.

A set of members is known by the hash of its texts, so a node that is rebuilt from the same memories
gets its label back.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import apsw


class Label(NamedTuple):
    """The label that a set of members got, and who gave it; both empty where the label of the rules stays."""

    text: str
    by: str


def read_hashes_and_texts(connection: apsw.Connection, nodes: Iterable[int], chars: int) -> list[tuple[bytes, str]]:
    """Return the hash and the beginning of each member's text, by hash."""
    rows: Any = connection.execute(
        f"SELECT m.text_hash, substr(m.content, 1, {chars}) FROM members b JOIN memories m ON m.row = b.memory"
        f" WHERE b.node IN ({', '.join(map(str, nodes))}) ORDER BY m.text_hash, m.row"
    )
    return list(rows)


def find(connection: apsw.Connection, members: bytes) -> Label | None:
    """Return the label of a set of members, None when none was asked for yet."""
    rows: Any = connection.execute("SELECT label, named_by FROM names WHERE members = ?", (members,)).fetchone()
    return None if rows is None else Label(*rows)


def keep(connection: apsw.Connection, node: int, members: bytes, label: Label, now: float) -> None:
    """Keep the label of a set of members, which is that of a node now."""
    sql = "INSERT OR REPLACE INTO names (members, node, label, named_by, at) VALUES (?, ?, ?, ?, ?)"
    connection.execute(sql, (members, node, *label, now))


def label_node(connection: apsw.Connection, node: int, members: bytes, text: str, by: str) -> None:
    """Write a label into its node."""
    connection.execute("UPDATE nodes SET label = ?, named_by = ?, named_of = ? WHERE id = ?", (text, by, members, node))


def forget_old(connection: apsw.Connection, node: int, members: bytes, before: float) -> None:
    """Delete the labels of a node's former members, and old ones of deleted nodes."""
    connection.execute(
        "DELETE FROM names WHERE (node = ?1 AND members <> ?2)"
        " OR (at < ?3 AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = names.node))",
        (node, members, before),
    )


def sample_texts(connection: apsw.Connection, namespace: int, most: int) -> list[str]:
    """Return texts of memories spread evenly over a namespace."""
    sql = "SELECT row FROM memories WHERE namespace = ? ORDER BY row"
    rows: list[int] = [row for (row,) in connection.execute(sql, (namespace,))]
    chosen = rows[:: max(1, len(rows) // most)][:most]
    found = connection.execute(f"SELECT content FROM memories WHERE row IN ({', '.join(map(str, chosen))})")
    return [str(content) for (content,) in found]
