"""Read the operation log: the operations, and the changes that an operation made to memories."""

import os.path
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.protocol import Operation
from memoryd.daemon.store import rows, turns
from memoryd.daemon.store.history import NUMBER, Image, complete, condition_for, decode_image, name_actor, row_of
from memoryd.daemon.store.rows import Row


class OperationQuery(NamedTuple):
    """Which operations to return: at most `limit` after the first `offset`, newest first, that meet all conditions."""

    limit: int
    offset: int = 0
    after: float | None = None
    before: float | None = None
    kinds: tuple[str, ...] = ()
    prefix: str | None = None  # of the operation's id


class OperationStep(NamedTuple):
    """The change of one memory or turn: the row before and after, None if there was none."""

    memory: str
    namespace: str
    before: Row | None
    after: Row | None


_MOST_LOOKED_AT = 1000  # memories of an operation that are read to find the namespace that contains all of them


def find(connection: apsw.Connection, condition: str, query: OperationQuery) -> list[Operation]:
    """Return the latest operations that touched a memory in the namespaces of `condition` (on the alias `m`).

    Only those memories are counted, and the operation is shown with the innermost namespace that contains all of them.
    """
    entries_of = f"FROM history h WHERE h.operation = o.number AND {condition_for(condition, 'h.namespace')}"
    place, count = f"(SELECT json_group_array(DISTINCT h.namespace) {entries_of})", f"(SELECT count(*) {entries_of})"
    if condition == "TRUE":
        place = f"iif(o.memories <= {_MOST_LOOKED_AT}, {place}, json_array(o.namespace))"
        count = "o.memories"
    choice, values = _choose(query)
    entries = connection.execute(
        f"SELECT o.id, o.kind, o.at, {place}, {count}, (SELECT u.id FROM operations u WHERE u.number = o.undone_by),"
        f" {name_actor(condition)} FROM operations o"
        f" WHERE EXISTS (SELECT 1 {entries_of}){choice} ORDER BY o.number DESC LIMIT ? OFFSET ?",
        (*values, query.limit, query.offset),
    )
    every = [Operation(**dict(zip(Operation.__struct_fields__, values, strict=True))) for values in entries]
    for operation in every:
        parts = [name.split("/") for name in msgspec.json.decode(operation.namespace)]
        operation.namespace = "/".join(os.path.commonprefix(parts))  # noqa: RUF071 - of parts, not of letters
    return every


def find_one(connection: apsw.Connection, prefix: str, condition: str) -> Operation:
    """Return the operation whose id begins with `prefix`, among those of `find`; raise like `rows.resolve`."""
    rows.check_prefix(prefix)
    operations = find(connection, condition, OperationQuery(rows.CANDIDATES, prefix=prefix))
    rows.choose_unique(prefix, sorted(one.id for one in operations), "operation")
    return operations[0]


def _choose(query: OperationQuery) -> tuple[str, list[Any]]:
    """Return the conditions on operations as SQL with their values."""
    first, below = (None, None) if query.prefix is None else rows.id_range(query.prefix)
    limits = {"o.id >=": first, "o.id <": below, "o.at >": query.after, "o.at <": query.before}
    parts = [(f" AND {name} ?", value) for name, value in limits.items() if value is not None]
    sql, values = "".join(part for part, _ in parts), [value for _, value in parts]
    if query.kinds:
        sql += f" AND o.kind IN ({', '.join('?' * len(query.kinds))})"
    return sql, [*values, *query.kinds]


def list_steps(
    connection: apsw.Connection, operation: str, condition: str, page: tuple[int, int]
) -> list[OperationStep]:
    """Return what an operation did in the namespaces of `condition`, in order; `page` is (limit, offset)."""
    entries: list[Any] = connection.execute(
        "SELECT h.id, h.memory, h.namespace, h.before, n.id, n.before FROM history h LEFT JOIN history n ON n.id ="
        " (SELECT l.id FROM history l WHERE l.memory = h.memory AND l.id > h.id ORDER BY l.id LIMIT 1)"
        f" WHERE h.operation = {NUMBER} AND {condition_for(condition, 'h.namespace')} ORDER BY h.id LIMIT ? OFFSET ?",
        (operation, *page),
    ).fetchall()
    latest = [memory for _, memory, _, _, later, _ in entries if later is None]
    now = rows.read_ids(connection, latest)
    active = turns.read_keys(connection, [memory for memory in latest if memory not in now])
    now |= {key: turns.to_row(turn) for key, turn in active.items()}
    steps = []
    for number, memory, namespace, before, later, after in entries:
        images = _decode(before), _decode(after)
        if any(image and image.moved for image in images):
            steps.append(OperationStep(memory, namespace, *_read_moved(connection, memory, number)))
        else:
            row_after = now.get(memory) if later is None else row_of(images[1])
            steps.append(OperationStep(memory, namespace, row_of(images[0]), row_after))
    return steps


def _read_moved(connection: apsw.Connection, memory: str, number: int) -> tuple[Row | None, Row | None]:
    """Return a memory before and after a row of its history, if these states follow from later rows."""
    texts = connection.execute("SELECT before FROM history WHERE memory = ? AND id >= ? ORDER BY id", (memory, number))
    present = rows.read_ids(connection, [memory]).get(memory)
    before, after, *_ = [*complete([_decode(text) for (text,) in texts], present), present]
    return before, after


def _decode(text: str | None) -> Image | None:
    return decode_image(text) if text else None
