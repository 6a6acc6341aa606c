"""Write PROTOCOL.md from the contract: python tests/contract/protocol_document.py > PROTOCOL.md"""

import ast
import functools
import sys
from collections.abc import Iterator
from inspect import get_annotations, getsource
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import inspect as types

from memoryd.client import errors, protocol
from memoryd.client.transport.exchange import encode_call
from memoryd.client.transport.frames import frame
from memoryd.daemon.server.envelope import FIT_BYTES

BASES = (protocol.Scoped, protocol.Filtered, protocol.Query)

METADATA = f"{protocol.MAX_METADATA_BYTES // 1024} KiB and {protocol.MAX_METADATA_DEPTH} levels"
CLIENTS_OWN = {"timeout", "untrusted"}  # codes of errors that clients make

HEAD = f"""# The protocol of memoryd, version {protocol.PROTOCOL_VERSION}

Generated from the code by `make protocol`; do not edit. It is enough to write a client in any language that has Unix
sockets and [MessagePack](https://msgpack.org).

## Connection

Connect a stream socket to the path in `MEMORYD_SOCKET`; if that is not set to
`$XDG_RUNTIME_DIR/memoryd/memoryd.sock`; if that variable is not set either to `/run/user/UID/memoryd/memoryd.sock`
where that folder is there and `TMPDIR` is not set, else to `/tmp/memoryd-UID/memoryd.sock` (`TMPDIR` instead of
`/tmp` if set), UID being the number of the user. Only processes of the daemon's own user are served. Anybody can
make the folder in `/tmp` first: see that folder and socket are no symbolic links and belong to the user or root,
that nobody else may write in the folder (unless it is sticky), and that `SO_PEERCRED` names the user or root,
before anything is sent. Where `MEMORYD_SOCKET` is not set and nobody answers there, the daemon may have been started
with other variables: `memoryd.lock` in the data folder holds the path at which it listens. Use that only if the socket
and the process are the user's own and the reply to `status` names this data folder. Send the first request at once; a
greeting (`hello`) is optional and may go ahead of it without waiting for the reply. A connection
may stay open for any number of calls.

**The end of a connection.** A daemon that stops or restarts refuses calls with `unavailable` and `retry_after_ms`, and
sends each connection that waits for nothing the same in an error with the id 0 before it closes it. Nothing was done
for a call that is answered by either: send it again on a new connection, also a call that writes. After a restart the
new daemon serves the same socket, in whose queue a connection may have to wait for it.

**Tokens** are optional. A connection that presents one with `authenticate`, which may be sent ahead of the first call
without waiting for its reply, is bound to the token's namespace and role from then on. A call that names no namespace
is placed in that one; a call may name one inside it, and `add` and `add_many` one that encloses it. `reach` is
`visible` unless it says `subtree` or `exact`; `all` is refused. A `reader` changes nothing; an `agent` changes what is
in its namespace or below, whoever wrote it; a `lead` also what is in those that enclose it, as far as it sees it; both
take back their own operations. What cannot be seen is answered like what does not exist. Methods marked as the owner's
are refused. After an unknown or revoked token everything but `status` and `authenticate` is refused. Where the daemon
is configured with `require_token`, so is every connection that has presented none; the owner's own token is the file
`owner.token` beside the database.

## Frames

Each message in either direction is a frame: 4 bytes, the length N as an unsigned big-endian integer, then N bytes, one
MessagePack value. N is at most {protocol.MAX_FRAME_BYTES} (16 MiB). After a longer one the daemon sends an error and
closes the connection. A reply that would be longer comes with its longest texts shortened, each with a mark at its end,
so that all of it has at most {FIT_BYTES} bytes; `content_bytes` is then the length of the whole content, which `get`
returns. `export_memories` shortens nothing: it returns fewer memories at once.

## Requests and replies

A request is an array `[version, id, call]`:
- `version`: the integer {protocol.PROTOCOL_VERSION}. Another one is refused with `version_mismatch`, except for the
  methods {" and ".join(f"`{name}`" for name in sorted(protocol.UNVERSIONED))}.
- `id`: an integer from 1 that the client chooses, another one for each call under way.
- `call`: a map with text keys: `method` and the method's parameters. A parameter that is left out has its default. An
  unknown parameter is refused, so that a filter which the daemon does not know is never ignored.

A reply is an array that begins with its kind and the id of the request:
- `[{protocol.RESULT}, id, result]`: the result, a map. Ignore keys that you do not know.
- `[{protocol.ERROR}, id, code, message, data]`: an error: a code of the table below, a sentence for people, a map with
  details. The id is 0 when it concerns the connection as a whole or a frame that is not a request.
- `[{protocol.PROGRESS}, id, event]`: the call continues; `event` is a `Progress` (below), for `subscribe` an
  `Event`. Any number may come before the result or error, which is always the last reply to a request. Ignore other
  kinds.

Several calls of one connection may be under way at once; replies come in any order and are matched by `id`. The daemon
works on a bounded number of calls per connection and reads on when some have finished; connections take turns, and one
has at most half of the workers. A client that does not read its replies for some seconds is dropped. When a connection
ends, what has not begun is not run; calls that were not answered may or may not have been run: repeat
the methods marked as reads, look before you repeat another.

## Values

Texts are UTF-8 without lone surrogates. Times are UTC seconds since 1970 as a float or an integer. An id is 32
lower-case hex digits; wherever one is expected a unique prefix of 4 or more digits will do. Metadata is a JSON object:
at most {METADATA}, no binary data, no NaN. What is nested deeper, anywhere in a call,
is refused with `invalid`.

**Namespaces** nest: `acme/api/alpha` is in `acme/api`, in `acme`, in the root, which is the empty text. At most 16
parts and 512 bytes, no empty part, and in a new one neither `.` nor `..` as a part. `reach` says what a call sees from
its namespace: `visible` its own and the enclosing ones, `subtree` its own and the inner ones, `exact` its own, `all`
every one. What is written is in the namespace itself.
"""


