"""What must hold of a database at any time, and what only after maintenance or at the end."""

from typing import Any

import msgspec

from memoryd.client.protocol import Search
from memoryd.daemon.core.core import Core
from memoryd.daemon.language.questions import only_asks
from memoryd.daemon.store import turns
from memoryd.daemon.store.namespaces import list_enclosing
from memoryd.daemon.store.rows import COLUMNS
from workbench import ask

_Known = tuple[str, str, str, str]  # id, namespace, content, tier

MOST_MEMBERS = 20
FOUND_WITHIN = 10
QUESTION_FOUND_WITHIN = 1000  # one that nobody answered comes after all that is stated

_TOPICS = (
    "SELECT 'node ' || n.id || ' in a topic of another namespace' FROM nodes n JOIN topics t ON t.id = n.topic"
    " WHERE n.namespace <> t.namespace"
)
_EDGES = (
    "SELECT DISTINCT e.kind, x.name, y.name FROM edges e JOIN nodes a ON a.id = e.origin"
    " JOIN nodes b ON b.id = e.target JOIN namespaces x ON x.id = a.namespace JOIN namespaces y ON y.id = b.namespace"
    " WHERE a.namespace <> b.namespace"
)
_LIFE = (
    "SELECT m.id, n.name, m.content, m.tier, m.expires_at, m.pinned, m.superseded_by FROM memories m"
    " JOIN namespaces n ON n.id = m.namespace ORDER BY m.row"
)
_FULL = "SELECT n.name, count(*) FROM turns t JOIN namespaces n ON n.id = t.namespace GROUP BY 1 HAVING count(*) > ?"


def always(core: Core) -> list[str]:
    """Return what is wrong, whatever was done last."""
    with core.store.reading() as connection:
        found = turns.check_conservation(connection)
        for kind, one, other in connection.execute(_EDGES):
            # One search sees its own and the enclosing namespaces, so topics of these may meet; siblings never.
            nested = one in list_enclosing(str(other)) or other in list_enclosing(str(one))
            if kind != "co_occurs" or not nested:
                found.append(f"an edge {kind} from {one} to {other}")
        journal = [key for (key,) in connection.execute("SELECT key FROM turns ORDER BY id DESC")]
        if journal != [turn.key for turn in core.active.list_turns(None)]:
            found.append("L0 in RAM is not what the journal holds")
        found += [text for (text,) in connection.execute(_TOPICS)]  # type: ignore[misc]
        rings = connection.execute(_FULL, (core.config.tiers.ring,))
        found += [f"L0 of {name} has {count} turns" for name, count in rings]
    return found


def after_maintenance(core: Core) -> list[str]:
    """Return what is wrong once the jobs have run."""
    with core.store.reading() as connection:
        sizes = connection.execute(
            "SELECT node, count(*) FROM members GROUP BY node HAVING count(*) > ?", (MOST_MEMBERS,)
        )
        return [f"node {node} has {count} members" for node, count in sizes]


def _by_state(core: Core) -> tuple[list[_Known], list[_Known]]:
    """Return the memories that are alive, and those that have expired or are superseded by one that has not."""
    with core.store.reading() as connection:
        found: Any = connection.execute(_LIFE).fetchall()
        deleted: Any = connection.execute("SELECT id, superseded_by FROM deleted_successors")
        after = {id: by for id, *_, by in found} | dict(deleted)
    unexpired = {id for id, *_, until, pinned, _ in found if pinned or until is None or until > core.clock()}

    def superseded(id: str) -> bool:
        by = after[id]
        while by is not None and by not in unexpired:
            by = after.get(by)
        return by is not None

    alive, dead = [], []
    for id, namespace, content, tier, *_ in found:
        (alive if id in unexpired and not superseded(id) else dead).append((id, namespace, content, tier))
    return alive, dead


