"""Change, delete and undo, each as one operation of the log. Dismissing a link is not an operation."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec
from msgspec import UNSET

from memoryd.client import protocol
from memoryd.client.errors import Invalid, NotFound
from memoryd.client.protocol import (
    Changed,
    Confirm,
    Confirmed,
    Delete,
    Deleted,
    Done,
    NewMemory,
    Scoped,
    Tag,
    Undo,
    Undone,
    Update,
    method_name,
)
from memoryd.daemon.core import limits
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import duplicates, keyed, origins
from memoryd.daemon.memories.duplicates import Embedded
from memoryd.daemon.memories.elsewhere import here_or_elsewhere
from memoryd.daemon.registry import Answer, handles
from memoryd.daemon.store import conversion, extraction, history, links, made_of_turns, namespaces, rows, turns, vectors
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L0
from memoryd.daemon.store.writer import Transaction

TAGS = "tags"  # the metadata key that holds a memory's tags


def visible_condition(core: Core, call: Scoped[Any]) -> str:
    """Return the SQL condition on the namespaces that a call reaches."""
    return namespaces.condition(core.store.namespaces.reach(namespaces.check(call.namespace), call.reach))


def show(core: Core, connection: Connection, rows_to_show: Iterable[Row], condition: str) -> list[protocol.Memory]:
    """Convert rows to memories as shown to a caller that reaches the namespaces of a condition."""
    return conversion.build_memories(connection, core.store.namespaces, rows_to_show, condition, core.clock())


@handles(Update)
def update(core: Core, call: Update, caller: Caller = USER) -> "Answer[Changed]":
    """Change the given fields of one memory."""
    return here_or_elsewhere(core, call, caller, lambda: _update(core, call, caller))


def _update(core: Core, call: Update, caller: Caller) -> "Future[Changed]":
    fields = _check_fields(call)
    metadata = {} if call.metadata is UNSET else call.metadata
    limits.check_metadata(metadata)
    embedded = core.embedding.embed_text(fields["content"]) if "content" in fields else None
    near: list[int] = []
    if embedded is not None:  # found here, since scanning would block the writer
        with core.store.reading() as connection:
            near = duplicates.find_near(rows.resolve(connection, call.id, visible_condition(core, call)), embedded)

    def build_changes(row: Row) -> dict[str, Any]:
        own = dict(fields)
        if "content" in own:
            own["text_hash"] = vectors.text_hash(rows.build_embedded_text(own["content"], turns=row.turns))
        if call.metadata is UNSET:
            return own
        base = {} if call.replace_metadata else msgspec.json.decode(row.metadata)
        return {**own, "metadata": _metadata_text({**base, **metadata})}

    return core.store.write(lambda transaction: _change(core, transaction, call, caller, build_changes, embedded, near))


@handles(Tag)
def tag(core: Core, call: Tag, caller: Caller = USER) -> "Future[Changed]":
    """Add tags and set metadata values of one memory."""
    limits.check_metadata(call.values)
    for word in call.tags:
        limits.check_word("tag", word)

    def build_changes(row: Row) -> dict[str, Any]:
        metadata = {**msgspec.json.decode(row.metadata), **call.values}
        if call.tags:
            had = metadata.get(TAGS, [])
            metadata[TAGS] = list(dict.fromkeys([*(had if isinstance(had, list) else [had]), *call.tags]))
        return {"metadata": _metadata_text(metadata)}

    return core.store.write(lambda transaction: _change(core, transaction, call, caller, build_changes, None))


@handles(Confirm)
def confirm(core: Core, call: Confirm, caller: Caller = USER) -> "Answer[Confirmed]":
    """Mark memories as confirmed by the person: all or none, here or in one shared root."""
    if not call.ids:
        raise Invalid("Give the ids of the memories to confirm.")
    return here_or_elsewhere(core, call, caller, lambda: _confirm(core, call, caller))


def _confirm(core: Core, call: Confirm, caller: Caller) -> "Future[Confirmed]":
    condition = visible_condition(core, call)

    def write(transaction: Transaction) -> Confirmed:
        connection, now = transaction.connection, core.clock()
        going = {row.id: row for row in (rows.resolve(connection, prefix, condition) for prefix in call.ids)}
        operation = history.begin(connection, "confirm", caller.log_place(call.namespace), now)
        for row in going.values():
            limits.check_editable(row.id, row.tier, row.path)
            history.record(connection, operation, row.id, core.store.namespaces.name(row.namespace), row)
            rows.change(connection, row.row, {"confirmed_at": now})
        return Confirmed(ids=list(going), operation=operation)

    return core.store.write(write)


def delete(core: Core, call: Delete, caller: Caller = USER) -> "Future[Deleted]":
    """Delete memories by ids and keys, and turns in L0, with everything derived from turns: all or none."""
    condition = visible_condition(core, call)

    def write(transaction: Transaction) -> Deleted:
        connection = transaction.connection
        rows_to_delete = [turns.resolve_row(connection, prefix, condition) for prefix in call.ids]
        rows_to_delete += [keyed.resolve_key(core, connection, call.namespace, key) for key in call.keys]
        by_id = {row.id: row for row in rows_to_delete}
        made = [row for row in made_of_turns.find_made(connection, list(by_id.values())) if row.id not in by_id]
        operation = history.begin(connection, "delete", caller.log_place(call.namespace), core.clock())
        delete_found(core, transaction, [*by_id.values(), *made], operation, caller)
        return Deleted(
            count=len(by_id),
            ids=list(by_id),
            operation=operation,
            turns=sum(row.tier == L0 for row in by_id.values()),
            derived=[row.id for row in made],
        )

    return core.store.write(write, over_limit=True)


def delete_found(
    core: Core, transaction: Transaction, rows_to_delete: Sequence[Row], operation: str, caller: Caller = USER
) -> None:
    """Delete memories and turns in L0 within an operation; raise if the caller may not change one of them."""
    connection = transaction.connection
    for row in rows_to_delete:
        namespace = core.store.namespaces.name(row.namespace)
        history.check_change(connection, caller, row.id, namespace)
        limits.check_editable(row.id, row.tier, row.path)
        if row.tier != L0:
            history.record(connection, operation, row.id, namespace, row)
    numbers = [row.row for row in rows_to_delete if row.tier != L0]
    rows.delete(connection, numbers)
    keys = [row.id for row in rows_to_delete]
    for row in rows_to_delete:
        if row.turns > 1:  # also the turns that it consists of
            keys += [part for part in msgspec.json.decode(row.metadata).get("turns") or () if isinstance(part, str)]
    extraction.forget(connection, keys)
    transaction.after_commit(lambda: core.embedding.remove_rows(numbers))
    going = list(turns.read_keys(connection, [row.id for row in rows_to_delete if row.tier == L0]).values())
    for turn in going:
        history.record_turn(connection, operation, turn, core.store.namespaces.name(turn.namespace))
        turns.count(connection, turn.namespace, "gone: delete")
    turns.remove(connection, going)
    core.active.follow(transaction, {turn.namespace for turn in going})


def remove(core: Core, transaction: Transaction, going: Sequence[Row], operation: str) -> None:
    """Delete memories that a job found; `undo` of the operation brings them back."""
    connection = transaction.connection
    for row in going:
        history.record(connection, operation, row.id, core.store.namespaces.name(row.namespace), row)
        rows.delete(connection, [row.row])
    transaction.after_commit(lambda: core.embedding.remove_rows([row.row for row in going]))


@handles(protocol.DismissLink)
def dismiss(core: Core, call: protocol.DismissLink) -> "Future[Done]":
    """Dismiss the link between two memories, or restore it; raise `NotFound` if there is none."""
    condition = visible_condition(core, call)

    def write(transaction: Transaction) -> Done:
        connection = transaction.connection
        one, other = (turns.resolve_row(connection, prefix, condition).id for prefix in (call.id, call.other))
        if not links.dismiss(connection, one, other, restore=call.restore):
            missing = "have no dismissed link" if call.restore else "are not linked"
            raise NotFound(f"{one[:8]} and {other[:8]} {missing}.", {"id": one, "other": other})
        now = "are linked again" if call.restore else "are not linked any more, and will not be again"
        return Done(message=f"{one[:8]} and {other[:8]} {now}.")

    return core.store.write(write)


@handles(Undo)
def undo(core: Core, call: Undo, caller: Caller = USER) -> "Answer[Undone]":
    """Undo one operation as a whole."""
    if call.operation is None:  # the latest one on this machine
        return undo_here(core, call, caller)
    return here_or_elsewhere(core, call, caller, lambda: undo_here(core, call, caller))


def undo_here(core: Core, call: Undo, caller: Caller) -> "Future[Undone]":
    """Undo one operation of this machine as a whole."""
    rights = _find_rights(core, call, caller)

    def write(transaction: Transaction) -> Undone:
        namespace = caller.log_place(call.namespace)
        connection, now = transaction.connection, core.clock()
        undone, mine, removed, back, exchanged = history.undo(connection, call.operation, rights, now, namespace)
        # A memory may have been moved out of reach since.
        if not all(caller.can_see(core.store.namespaces.name(row.namespace)) for row in (*removed, *back)):
            raise history.refusal(undone)
        if len(back) >= len(removed):  # the undo makes the database grow
            core.store.check_room()
        core.active.follow(transaction, {turn.namespace for turn in exchanged})
        transaction.after_commit(lambda: _exchange(core, removed, back))
        keys = {turn.key for turn in exchanged}
        ids = sorted({row.id for row in (*removed, *back)} | keys)
        return Undone(undone=undone, operation=mine, ids=ids, turns=len(keys))

    return core.store.write(write, alone=True, over_limit=True)


def _find_rights(core: Core, call: Undo, caller: Caller) -> history.Rights:
    """Return which operations may be undone: with a token only the caller's own.

    If the call names neither an operation nor a reach, only operations in its namespace.
    """
    reached, names = visible_condition(core, call), core.store.namespaces
    is_named = call.operation is not None or call.reach is not None
    place = caller.namespace if is_named else caller.log_place(call.namespace)
    own = history.made_by(caller) if caller.bound else "TRUE"
    skips_inner = call.reach not in ("subtree", "all") and bool(caller.log_place(call.namespace))
    if is_named or not place:
        return history.Rights(reached, own, skips_inner)
    inside = history.touches_only(namespaces.condition(names.reach(place, "subtree")))
    in_place = f"({namespaces.build_inside('o.namespace', place)} OR {inside})"
    return history.Rights(reached, f"({own} AND {in_place})", skips_inner)


def _check_fields(call: Update) -> dict[str, Any]:
    """Return the columns that an update sets, except metadata."""
    values = {
        name: value
        for name in ("content", "type", "summary", "importance", "expires_at", "pinned")
        if (value := getattr(call, name)) is not UNSET
    }
    if not values and call.metadata is UNSET:
        raise Invalid("The update names no field to change.")
    if "content" in values:
        limits.check_content(values["content"])
        values["content_hash"] = limits.content_hash(values["content"])
    if "summary" in values:
        limits.check_text("summary", values["summary"])
    if "type" in values:
        limits.check_word("type", values["type"])
    if "pinned" in values:
        values["pinned"] = int(values["pinned"])
    return values


def _metadata_text(metadata: protocol.Metadata) -> str:
    return limits.metadata_text({key: value for key, value in metadata.items() if value is not None})


def _change(
    core: Core,
    transaction: Transaction,
    call: Update | Tag,
    caller: Caller,
    changed: Any,
    embedded: Embedded,
    near: Sequence[int] = (),
) -> Changed:
    connection = transaction.connection
    row = rows.resolve(connection, call.id, visible_condition(core, call))
    namespace = core.store.namespaces.name(row.namespace)
    history.check_change(connection, caller, row.id, namespace)
    limits.check_editable(row.id, row.tier, row.path)
    fields = {**changed(row), "updated_at": core.clock()}
    if isinstance(call, Update):
        fields |= origins.change(row, fields, call.origin, caller)
    operation = history.begin(connection, method_name(type(call)), caller.log_place(call.namespace), core.clock())
    history.record(connection, operation, row.id, namespace, row)
    rows.change(connection, row.row, fields)
    after = msgspec.structs.replace(row, **fields)
    if embedded is not None and after.text_hash == vectors.text_hash(after.content):
        vectors.put(connection, embedded[0].model, after.text_hash, embedded[1])
    if after.content != row.content:
        edited = NewMemory(content=after.content, type=after.type)
        duplicates.relink(core, connection, row, after, duplicates.New(edited, embedded, near))
    if after.text_hash != row.text_hash or after.type != row.type:
        transaction.after_commit(lambda: core.embedding.refresh([row.row]))
    [memory] = show(core, connection, [after], visible_condition(core, call))
    return Changed(memory=memory, operation=operation)


def _exchange(core: Core, before_rows: list[Row], after_rows: list[Row]) -> None:
    """Update the index after an undo."""
    before = {row.row: (row.namespace, row.type, row.text_hash) for row in before_rows}
    present = {row.row for row in after_rows}
    core.embedding.remove_rows([row.row for row in before_rows if row.row not in present])
    changed = [row.row for row in after_rows if before.get(row.row) != (row.namespace, row.type, row.text_hash)]
    if changed:
        core.embedding.refresh(changed)