AGAIN = """
When `data` has `retry_after_ms` (with `busy`, and with `unavailable` while the daemon stops), nothing was done: wait so
many milliseconds and send the call again, on a new connection if this one has ended.
"""


def document() -> str:
    """Return the text of PROTOCOL.md."""
    parts = [HEAD, *_errors(), *_example(), "## Methods\n", *_bases()]
    parts += [part for call in protocol.METHODS for part in _method(call)]
    parts += ["## Types\n", *_types()]
    return "\n".join(parts).rstrip() + "\n"


def _errors() -> Iterator[str]:
    yield "## Error codes\n\n| code | meaning |\n| --- | --- |"
    for code, error in errors.ERRORS.items():
        if code not in CLIENTS_OWN:
            yield f"| `{code}` | {_sentence(error)} |"
    yield AGAIN


def _example() -> Iterator[str]:
    call = protocol.Add(namespace="acme", memory=protocol.NewMemory(content="We use Valkey"))
    added = protocol.Added(id="0f" * 16, outcome="created", embedded=True, operation="7c" * 16)
    yield "## Example\n\nRemember `We use Valkey` in the namespace `acme`:\n"
    yield "```\n" + _hex(encode_call(call, 1)) + "```\n"
    yield f"that is, after the length: `{_json([protocol.PROTOCOL_VERSION, 1, call])}`. The reply:\n"
    yield "```\n" + _hex(frame(msgspec.msgpack.encode([protocol.RESULT, 1, added]))) + "```\n"
    yield f"that is `{_json([protocol.RESULT, 1, added])}`. A refusal, here of an unknown method:\n"
    refusal = [protocol.ERROR, 2, "unknown_method", "There is no method 'rename'.", {}]
    yield "```\n" + _hex(frame(msgspec.msgpack.encode(refusal))) + "```\n"
    yield f"that is `{_json(refusal)}`.\n"


def _bases() -> Iterator[str]:
    for base, who in zip(BASES, ("methods on memories", "searches and lists", "searches"), strict=True):
        yield f"### Parameters of {who} (`{base.__name__}`)\n\n{_text(base)}\n\n{_table(base, calls=True)}"


def _method(call: type[protocol.Call[Any]]) -> Iterator[str]:
    result = protocol.result_type(call)
    yield f"### `{protocol.method_name(call)}`\n\n{_text(call)}\n"
    inherited = [f"`{base.__name__}`" for base in BASES if issubclass(call, base)]
    if inherited:
        yield f"Takes the parameters of {', '.join(inherited)}" + (" and:\n" if _own(call) else ".\n")
    if _own(call):
        yield _table(call, calls=True)
    reads = "A read. " if call in protocol.READS else ""
    reads += {"owner": "The owner's. ", "anyone": "Needs no token. "}.get(protocol.DECLARED[call].access, "")
    yield f"{reads}Result: [`{result.__name__}`](#{result.__name__.lower()}).\n"


