"""Access: share memories outward, present a token, add, list and revoke tokens."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, Done, Iterated, Listed, Scoped, rpc

Role = Literal["reader", "agent", "lead"]


class SharedMemory(Struct, kw_only=True):
    """What became of one memory: `id` is the one in the namespace shared to, `origin` the one that was named."""

    id: str
    """id of the memory in the namespace shared to"""
    origin: str
    """id of the memory that was shared"""
    outcome: Literal["copied", "moved", "merged"]
    """what happened; `merged`: it was known there"""


class Shared(Listed[SharedMemory], kw_only=True):
    """What was shared, in order, and the operation that `undo` takes back."""

    memories: list[SharedMemory]
    """in the order of the ids"""
    operation: str
    """its id, for `undo`"""
    shared: str = ""
    """the shared root that they are in now, or that they were in, empty for none"""
    waiting: bool = False
    """whether some wait on this machine until that of the root answers"""


class Identity(Struct, kw_only=True):
    """Whom a connection speaks for: a token's name, the namespace that it is bound to, its role."""

    name: str
    """name of the token; empty for the owner"""
    namespace: str
    """what it is bound to; empty for the owner"""
    role: Literal["owner", "lead", "agent", "reader"]
    """what it may do"""


class NewToken(Struct, kw_only=True):
    """A new token: `token` is the secret, which is shown this once and not kept."""

    name: str
    """its name"""
    namespace: str
    """what it is bound to"""
    role: Role
    """what it may do"""
    token: str
    """the secret, shown this once"""


class Token(Struct):
    """A token without its secret."""

    name: str
    """its name"""
    namespace: str
    """what it is bound to"""
    role: Role
    """what it may do"""
    created_at: float
    """when it was made"""
    last_used_at: float | None = None
    """when a call was last made with it, to the minute"""


class TokenList(Iterated[Token], kw_only=True):
    """All tokens, by name."""

    tokens: list[Token]
    """by name"""


@rpc("within", grows=True, page=True)
class Share(Scoped[Shared], kw_only=True, frozen=True):
    """Share memories outward: copy them, or with `move` move them, to a namespace that encloses theirs.

    Into a shared root, and out of one, they always move: saved there, then erased here with their history, or the other
    way round, where the history of the other machine keeps them.

    All or none, one operation. A copy is a memory of its own, linked `shared_from`. What the target already knows is
    merged as `add` does; a memory that was to be moved is then superseded by the one there.
    Feedback goes along with a memory that moves, without the reasons given; a copy begins without any.
    """

    ids: list[str]
    """ids or unique prefixes, at least one"""
    to: str
    """the namespace to share to; the empty text is the root"""
    move: bool = False
    """move them instead of copying them"""
    here: bool = False
    """keep them on this machine, also where the namespace is in a shared root"""


@rpc("anyone", reads=True, lane="inline", page=False)
class Authenticate(Call[Identity], kw_only=True, frozen=True):
    """Bind this connection, from now on, to what a token stands for. After an unknown token it may do nothing more."""

    token: str
    """the secret that `add_token` returned, or the owner's"""


@rpc("owner", reads=True, lane="inline", page=False)
class Confine(Call[Identity], kw_only=True, frozen=True):
    """Bind this connection for good to the token of a name, without its secret, for somebody on another machine.

    It then reaches the token's namespace with what is inside it and nothing around that: calls that name no reach have
    `subtree`, `visible` and `all` are refused. Searches and lists have what was saved, neither turns, nor what was made
    of them, nor parts of files. Only these calls are taken: `search`, `get`, `list`, `namespaces`, `history`, `add`,
    `put`, `update`, `delete`, `undo`. What it saves or changes has the token's name as `author` in its metadata.
    """

    name: str
    """name of the token"""


@rpc("owner", page=False)
class AddToken(Call[NewToken], kw_only=True, frozen=True):
    """Make a token for an agent: whoever presents it is bound to the namespace and the role."""

    name: str
    """what to call it in lists and to revoke it by; up to 64 characters"""
    namespace: str
    """what it is bound to; not the root"""
    role: Role = "agent"
    """`reader` changes nothing; `agent` changes what is in its namespace, whoever wrote it; `lead` also what is shared
    with it"""


@rpc("owner", reads=True, page=True)
class ListTokens(Call[TokenList], kw_only=True, frozen=True):
    """List the tokens, without their secrets."""


@rpc("owner", page=False)
class RevokeToken(Call[Done], kw_only=True, frozen=True):
    """Revoke a token; connections that presented it lose access at once."""

    name: str
    """name of the token"""
