"""Write protocol.json from the contract: python tests/contract/protocol_document.py > protocol.json"""

import ast
import functools
import sys
from collections.abc import Iterator
from inspect import cleandoc, getsource
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import inspect as types

from memoryd.client import errors, protocol

CLIENTS_OWN = {"timeout", "untrusted"}  # codes of errors that clients make
BASES = (protocol.Scoped, protocol.Filtered, protocol.Query)
_LINE_CHARS = 400
_MOMENT = "seconds since 1970-01-01 UTC"
_ENDS = {
    "_ms": "milliseconds",
    "_s": "seconds",
    "seconds": "seconds",
    "_days": "days",
    "_bytes": "bytes",
    "chars": "characters",
    "tokens": "tokens",
    "tokens_in": "tokens",
    "tokens_out": "tokens",
    "chars_before": "characters",
    "chars_after": "characters",
}
_MOMENTS = ("at", "after", "before", "since", "until", "now")


def document() -> str:
    """Return the text of protocol.json."""
    every, schemas = list_structs(), _write_schemas()
    whole = {
        "version": protocol.PROTOCOL_VERSION,
        "methods": {protocol.method_name(call): _describe(call, schemas[call.__name__]) for call in protocol.METHODS},
        "shared": {base.__name__: cleandoc(docstring(base)) for base in BASES},
        "types": {struct.__name__: schemas[struct.__name__] for struct in every if struct not in protocol.METHODS},
        "errors": {code: _join(error) for code, error in errors.ERRORS.items() if code not in CLIENTS_OWN},
    }
    return f"{_format(whole, 0)}\n"


def _format(value: Any, depth: int) -> str:
    """Return a value as JSON, a map that is long with a line for each of its keys."""
    plain = msgspec.json.encode(value).decode()
    if not isinstance(value, dict) or len(plain) <= _LINE_CHARS:
        return plain
    lines = [f'{" " * (depth + 1)}"{key}": {_format(inner, depth + 1)}' for key, inner in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{' ' * depth}}}"


def _describe(call: type[protocol.Call[Any]], schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a client has to know of a method."""
    declared = protocol.DECLARED[call]
    return {
        "description": schema.pop("description"),
        "shared": [base.__name__ for base in BASES if issubclass(call, base)],
        "access": declared.access,
        "reads": declared.reads,
        "parameters": schema,
        "result": protocol.result_type(call).__name__,
    }


def _write_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each struct, with the meaning and the unit of each field."""
    _, schemas = msgspec.json.schema_components(list_structs(), ref_template="#/types/{name}")
    for struct in list_structs():
        schema, meanings = schemas[struct.__name__], _find_meanings(struct)
        schema.pop("title")
        schema["description"] = cleandoc(struct.__doc__ or "")
        if struct in protocol.METHODS:
            del schema["properties"]["method"]
            schema["required"].remove("method")
        for field in types.type_info(struct).fields:  # type: ignore[attr-defined]
            about: dict[str, Any] = schema["properties"][field.encode_name]
            about["description"] = meanings[field.name]
            if unit := find_unit(field.name, field.type):
                about["unit"] = unit
    return schemas


def find_unit(name: str, info: Any) -> str:
    """Return the unit of a number, which its name says; empty for a count or a share."""
    if not _has(info, (types.IntType, types.FloatType)):
        return ""
    if name.rpartition("_")[2] in _MOMENTS and _has(info, (types.FloatType,)):
        return _MOMENT
    return next((unit for end, unit in _ENDS.items() if name.endswith(end)), "")


def _has(info: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether a type is one of these, or may be."""
    inner = [info.type] if isinstance(info, types.Metadata) else getattr(info, "types", ())
    return isinstance(info, kinds) or any(_has(one, kinds) for one in inner)


def _find_meanings(struct: type[Any]) -> dict[str, str]:
    """Return what each field of a struct means, also those that it inherits."""
    modules = [base for base in reversed(struct.__mro__) if base.__module__.startswith(protocol.__name__)]
    return {name: text for base in modules for name, text in field_meanings(base).items()}


@functools.cache
def list_structs() -> tuple[type[Any], ...]:
    """Return every struct of the contract: the calls, and what is in them and in their results."""
    return (*protocol.METHODS, *used_types())


@functools.cache
def used_types() -> list[type[Any]]:
    """Return every struct below the calls and their results, in order of appearance."""
    found: dict[type[Any], None] = {}
    for call in protocol.METHODS:
        for field in types.type_info(call).fields:  # type: ignore[attr-defined]
            _collect(field.type, found)
        _collect(types.type_info(protocol.result_type(call)), found)
    found[protocol.Progress] = None
    found[protocol.Event] = None
    return list(found)


def _collect(info: Any, found: dict[type[Any], None]) -> None:
    if isinstance(info, types.StructType):
        if info.cls not in found:
            found[info.cls] = None
            for field in info.fields:
                _collect(field.type, found)
        return
    for inner in (*getattr(info, "types", ()), *getattr(info, "item_types", ())):
        _collect(inner, found)
    for name in ("item_type", "value_type"):
        if hasattr(info, name):
            _collect(getattr(info, name), found)


@functools.cache
def field_meanings(struct: type[Any]) -> dict[str, str]:
    """Return what the docstring below each field of a struct says."""
    declaration = _declarations(struct.__module__).get(struct.__name__)
    return dict(_read_meanings(declaration)) if declaration else {}


def _read_meanings(declaration: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(declaration.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(text := below.value.value, str)
        ):
            yield field.target.id, " ".join(text.split())


@functools.cache
def _declarations(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def docstring(struct: type[Any]) -> str:
    """Return the docstring of a class."""
    assert struct.__doc__, f"write a docstring for the class {struct.__name__} ({struct.__module__}): it documents it"
    return struct.__doc__


def _join(struct: type[Any]) -> str:
    return " ".join(docstring(struct).split())


if __name__ == "__main__":
    print(document(), end="")
