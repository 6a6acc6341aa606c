"""The operation log: each change is an operation that stores the former rows, so that it can be shown and undone.

For each memory that an operation touches, the row before it is recorded (NULL if there was none). The row after it is
the `before` of the next record of that memory, or the present row. Records are in the order of changes, which may
differ from that of operations, since a job's run is one operation and others may write meanwhile. Undo restores the
former rows and is itself an operation, so it can be undone. Of a move between tiers only the former tier is stored.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.errors import Conflict, Forbidden, NotFound
from memoryd.daemon.store import extraction, links, namespaces, rows, turns, vectors
from memoryd.daemon.store.actor import PRESENT, Actor
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.links import StoredLink
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.turns import StoredTurn

ERASE = "erase"  # kind of an operation that cannot be undone
FEEDBACK = "feedback"  # kind of an operation that changes only votes
_ADDS = ("add", "add_many")
_DELETED = (
    "SELECT h.memory, h.before FROM history h JOIN operations o ON o.number = h.operation"
    " WHERE o.kind IN ('delete', 'job:expire') AND o.undone_by IS NULL AND h.before IS NOT NULL"
    " AND h.memory NOT IN (SELECT id FROM memories) ORDER BY h.id DESC LIMIT 1000"
)
JOB = "job:"  # prefix of the kind of a background job's operation
NUMBER = "(SELECT number FROM operations WHERE id = ?)"  # other tables refer to operations by number


class Moved(msgspec.Struct):
    """The tier of a memory before a move; its other fields are those of the next state."""

    namespace: int
    type: str
    tier: str


class Image(msgspec.Struct, omit_defaults=True):
    """A former state: a memory's row and links, only its tier (`moved`), or a turn of L0."""

    row: Row | None = None
    links: list[StoredLink] = []
    turn: StoredTurn | None = None
    moved: Moved | None = None


class Rights(NamedTuple):
    """What an undo may touch: namespaces, as an SQL condition on `m.namespace`, and operations, as one on `o`.

    `skips_inner`: there may be namespaces inside the caller's that are out of reach.
    """

    reached: str
    allowed: str = "TRUE"
    skips_inner: bool = False


_encode = msgspec.json.Encoder().encode
decode_image = msgspec.json.Decoder(Image).decode


def begin(connection: apsw.Connection, kind: str, namespace: str, now: float) -> str:
    """Start an operation of the present actor; its id is random, so that it does not reveal how much others write."""
    id = secrets.token_hex(16)
    sql = "INSERT INTO operations (id, kind, at, namespace, token, session, process) VALUES (?, ?, ?, ?, ?, ?, ?)"
    connection.execute(sql, (id, kind, now, namespace, *PRESENT.get()))
    return id


def find_undo(connection: apsw.Connection, operation: str) -> str | None:
    """Return the operation that undid this one, None if it is in effect."""
    sql = "SELECT u.id FROM operations o JOIN operations u ON u.number = o.undone_by WHERE o.id = ?"
    id = connection.execute(sql, (operation,)).get
    return id if isinstance(id, str) else None


def record(connection: apsw.Connection, operation: str, memory: str, namespace: str, before: Row | None) -> None:
    """Record a memory's state before the operation changes it; later calls for the same operation are ignored."""
    image = Image(before, links.read_links(connection, memory)) if before else None
    _keep(connection, operation, memory, namespace, before.text_hash if before else None, image)


def record_move(connection: apsw.Connection, operation: str, namespace: str, before: Row) -> None:
    """Record the tier of a memory before the operation moves it."""
    image = Image(moved=Moved(before.namespace, before.type, before.tier))
    _keep(connection, operation, before.id, namespace, None, image)


def record_turn(connection: apsw.Connection, operation: str, turn: StoredTurn, namespace: str) -> None:
    """Record a turn of L0 before the operation removes it; undo restores it to its place."""
    _keep(connection, operation, turn.key, namespace, vectors.text_hash(turn.content), Image(turn=turn))


def _keep(
    connection: apsw.Connection, operation: str, memory: str, namespace: str, key: bytes | None, image: Image | None
) -> None:
    columns = "operation, memory, namespace, text_hash, before"
    sql = f"INSERT OR IGNORE INTO history ({columns}) VALUES ({NUMBER}, ?, ?, ?, ?)"
    connection.execute(sql, (operation, memory, namespace, key, None if image is None else _encode(image).decode()))
    connection.execute("UPDATE operations SET memories = memories + changes() WHERE id = ?", (operation,))


