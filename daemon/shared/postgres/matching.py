"""The filter language of `where` as a jsonpath predicate on the metadata of a row, for the server."""

from typing import Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.daemon.store.where import RANGES, build_path, compile_where

_SIGNS = {**RANGES, "$eq": "==", "$in": "=="}


def build_predicate(where: dict[str, Any]) -> str | None:
    """Return the predicate, None for an empty filter; raise `Invalid` for conditions that jsonpath cannot express."""
    compile_where(where)  # raises for an invalid filter
    return _join_all(where) if where else None


def _join_all(where: dict[str, Any]) -> str:
    return " && ".join(f"({_build_entry(name, operand)})" for name, operand in where.items()) or "1 == 1"


def _build_entry(name: str, operand: Any) -> str:
    if name == "$not":
        return f"!({_join_all(operand)})"
    if name in ("$and", "$or"):
        return (" && " if name == "$and" else " || ").join(f"({_join_all(part)})" for part in operand)
    has_operators = isinstance(operand, dict) and any(key.startswith("$") for key in operand)
    operators = operand if has_operators else {"$eq": operand}
    return " && ".join(f"({_compare(name, operator, value)})" for operator, value in operators.items())


def _compare(name: str, operator: str, value: Any) -> str:
    if name.startswith("memory."):
        raise Invalid(f"In a shared root in PostgreSQL `where` is about metadata, and {name[:80]} is not.")
    path = build_path(name)
    if operator == "$exists":
        return f"{'' if value else '!'}exists({path})"
    if operator == "$ne":
        return f"!({_compare(name, '$eq', value)})"
    values = value if operator == "$in" else [value]
    if any(isinstance(one, list | dict) for one in values):
        raise Invalid(f"In a shared root in PostgreSQL {name[:80]} is compared with a text, a number or a flag alone.")
    tests = " || ".join(f"@ {_SIGNS[operator]} {msgspec.json.encode(one).decode()}" for one in values)
    # The whole is true or false, while a comparison alone is unknown if the types differ.
    return f"exists({path} ? ({tests or '1 == 0'}))"
