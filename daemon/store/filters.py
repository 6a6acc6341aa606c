"""What a filter means, in one place: an SQL condition on the alias `m`, used by list, full text and vector search."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.protocol import Filtered
from memoryd.daemon.store import namespaces, rows
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.successors import SUPERSEDED, UNEXPIRED

_KEY = re.compile(r"[^\x00-\x1f\"\\]{1,128}\Z")
_MAX_KEYS = 64  # each is a condition; SQLite takes about a thousand
_LARGEST_INTEGER = 2**63 - 1
# One parameter for any number of ids; each is looked up in the index.
_IDS = "m.row IN (SELECT x.row FROM json_each(?) v CROSS JOIN memories x ON x.id >= v.value AND x.id < v.value || 'g')"


class Filter(NamedTuple):
    """`reached` namespaces (None = all) and an SQL condition on the fields with its values.

    `words`, `after` and `before` say the same as far as RAM can answer it; `further` if the condition asks more.
    """

    reached: frozenset[int] | None = None
    condition: str = ""
    values: tuple[Any, ...] = ()
    words: Mapping[str, list[str]] = MappingProxyType({})
    after: float | None = None
    before: float | None = None
    further: bool = False

    def full_condition(self, now: float, all_states: bool = False) -> tuple[str, tuple[Any, ...]]:
        """Return the whole condition: namespaces, fields and, unless `all_states`, only what is alive at `now`."""
        parts = [namespaces.condition(self.reached)]
        if self.condition:
            parts.append(self.condition)
        if all_states:
            return " AND ".join(parts), self.values
        return " AND ".join([*parts, ALIVE]), (*self.values, *alive_at(now))


# Expired and superseded memories leave every search at once. The values of its parameters are `alive_at(now)`.
ALIVE = f"{UNEXPIRED.format(m='m')} AND NOT {SUPERSEDED}"
_ALIVE_AMONG = f"SELECT m.row FROM memories m WHERE m.row IN (SELECT value FROM json_each(?)) AND {ALIVE}"


def alive_at(now: float) -> tuple[float, float]:
    """Return the values for `ALIVE`."""
    return now, now


def select_living(connection: apsw.Connection, found: Iterable[Row], now: float) -> list[Row]:
    """Return those of some stored memories that are alive at `now`, in the same order."""
    asked = list(found)
    numbers = msgspec.json.encode([row.row for row in asked]).decode()
    alive = {row for (row,) in connection.execute(_ALIVE_AMONG, (numbers, *alive_at(now)))} if asked else set()
    return [row for row in asked if row.row in alive]


def compile_filter(call: Filtered[Any], names: namespaces.Namespaces) -> Filter:
    """Return the filter of a call; raise `Invalid` for a namespace or value that makes no sense."""
    reached = names.reach(namespaces.check(call.namespace), call.reach)
    parts: list[str] = []
    values: list[Any] = []
    words: dict[str, list[str]] = {"type": call.type, "source": call.source, "tier": list(call.tier)}
    words = {column: wanted for column, wanted in words.items() if wanted}
    for column, wanted in words.items():
        parts.append(f"m.{column} IN ({', '.join('?' * len(wanted))})")
        values += wanted
    if len(call.metadata) > _MAX_KEYS:
        raise Invalid(f"The filter has {len(call.metadata)} metadata keys; the limit is {_MAX_KEYS}.")
    for key, value in call.metadata.items():
        condition, compared = _metadata(key, value)
        parts.append(condition)
        values += compared
    if call.after is not None:
        parts.append("+m.created_at > ?")
        values.append(call.after)
    if call.before is not None:
        parts.append("+m.created_at < ?")
        values.append(call.before)
    if call.path_prefix is not None:
        parts.append("m.path >= ? AND m.path < ?")
        values += [call.path_prefix, call.path_prefix + "\U0010ffff"]
    if call.ids:
        for prefix in call.ids:
            rows.check_prefix(prefix)
        parts.append(_IDS)
        values.append(msgspec.json.encode(call.ids).decode())
    further = bool(call.metadata or call.ids or call.path_prefix is not None)
    return Filter(reached, " AND ".join(parts), tuple(values), words, call.after, call.before, further)


def _metadata(key: str, value: Any) -> tuple[str, list[Any]]:
    """Return the condition that a top-level key equals a value, or is a list that contains it, and its values."""
    if not _KEY.match(key):
        raise Invalid(f"{key!r} cannot be a metadata key in a filter.")
    path = f'$."{key}"'
    if value is None:
        return "json_type(m.metadata, ?) = 'null'", [path]
    if isinstance(value, list | dict):
        return "json_extract(m.metadata, ?) = json(?)", [path, msgspec.json.encode(value, order="sorted").decode()]
    if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
        value = float(value)  # as SQLite reads it from JSON
    # The JSON type must be the same as well, so that 1 is not true.
    return (
        "(json_type(m.metadata, ?) <> 'object' AND EXISTS"
        f" (SELECT 1 FROM json_each(m.metadata, ?) v WHERE v.value = ? AND v.type IN ({_json_types(value)})))",
        [path, path, value],
    )


def _json_types(value: Any) -> str:
    if isinstance(value, bool):
        return "'true'" if value else "'false'"
    return "'text'" if isinstance(value, str) else "'integer', 'real'"
