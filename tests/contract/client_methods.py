"""Write client/methods.py from the contract: python tests/contract/client_methods.py > client/methods.py

A method of both clients for each call that none is written for by hand in `client/calls.py`.
"""

import ast
import re
import typing
from collections.abc import Iterator
from inspect import get_annotations
from pathlib import Path
from types import NoneType, UnionType
from typing import Any

import msgspec
from protocol_document import docstring

from memoryd.client import protocol
from memoryd.client.protocol import METHODS, Call, Reach, method_name

CALLS = Path(protocol.__file__).parent.parent / "calls.py"
HEAD = '''"""The clients' methods that follow from the contract. Written by `make protocol`; do not edit."""

from __future__ import annotations

from typing import Any, Literal

from memoryd.client import protocol
from memoryd.client.fields import Words, to_list, to_moment
from memoryd.client.method import method
from memoryd.client.protocol import Reach
from memoryd.client.times import When
'''


def document() -> str:
    """Return the text of client/methods.py."""
    calls = [call for call in METHODS if call.__name__ not in written_by_hand()]
    functions = "".join(_function(call) for call in calls)
    table = "".join(f"    {method_name(call)} = method({method_name(call)})\n" for call in calls)
    owner = '\n\nclass DeclaredMethods:\n    """A method for each call that has none written by hand."""\n\n'
    return HEAD + functions + owner + table


def written_by_hand() -> set[str]:
    """Return the names of the calls that functions of client/calls.py build."""
    functions = [node for node in ast.parse(CALLS.read_text()).body if isinstance(node, ast.FunctionDef)]
    named = (ast.unparse(function.returns) for function in functions if function.returns)
    called = {call for name in named for call in re.findall(r"\w+", name)}
    return called | {"AddMany", "FindCandidates"}  # the latter is for daemons alone


def _function(call: type[Call[Any]]) -> str:
    parameters = list(_parameters(call))
    signature = ", ".join(text for text, _ in parameters)
    hints = typing.get_type_hints(call)
    listed = {name: f"to_list('{name}', {name})" for name, hint in hints.items() if hint == list[str]}
    listed |= {name: f"to_moment({name})" for name, hint in hints.items() if _is_moment(name, hint)}
    given = ", ".join(f"{name}={listed.get(name, name)}" for _, name in parameters if name)
    summary = " ".join(docstring(call).split("\n\n")[0].split())
    name = f"protocol.{call.__name__}"
    return (
        f"\n\ndef {method_name(call)}({signature}) -> {name}:\n"
        f'    """{_wrapped(summary)}"""\n    return {name}({given})\n'
    )


def _wrapped(text: str) -> str:
    first, *more = re.findall(r".{1,108}(?:\s|$)", text)
    return first.rstrip() + "".join(f"\n    {line.rstrip()}" for line in more)


def _parameters(call: type[Call[Any]]) -> Iterator[tuple[str, str]]:
    """Yield each parameter as text with its name; what is the call's own may be given by position."""
    hints = typing.get_type_hints(call)
    fields = {field.name: field for field in msgspec.structs.fields(call)}
    own = [name for name in get_annotations(call) if name in fields]
    inherited = [name for name in fields if name not in own and name != "namespace"]
    for name in (*own, *(["*"] if inherited else []), *inherited):
        if name == "*":
            yield "*", ""
        else:
            is_words = hints[name] == list[str]  # one word is as good as a list of one
            default = " = ()" if is_words and not fields[name].required else _default(fields[name])
            kind = "Words" if is_words else "When | None" if _is_moment(name, hints[name]) else _type(hints[name])
            yield f"{name}: {kind}{default}", name


def _is_moment(name: str, hint: Any) -> bool:
    """Return whether a parameter is a limit of time, which may be given in words; other numbers are not."""
    return name in ("after", "before") and float in typing.get_args(hint)


def _default(field: Any) -> str:
    if field.required:
        return ""
    made = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
    return f" = {made!r}".replace("'", '"')


def _type(hint: Any) -> str:
    if hint is NoneType:
        return "None"
    if hint == Reach:  # which most of them take
        return "Reach"
    if typing.get_origin(hint) is typing.Literal:
        return f"Literal[{', '.join(map(repr, typing.get_args(hint)))}]".replace("'", '"')
    if typing.get_origin(hint) in (UnionType, typing.Union):
        return " | ".join(map(_type, typing.get_args(hint)))
    if arguments := typing.get_args(hint):
        return f"{typing.get_origin(hint).__name__}[{', '.join(map(_type, arguments))}]"
    name = str(getattr(hint, "__name__", hint))
    return f"protocol.{name}" if hasattr(protocol, name) and name != "Any" else name


if __name__ == "__main__":
    print(document(), end="")
