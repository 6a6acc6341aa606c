"""One memory for several machines: roots that are shared through a PostgreSQL server, conflicts, who may read them."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, Done, Iterated, Limit, Redacted, rpc
from memoryd.client.protocol.memories import Memory
from memoryd.client.protocol.statistics import SharedRoot


class RootNamespace(Struct, kw_only=True):
    """A namespace of a root: how many of its memories are shared, or would be, and how many stay on this machine."""

    namespace: str
    """its name"""
    going: int
    """memories that are shared, or would be"""
    staying: int
    """memories that stay: chunks of files, and what comes from conversations unless that is shared as well"""


class RootPlan(Struct, kw_only=True):
    """What sharing a root does, or with `dry_run` would do."""

    root: str
    """the root"""
    server: str
    """where it is shared; never with a password"""
    namespaces: list[RootNamespace]
    """which of its namespaces are shared; others stay on this machine"""
    there: int
    """memories that the server has already, which come to this machine"""
    exists: bool
    """the server has this root"""
    dry_run: bool
    """nothing was changed"""


class Sharing(Iterated[SharedRoot], kw_only=True):
    """The shared roots, and what this machine is called there."""

    machine: str
    """name of this machine on the servers; empty while nothing is shared"""
    roots: list[SharedRoot]
    """by name"""


class SharedConflict(Struct, kw_only=True):
    """A memory that was changed on two machines: the version that was pushed first, and the other one beside it."""

    memory: Memory
    """the version that keeps the id"""
    other: Memory
    """the other one, a memory of its own"""
    machine: str
    """where the other one was written; empty: on this machine"""
    author: str
    """which role wrote it"""


class SharedConflicts(Iterated[SharedConflict], kw_only=True):
    """Conflicts that nobody has resolved."""

    conflicts: list[SharedConflict]
    """by the id of the memory"""


class ResolvedConflict(Struct, kw_only=True):
    """A conflict that is resolved: `removed` are the versions that were deleted."""

    memory: Memory
    """the memory as it is now"""
    removed: list[str]
    """ids of what was deleted"""
    operation: str
    """its id, for `undo`"""
    redacted: Redacted = {}
    """credentials that were taken out of the new text, by kind"""


class PurgedMemories(Struct, kw_only=True):
    """Memories that are erased here, and everywhere once each machine has read it."""

    ids: list[str]
    """what was erased, other versions included"""
    waiting: bool
    """the server does not know of it yet"""
    copies: list[str]
    """who may still hold the text, for a person to look after"""


class MigratedServer(Struct, kw_only=True):
    """The tables of a server: their version before and after, and what kind of server it is."""

    before: int
    """version before; 0: there were none"""
    after: int
    """version now"""
    dialect: str
    """what kind of server it is"""
    tested: bool
    """whether memoryd's tests run on this kind"""
    vectors: bool = False
    """whether it has pgvector, so that machines can search what they do not hold"""


@rpc("owner", grows=True, lane="bulk", page=False)
class ShareRoot(Call[RootPlan], kw_only=True, frozen=True):
    """Share a root, or more of its namespaces, through a PostgreSQL server. With `dry_run` show what that would do.

    Chunks of files never leave this machine. Turns, and what was drawn from conversations, leave only with
    `conversations`, or one by one when they are shared by name with `share`.
    """

    root: str
    """a first-level namespace, like acme"""
    server: str = ""
    """address without a password, like `host=db.example dbname=team user=ann`; empty: of `[shared.ROOT]`"""
    passfile: str = ""
    """file with the password, in PostgreSQL's format; empty: of `[shared.ROOT]`, else ~/.pgpass or PGPASSWORD"""
    namespaces: list[str] | None = None
    """which namespaces of it are shared; null: all that exist now"""
    conversations: bool = False
    """share turns, and what was drawn from them, as well"""
    dry_run: bool = False
    """change nothing"""


@rpc("owner", reads=True, page=True)
class GetSharing(Call[Sharing], kw_only=True, frozen=True, tag="sharing"):
    """Return the shared roots, how their exchange is, and what waits."""


@rpc("owner", reads=True, page=True)
class ListConflicts(Call[SharedConflicts], kw_only=True, frozen=True, tag="shared_conflicts"):
    """List memories that were changed on two machines, with both versions."""

    limit: Limit = 100
    """how many at most"""


@rpc("owner", grows=True, page=True)
class ResolveConflict(Call[ResolvedConflict], kw_only=True, frozen=True):
    """Keep one version of a memory that was changed on two machines, or a new text; the others are deleted."""

    id: str
    """the version to keep: its id or a unique prefix"""
    content: str = ""
    """a text in place of all versions; empty: the text of this one"""
    both: bool = False
    """keep all of them, as memories of their own"""
    allow_secrets: bool = False
    """store the new text as it is, credentials included"""


@rpc("owner", lane="bulk", page=False)
class PurgeShared(Call[PurgedMemories], kw_only=True, frozen=True):
    """Erase shared memories with their history, here and on every machine that shares them. It cannot be undone."""

    ids: list[str]
    """ids or unique prefixes, at least one"""


@rpc("owner", lane="bulk", page=False)
class GrantRoot(Call[Done], kw_only=True, frozen=True):
    """Let a login role of the server read a root, write it, or do neither. Only the owner of the tables can."""

    root: str
    """the root, which is made on the server if it is new"""
    role: str
    """a login role of the server"""
    access: Literal["read", "write", "none"] = "write"
    """what it may do from now on"""
    server: str = ""
    """address of the owner's role; empty: that of the shared root"""
    passfile: str = ""
    """file with its password; empty: that of the shared root"""


@rpc("owner", lane="bulk", page=False)
class MigrateServer(Call[MigratedServer], kw_only=True, frozen=True):
    """Make memoryd's tables on a server, or bring them to this version. Only their owner can."""

    root: str = ""
    """the shared root whose server is meant"""
    server: str = ""
    """address of the owner's role; empty: that of the shared root"""
    passfile: str = ""
    """file with its password; empty: that of the shared root"""


@rpc("owner", grows=True, lane="bulk", page=False)
class UnshareRoot(Call[Done], kw_only=True, frozen=True):
    """Stop sharing a root. The server and other machines keep what they have."""

    root: str
    """the root"""
    drop: bool = False
    """delete its shared memories on this machine; otherwise they stay, as memories of this machine alone"""
    force: bool = False
    """also when changes of this machine were not pushed yet"""
