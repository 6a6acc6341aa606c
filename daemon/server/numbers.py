"""Operation numbers as a bound caller sees them: each is another number, from which none can be counted.

Numbers are given in the order of writes, so their gaps would show a bound caller how much others wrote. A keyed
permutation (a Feistel network over 46 bits) replaces them in its results, errors and events. The numbers that it makes
are above all real ones, so the owner may use those that an agent names; a bound caller may use no others. It stays,
since numbers counted for each caller, or random ones kept with each operation, need a column, a migration and a look-up
in each of these ways, and numbers taken from the clock would be long for the owner too.
"""

import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from memoryd.client.errors import MemorydError, NotFound
from memoryd.client.patterns import compile_late
from memoryd.client.protocol import Call, Event, Operation
from memoryd.daemon.server import envelope
from memoryd.daemon.store.caller import Caller

R = TypeVar("R")

_HALF_BITS = 23
_FIRST = 1 << 2 * _HALF_BITS  # of those that are shown to bound callers
_MASK = (1 << _HALF_BITS) - 1
_ROUNDS = 4
_NUMBER = compile_late(r"\b[0-9]{1,18}\b")
_NUMBERS = frozenset({"operation", "undone", "undone_by"})


class Sight(NamedTuple):
    """Who sees the numbers, and the key that replaces them."""

    key: bytes
    caller: Caller


def build_shown(key: bytes, number: int) -> int:
    """Return what a bound caller sees in place of a number."""
    left, right = number >> _HALF_BITS, number & _MASK
    for turn in range(_ROUNDS):
        left, right = right, left ^ _build_half(key, turn, right)
    return _FIRST | left << _HALF_BITS | right


def find_real(key: bytes, shown: int) -> int:
    """Return the number that a bound caller sees as this one."""
    left, right = (shown - _FIRST) >> _HALF_BITS, shown & _MASK
    for turn in reversed(range(_ROUNDS)):
        left, right = right ^ _build_half(key, turn, left), left
    return left << _HALF_BITS | right


def _build_half(key: bytes, turn: int, half: int) -> int:
    made = hashlib.blake2b(half.to_bytes(4, "big"), digest_size=4, key=key, person=bytes([turn])).digest()
    return int.from_bytes(made, "big") & _MASK


def read_call(sight: Sight, call: Call[R]) -> Call[R]:
    """Return a call with the number that it means; raise `NotFound` where a bound caller names one not shown to it."""
    given = getattr(call, "operation", None)
    if given is None or not (sight.caller.bound or given >= _FIRST):
        return call
    if not _FIRST <= given < 2 * _FIRST:
        raise NotFound(f"There is no operation {given}.", {"operation": given})
    return msgspec.structs.replace(call, operation=find_real(sight.key, given) or 1)


def answer(request_id: int, sight: Sight, produce: Callable[[], Any]) -> tuple[bytes, bool]:
    """Return the reply frame of a result, or of the error it raises, as the caller may see it."""
    if not sight.caller.bound:
        return envelope.answer(request_id, produce)
    try:
        result = produce()
    except BaseException as error:
        return answer_failure(request_id, sight, error)
    return envelope.answer(request_id, lambda: replace_numbers(sight.key, result))


def answer_failure(request_id: int, sight: Sight, error: BaseException) -> tuple[bytes, bool]:
    """Return the reply frame of whatever a handler raised, as the caller may see it, and True."""
    if sight.caller.bound and isinstance(error, MemorydError):
        error = replace_in_error(sight.key, error)
    return envelope.encode_failure(request_id, error)


def replace_numbers(key: bytes, result: Any) -> Any:
    """Return a result with other numbers of operations."""
    if isinstance(result, list):
        return [replace_numbers(key, item) for item in result]
    if not isinstance(result, msgspec.Struct) or not _has_numbers(type(result)):
        return result
    changed = {name: _replace_field(key, name, getattr(result, name)) for name in result.__struct_fields__}
    if isinstance(result, Operation):
        changed["id"] = build_shown(key, result.id)
    return msgspec.structs.replace(result, **changed)


def _replace_field(key: bytes, name: str, value: Any) -> Any:
    if name in _NUMBERS and isinstance(value, int):
        return build_shown(key, value)
    if name == "operations" and isinstance(value, list) and value and isinstance(value[0], int):
        return [build_shown(key, number) for number in value]
    return replace_numbers(key, value)


def replace_in_event(sight: Sight, event: Event) -> Event:
    """Return an event as the caller may see it."""
    seen: Event = replace_numbers(sight.key, event) if sight.caller.bound else event
    return seen


def replace_in_error(key: bytes, error: MemorydError) -> MemorydError:
    """Return an error with other numbers in its data and its sentence; it names in its data those that it speaks of."""
    named = {error.data.get("operation"), *error.data.get("operations", ())} - {None}
    if not named:
        return error
    message = _NUMBER.sub(lambda found: _show(key, found[0], named), error.message)
    return type(error)(message, {name: _replace_field(key, name, value) for name, value in error.data.items()})


def _show(key: bytes, digits: str, named: set[int]) -> str:
    return str(build_shown(key, int(digits))) if int(digits) in named else digits


@functools.cache
def _has_numbers(kind: type) -> bool:
    """Return whether results of a class hold numbers of operations, themselves or within."""
    waiting, seen = [kind], {kind}
    while waiting:
        hints = get_type_hints(waiting.pop())
        if _NUMBERS & hints.keys() or get_origin(hints.get("operations")) is list:
            return True
        parts = {part for hint in hints.values() for part in _list_structs(hint)} - seen
        waiting += parts
        seen |= parts
    return False


def _list_structs(hint: Any) -> list[type]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [hint]
    return [part for argument in get_args(hint) for part in _list_structs(argument)]
