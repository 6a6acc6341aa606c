"""Access control: the rule that each method declares (`@rpc`), applied in one place before any handler runs.

An admitted call is limited to a namespace and a reach, so a handler that respects these needs no further check, with
two exceptions: before changing a memory it calls `history.check_change`, and it leaves counts of anything but memories
out for a bound caller.

When the database has reached its limit, calls that add anything, even to the history alone, are refused. Turns are
refused slightly earlier, so that there is room for memories that are added on purpose. Reading, deleting and
maintenance continue. The handler of `undo` checks by itself, because an undo may add or remove.
"""

from typing import Any, TypeVar

import msgspec

from memoryd.client.errors import Forbidden, Unauthenticated
from memoryd.client.protocol import (
    DECLARED,
    Add,
    Call,
    Delete,
    FindCandidates,
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
    Undo,
    Update,
    method_name,
)
from memoryd.daemon.store import turns
from memoryd.daemon.store.caller import ANONYMOUS, USER, Caller
from memoryd.daemon.store.queries import DRAWN
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.tiers import DOCUMENTS
from memoryd.daemon.store.tokens import AccessTokens

C = TypeVar("C", bound=Call[Any])

AUTHOR = "author"  # in metadata: the token that saved or last changed a memory from another machine
# Methods that other machines may call. Each must be limited by its namespace and reach.
_FOR_OTHER_MACHINES = (FindCandidates, Get, List, Namespaces, History, Add, Put, Update, Delete, Undo)
# Other machines see only memories that were saved: no conversations, nothing derived from these, no files.
_ONLY_SAVED = {
    "$not": {
        "$or": [{"memory.type": turns.TYPE}, {"memory.tier": DOCUMENTS}, {"memory.source": {"$in": [*DRAWN]}}],
    }
}
# Allowed for readers, because these methods write only what a session was shown.
_WRITES_OF_READERS = (GetContext, GetUnasked, ResetSession)


def admit(call: C, caller: Caller, tokens: AccessTokens) -> C:
    """Return the call limited to what the caller may do; raise `Forbidden` or `Unauthenticated`.

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
    if caller.role == "reader" and not DECLARED[type(call)].reads and not isinstance(call, _WRITES_OF_READERS):
        raise Forbidden(
            f"This token only reads, because its role is reader; {method_name(type(call))} changes something."
        )
    tokens.note_use(caller)
    placed: C = _place(call, caller)
    return placed


def _place(call: Any, caller: Caller) -> Any:
    """Return the call, by default in the caller's namespace; raise `Forbidden` for a namespace out of reach.

    A namespace is always given in full, from the root. A call may name an enclosing namespace to add to it, or to read
    what is visible from there, which is less than is visible from the caller's own namespace.
    """
    if isinstance(call, Put) and not call.namespace:
        call = msgspec.structs.replace(call, entries=[_place_entry(entry, caller) for entry in call.entries])
        return _confine(call, caller) if caller.confined else call
    namespace = call.namespace or caller.namespace
    own = caller.is_owner_of(namespace)
    encloses = not own and namespace in caller.list_around()
    if not own and not (encloses and _may_go_outward(call)):
        enclosing = ", ".join(caller.list_around()[:-1])
        allowed = "to read" if caller.role == "reader" else "to read and to add"
        hint = f"; {allowed} it may also name {enclosing}" if enclosing else ""
        if enclosing and caller.role == "lead":
            hint = f"; in {enclosing} it may read, add and change"
        if encloses:
            hint = "; in that namespace it may only read and add, so give no namespace"
        raise Forbidden(f"This token speaks for {caller.namespace}, not for {namespace[:80]}{hint}.")
    if caller.confined:
        call = _confine(call, caller)
    elif call.reach == "all" or (call.reach == "subtree" and not own):
        allowed = "the namespaces around it ('visible') or inside it ('subtree')"
        refused = f"{call.reach!r}{'' if own else f' of {namespace}'}"
        raise Forbidden(f"This token reaches {caller.namespace} and {allowed}, not {refused}.")
    if not own and isinstance(call, GetContext):
        # The caller must not change what the daemon notes about sessions of others.
        call = msgspec.structs.replace(call, session="")
    return call if call.namespace else msgspec.structs.replace(call, namespace=namespace)


def _check_confined(call: Call[Any]) -> None:
    if not isinstance(call, _FOR_OTHER_MACHINES) or (isinstance(call, Delete) and not (call.ids or call.keys)):
        raise Forbidden(f"{method_name(type(call))} is not allowed from another machine.")


def _confine(call: Any, caller: Caller) -> Any:
    """Limit a call of another machine to the inside of its namespace, and record its author in the metadata."""
    if call.reach not in (None, "subtree", "exact"):
        raise Forbidden(
            f"From another machine a token reaches 'subtree' or 'exact' of a namespace, not {call.reach!r}."
        )
    call = msgspec.structs.replace(call, reach=call.reach or "subtree")
    if isinstance(call, FindCandidates | List):
        return msgspec.structs.replace(call, where={"$and": [call.where, _ONLY_SAVED]} if call.where else _ONLY_SAVED)
    if isinstance(call, Get):
        return msgspec.structs.replace(call, around=None)
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
        advice = "Create one with `memctl token add` and present it with Client(token=…) or MEMORYD_TOKEN."
        return tokens.refusal(f"This daemon requires a token. {advice}")
    return tokens.refuse()


def check_room(call: Call[Any], store: Store) -> None:
    """Raise `StorageFull` for a call that adds something when the database is full; the message says what to do."""
    if DECLARED[type(call)].grows and not getattr(call, "dry_run", False):
        store.check_room()
        if isinstance(call, Observe):
            store.check_room_for_turns()
