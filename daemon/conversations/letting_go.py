"""What becomes of the turns of a conversation once its facts are known.

Who says no more than facts leaves, so that nothing is remembered twice. Who says nothing lasting fades: in L0 its
importance falls below what is promoted; if it was promoted before anybody had thought about it, it leaves as
well, alone or with its answer. What somebody changed, pinned or gave feedback on stays.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memoryd.daemon.conversations.promoting import TYPE
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.removing import remove
from memoryd.daemon.store import history, rows, turns
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.thoughts import Heard, Key
from memoryd.daemon.store.turns import Skip
from memoryd.daemon.store.writer import Transaction

AS_FACT, NOTHING_LASTING = "kept as a fact", "nothing lasting in it"
FADED = 0.25  # the importance of a turn that was thought about and holds nothing lasting


class Talk:
    """A conversation in the writer's transaction; `begun` gives the operation, which begins with the first change."""

    def __init__(self, core: Core, transaction: Transaction, key: Key, begun: Callable[[], int]) -> None:
        self._core, self._transaction, self._key, self._begun = core, transaction, key, begun

    def let_go(self, covered: Mapping[str, str], faded: Sequence[Heard], there: Sequence[Heard]) -> None:
        """Take out what is `covered` (turn → id of a fact) or has faded; both are among the turns still `there`."""
        connection = self._transaction.connection
        told = {one.key: one for one in there if one.key in covered}
        self._leave(told, covered)
        fading = {one.key for one in faded}
        going = self._promoted(told.keys() | fading, {one.key: one.created_at for one in there})
        self._list([one for one in there if one.key in going and one.key in fading and one.key not in told])
        if going:
            remove(self._core, self._transaction, list({row.id: row for row in going.values()}.values()), self._begun())
        changed = turns.fade(connection, sorted(fading), min(FADED, self._core.config.tiers.promote_from / 2))
        self._core.active.follow(self._transaction, {self._key.namespace} if changed else set())

    def _leave(self, told: Mapping[str, Heard], covered: Mapping[str, str]) -> None:
        """Take turns out of L0 whose facts say all that they said."""
        connection = self._transaction.connection
        active = list(turns.by_keys(connection, sorted(told)).values())
        for turn in active:
            history.record_turn(connection, self._begun(), turn, self._core.store.namespaces.name(turn.namespace))
        turns.remove(connection, active)
        turns.count(connection, self._key.namespace, f"dropped: {AS_FACT}", len(active))
        skips = [
            Skip(
                turn.namespace,
                turn.session,
                turn.role,
                turn.content,
                f"{AS_FACT} ({covered[turn.key][:8]})",
                turn.created_at,
            )
            for turn in active
        ]
        turns.skip(connection, skips, self._core.config.tiers.skipped)
        self._core.active.follow(self._transaction, {turn.namespace for turn in active})

    def _promoted(self, going: set[str], said_at: Mapping[str, float]) -> dict[str, Row]:
        """Return by turn the memories that turns have become and that hold nothing else."""
        found: dict[str, Row] = {}
        for row in rows.by_ids(self._transaction.connection, list(said_at)).values():
            keys = _turns_of(row)
            if not keys or not going.issuperset(keys) or row.namespace != self._key.namespace:
                continue
            if _is_untouched(row, max(said_at[key] for key in keys)):
                found.update(dict.fromkeys(keys, row))
        return found

    def _list(self, gone: Sequence[Heard]) -> None:
        """Tell of turns that were promoted already in the list of skipped ones; history has them whole."""
        session, keep = self._key.session, self._core.config.tiers.skipped
        skips = [
            Skip(self._key.namespace, session, one.role, one.content, NOTHING_LASTING, one.created_at) for one in gone
        ]
        turns.skip(self._transaction.connection, skips, keep)


def _turns_of(row: Row) -> list[str]:
    """Return the turns that a memory was made of, none where it is something else."""
    if row.type != TYPE or row.turns == 0:
        return []
    if row.turns == 1:
        return [row.id]
    metadata: dict[str, Any] = msgspec.json.decode(row.metadata)
    keys = metadata.get("turns", [])
    return keys if len(keys) == row.turns else []


def _is_untouched(row: Row, said_at: float) -> bool:
    return row.updated_at <= said_at and not row.pinned and not row.feedback and row.superseded_by is None