def name_actor(condition: str) -> str:
    """Return the columns for the actor of an operation `o`, empty if the operation is out of reach."""
    reached = condition_for(condition, "o.namespace")
    return ", ".join(f"iif({reached}, o.{column}, '')" for column in Actor._fields)


def kind_of(connection: apsw.Connection, operation: str) -> str | None:
    """Return the kind of an operation, None if it does not exist."""
    kind: Any = connection.execute("SELECT kind FROM operations WHERE id = ?", (operation,)).get
    return None if kind is None else str(kind)


def count(connection: apsw.Connection, condition: str | None = None) -> int:
    """Return how many operations touched memories within `condition`, or (None) how many there are."""
    sql = "SELECT count(*) FROM operations"
    if condition is not None:
        sql = f"SELECT count(DISTINCT h.operation) FROM history h WHERE {condition_for(condition, 'h.namespace')}"
    return int(connection.execute(sql).get)


class FormerState(NamedTuple):
    """A memory's row before an operation (None: it did not exist), and the operation with its actor."""

    operation: str
    kind: str
    at: float
    row: Row | None
    actor: Actor


def read_states(connection: apsw.Connection, memory: str, condition: str) -> list[FormerState]:
    """Return the states of a memory before each of its changes, oldest first."""
    entries: Any = connection.execute(
        f"SELECT o.id, o.kind, o.at, h.before, {name_actor(condition)} FROM history h"
        " JOIN operations o ON o.number = h.operation WHERE h.memory = ? ORDER BY h.id",
        (memory,),
    )
    states = [
        (FormerState(id, kind, at, None, Actor(*who)), decode_image(before) if before else None)
        for id, kind, at, before, *who in entries
    ]
    rows_then = complete([image for _, image in states], read_present(connection, memory))
    return [state._replace(row=row) for (state, _), row in zip(states, rows_then, strict=True)]


def complete(images: Sequence[Image | None], present: Row | None) -> list[Row | None]:
    """Return the rows of consecutive images of a memory, completing moves from later states; `present` is the last."""
    states: list[Row | None] = []
    after = present
    for image in reversed(images):
        former = row_of(image)
        after = put_back(after, image.moved) if image and image.moved else former
        states.append(after)
    return states[::-1]


def row_of(image: Image | None) -> Row | None:
    """Return the row of an image; a turn as the memory that it would be."""
    if image is None:
        return None
    return turns.to_row(image.turn) if image.turn else image.row


def read_present(connection: apsw.Connection, memory: str) -> Row | None:
    """Return a memory, or a turn in L0 as the memory that it would be; None if neither exists."""
    found = rows.read_ids(connection, [memory]) or turns.read_keys(connection, [memory])
    record = found.get(memory)
    return turns.to_row(record) if isinstance(record, StoredTurn) else record


def put_back(after: Row | None, moved: Moved) -> Row | None:
    """Return a row as it was before a move."""
    return msgspec.structs.replace(after, tier=moved.tier) if after else None


def find_deletions(connection: apsw.Connection, ids: Iterable[str]) -> dict[str, float]:
    """Return by id when missing memories or turns were deleted by a caller, here or elsewhere, as far as the history
    goes back."""
    sql = (
        "SELECT o.kind, o.at FROM history h JOIN operations o ON o.number = h.operation"
        " WHERE h.memory = ? ORDER BY h.id DESC LIMIT 1"
    )
    found: Any = {id: connection.execute(sql, (id,)).fetchone() for id in ids}
    return {id: last[1] for id, last in found.items() if last and last[0] in ("delete", "redo", "import")}


def find_deleted(connection: apsw.Connection, words: str, reached: frozenset[int] | None) -> str | None:
    """Return the id of the last deleted memory with all the words, None if there is none in the history."""
    wanted = words.casefold().split()
    entries: Any = connection.execute(_DELETED)
    for memory, before in entries:
        row = row_of(decode_image(before))
        if row and (reached is None or row.namespace in reached):
            text = row.content.casefold()
            if all(word in text for word in wanted):
                return str(memory)
    return None


def find_changes(connection: apsw.Connection, ids: Iterable[str]) -> dict[str, float]:
    """Return by id when memories were last replaced, changed or deleted by a caller, as far as the history goes."""
    found: Any = connection.execute(
        "SELECT memory, max(at) FROM ("
        "SELECT h.memory, o.at FROM history h JOIN operations o ON o.number = h.operation"
        " WHERE h.memory IN (SELECT value FROM json_each(?1)) AND h.before IS NOT NULL AND o.undone_by IS NULL"
        " AND o.kind IN ('put', 'update', 'delete')"
        " UNION ALL SELECT m.id, n.created_at FROM memories m JOIN memories n ON n.id = m.superseded_by"
        " WHERE m.id IN (SELECT value FROM json_each(?1))) GROUP BY memory",
        (msgspec.json.encode(list(ids)).decode(),),
    )
    return dict(found)


