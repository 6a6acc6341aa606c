"""The SQL of the graph: pairs of memories, nodes, members, edges, topics.

`co_occurs` edges have no direction and are stored with origin < target; `abstracted_from` edges lead from a concept to
its clusters. A memory that has left L2 or its namespace since the last rebuild is still in `members`; the queries for
people exclude it, and so does the mask of a search. Conditions of reach are SQL on `n` (nodes). Reads accept thousands
of numbers and return only existing rows.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import apsw

from memoryd.daemon.store.tiers import L2

CLUSTER, CONCEPT = "cluster", "concept"
PREFIX = "concept-"  # of the names of concepts
CO_OCCURS, ABSTRACTED_FROM = "co_occurs", "abstracted_from"
_MAX_PAIRED = 5  # best memories of one search that count as returned together
_ABOUT = 400  # characters of the medoid that show what a node is about
_WORD = re.compile(r"\w+")

EdgeKey = tuple[int, int, str]  # origin, target, kind


class MemoryKey(NamedTuple):
    """A memory of L2: row number, id, and hash of its text."""

    row: int
    id: str
    text_hash: bytes


class NewNode(NamedTuple):
    """A node to write; `members` are rows of memories, or for a concept names of clusters."""

    name: str
    kind: str
    members: tuple[Any, ...]
    texts: bytes
    label: str = ""
    named_by: str = ""
    asked: int = 0


class StoredNode(NamedTuple):
    """A node as read; `about` is the beginning of its medoid's text, `topic` the name of its topic."""

    id: int
    name: str
    namespace: int
    kind: str
    size: int
    label: str
    named_by: str
    texts: bytes
    topic: str | None
    about: str


_MEDOID = f"m.id = substr({{0}}.name, -32) AND m.namespace = {{0}}.namespace AND m.tier = {L2!r}"
_NODE = (
    "SELECT n.id, n.name, n.namespace, n.kind, n.size, n.label, n.named_by, n.texts, t.name,"
    f" coalesce(substr(m.content, 1, {_ABOUT}), '') FROM nodes n LEFT JOIN topics t ON t.id = n.topic"
    f" LEFT JOIN memories m ON {_MEDOID.format('n')}"
)
# Members that are still in L2 and the namespace.
_MEMBERS = (
    "members p JOIN nodes n ON n.id = p.node JOIN memories m ON m.row = p.memory"
    f" AND m.namespace = n.namespace AND m.tier = {L2!r}"
)
_PRESENT = f"(n.kind = {CONCEPT!r} OR EXISTS (SELECT 1 FROM members WHERE node = n.id))"
# Strongest first; with equal weights the older node. The window limits the list of each node.
_NEIGHBOURS = (
    "SELECT here, there, weight FROM (SELECT here, there, weight,"
    " row_number() OVER (PARTITION BY here ORDER BY weight DESC, there) AS place FROM ("
    "SELECT origin AS here, target AS there, weight FROM edges WHERE origin IN ({0}) AND kind = 'co_occurs'"
    " UNION ALL "
    "SELECT target, origin, weight FROM edges WHERE target IN ({0}) AND kind = 'co_occurs'"
    ") {1}) WHERE place <= ? ORDER BY here, place"
)
_COUNT_PAIR = (
    "INSERT INTO pairs SELECT ?1, ?2, ?3"
    # Either memory may have been deleted since the search; chunks of files are never in L2.
    " WHERE (SELECT count(*) FROM memories WHERE row IN (?1, ?2) AND tier IN ('L1', 'L2')) = 2"
    " ON CONFLICT DO UPDATE SET searches = searches + excluded.searches"
)
_CO_OCCURRENCES = (
    "WITH mine AS (SELECT p.memory FROM members p JOIN nodes n ON n.id = p.node WHERE n.namespace = ?),"
    " met AS (SELECT * FROM pairs WHERE one IN mine UNION SELECT * FROM pairs WHERE other IN mine)"
    " SELECT min(a.node, b.node), max(a.node, b.node), sum(met.searches) FROM met"
    " JOIN members a ON a.memory = met.one JOIN members b ON b.memory = met.other WHERE a.node <> b.node GROUP BY 1, 2"
)


