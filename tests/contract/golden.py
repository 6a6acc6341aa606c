"""Golden bytes of the protocol: python tests/contract/golden.py > tests/contract/golden.jsonl

One line per message: its name, the payload of its frame in hex, and the same as JSON for people. A line changes only
with the protocol; clients of other versions and languages read and write exactly these bytes. Look at the difference
before you commit it: a changed line that is not a new field breaks somebody's client.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as types

from memoryd.client import protocol
from memoryd.client.errors import ERRORS

REQUEST_ID = 7


def messages() -> Iterator[tuple[str, Any]]:
    """Yield the name and the envelope of a message for each call, result, error and event."""
    for call in protocol.METHODS:
        name = protocol.method_name(call)
        for kind in ("least", "full"):
            yield f"{name}: request, {kind}", [protocol.PROTOCOL_VERSION, REQUEST_ID, sample(call, kind == "full")]
    results = dict.fromkeys(protocol.result_type(call) for call in protocol.METHODS)
    for result in results:
        for kind in ("least", "full"):
            yield f"{result.__name__}: result, {kind}", [protocol.RESULT, REQUEST_ID, sample(result, kind == "full")]
    for code in ERRORS:
        yield f"{code}: error", [protocol.ERROR, REQUEST_ID, code, "A sentence.", {"limit": 1}]
    yield "event", [protocol.PROGRESS, REQUEST_ID, sample(protocol.Event, True)]
    yield "progress", [protocol.PROGRESS, REQUEST_ID, sample(protocol.Progress, True)]


def sample(struct: type[Any], full: bool) -> Any:
    """Return an instance with every field set to a value of its type, or with the required ones only."""
    info: Any = types.type_info(struct)
    return struct(**{field.name: _of_field(field, full) for field in info.fields if full or field.required})


def _of_field(field: Any, full: bool) -> Any:
    """Return a value that is not the default, since requests leave defaults out."""
    return False if field.default is True else _value(field.name, field.type, full)


def _value(name: str, info: Any, full: bool) -> Any:
    match info:
        case types.Metadata():
            return _value(name, info.type, full)
        case types.UnionType():
            return _value(name, next(item for item in info.types if not isinstance(item, types.NoneType)), full)
        case types.StructType():
            return sample(info.cls, full)
        case types.ListType():
            return [_value(name, info.item_type, full)]
        case types.TupleType():
            return tuple(_value(name, item, full) for item in info.item_types)
        case types.DictType():
            key = "key" if isinstance(info.key_type, types.StrType) else _value("key", info.key_type, full)
            return {key: _value(name, info.value_type, full)}
        case types.LiteralType():
            return info.values[-1]
        case types.BoolType():
            return True
        case types.IntType():
            return 3
        case types.FloatType():
            return 0.25
        case types.AnyType():
            return ["ü", 1, 2.5, None, True, {"deep": []}]
    assert isinstance(info, types.StrType), info
    return f"a {name}"


def line(name: str, message: Any) -> str:
    """Return the line of one message."""
    data = msgspec.msgpack.encode(message)
    shown = msgspec.json.encode(msgspec.msgpack.decode(data)).decode()
    return f'{{"name": "{name}", "hex": "{data.hex()}", "value": {shown}}}'


if __name__ == "__main__":
    for name, message in messages():
        print(line(name, message))
