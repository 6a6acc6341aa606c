"""What people see of the graph of L2. Conditions are SQL on `n` (nodes) or `m` (memories), as `visible` makes them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from memoryd.daemon.topics.tables import graph

_BOTH = "e.origin IN (SELECT n.id FROM nodes n WHERE {0}) AND e.target IN (SELECT n.id FROM nodes n WHERE {0})"
_ORDER = {"size": "n.size DESC, n.id", "updated": "n.updated_at DESC, n.id", "label": "n.label, n.id"}
_WORD = re.compile(r"\w+")

EdgeRow = tuple[int, int, Any, float]  # origin, target, kind, weight


def find_nodes(
    connection: apsw.Connection, within: str, query: str, exact: Sequence[tuple[str, Any]], page: tuple[str, int, int]
) -> tuple[list[graph.StoredNode], int]:
    """Return one page (order, limit, offset) of nodes and how many there are.

    `query`: the label, or one member, has all of its words; `exact`: columns with their values, None for any.
    """
    conditions = [within]
    values: list[Any] = []
    for column, value in exact:
        if value is not None:
            conditions.append(f"n.{column} = ?")
            values.append(value)
    if query.strip():
        conditions.append(
            "(n.label LIKE ? ESCAPE '\\' OR n.id IN (SELECT p.node FROM members p WHERE p.memory IN"
            " (SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?)))"
        )
        values += _has_words(query)
    where = " AND ".join(conditions)
    total: Any = connection.execute(f"SELECT count(*) FROM nodes n WHERE {where}", values).get
    order, *window = page
    rows = graph.select_nodes(connection, f"{where} ORDER BY {_ORDER[order]} LIMIT ? OFFSET ?", (*values, *window))
    return rows, int(total)


def _has_words(query: str) -> list[str]:
    escaped = query.strip().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return [f"%{escaped}%", " AND ".join(f'"{word}"' for word in _WORD.findall(query)) or '""']


def find_edges(
    connection: apsw.Connection, within: str, kind: str | None, node: int | None, window: tuple[int, int]
) -> tuple[list[EdgeRow], int]:
    """Return one window (limit, offset) of the edges with both ends within reach, and how many there are."""
    where = _BOTH.format(within)
    values: list[Any] = []
    if kind is not None:
        where += " AND e.kind = ?"
        values.append(kind)
    if node is not None:
        where += " AND ? IN (e.origin, e.target)"
        values.append(node)
    total: Any = connection.execute(f"SELECT count(*) FROM edges e WHERE {where}", values).get
    ordered = f"{where} ORDER BY e.weight DESC, e.origin, e.target LIMIT ? OFFSET ?"
    return _edges(connection, ordered, (*values, *window)), int(total)


def edges_of(connection: apsw.Connection, within: str, origins: Iterable[int]) -> list[EdgeRow]:
    """Return the edges that begin at nodes and end within reach."""
    return _edges(connection, f"e.origin IN ({graph.join(origins)}) AND {_BOTH.format(within)} ORDER BY 1, 2, 3")


def _edges(connection: apsw.Connection, where: str, values: tuple[Any, ...] = ()) -> list[EdgeRow]:
    return list(connection.execute(f"SELECT e.origin, e.target, e.kind, e.weight FROM edges e WHERE {where}", values))


def neighbours_of(connection: apsw.Connection, node: int, within: str) -> list[tuple[Any, int, str, float, bool]]:
    """Return kind, other node, its label, weight, and whether the edge leads out of the node."""
    sql = (
        "SELECT e.kind, n.id, n.label, e.weight, TRUE FROM edges e JOIN nodes n ON n.id = e.target"
        f" WHERE e.origin = ?1 AND {within} UNION ALL "
        "SELECT e.kind, n.id, n.label, e.weight, FALSE FROM edges e JOIN nodes n ON n.id = e.origin"
        f" WHERE e.target = ?1 AND {within} ORDER BY 1, 4 DESC, 2"
    )
    return list(connection.execute(sql, (node,)))


def read_labels(connection: apsw.Connection, nodes: Iterable[int]) -> dict[int, str]:
    """Return the labels of nodes."""
    return dict(connection.execute(f"SELECT id, label FROM nodes WHERE id IN ({graph.join(nodes)})"))


def read_member_texts(connection: apsw.Connection, nodes: Iterable[int], chars: int) -> list[tuple[int, str]]:
    """Return the beginnings of the members' texts, each with its node."""
    rows: Any = connection.execute(
        f"SELECT p.node, substr(m.content, 1, {chars}) FROM members p JOIN memories m ON m.row = p.memory"
        f" WHERE p.node IN ({graph.join(nodes)}) ORDER BY p.node, p.memory"
    )
    return list(rows)


def read_texts(connection: apsw.Connection, rows: Iterable[int], chars: int) -> dict[int, str]:
    """Return the beginnings of the texts of memories by row."""
    sql = f"SELECT row, substr(content, 1, {chars}) FROM memories WHERE row IN ({graph.join(rows)})"
    return dict(connection.execute(sql))


def read_beginnings(connection: apsw.Connection, rows: Iterable[int], chars: int) -> list[tuple[int, str, str, float]]:
    """Return row, id, the beginning of the text and the date of memories."""
    sql = f"SELECT row, id, substr(content, 1, {chars}), created_at FROM memories WHERE row IN ({graph.join(rows)})"
    return list(connection.execute(sql))


def find_topics(connection: apsw.Connection, within: str) -> list[tuple[int, int, str, int, int]]:
    """Return number, namespace, label, nodes and memories of each topic, the largest first."""
    rows: Any = connection.execute(
        "SELECT t.id, t.namespace, t.label, count(*), sum(n.size) FROM topics t JOIN nodes n ON n.topic = t.id"
        f" AND n.namespace = t.namespace WHERE {within} GROUP BY t.id ORDER BY 5 DESC, 1"
    )
    return list(rows)


def read_topic_label(connection: apsw.Connection, topic: int | None) -> str:
    """Return the label of a topic, empty for none."""
    return str(connection.execute("SELECT label FROM topics WHERE id = ?", (topic,)).get or "")


def read_topics(connection: apsw.Connection, namespace: int) -> dict[int, str]:
    """Return the topics of a namespace with their labels."""
    return dict(connection.execute("SELECT id, label FROM topics WHERE namespace = ?", (namespace,)))


def count_nodes(connection: apsw.Connection, visible: str) -> int:
    """Return how many nodes are within reach."""
    return int(connection.execute(f"SELECT count(*) FROM nodes m WHERE {visible}").get)


def count_clusters(connection: apsw.Connection, unsettled: bool = False, without_topic: bool = False) -> dict[int, int]:
    """Return how many clusters of each namespace were not compared yet, or are newer than the topics."""
    where = "kind = 'cluster'" + " AND settled = 0" * unsettled + " AND topic IS NULL" * without_topic
    return dict(connection.execute(f"SELECT namespace, count(*) FROM nodes WHERE {where} GROUP BY 1"))


def count_without_topic(connection: apsw.Connection, within: str) -> int:
    """Return how many clusters have no topic."""
    sql = f"SELECT count(*) FROM nodes n WHERE n.kind = 'cluster' AND coalesce(n.topic, 0) = 0 AND {within}"
    return int(connection.execute(sql).get)


def count_backlog(connection: apsw.Connection, visible: str) -> int:
    """Return how many of the memories within reach wait for a node."""
    if visible == "TRUE":
        return graph.count_waiting(connection)
    sql = f"SELECT count(*) FROM backlog b CROSS JOIN memories m ON m.row = b.memory WHERE {visible}"
    return int(connection.execute(sql).get)