def join(numbers: Iterable[int]) -> str:
    """Return numbers for a list in a statement."""
    return ", ".join(map(str, numbers))


# For searches --------------------------------------------------------------------------------------------------------


def note_searches(connection: apsw.Connection, searches: Sequence[Iterable[int]]) -> None:
    """Count the pairs among the best rows that each search returned."""
    met: Counter[tuple[int, int]] = Counter()
    for rows in searches:
        met.update(combinations(sorted(list(dict.fromkeys(rows))[:_MAX_PAIRED]), 2))
    connection.executemany(_COUNT_PAIR, [(*pair, count) for pair, count in met.items()])


def find_nodes(connection: apsw.Connection, rows: Iterable[int]) -> dict[int, int]:
    """Return the node of each memory that has one."""
    return dict(connection.execute(f"SELECT memory, node FROM members WHERE memory IN ({join(rows)})"))


def read_members(connection: apsw.Connection, numbers: Iterable[int]) -> dict[int, list[int]]:
    """Return the memories of each node that has any, by rising row number."""
    members: dict[int, list[int]] = {}
    sql = f"SELECT node, memory FROM members WHERE node IN ({join(numbers)}) ORDER BY node, memory"
    for node, memory in connection.execute(sql):
        members.setdefault(node, []).append(memory)
    return members


def neighbours(
    connection: apsw.Connection, numbers: Iterable[int], limit: int, namespaces: frozenset[int] | None = None
) -> dict[int, list[tuple[int, float]]]:
    """Return the nodes that co-occurred with each node and how often, strongest first, at most `limit` each."""
    found: dict[int, list[tuple[int, float]]] = {}
    # A lookup for each neighbour, since `there IN (SELECT …)` would scan all nodes of the namespaces.
    among = (
        "" if namespaces is None else f"WHERE (SELECT namespace FROM nodes WHERE id = there) IN ({join(namespaces)})"
    )
    for here, there, weight in connection.execute(_NEIGHBOURS.format(join(numbers), among), (limit,)):
        found.setdefault(here, []).append((there, weight))
    return found


# For people ----------------------------------------------------------------------------------------------------------


def list_nodes(
    connection: apsw.Connection, within: str, query: str, topic: str | None, window: tuple[int, int]
) -> tuple[list[StoredNode], int]:
    """Return one page (limit, offset) of nodes, the largest first, and the total.

    `query`: words that must all be in the label or in one member; `topic`: a prefix of the topic's name.
    """
    conditions, values = [within, _PRESENT], list[Any]()
    if topic is not None:
        conditions.append("n.topic IN (SELECT id FROM topics WHERE name GLOB ? || '*')")
        values.append(topic)
    if query.strip():
        found = "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?"
        match = f"SELECT p.node FROM {_MEMBERS} WHERE p.memory IN ({found})"
        conditions.append(f"(n.label LIKE ? ESCAPE '\\' OR n.id IN ({match}))")
        escaped = query.strip().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        values += [f"%{escaped}%", " AND ".join(f'"{word}"' for word in _WORD.findall(query)) or '""']
    where = " AND ".join(conditions)
    total: Any = connection.execute(f"SELECT count(*) FROM nodes n WHERE {where}", values).get
    sql = f"{_NODE} WHERE {where} ORDER BY n.size DESC, n.kind, n.id LIMIT ? OFFSET ?"
    return [StoredNode(*line) for line in connection.execute(sql, (*values, *window))], int(total)


def find_named(connection: apsw.Connection, prefix: str, within: str, limit: int) -> list[StoredNode]:
    """Return nodes within reach whose name begins with a prefix."""
    sql = f"{_NODE} WHERE n.name GLOB ? || '*' AND {within} ORDER BY n.name LIMIT ?"
    return [StoredNode(*line) for line in connection.execute(sql, (prefix, limit))]


def read_nodes(connection: apsw.Connection, numbers: Iterable[int]) -> list[StoredNode]:
    """Return the nodes that exist among `numbers`, by number."""
    return [StoredNode(*line) for line in connection.execute(f"{_NODE} WHERE n.id IN ({join(numbers)}) ORDER BY n.id")]


