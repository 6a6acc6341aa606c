"""Sharing, and who may do what: share outward, present a token, add, list and revoke tokens."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, Done, Scoped

Role = Literal["agent", "lead"]


class SharedMemory(Struct, kw_only=True):
    """What became of one memory: `id` is the one in the namespace shared to, `origin` the one that was named."""

    id: str
    origin: str
    outcome: Literal["copied", "moved", "merged"]


class Shared(Struct, kw_only=True):
    """What was shared, in order, and the operation that `undo` takes back."""

    memories: list[SharedMemory]
    operation: int

    def __iter__(self) -> Iterator[SharedMemory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


class Identity(Struct, kw_only=True):
    """Whom a connection speaks for: a token's name, the namespace that it is bound to, its role."""

    name: str
    namespace: str
    role: Literal["owner", "lead", "agent"]


class NewToken(Struct, kw_only=True):
    """A new token: `token` is the secret, which is shown this once and not kept."""

    name: str
    namespace: str
    role: Role
    token: str


class Token(Struct):
    """A token without its secret."""

    name: str
    namespace: str
    role: Role
    created_at: float
    last_used_at: float | None = None


class TokenList(Struct, kw_only=True):
    """All tokens, by name."""

    tokens: list[Token]

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)


class Share(Scoped[Shared], kw_only=True, frozen=True):
    """Share memories outward: copy them, or with `move` move them, to a namespace that encloses theirs.

    All or none, one operation. A copy is a memory of its own, linked `shared_from`. What the target already knows is
    merged as `add` does; a memory that was to be moved is then superseded by the one there.
    """

    ids: list[str]
    to: str
    move: bool = False


class Authenticate(Call[Identity], kw_only=True, frozen=True):
    """Bind this connection to what a token stands for, from now on. After an unknown token it may do nothing more."""

    token: str


class AddToken(Call[NewToken], kw_only=True, frozen=True):
    """Make a token for an agent: whoever presents it is bound to the namespace and the role."""

    name: str
    namespace: str
    role: Role = "agent"


class ListTokens(Call[TokenList], kw_only=True, frozen=True):
    """List the tokens, without their secrets."""


class RevokeToken(Call[Done], kw_only=True, frozen=True):
    """Revoke a token; connections that presented it lose access at once."""

    name: str
