"""What agents do in the workload; each event has its time (UTC seconds) and the namespace that it happens in."""

from typing import NamedTuple

from memoryd.client.protocol import Add, NewMemory


class Say(NamedTuple):
    """One turn of a conversation, under an id of its own."""

    id: str
    role: str
    text: str


class Talk(NamedTuple):
    """Turns that an agent lets the daemon observe."""

    at: float
    namespace: str
    session: str
    turns: tuple[Say, ...]


class Note(NamedTuple):
    """Something remembered on purpose, under an id of its own."""

    at: float
    namespace: str
    id: str
    text: str
    type: str = "fact"
    source: str = "manual"
    pinned: bool = False
    importance: float = 0.5

    def make_call(self) -> Add:
        """Return the call that remembers it."""
        memory = NewMemory(
            content=self.text,
            type=self.type,
            source=self.source,
            pinned=self.pinned,
            importance=self.importance,
            id=self.id,
        )
        return Add(memory=memory, namespace=self.namespace)


class Ask(NamedTuple):
    """A search for a session; with `repeats` the agent then says again what it found."""

    at: float
    namespace: str
    session: str
    question: str
    repeats: bool = False
    limit: int = 5


class Edit(NamedTuple):
    """New content or a new end for a note; without an id for a memory of a conversation, `which` (0 to 1) of them."""

    at: float
    namespace: str
    id: str | None
    content: str | None = None
    expires_at: float | None = None
    which: float = 0.0


class Forget(NamedTuple):
    """A deletion, chosen as in `Edit`."""

    at: float
    namespace: str
    id: str | None
    which: float = 0.0


class Share(NamedTuple):
    """A memory copied or moved outward, chosen as in `Edit`."""

    at: float
    namespace: str
    id: str | None
    to: str
    move: bool
    which: float = 0.0


class TakeBack(NamedTuple):
    """An undo of the agent's latest edit, deletion or share."""

    at: float
    namespace: str


Event = Talk | Note | Ask | Edit | Forget | Share | TakeBack