def read_present_members(connection: apsw.Connection, node: int) -> list[tuple[int, str, str, float]]:
    """Return row, id, beginning of the text and date of a node's members."""
    sql = f"SELECT m.row, m.id, substr(m.content, 1, {_ABOUT}), m.created_at FROM {_MEMBERS} WHERE p.node = ?"
    return list(connection.execute(sql, (node,)))


def edges_of(connection: apsw.Connection, node: int, within: str) -> list[tuple[Any, int, float, bool]]:
    """Return kind, other node, weight, and whether the edge is outgoing, the heaviest first."""
    sql = (
        "SELECT e.kind, n.id, e.weight, TRUE FROM edges e JOIN nodes n ON n.id = e.target"
        f" WHERE e.origin = ?1 AND {within} UNION ALL "
        "SELECT e.kind, n.id, e.weight, FALSE FROM edges e JOIN nodes n ON n.id = e.origin"
        f" WHERE e.target = ?1 AND {within} ORDER BY 1, 3 DESC, 2"
    )
    return list(connection.execute(sql, (node,)))


def list_topics(connection: apsw.Connection, within: str) -> list[tuple[str, int, str, str, int, int]]:
    """Return name, namespace, label, beginning of the medoid's text, number of nodes and of memories; largest first."""
    sql = (
        f"SELECT t.name, t.namespace, t.label, coalesce(substr(m.content, 1, {_ABOUT}), ''), count(*), sum(n.size)"
        " FROM topics t JOIN nodes n ON n.topic = t.id AND n.namespace = t.namespace"
        f" LEFT JOIN memories m ON {_MEDOID.format('t')} WHERE {within} GROUP BY t.id ORDER BY 6 DESC, 1"
    )
    return list(connection.execute(sql))


def count_without_topic(connection: apsw.Connection, within: str) -> int:
    """Return how many clusters have no topic."""
    sql = f"SELECT count(*) FROM nodes n WHERE n.kind = {CLUSTER!r} AND n.topic IS NULL AND {within}"
    return int(connection.execute(sql).get)


def count_nodes(connection: apsw.Connection, visible: str) -> int:
    """Return how many nodes are within reach (a condition on `m`)."""
    return int(connection.execute(f"SELECT count(*) FROM nodes m WHERE {visible}").get)


# For rebuilding ------------------------------------------------------------------------------------------------------


def list_namespaces(connection: apsw.Connection) -> dict[int, int]:
    """Return how many memories of L2 each namespace has, including namespaces with only an outdated graph."""
    sql = (
        f"SELECT namespace, count(*) FROM memories WHERE tier = {L2!r} GROUP BY 1"
        " UNION ALL SELECT DISTINCT namespace, 0 FROM nodes"
    )
    counts: dict[int, int] = {}
    for namespace, count in connection.execute(sql):
        counts[namespace] = max(count, counts.get(namespace, 0))
    return counts


def read_memories(connection: apsw.Connection, namespace: int, after: int, limit: int) -> list[MemoryKey]:
    """Return the memories of L2 in a namespace after a row, by row number."""
    where = f"namespace = ? AND tier = {L2!r} AND row > ?"
    sql = f"SELECT row, id, text_hash FROM memories WHERE {where} ORDER BY row LIMIT ?"
    return [MemoryKey(*line) for line in connection.execute(sql, (namespace, after, limit))]


def read_texts(connection: apsw.Connection, rows: Iterable[int], chars: int) -> dict[int, str]:
    """Return the beginnings of the texts of memories by row."""
    sql = f"SELECT row, substr(content, 1, {chars}) FROM memories WHERE row IN ({join(rows)})"
    return dict(connection.execute(sql))