def resolve_known(connection: apsw.Connection, prefix: str, condition: str) -> str:
    """Return the id that begins with `prefix`, of a present or deleted memory; raise like `rows.resolve`."""
    rows.check_prefix(prefix)
    sql = (
        "SELECT h.memory FROM history h"
        f" WHERE h.memory >= ?1 AND h.memory < ?2 AND {condition_for(condition, 'h.namespace')}"
        # Imported memories have no history.
        f" UNION SELECT m.id FROM memories m WHERE m.id >= ?1 AND m.id < ?2 AND {rows.near_id(condition)}"
        f" UNION SELECT m.key FROM turns m WHERE m.key >= ?1 AND m.key < ?2 AND {rows.near_id(condition)}"
        f" ORDER BY 1 LIMIT {rows.CANDIDATES}"
    )
    return rows.choose_unique(prefix, [str(memory) for (memory,) in connection.execute(sql, rows.id_range(prefix))])


def find_row(connection: apsw.Connection, prefix: str, reached: frozenset[int] | None, *, tells_gone: bool) -> Row:
    """Return the memory or turn within reach whose id begins with `prefix`, like `turns.resolve_row`.

    With `tells_gone` the error for a deleted memory names the operation that deleted it.
    """
    condition = namespaces.condition(reached)
    try:
        return turns.resolve_row(connection, prefix, condition)
    except NotFound:
        if not tells_gone:
            raise
        states: list[FormerState] = []
        with suppress(NotFound):
            known = resolve_known(connection, prefix, condition)
            states = read_states(connection, known, condition)
        last = states[-1].row if states else None
        if last is None or not (reached is None or last.namespace in reached):
            raise
        operation, kind = states[-1].operation[:8], states[-1].kind
        message = (
            f"{known[:8]} is gone since operation {operation} ({kind}); `memctl undo {operation}` takes that back."
        )
        raise NotFound(message, {"id": prefix, "operation": states[-1].operation}) from None


def undo(
    connection: apsw.Connection, prefix: str | None, rights: Rights, now: float, namespace: str
) -> tuple[str, str, list[Row], list[Row], list[StoredTurn]]:
    """Restore the state before an operation (None: the caller's latest one that is in effect and is no undo).

    Return its id, the id of the undo, the rows before the undo, the restored rows, and the turns that were removed from
    L0 or restored. Raise like `rows.resolve`, `Forbidden`, or `Conflict` if a memory was changed again since.
    """
    id, kind = _find_undoable(connection, prefix, rights)
    rated = _check_unchanged_since(connection, id, kind, rights)
    sql = f"SELECT memory, namespace, before FROM history WHERE operation = {NUMBER} ORDER BY id"
    images: list[Any] = connection.execute(sql, (id,)).fetchall()
    mine = begin(connection, "redo" if kind == "undo" else "undo", namespace, now)
    # If this operation is an undo, the operation that it undid is in effect again.
    connection.execute(f"UPDATE operations SET undone_by = NULL WHERE undone_by = {NUMBER}", (id,))
    present = rows.read_ids(connection, [memory for memory, _, _ in images])
    active = turns.read_keys(connection, [memory for memory, _, _ in images])
    decoded = {memory: decode_image(before) for memory, _, before in images if before}
    for memory, place, _ in images:
        _record_present(connection, mine, place, (memory, active.get(memory), present.get(memory)), decoded.get(memory))
    former = {memory: image for memory, image in decoded.items() if image.row}
    moved = [put_back(present.get(memory), image.moved) for memory, image in decoded.items() if image.moved]
    back = [row for row in [*(image.row for image in former.values()), *moved] if row]
    back = [
        msgspec.structs.replace(row, feedback=present[row.id].feedback) if row.id in rated & present.keys() else row
        for row in back
    ]
    _check_keys(connection, back, present)
    rows.replace(connection, list(present.values()), back)
    coming = [image.turn for image in decoded.values() if image.turn]
    turns.exchange(connection, active.values(), coming)
    extraction.queue(connection, [turn.key for turn in coming], "embed")
    _restore_links(connection, former)
    connection.execute(f"UPDATE operations SET undone_by = {NUMBER} WHERE id = ?", (mine, id))
    return id, mine, list(present.values()), back, [*active.values(), *coming]