def _types() -> Iterator[str]:
    for struct in used_types():
        above = struct.__mro__[1]
        yield f"### {struct.__name__}\n\n{_text(struct)}\n"
        if above in used_types():
            yield f"All fields of `{above.__name__}` and:\n"
        yield _table(struct, calls=struct is protocol.NewMemory)


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


def _own(struct: type[Any]) -> list[Any]:
    """Return the fields that a struct itself declares."""
    declared = get_annotations(struct)
    info: Any = types.type_info(struct[Any] if struct in BASES else struct)
    return [field for field in info.fields if field.name in declared]


def _table(struct: type[Any], calls: bool) -> str:
    lines = ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    if not calls:  # replies hold every field
        lines = ["| field | type | meaning |", "| --- | --- | --- |"]
    for field in _own(struct):
        default = [_default(field)] if calls else []
        lines.append(
            "| " + " | ".join([f"`{field.name}`", _type(field.type), *default, _meaning(struct, field)]) + " |"
        )
    return "\n".join(lines) + "\n"


def _meaning(struct: type[Any], field: Any) -> str:
    meanings = field_meanings(struct)
    assert field.name in meanings, (
        f"write a docstring below the field {field.name} of {struct.__name__} ({struct.__module__}): it documents it"
    )
    return meanings[field.name]


@functools.cache
def field_meanings(struct: type[Any]) -> dict[str, str]:
    """Return what the docstring below each field of a struct says."""
    declaration = _declarations(struct.__module__)[struct.__name__]
    return {
        field.target.id: " ".join(text.split())
        for field, below in pairwise(declaration.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(text := below.value.value, str)
    }


@functools.cache
def _declarations(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _default(field: Any) -> str:
    if field.required:
        return "required"
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{_json(field.default_factory())}`"
    if field.default is msgspec.NODEFAULT:
        return "unchanged"  # UNSET: only `update` has it
    return f"`{_json(field.default)}`"


_PLAIN = {
    types.StrType: "text",
    types.BoolType: "boolean",
    types.NoneType: "null",
    types.AnyType: "any",
}


def _type(info: Any) -> str:
    if isinstance(info, types.Metadata):
        return _type(info.type)
    if type(info) in _PLAIN:
        return _PLAIN[type(info)]
    if isinstance(info, types.IntType | types.FloatType):
        return ("integer" if isinstance(info, types.IntType) else "number") + _range(info)
    if isinstance(info, types.LiteralType):
        return ", ".join(f"`{value}`" for value in info.values)
    if isinstance(info, types.StructType):
        return f"[`{info.cls.__name__}`](#{info.cls.__name__.lower()})"
    if isinstance(info, types.ListType):
        return f"array of {_most(info)}{_type(info.item_type)}"
    if isinstance(info, types.TupleType):
        return "array of " + ", ".join(_type(item) for item in info.item_types)
    if isinstance(info, types.DictType):
        return f"map of {_most(info)}text to {_type(info.value_type)}"
    assert isinstance(info, types.UnionType), info
    return " or ".join(_type(item) for item in info.types)


def _most(info: Any) -> str:
    return f"at most {info.max_length} " if info.max_length is not None else ""


def _range(info: Any) -> str:
    if info.ge is not None and info.le is not None:
        most = "2^63 - 1" if info.le == protocol.MAX_INTEGER else f"{info.le:.12g}"
        return f" {info.ge:g} to {most}"
    return f" from {info.ge:g}" if info.ge is not None else ""


def _text(struct: type[Any]) -> str:
    """Return the docstring as one paragraph per blank line."""
    return "\n\n".join(" ".join(part.split()) for part in docstring(struct).split("\n\n"))


def docstring(struct: type[Any]) -> str:
    """Return the docstring of a class."""
    assert struct.__doc__, f"write a docstring for the class {struct.__name__} ({struct.__module__}): it documents it"
    return struct.__doc__


def _sentence(struct: type[Any]) -> str:
    return _text(struct).replace("\n\n", " ")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _hex(data: bytes) -> str:
    rows = [data[start : start + 16] for start in range(0, len(data), 16)]
    return "".join(f"{row.hex(' '):<48} {''.join(chr(b) if 32 <= b < 127 else '.' for b in row)}\n" for row in rows)


if __name__ == "__main__":
    print(document(), end="")
