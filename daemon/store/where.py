"""The filter language of `where`: a JSON object becomes an SQL condition on the alias `m` with its values.

    {"status": "done", "score": {"$gte": 4}, "author.team": {"$in": ["api", "web"]}}
    {"$or": [{"memory.importance": {"$lt": 0.2}}, {"$not": {"draft": {"$exists": false}}}]}

Names are paths into the metadata, `metadata.` before them makes no difference; `memory.` before a name means a field of
the memory itself. Each condition is true or false, never NULL, so that `$not` and `$ne` mean what they say: `$ne` holds
where the key is missing. Numbers are compared with numbers and texts with texts; any other pair does not match.
Nothing that a caller writes becomes SQL: names are bound as JSON paths, operators are looked up.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.protocol import MAX_CONDITIONS

Condition = tuple[str, tuple[Any, ...]]  # SQL and the values of its parameters

_KEY = re.compile(r"[^\x00-\x1f\"\\]{1,128}\Z")
_MAX_PARTS = 16
_MAX_DEPTH = 16
_LARGEST_INTEGER = 2**63 - 1
RANGES = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_OPERATORS = ("$eq", "$ne", *RANGES, "$in", "$exists")
_GROUPS = ("$and", "$or", "$not")
_TEXT, _NUMBER, _FLAG = "text", "number", "true or false"
_FIELDS = {
    **dict.fromkeys(("content", "key", "origin", "path", "source", "summary", "superseded_by", "tier", "type"), _TEXT),
    **dict.fromkeys(("access_count", "confirmed_at", "created_at", "expires_at", "importance", "ttl_s"), _NUMBER),
    **dict.fromkeys(("last_accessed_at", "updated_at"), _NUMBER),
    **dict.fromkeys(("pinned", "searchable"), _FLAG),
}
_METADATA, _MEMORY = "metadata.", "memory."
# The condition on a value, or on an element of a list; the members of an object are no values of its key.
_ANY_OF = "json_type(m.metadata, ?) <> 'object' AND EXISTS (SELECT 1 FROM json_each(m.metadata, ?) v WHERE {})"
_SAME_TYPE = "(v.type = w.type OR v.type IN ('integer', 'real') AND w.type IN ('integer', 'real'))"
_IN = _ANY_OF.format(f"EXISTS (SELECT 1 FROM json_each(?) w WHERE v.value = w.value AND {_SAME_TYPE})")
# Objects with the fields of memories, as a table `m`.
_GIVEN = (
    "WITH m AS (SELECT value ->> 'id' AS id, value -> 'metadata' AS metadata, {} FROM json_each(?))"
    " SELECT m.id FROM m WHERE {}"
)


def compile_where(where: dict[str, Any]) -> Condition | None:
    """Return the condition of a filter, None for an empty one; raise `Invalid` if a part is not understood."""
    return _build_all(where, _Budget(), 0) if where else None


def select_matching(connection: apsw.Connection, condition: Condition, objects: Sequence[dict[str, Any]]) -> set[str]:
    """Return the ids of the objects that meet a condition; each has `id`, `metadata` and fields of a memory."""
    columns = ", ".join(f"value ->> '{name}' AS {name}" for name in _FIELDS)
    sql, values = condition
    ids = connection.execute(_GIVEN.format(columns, sql), (msgspec.json.encode(objects).decode(), *values))
    return {id for (id,) in ids}


class _Budget:
    """Counts the conditions of one filter: SQLite takes about a thousand."""

    def __init__(self) -> None:
        self.spent = 0

    def spend(self) -> None:
        self.spent += 1
        if self.spent > MAX_CONDITIONS:
            raise Invalid(f"The filter has more than {MAX_CONDITIONS} conditions.")


def _build_all(where: Any, budget: _Budget, depth: int) -> Condition:
    if not isinstance(where, dict):
        raise Invalid(f"A filter is an object of names and conditions, not {_show(where)}.")
    if depth > _MAX_DEPTH:
        raise Invalid(f"The filter is nested deeper than {_MAX_DEPTH}.")
    return _join(" AND ", (_build_entry(name, value, budget, depth) for name, value in where.items()), "TRUE")


def _build_entry(name: str, operand: Any, budget: _Budget, depth: int) -> Condition:
    """Return the condition of one entry of a filter: a group of filters, or the conditions on a name."""
    budget.spend()
    if name == "$not":
        return _negate(_build_all(operand, budget, depth + 1))
    if name in ("$and", "$or"):
        if not isinstance(operand, list) or not operand:
            raise Invalid(f"{name} takes a list of filters, not {_show(operand)}.")
        return _join(f" {name[1:].upper()} ", (_build_all(part, budget, depth + 1) for part in operand), "")
    if name.startswith("$"):
        raise Invalid(f"{name[:40]} is no operator here: {', '.join(_GROUPS)} join filters.")
    operators = (
        operand if isinstance(operand, dict) and any(key.startswith("$") for key in operand) else {"$eq": operand}
    )
    parts = []
    for operator, value in operators.items():
        budget.spend()
        parts.append(_compare(name, operator, value))
    return _join(" AND ", parts, "")


def _compare(name: str, operator: str, value: Any) -> Condition:
    if operator not in _OPERATORS:
        raise Invalid(f"{operator[:40]!r} is no operator for {name[:80]}: {', '.join(_OPERATORS)} are.")
    _check_value(name, operator, value)
    if operator == "$ne":
        return _negate(_compare(name, "$eq", value))
    if name.startswith(_MEMORY):
        return _compare_field(name.removeprefix(_MEMORY), operator, _convert_storable(value))
    path = build_path(name)
    if operator == "$exists":
        return f"json_type(m.metadata, ?) IS {'NOT ' if value else ''}NULL", (path,)
    if operator == "$eq":
        return _build_equality(path, value)
    value = _convert_storable(value)
    if operator == "$in":
        return f"({_IN}) IS TRUE", (path, path, msgspec.json.encode(value).decode())
    matches = _ANY_OF.format(f"v.value {RANGES[operator]} ? AND v.type IN ({_list_json_types(value)})")
    return f"({matches}) IS TRUE", (path, path, value)


def _check_value(name: str, operator: str, value: Any) -> None:
    """Raise `Invalid` for a value that an operator cannot compare with."""
    if operator == "$exists" and not isinstance(value, bool):
        raise Invalid(f"$exists of {name[:80]} is true or false, not {_show(value)}.")
    if operator == "$in":
        if not isinstance(value, list) or not all(isinstance(item, str | int | float) for item in value):
            raise Invalid(f"$in of {name[:80]} is a list of texts, numbers or booleans, not {_show(value)}.")
    elif operator in RANGES and (isinstance(value, bool) or not isinstance(value, str | int | float)):
        raise Invalid(f"{operator} of {name[:80]} is a number or a text, not {_show(value)}.")
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, float) and (math.isnan(item) or (math.isinf(item) and operator not in RANGES)):
            raise Invalid(f"{operator} of {name[:80]} is not a finite number.")


def build_path(name: str) -> str:
    """Return the JSON path of a name in the metadata."""
    if name in _FIELDS:
        raise Invalid(f"{name} may be a field of memories or a metadata key: write memory.{name} or metadata.{name}.")
    parts = name.removeprefix(_METADATA).split(".")
    if len(parts) > _MAX_PARTS or not all(_KEY.match(part) for part in parts):
        raise Invalid(
            f"{name[:80]!r} cannot be a name in a filter: names of metadata keys, with dots between them, are."
        )
    return "$" + "".join(f'."{part}"' for part in parts)


def _build_equality(path: str, value: Any) -> Condition:
    if value is None:
        return "json_type(m.metadata, ?) IS 'null'", (path,)
    if isinstance(value, list | dict):  # compared by their text
        text = msgspec.json.encode(value, order="sorted").decode()
        return "json_extract(m.metadata, ?) IS json(?)", (path, text)
    value = _convert_storable(value)
    # The JSON type must be the same as well, so that 1 is not true.
    matches = _ANY_OF.format(f"v.value = ? AND v.type IN ({_list_json_types(value)})")
    return f"({matches}) IS TRUE", (path, path, value)


def _compare_field(field: str, operator: str, value: Any) -> Condition:
    kind = _FIELDS.get(field)
    if kind is None:
        raise Invalid(f"memory.{field[:80]} is no field to filter by: {', '.join(sorted(_FIELDS))} are.")
    if operator == "$exists":
        return f"m.{field} IS {'NOT ' if value else ''}NULL", ()
    for item in value if isinstance(value, list) else [value]:
        if item is not None and _kind(item) != kind:
            raise Invalid(f"memory.{field} is {kind}, not {_show(item)}.")
    if operator == "$in":
        return f"(m.{field} IN (SELECT value FROM json_each(?))) IS TRUE", (msgspec.json.encode(value).decode(),)
    sign = RANGES.get(operator)
    return (f"(m.{field} {sign} ?) IS TRUE", (value,)) if sign else (f"m.{field} IS ?", (value,))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return _FLAG
    if isinstance(value, str):
        return _TEXT
    return _NUMBER if isinstance(value, int | float) else "unknown"


def _convert_storable(value: Any) -> Any:
    """Return a value as SQLite reads it from JSON: an integer that it cannot hold is a float."""
    if isinstance(value, list):
        return [_convert_storable(item) for item in value]
    return float(value) if isinstance(value, int) and abs(value) > _LARGEST_INTEGER else value


def _list_json_types(value: Any) -> str:
    if isinstance(value, bool):
        return "'true'" if value else "'false'"
    return "'text'" if isinstance(value, str) else "'integer', 'real'"


def _negate(condition: Condition) -> Condition:
    return f"NOT ({condition[0]})", condition[1]


def _join(word: str, conditions: Iterable[Condition], empty: str) -> Condition:
    joined = list(conditions)
    if len(joined) < 2:
        return joined[0] if joined else (empty, ())
    sql = word.join(sql for sql, _ in joined)
    return f"({sql})", tuple(value for _, values in joined for value in values)


def _show(value: Any) -> str:
    return repr(value)[:80]