def read_graph(connection: apsw.Connection, namespace: int) -> dict[str, NewNode]:
    """Return the present nodes of a namespace by name."""
    members: dict[int, list[Any]] = {}
    sql = "SELECT p.node, p.memory FROM members p JOIN nodes n ON n.id = p.node WHERE n.namespace = ? ORDER BY 2"
    for node, memory in connection.execute(sql, (namespace,)):
        members.setdefault(node, []).append(memory)
    sql = (
        "SELECT e.origin, c.name FROM edges e JOIN nodes n ON n.id = e.origin JOIN nodes c ON c.id = e.target"
        f" WHERE n.namespace = ? AND e.kind = {ABSTRACTED_FROM!r} ORDER BY 2"
    )
    for concept, name in connection.execute(sql, (namespace,)):
        members.setdefault(concept, []).append(name)
    rows: Any = connection.execute(
        "SELECT id, name, kind, texts, label, named_by, asked FROM nodes WHERE namespace = ?", (namespace,)
    )
    return {name: NewNode(name, kind, tuple(members.get(id, ())), *rest) for id, name, kind, *rest in rows}


def delete_nodes(connection: apsw.Connection, names: Sequence[str]) -> None:
    """Delete nodes with their edges; their members then belong to no node."""
    connection.executemany("DELETE FROM nodes WHERE name = ?", [(name,) for name in names])


def put_nodes(connection: apsw.Connection, namespace: int, nodes: Iterable[NewNode]) -> None:
    """Insert or update nodes by name; members that have left L2 or the namespace meanwhile are skipped."""
    for node in nodes:
        number: Any = connection.execute(
            "INSERT INTO nodes (name, namespace, kind, size, label, named_by, asked, texts)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (name) DO UPDATE SET"
            " namespace = ?2, kind = ?3, size = ?4, label = ?5, named_by = ?6, asked = ?7, texts = ?8 RETURNING id",
            (node.name, namespace, node.kind, len(node.members), node.label, node.named_by, node.asked, node.texts),
        ).get
        connection.execute("DELETE FROM members WHERE node = ?", (number,))
        if node.kind == CLUSTER:
            connection.executemany(
                "INSERT OR REPLACE INTO members SELECT row, ?1 FROM memories"
                f" WHERE row = ?2 AND namespace = ?3 AND tier = {L2!r}",
                [(number, row, namespace) for row in node.members],
            )


def read_numbers(connection: apsw.Connection, namespace: int) -> dict[str, int]:
    """Return the numbers of the nodes of a namespace by name."""
    return dict(connection.execute("SELECT name, id FROM nodes WHERE namespace = ?", (namespace,)))


def read_edges(connection: apsw.Connection, namespace: int) -> dict[EdgeKey, float]:
    """Return the edges from or to nodes of a namespace with their weights."""
    mine = "SELECT id FROM nodes WHERE namespace = ?1"
    sql = f"SELECT * FROM edges WHERE origin IN ({mine}) UNION SELECT * FROM edges WHERE target IN ({mine})"
    return {(origin, target, kind): weight for origin, target, kind, weight in connection.execute(sql, (namespace,))}


def sum_pairs(connection: apsw.Connection, namespace: int) -> dict[EdgeKey, float]:
    """Return the `co_occurs` edges from or to nodes of a namespace, computed from `pairs`."""
    found = connection.execute(_CO_OCCURRENCES, (namespace,))
    return {(one, other, CO_OCCURS): float(searches) for one, other, searches in found}


def delete_edges(connection: apsw.Connection, keys: Sequence[EdgeKey]) -> None:
    """Delete edges."""
    connection.executemany("DELETE FROM edges WHERE (origin, target, kind) = (?, ?, ?)", keys)


def put_edges(connection: apsw.Connection, edges: Sequence[tuple[EdgeKey, float]]) -> None:
    """Insert or replace edges, except those of nodes deleted meanwhile."""
    connection.executemany(
        "INSERT OR REPLACE INTO edges SELECT ?1, ?2, ?3, ?4"
        " WHERE (SELECT count(*) FROM nodes WHERE id IN (?1, ?2)) = 2",
        [(*key, weight) for key, weight in edges],
    )


def read_topics(connection: apsw.Connection, namespace: int) -> dict[str, tuple[str, frozenset[int]]]:
    """Return label and nodes of the topics of a namespace by name."""
    found: dict[str, tuple[str, frozenset[int]]] = {}
    sql = "SELECT t.name, t.label, n.id FROM topics t LEFT JOIN nodes n ON n.topic = t.id WHERE t.namespace = ?"
    for name, label, node in connection.execute(sql, (namespace,)):
        nodes = found[name][1] if name in found else frozenset()
        found[name] = label, nodes | {node} if node is not None else nodes
    return found


