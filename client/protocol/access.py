"""Access: share memories outward, present a token, add, list and revoke tokens."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, Done, Iterated, Listed, Scoped, rpc

Role = Literal["reader", "agent", "lead"]


class SharedMemory(Struct, kw_only=True):
    """The outcome for one memory: `origin` is the memory that was shared, `id` the one in the target namespace."""

    id: str
    """id of the memory in the target namespace"""
    origin: str
    """id of the memory that was shared"""
    outcome: Literal["copied", "moved", "merged"]
    """what happened; `merged`: the target already had it"""


class Shared(Listed[SharedMemory], kw_only=True):
    """What was shared, in order, and the operation that `undo` takes back."""

    memories: list[SharedMemory]
    """in the order of the ids"""
    operation: str
    """its id, for `undo`"""
    shared: str = ""
    """name of the shared root that they moved into or out of; empty: none"""
    waiting: bool = False
    """some of them wait on this machine until the root's machine answers"""


class Identity(Struct, kw_only=True):
    """Whom a connection speaks for: a token's name, the namespace that it is bound to, its role."""

    name: str
    """name of the token; empty for the owner"""
    namespace: str
    """the namespace that it is bound to; empty for the owner"""
    role: Literal["owner", "lead", "agent", "reader"]
    """what it may do"""


class NewToken(Struct, kw_only=True):
    """A new token: `token` is the secret, which is returned only here and not stored."""

    name: str
    """its name"""
    namespace: str
    """what it is bound to"""
    role: Role
    """what it may do"""
    token: str
    """the secret, returned only here"""


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

    All or none are shared, as one operation. A copy is a memory of its own with the link `shared_from`. What the target
    already has is merged as `add` does; a memory that was to be moved is then superseded by the one there. A memory
    that moves keeps its feedback, without the reasons given; a copy begins without feedback.

    Into or out of a shared root memories always move. On the way in they are saved there, then erased here with their
    history. On the way out they are saved here, then deleted there, where the history still has them.
    """

    ids: list[str]
    """ids or unique prefixes, at least one"""
    to: str
    """the namespace to share to; the empty text is the root"""
    move: bool = False
    """move them instead of copying them"""
    here: bool = False
    """keep them on this machine, even if the namespace is in a shared root"""


@rpc("anyone", reads=True, lane="inline", page=False)
class Authenticate(Call[Identity], kw_only=True, frozen=True):
    """Bind this connection to the namespace and role of a token. After an unknown token all its calls are refused."""

    token: str
    """the secret that `add_token` returned, or the owner's"""


@rpc("owner", reads=True, lane="inline", page=False)
class Confine(Call[Identity], kw_only=True, frozen=True):
    """Bind this connection for good to a token, given by its name instead of its secret, for another machine's user.

    The connection then reaches the token's namespace and those inside it, but no enclosing one: the reach is `subtree`
    by default, `visible` and `all` are refused. Searches and lists return saved memories alone: no turns, nothing made
    of turns, no parts of files. Only these calls are permitted: `search`, `get`, `list`, `namespaces`, `history`,
    `add`, `put`, `update`, `delete`, `undo`. A memory that is saved or changed over it gets the token's name as
    `author` in its metadata.
    """

    name: str
    """name of the token"""


@rpc("owner", page=False)
class AddToken(Call[NewToken], kw_only=True, frozen=True):
    """Make a token for an agent: a connection that presents it is bound to the namespace and the role."""

    name: str
    """its name in lists and for `revoke_token`; up to 64 characters"""
    namespace: str
    """what it is bound to; not the root"""
    role: Role = "agent"
    """`reader` changes nothing; `agent` changes memories in its namespace, whoever wrote them; `lead` also those of
    enclosing namespaces"""


@rpc("owner", reads=True, page=True)
class ListTokens(Call[TokenList], kw_only=True, frozen=True):
    """List the tokens, without their secrets."""


@rpc("owner", page=False)
class RevokeToken(Call[Done], kw_only=True, frozen=True):
    """Revoke a token; connections that presented it lose access at once."""

    name: str
    """name of the token"""