def _record_present(
    connection: apsw.Connection,
    operation: str,
    namespace: str,
    present: tuple[str, StoredTurn | None, Row | None],
    before: Image | None,
) -> None:
    """Record the present state (id, turn, row) of a memory before the undo replaces it."""
    memory, turn, row = present
    if turn:
        record_turn(connection, operation, turn, namespace)
    elif row and before and before.moved:
        record_move(connection, operation, namespace, row)
    else:
        record(connection, operation, memory, namespace, row)


def _check_keys(connection: apsw.Connection, back: Iterable[Row], present: Mapping[str, Row]) -> None:
    """Raise `Conflict` if another memory has taken the key of a restored one."""
    for row in back:
        other = rows.read_key(connection, row.namespace, row.key) if row.key is not None else None
        if other is not None and other.id not in present:
            raise Conflict(f"The key {str(row.key)[:80]!r} belongs to memory {other.id[:8]} now.", {"id": other.id})


def _find_undoable(connection: apsw.Connection, prefix: str | None, rights: Rights) -> tuple[str, str]:
    """Return the id and kind of the operation to undo."""
    undone = "(SELECT u.id FROM operations u WHERE u.number = o.undone_by)"
    sql = (
        f"SELECT o.id, o.kind, {rights.allowed}, {undone} FROM operations o"
        f" WHERE EXISTS (SELECT 1 FROM history h WHERE h.operation = o.number) AND {touches_only(rights.reached)}"
    )
    if prefix is None:
        others = f"o.kind NOT IN ('undo', 'redo', '{ERASE}') AND o.kind NOT GLOB '{JOB}*'"
        sql += f" AND {rights.allowed} AND o.undone_by IS NULL AND {others} ORDER BY o.number DESC LIMIT 1"
        entries: Any = connection.execute(sql).fetchall()
        if not entries:
            inner = 'For what was done inside it, take `reach="subtree"`. '
            elsewhere = "`memctl undo ID` undoes what was done elsewhere; `memctl history` shows the ids."
            raise NotFound(f"There is nothing to undo here. {inner if rights.skips_inner else ''}{elsewhere}")
        _check_nothing_erased_since(connection, entries[0][0], f"{rights.allowed} AND {touches_only(rights.reached)}")
    else:
        rows.check_prefix(prefix)
        sql += f" AND o.id >= ? AND o.id < ? ORDER BY o.id LIMIT {rows.CANDIDATES}"
        entries = connection.execute(sql, rows.id_range(prefix)).fetchall()
        rows.choose_unique(prefix, [id for id, *_ in entries], "operation")
    id, kind, is_allowed, undone_by = entries[0]
    if not is_allowed:
        raise refusal(id)
    if kind == ERASE:
        raise Conflict(f"What operation {id[:8]} erased was erased for good.", {"operation": id})
    if kind == "redo":
        reason = f"Operation {id[:8]} did an undone operation again; undo that operation itself."
        raise Conflict(reason, {"operation": id})
    if undone_by is not None:
        reason = f"Operation {id[:8]} was undone by operation {undone_by[:8]}; undo that one to do it again."
        raise Conflict(reason, {"operation": id, "operations": [undone_by]})
    return id, kind


def _check_nothing_erased_since(connection: apsw.Connection, operation: str, condition: str) -> None:
    """Raise `Conflict` if something was erased after the operation, since the caller may want to undo that."""
    erased: Any = connection.execute(
        f"SELECT o.id FROM operations o WHERE o.kind = '{ERASE}' AND o.number > {NUMBER}"
        " AND o.token || o.session || o.process <> ''"  # not by a restore, which repeats earlier erasures
        " AND EXISTS (SELECT 1 FROM history h WHERE h.operation = o.number)"
        f" AND {condition} ORDER BY o.number DESC LIMIT 1",
        (operation,),
    ).get
    if erased is not None:
        raise Conflict(
            f"The latest operation, {erased[:8]}, erased for good and cannot be undone."
            " To undo an earlier one, name it: `memctl history` lists them.",
            {"operation": erased},
        )