def put_topics(connection: apsw.Connection, namespace: int, topics: Iterable[tuple[str, str, Iterable[int]]]) -> None:
    """Insert or update topics (name, label, nodes) by name."""
    for name, label, nodes in topics:
        number: Any = connection.execute(
            "INSERT INTO topics (name, namespace, label) VALUES (?1, ?2, ?3)"
            " ON CONFLICT (name) DO UPDATE SET namespace = ?2, label = ?3 RETURNING id",
            (name, namespace, label),
        ).get
        connection.execute("UPDATE nodes SET topic = NULL WHERE topic = ?", (number,))
        connection.executemany("UPDATE nodes SET topic = ? WHERE id = ?", [(number, node) for node in nodes])


def delete_topics(connection: apsw.Connection, names: Sequence[str]) -> None:
    """Delete topics; their nodes then belong to no topic."""
    connection.executemany("DELETE FROM topics WHERE name = ?", [(name,) for name in names])


# Labels by a language model -------------------------------------------------------------------------------------------


def read_unnamed(connection: apsw.Connection, limit: int) -> list[StoredNode]:
    """Return nodes with several members for which no language model was asked yet."""
    return [
        StoredNode(*line)
        for line in connection.execute(f"{_NODE} WHERE n.asked = 0 AND n.size > 1 ORDER BY n.id LIMIT ?", (limit,))
    ]


def read_member_texts(connection: apsw.Connection, node: StoredNode, chars: int) -> list[str]:
    """Return the beginnings of the texts of a node's members (for a concept, of its clusters' members) by hash."""
    chosen = "= ?1" if node.kind == CLUSTER else "IN (SELECT target FROM edges WHERE origin = ?1)"
    sql = f"SELECT substr(m.content, 1, {chars}) FROM {_MEMBERS} WHERE p.node {chosen} ORDER BY m.text_hash, m.row"
    return [str(text) for (text,) in connection.execute(sql, (node.id,))]


def label_node(connection: apsw.Connection, node: StoredNode, label: str, model: str) -> None:
    """Store the label that a model gave to a node, unless its members have changed or the label is empty."""
    connection.execute(
        "UPDATE nodes SET asked = 1, label = CASE ?3 WHEN '' THEN label ELSE ?3 END,"
        " named_by = CASE ?3 WHEN '' THEN named_by ELSE ?4 END WHERE id = ?1 AND texts = ?2",
        (node.id, node.texts, label, model),
    )


# Upkeep ---------------------------------------------------------------------------------------------------------------


def erase(connection: apsw.Connection, ids: Sequence[str], numbers: Sequence[int]) -> None:
    """Delete the nodes of erased memories with their concepts and topics, whose labels may contain their words."""
    found: Mapping[int, int | None] = dict(
        connection.execute(
            "SELECT n.id, n.topic FROM nodes n JOIN members p ON p.node = n.id"
            f" WHERE p.memory IN ({join(numbers)}) OR substr(n.name, -32) IN ({', '.join('?' * len(ids))})",
            tuple(ids),
        )
    )
    above = f"SELECT origin FROM edges WHERE kind = {ABSTRACTED_FROM!r} AND target IN ({join(found)})"
    topics = join({topic for topic in found.values() if topic})
    connection.execute(f"DELETE FROM nodes WHERE id IN ({above})")
    connection.execute(f"DELETE FROM nodes WHERE id IN ({join(found)})")
    connection.execute(f"DELETE FROM topics WHERE id IN ({topics})")


def clear(connection: apsw.Connection) -> None:
    """Delete the graph; the next run of the job rebuilds it."""
    for table in ("edges", "members", "nodes", "topics"):
        connection.execute(f"DELETE FROM {table}")


def find_problems(connection: apsw.Connection) -> list[str]:
    """Return a message if rows of the graph have dangling references."""
    count: Any = connection.execute(
        "SELECT count(*) FROM pragma_foreign_key_check WHERE \"table\" IN ('edges', 'members', 'nodes', 'topics')"
    ).get
    return [f"graph: {count} nodes, members, edges or topics refer to missing rows"] if count else []
