"""Which events one subscriber sees, by its namespace and reach and by the kinds that it asked for."""

from memoryd.client.protocol import Event, EventKind, Subscribe
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.events import Happening
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.changed_rows import RecordedChange, Side
from memoryd.daemon.store.namespaces import check, list_enclosing
from memoryd.daemon.store.tiers import L0


class EventView:
    """Turns happenings into the events of one subscriber."""

    def __init__(self, core: Core, call: Subscribe, caller: Caller) -> None:
        self._place = check(call.namespace)
        self._reach = call.reach or ("visible" if self._place else "all")
        self._enclosing = frozenset(list_enclosing(self._place))
        self._kinds = frozenset(call.kinds)
        self._name = core.store.namespaces.name
        self._tokens, self.caller = core.tokens, caller

    def is_valid(self) -> bool:
        """Return whether the caller may still see events: its token may have been revoked."""
        return not self.caller.key or self._tokens.is_valid(self.caller)

    def event_of(self, happening: Happening) -> Event | None:
        """Return the event that this subscriber receives for a happening, or None."""
        if isinstance(happening, Event):
            wanted = happening.kind in self._kinds if self._kinds else self._reach == "all"
            return happening if wanted and not self.caller.bound else None  # an `Event` is about the whole daemon
        return self._event(happening)

    def _can_see(self, side: Side | None) -> bool:
        if side is None:
            return False
        if self._reach == "all":
            return True
        name = self._name(side.namespace)
        if self._reach == "visible":
            return name in self._enclosing
        inner = not self._place or name.startswith(self._place + "/")
        return name == self._place or (self._reach == "subtree" and inner)

    def _event(self, change: RecordedChange) -> Event | None:
        before = change.before if self._can_see(change.before) else None
        after = change.after if self._can_see(change.after) else None
        kind = "indexed" if after and change.path else kind_of(before, after)
        here = after or before
        if kind is None or here is None or (self._kinds and kind not in self._kinds):
            return None
        return Event(
            kind=kind,
            at=change.at,
            namespace=self._name(here.namespace),
            id=change.id,
            type=here.type,
            tier=here.tier,
            came_from=self._describe_former(before, after),
            by=change.by,
            operation=change.operation,
            text=change.path or here.text,
            count=change.how_many,
        )

    def _describe_former(self, before: Side | None, after: Side | None) -> str:
        """Return the tier, or else the namespace, from which the memory moved; "" if it did not move."""
        if not before or not after:
            return ""
        if before.tier != after.tier:
            return before.tier
        return self._name(before.namespace) if before.namespace != after.namespace else ""


def kind_of(before: Side | None, after: Side | None) -> EventKind | None:
    """Return the kind of event for a change between two states of a memory."""
    if after is None:
        return None if before is None else "dropped" if before.tier == L0 else "deleted"
    if before is None:
        return "observed" if after.tier == L0 else "created"
    if before.tier == after.tier == L0:
        return None
    if before.tier == L0:
        return "promoted"
    return "updated" if (before.tier, before.namespace) == (after.tier, after.namespace) else "moved"
