"""Which calls are let through: what each method declares (`@rpc`), applied in one place before any handler runs.

What a rule lets through is bounded by namespace and reach, so a handler that obeys these needs to know nothing more.
One that changes memories asks `history.check_change` about each, and one that counts beyond memories leaves that out
for a bound caller.

Once the database has reached its limit, calls that add are refused, be it only to the history. Turns are refused a
little before it, so that they leave room for what is added on purpose. Reading, deleting and upkeep go on. An undo
looks itself at whether it removes.
"""

from typing import Any, TypeVar

import msgspec

from memoryd.client.errors import Forbidden, Unauthenticated
from memoryd.client.protocol import (
    DECLARED,
    Add,
    Call,
    Delete,
    Get,
    GetContext,
    GetUnasked,
    History,
    KeyedEntry,
    List,
    Namespaces,
    NewMemory,
    Observe,
    Put,
    ResetSession,
    Scoped,
    Search,
    Undo,
    Update,
    method_name,
)
from memoryd.daemon.store.caller import ANONYMOUS, USER, Caller
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.tokens import AccessTokens

C = TypeVar("C", bound=Call[Any])

AUTHOR = "author"  # in metadata: the token of who saved or last changed something from another machine
# What is taken from another machine. Whatever is added here must reach no further than its namespace and reach say.
_CONFINED = (Search, Get, List, Namespaces, History, Add, Put, Update, Delete, Undo)
_NOTES = (GetContext, GetUnasked, ResetSession)  # write only what a session was shown: no change for a reader


def admit(call: C, caller: Caller, tokens: AccessTokens) -> C:
    """Return the call as this caller may make it, raise `Forbidden` or `Unauthenticated`.

    The answer depends on the call and the token alone, never on what is stored.
    """
    rule = DECLARED[type(call)].access
    if caller.confined:
        _check_confined(call)
    elif caller is USER or rule == "anyone":
        return call
    if not tokens.is_valid(caller):
        raise _refuse(caller, tokens)
    if caller.role == "owner":
        return call
    if rule == "owner" or not isinstance(call, Scoped):
        raise Forbidden(f"{method_name(type(call))} is for the machine's user; this token's role is {caller.role}.")
    if caller.role == "reader" and not DECLARED[type(call)].reads and not isinstance(call, _NOTES):
        raise Forbidden(f"This token only reads: its role is reader, and {method_name(type(call))} changes something.")
    tokens.note_use(caller)
    placed: C = _place(call, caller)
    return placed


def _place(call: Any, caller: Caller) -> Any:
    """Return the call in the caller's own namespace if it names none; any other name is whole, from the root on.

    An enclosing namespace may be named to add to it and to read what is seen from there, which is less than the caller
    sees from its own.
    """
    if isinstance(call, Put) and not call.namespace:
        call = msgspec.structs.replace(call, entries=[_place_entry(entry, caller) for entry in call.entries])
        return _confine(call, caller) if caller.confined else call
    namespace = call.namespace or caller.namespace
    own = caller.is_owner_of(namespace)
    encloses = not own and namespace in caller.list_around()
    if not own and not (encloses and _may_go_outward(call)):
        shared = ", ".join(caller.list_around()[:-1])
        may = "to read" if caller.role == "reader" else "to read and to add"
        why = f"; {may} it may also name {shared}" if shared else ""
        if shared and caller.role == "lead":
            why = f"; in {shared} it may read, add and change"
        if encloses:
            why = ": that may be named to read and to add; for all else name no namespace"
        raise Forbidden(f"This token speaks for {caller.namespace}, not for {namespace[:80]}{why}.")
    if caller.confined:
        call = _confine(call, caller)
    elif call.reach == "all" or (call.reach == "subtree" and not own):
        reaches = f"{caller.namespace} with what encloses it ('visible') or what is inside it ('subtree')"
        raise Forbidden(f"This token reaches {reaches}, not {call.reach!r}{'' if own else f' of {namespace}'}.")
    if not own and isinstance(call, GetContext):
        call = msgspec.structs.replace(call, session="")  # what others' sessions were given there is not its to change
    return call if call.namespace else msgspec.structs.replace(call, namespace=namespace)


def _check_confined(call: Call[Any]) -> None:
    """Raise `Forbidden` for what is not taken from another machine."""
    if not isinstance(call, _CONFINED) or (isinstance(call, Delete) and not (call.ids or call.keys)):
        raise Forbidden(f"{method_name(type(call))} is not taken from another machine.")


def _confine(call: Any, caller: Caller) -> Any:
    """Return a call of another machine: within the namespace, and in the name of its author."""
    if call.reach not in (None, "subtree", "exact"):
        raise Forbidden(
            f"From another machine a token reaches 'subtree' or 'exact' of a namespace, not {call.reach!r}."
        )
    call = msgspec.structs.replace(call, reach=call.reach or "subtree")
    author = {AUTHOR: caller.name}
    if isinstance(call, Add):
        return msgspec.structs.replace(call, memory=_sign(call.memory, author))
    if isinstance(call, Put):
        entries = [
            msgspec.structs.replace(entry, memory=entry.memory and _sign(entry.memory, author))
            for entry in call.entries
        ]
        return msgspec.structs.replace(call, entries=entries)
    if isinstance(call, Update):
        metadata = {} if isinstance(call.metadata, msgspec.UnsetType) else call.metadata
        return msgspec.structs.replace(call, metadata={**metadata, **author})
    return call


def _sign(memory: NewMemory, author: dict[str, Any]) -> NewMemory:
    return msgspec.structs.replace(memory, metadata={**memory.metadata, **author})


def _may_go_outward(call: Call[Any]) -> bool:
    declared = DECLARED[type(call)]
    return declared.access == "outward" or declared.reads or isinstance(call, GetContext)


def _place_entry(entry: KeyedEntry, caller: Caller) -> KeyedEntry:
    if not caller.is_owner_of(entry.below or caller.namespace):
        raise Forbidden(f"This token speaks for {caller.namespace}, not for {entry.below[:80]}.")
    return msgspec.structs.replace(entry, below=entry.below or caller.namespace)


def _refuse(caller: Caller, tokens: AccessTokens) -> Unauthenticated:
    if caller is ANONYMOUS and tokens.required:
        advice = "Make one with `memctl token add`, present it with Client(token=…) or MEMORYD_TOKEN."
        return tokens.refusal(f"This daemon wants a token. {advice}")
    return tokens.refuse()


def check_room(call: Call[Any], store: Store) -> None:
    """Raise `StorageFull` for a call that takes room when there is none; the message says what to do."""
    if DECLARED[type(call)].grows and not getattr(call, "dry_run", False):
        store.check_room()
        if isinstance(call, Observe):
            store.check_room_for_turns()