def unreachable(core: Core, every: int = 1) -> list[str]:
    """Return the memories, or one in so many, whose text a search for it does not find."""
    lost = []
    for id, namespace, content, tier in _by_state(core)[0][:: max(every, 1)]:
        limit = QUESTION_FOUND_WITHIN if only_asks(content) else FOUND_WITHIN
        call = Search(query=content, namespace=namespace, reach="exact", limit=limit, touch=False)
        hits = ask(core, call)
        # Of equal texts one is shown, an answer beside its question, a question asked in other words is named there.
        shown = [one for hit in hits for one in (hit, *hit.related)]
        if all(one.content != content and one.id != id for one in shown):
            lost.append(f"{tier} memory {id} of {namespace} is not found: {content[:60]}")
    return lost


def shown_though_expired(core: Core) -> list[str]:
    """Return expired and superseded memories that a search for their own text still shows."""
    shown = []
    for id, namespace, content, _ in _by_state(core)[1]:
        call = Search(query=content, namespace=namespace, reach="exact", limit=FOUND_WITHIN, touch=False)
        if any(hit.id == id for hit in ask(core, call)):
            shown.append(f"{id} is gone from {namespace}, but shown: {content[:60]}")
    return shown


def sound(core: Core) -> list[str]:
    """Return what is wrong with the file, its indexes and its references."""
    found = core.store.find_problems()
    with core.store.reading() as connection:
        found += [f"a reference to nothing: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
    return list(found)


def rows_of(core: Core) -> list[tuple[Any, ...]]:
    """Return every column of every memory, every link and every turn of L0, in order."""
    with core.store.reading() as connection:
        memories = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM memories ORDER BY row").fetchall()
        links = connection.execute("SELECT * FROM links ORDER BY origin, target, kind").fetchall()
        ring = connection.execute("SELECT * FROM turns ORDER BY id").fetchall()
    return [*memories, *links, *ring]


_TABLES = (
    "memories", "links", "turns", "skipped", "flows", "pairs", "nodes", "members", "edges", "topics", "operations",
    "history", "extraction", "namespaces",
)  # fmt: skip


# The ids that the daemon made itself: those of copies.
_SHARED = (
    "SELECT h.memory FROM history h JOIN operations o ON o.number = h.operation"
    " WHERE o.kind = 'share' AND h.before IS NULL ORDER BY h.id"
)


def state(core: Core) -> dict[str, list[str]]:
    """Return all that the database says, so that two runs can be compared; ids that the daemon made are numbered."""
    with core.store.reading() as connection:
        found = {table: [_text(row) for row in connection.execute(f"SELECT * FROM {table}")] for table in _TABLES}
        shared = connection.execute(_SHARED).fetchall()
        operations = connection.execute("SELECT number, id FROM operations").fetchall()
    names = {id: f"shared {number}" for number, (id,) in enumerate(shared)}
    names |= {id: f"operation {number}" for number, id in operations}
    renamed = {table: [_renamed(row, names) for row in rows] for table, rows in found.items()}
    renamed["history"] = [_with_sorted_links(row) for row in renamed["history"]]
    return {table: sorted(rows) for table, rows in renamed.items()}


def _text(row: Any) -> str:
    return msgspec.json.encode([value.hex() if isinstance(value, bytes) else value for value in row]).decode()


def _with_sorted_links(text: str) -> str:
    """Return a row of the history; the order of links is that of ids, which are drawn."""
    *fields, before = msgspec.json.decode(text)
    if before is not None:
        former = msgspec.json.decode(before)
        former.get("links", []).sort()
        before = msgspec.json.encode(former).decode()
    return msgspec.json.encode([*fields, before]).decode()


def _renamed(text: str, names: dict[Any, str]) -> str:
    for id, name in names.items():
        text = text.replace(id, name).replace(f"({id[:8]})", f"({name})")
    return text


def tiers(core: Core) -> dict[str, int]:
    """Return how many memories each tier has."""
    with core.store.reading() as connection:
        found: Any = connection.execute("SELECT tier, count(*) FROM memories GROUP BY 1 ORDER BY 1")
        return dict(found)