def _check_unchanged_since(connection: apsw.Connection, operation: str, kind: str, rights: Rights) -> set[str]:
    """Raise `Conflict` if a memory of an operation was changed since; return the memories that were only rated."""
    later: Any = connection.execute(
        f"SELECT DISTINCT o.number, o.id, o.kind, {rights.allowed}, h.memory FROM history h"
        " JOIN history l ON l.memory = h.memory AND l.id > h.id JOIN operations o ON o.number = l.operation"
        # A later operation that was undone since does not count.
        f" WHERE h.operation = {NUMBER} AND o.undone_by IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM operations u JOIN history w ON w.operation = u.number AND w.memory = h.memory"
        "   WHERE u.undone_by = o.number AND w.id > h.id)"
        " ORDER BY 1",
        (operation,),
    ).fetchall()
    # The undo of a vote conflicts with later votes.
    keeps_votes = kind not in (FEEDBACK, "undo")
    changes = {id: (kind, allowed) for _, id, kind, allowed, _ in later if not (keeps_votes and kind == FEEDBACK)}
    if changes:
        names = ", ".join(id[:8] for id in changes)
        if all(kind in _ADDS for kind, _ in changes.values()):
            reason = f"What operation {operation[:8]} added was added again by {names} and stays"
        else:
            reason = f"Memories of operation {operation[:8]} were changed again by {names}"
        is_free = all(allowed for _, allowed in changes.values())
        advice = "; undo those first." if is_free else ", which is not all yours to undo."
        raise Conflict(reason + advice, {"operation": operation, "operations": list(changes)})
    return {memory for *_, memory in later}


def _restore_links(connection: apsw.Connection, former: dict[str, Image]) -> None:
    """Restore links as far as both ends exist; `former` is in the order of recording.

    For a link between two of these memories the first image decides: the operation may have added the link later.
    """
    links.remove(connection, former)
    before: set[str] = set()
    for id, image in former.items():
        links.restore(connection, [link for link in image.links if before.isdisjoint(link[:2])])
        before.add(id)


def refusal(operation: str) -> Forbidden:
    """Return the error for an undo of an operation that is not the caller's."""
    return Forbidden(f"Operation {operation[:8]} is not yours to undo.", {"operation": operation})


def made_by(caller: Caller) -> str:
    """Return the condition that a caller's token made an operation `o`, not an earlier token of the same name."""
    if not caller.name:  # operations of the daemon and of callers without a token have no name
        return "FALSE"
    return f"(o.token = {apsw.format_sql_value(caller.name)} AND o.at >= {apsw.format_sql_value(caller.since)})"


def check_change(connection: apsw.Connection, caller: Caller, memory: str, namespace: str) -> None:
    """Raise `Forbidden` unless the caller may change the memory's namespace, or alone has added and changed it."""
    if caller.may_change(namespace) or (caller.may_add(namespace) and _is_work_of(connection, caller, memory)):
        return
    where = namespace or "the root"
    raise Forbidden(
        f"Memory {memory[:8]} is shared ({where}): with this token only what is in {caller.namespace} may be changed, "
        f"and in {where} what it added itself and nobody else changed; a token with the role lead changes the rest.",
        {"id": memory},
    )


def _is_work_of(connection: apsw.Connection, caller: Caller, memory: str) -> bool:
    """Return whether a caller added a memory and nobody else changed it; repetitions do not count as changes."""
    states = read_states(connection, memory, "TRUE")  # empty for a chunk of a file
    rows_after = [*(state.row for state in states[1:]), read_present(connection, memory)]
    added = False
    for state, after in zip(states, rows_after, strict=False):
        is_own = caller.name != "" and state.actor.token == caller.name and state.at >= caller.since
        added |= is_own and state.row is None
        if not is_own and not state.kind.startswith(JOB) and _without_use(state.row) != _without_use(after):
            return False
    return added


def _without_use(row: Row | None) -> Row | None:
    """Return a row without the fields that use, votes and repetitions change."""
    if row is None:
        return None
    return msgspec.structs.replace(
        row, row=0, tier="", updated_at=0, last_accessed_at=None, access_count=0, expires_at=None, feedback=""
    )


def touches_only(condition: str) -> str:
    """Return the condition that an operation `o` touched only memories within a condition."""
    if condition == "TRUE":
        return condition
    outside = f"h.operation = o.number AND NOT ({condition_for(condition, 'h.namespace')})"
    return f"NOT EXISTS (SELECT 1 FROM history h WHERE {outside})"


def condition_for(condition: str, column: str) -> str:
    """Translate a condition on `m.namespace` (numbers) into one on a column of names."""
    if condition == "TRUE":
        return condition
    return f"{column} IN (SELECT name FROM namespaces m_names WHERE {condition.replace('m.namespace', 'm_names.id')})"
