"""Compile filters to an SQL condition on the alias `m`, used by list, full text and vector search."""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.protocol import Filtered
from memoryd.daemon.store import namespaces, rows, where
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.successors import SUPERSEDED, UNEXPIRED
from memoryd.daemon.store.where import Condition

# One parameter for any number of ids; each is looked up in the index.
_IDS = "m.row IN (SELECT x.row FROM json_each(?) v CROSS JOIN memories x ON x.id >= v.value AND x.id < v.value || 'g')"


class Filter(NamedTuple):
    """`reached` namespaces (None = all) and an SQL condition on the fields with its values.

    `words`, `after` and `before` are the parts of the condition that can be checked in RAM; `further`: there are more
    parts. `where` is the part from the call's `where`, and `ids` are prefixes of ids, for turns in L0.
    """

    reached: frozenset[int] | None = None
    condition: str = ""
    values: tuple[Any, ...] = ()
    words: Mapping[str, list[str]] = MappingProxyType({})
    after: float | None = None
    before: float | None = None
    further: bool = False
    where: Condition | None = None
    ids: tuple[str, ...] = ()

    def full_condition(self, now: float, all_states: bool = False) -> tuple[str, tuple[Any, ...]]:
        """Return the whole condition: on namespaces, fields and, unless `all_states`, being alive at `now`."""
        parts = [namespaces.condition(self.reached)]
        if self.condition:
            parts.append(self.condition)
        if all_states:
            return " AND ".join(parts), self.values
        return " AND ".join([*parts, ALIVE]), (*self.values, *alive_values(now))


# Searches exclude expired and superseded memories at once. The values of its parameters are `alive_values(now)`.
ALIVE = f"{UNEXPIRED.format(m='m')} AND NOT {SUPERSEDED}"
_ALIVE_AMONG = f"SELECT m.row FROM memories m WHERE m.row IN (SELECT value FROM json_each(?)) AND {ALIVE}"


def alive_values(now: float) -> tuple[float, float]:
    """Return the values for `ALIVE`."""
    return now, now


def build_contained(words: str) -> tuple[str, tuple[str, ...]]:
    """Return the SQL condition that the text of `m` contains all of these words or parts of words, and its values."""
    escaped = [re.sub(r"([\\%_])", r"\\\1", word) for word in words.split()]
    condition = " AND ".join(["TRUE", *(r"m.content LIKE ? ESCAPE '\'" for _ in escaped)])
    return condition, tuple(f"%{word}%" for word in escaped)


def select_living(connection: apsw.Connection, candidates: Iterable[Row], now: float) -> list[Row]:
    """Return the given memories that exist and are alive at `now`, in the same order."""
    memories = list(candidates)
    numbers = msgspec.json.encode([row.row for row in memories]).decode()
    alive = {row for (row,) in connection.execute(_ALIVE_AMONG, (numbers, *alive_values(now)))} if memories else set()
    return [row for row in memories if row.row in alive]


UNBOUNDED = "give a filter, or a namespace with the reach `subtree` or `exact`."


def is_bounded(call: Filtered[Any]) -> bool:
    """Return whether a call without a filter is limited explicitly, by a namespace and a reach inside it."""
    return bool(call.namespace) and call.reach in ("exact", "subtree")


def compile_filter(call: Filtered[Any], names: namespaces.NamespaceTable, ids: Sequence[str] = ()) -> Filter:
    """Return the filter of a call, and of prefixes of ids; raise `Invalid` for contradicting values."""
    reached = names.reach(namespaces.check(call.namespace), call.reach)
    parts: list[str] = []
    values: list[Any] = []
    words: dict[str, list[str]] = {"type": call.type, "source": call.source, "tier": list(call.tier)}
    words = {column: texts for column, texts in words.items() if texts}
    for column, texts in words.items():
        parts.append(f"m.{column} IN ({', '.join('?' * len(texts))})")
        values += texts
    metadata_condition = where.compile_where(call.where)
    if metadata_condition:
        parts.append(metadata_condition[0])
        values += metadata_condition[1]
    if call.after is not None:
        parts.append("+m.created_at > ?")
        values.append(call.after)
    if call.before is not None:
        parts.append("+m.created_at < ?")
        values.append(call.before)
    if call.path_prefix is not None:
        parts.append("m.path >= ? AND m.path < ?")
        values += [call.path_prefix, call.path_prefix + "\U0010ffff"]
    if ids:
        for prefix in ids:
            rows.check_prefix(prefix)
        parts.append(_IDS)
        values.append(msgspec.json.encode(ids).decode())
    further = bool(ids or call.path_prefix is not None or metadata_condition)
    limits = call.after, call.before, further, metadata_condition, tuple(ids)
    return Filter(reached, " AND ".join(parts), tuple(values), words, *limits)
