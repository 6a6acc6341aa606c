"""Rules of the contract that nothing else would notice when broken."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from inspect import get_annotations
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
from client_methods import document

from each import each
from memoryd.client import calls, errors, protocol
from memoryd.client.errors import ERRORS, MemorydError
from memoryd.client.method import method
from memoryd.client.protocol import DECLARED, METHODS, READS, Call, method_name, result_type
from memoryd.client.transport.aio import AsyncClient
from memoryd.client.transport.sync import Client
from memoryd.daemon import config, registry
from memoryd.daemon.registry import HANDLERS
from memoryd.daemon.server import dispatch

SOURCES = Path(protocol.__file__).resolve().parents[2]


def test_every_method_has_its_own_docstring() -> None:
    silent = [call.__name__ for call in METHODS if not call.__dict__.get("__doc__")]
    assert silent == [], "write a docstring for each of these classes in client/protocol/: protocol.json has it"


def test_every_method_has_a_handler_and_every_handler_a_method() -> None:
    lacking = sorted(method_name(call) for call in set(METHODS) - set(HANDLERS))
    assert lacking == [], (
        "write a function with `@handles(…)` above it for each of these; server/handlers.py imports it"
    )
    assert set(HANDLERS) == set(METHODS)


def test_a_method_without_a_handler_keeps_the_daemon_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(HANDLERS, protocol.Search)
    with pytest.raises(RuntimeError, match="no handler for: search"):
        dispatch.check()


def test_a_second_handler_for_a_method_is_refused() -> None:
    with pytest.raises(RuntimeError, match="two handlers for search"):
        registry.handles(protocol.Search)(lambda context, call: None)


def test_a_handler_of_what_is_not_declared_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"put @rpc above Scoped in memoryd\.client\.protocol\.base"):
        registry.handles(protocol.Scoped)


def test_every_call_class_is_declared() -> None:
    classes = [call for call in _below(Call) if call.__module__.startswith("memoryd.client.")]
    undeclared = [
        f"{call.__name__} in {call.__module__}"
        for call in classes
        if call not in METHODS and not getattr(call, "__parameters__", ())
    ]
    assert undeclared == [], "put @rpc above each of these classes"


def _below(base: type[Any]) -> Iterator[type[Any]]:
    for one in base.__subclasses__():
        yield from (one, *_below(one))


def test_method_names_are_unique_and_lower_case() -> None:
    names = [method_name(call) for call in METHODS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", name) for name in names)


@each("call", METHODS)
def test_every_method_has_a_result_type_with_a_docstring_that_its_handler_returns(call: type[Call[Any]]) -> None:
    result = result_type(call)
    assert issubclass(result, msgspec.Struct)
    assert result.__doc__, f"write a docstring for {result.__name__} in client/protocol/: it is what protocol.json says"
    returned = inspect.get_annotations(HANDLERS[call])["return"]
    name = result.__name__
    assert str(getattr(returned, "__name__", returned)) in (
        name,
        f"Future[{name}]",
        f"Parts[{name}]",
        f"Answer[{name}]",
    )


def test_a_method_that_reads_adds_nothing_to_the_database() -> None:
    assert [method_name(call) for call in READS if DECLARED[call].grows] == []


def test_every_method_may_carry_no_unknown_field() -> None:
    assert all(call.__struct_config__.forbid_unknown_fields for call in METHODS)
    assert protocol.NewMemory.__struct_config__.forbid_unknown_fields


def test_every_error_class_has_a_code_of_its_own_and_is_in_the_table() -> None:
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, MemorydError) and value is not MemorydError
    ]
    assert len({error.code for error in classes}) == len(classes)
    assert {error.code: error for error in classes} == ERRORS
    assert all(error.__dict__.get("__doc__") and "code" in error.__dict__ for error in classes)


def test_every_error_code_is_in_the_clients_public_names() -> None:
    import memoryd.client as public

    assert {error.__name__ for error in ERRORS.values()} <= set(public.__all__)
    assert all(hasattr(public, name) for name in public.__all__)


_FIELDS = msgspec.inspect.type_info(config.Config).fields  # type: ignore[attr-defined]
SECTIONS = [getattr(field.type, "value_type", field.type).cls for field in _FIELDS]


@each("section", SECTIONS)
def test_every_setting_has_a_default_and_a_meaning(section: Any) -> None:
    for field in msgspec.inspect.type_info(section).fields:  # type: ignore[attr-defined]
        assert not field.required, field.name
    for name, hint in get_type_hints(section, include_extras=True).items():
        meanings = [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, str) and meta]
        assert meanings, name


def test_both_clients_have_the_same_public_methods() -> None:
    def public(client: type) -> set[str]:
        return {name for name in dir(client) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)


def test_every_method_can_be_called_by_both_clients() -> None:
    unreachable = {call.__name__ for call in METHODS} - {
        get_annotations(value.build, eval_str=True)["return"].__name__
        for owner in calls.Methods.__mro__
        for value in vars(owner).values()
        if isinstance(value, method)
    }
    assert unreachable == {"AddMany", "Subscribe", "FindCandidates"}, "run: make protocol"  # the last is for daemons


def test_the_clients_methods_are_what_the_contract_says() -> None:
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "client/methods.py", "-"]
    formatted = subprocess.run(ruff, input=document(), capture_output=True, text=True, check=True, cwd=SOURCES).stdout
    assert (SOURCES / "client" / "methods.py").read_text() == formatted, "run: make protocol"


def test_every_convenience_method_has_a_docstring() -> None:
    found = [value for owner in calls.Methods.__mro__ for value in vars(owner).values() if isinstance(value, method)]
    assert len(found) >= len(METHODS) - 2
    assert [value.build.__name__ for value in found if not value.__doc__] == []


@each("folder", ["client", "daemon", "models", "scheduler"])
def test_every_module_says_in_its_docstring_what_it_owns(folder: str) -> None:
    silent = [
        str(path.relative_to(SOURCES))
        for path in (SOURCES / folder).rglob("*.py")
        if not path.read_text().startswith('"""')
    ]
    assert silent == [], "write a docstring at the head of each of these: what is in the module"
