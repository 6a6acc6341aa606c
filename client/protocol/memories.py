"""Memories: add, read, change, confirm and delete them."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from memoryd.client.protocol.base import (
    MAX_INTEGER,
    Filtered,
    Fraction,
    Limit,
    LineNumber,
    Listed,
    MemoryOrigin,
    Metadata,
    Redacted,
    Scoped,
    Seconds,
    Sort,
    Tier,
    rpc,
)


class Vote(Struct, kw_only=True):
    """The feedback of one caller (a token or a namespace) on a memory."""

    by: str
    """`token NAME`, or the namespace of a caller without a token"""
    useful: bool | None = None
    """whether it found the memory useful; null: it only cited the memory"""
    note: str = ""
    """why"""
    at: float
    """when it last gave feedback or cited the memory"""
    cited: list[str] = []
    """digests of its sessions that cited the memory; two of them count"""


class Usefulness(Struct, kw_only=True):
    """The sum of all feedback on a memory."""

    factor: float
    """by which its score is multiplied, 0.85 to 1.15"""
    useful: int = 0
    """callers that found it useful"""
    useless: int = 0
    """callers that did not find it useful"""
    cited: int = 0
    """sessions that cited it, at most two of each caller"""
    notes: list[str] = []
    """the latest reasons that were given; returned by `get` alone"""


class LaterStatement(Struct, kw_only=True):
    """A later turn or memory that seems to change a memory."""

    id: str
    """id of the later turn or memory"""
    at: float
    """when it was said or saved"""
    role: str = ""
    """who said the turn: `user` or `assistant`; of a memory its origin, empty for the person's"""
    text: str
    """the sentence that reports the change, shortened to 200 characters"""
    likely: bool = True
    """false: the change is only possible"""


class Memory(Struct, kw_only=True):
    """One remembered item."""

    id: str
    """32 hex digits"""
    namespace: str
    """the namespace that it is in"""
    type: str
    """a word such as `fact`, `decision`, `turn`"""
    content: str
    """the text"""
    content_bytes: int | None = None
    """length of the whole text if `content` is shortened, with a mark at its end; `get` returns the whole"""
    summary: str = ""
    """a shorter text; empty: none"""
    metadata: Metadata = {}
    """a JSON object"""
    importance: float = 0.5
    """0 to 1"""
    source: str = "manual"
    """how it was stored, such as `manual` or `conversation`"""
    origin: MemoryOrigin = "import"
    """whose words the text is"""
    confirmed_at: float | None = None
    """when the person confirmed the text; null: never, or somebody else has changed it since"""
    tier: Tier = "L1"
    """the tier that it is in"""
    created_at: float
    """when it was created or said"""
    updated_at: float
    """when it was last changed"""
    last_accessed_at: float | None = None
    """when it was last among the relevant hits or read by id"""
    access_count: int = 0
    """how often it was among the relevant hits or read by id"""
    expires_at: float | None = None
    """when it expires and is not found any more; null: never"""
    pinned: bool = False
    """it never decays and never expires"""
    superseded_by: str | None = None
    """id of the memory that replaces it in results; null: none, or that one was deleted or has expired"""
    path: str | None = None
    """the file that it is from"""
    start_line: int | None = None
    """its first line in the file"""
    end_line: int | None = None
    """its last line in the file"""
    contradicts: list[str] = []
    """ids of memories that disagree with it"""
    contradicts_texts: list[str] = []
    """the first 200 characters of each of these memories"""
    later: LaterStatement | None = None
    """the newest later statement that seems to change it, until somebody settles which holds; null: none"""
    links: list[str] = []
    """files that this part of a file links to, as paths or `name (not found)`; returned by `get` alone"""
    linked_from: list[str] = []
    """files that link to the file that it is from; returned by `get` alone"""
    key: str | None = None
    """its key, unique in its namespace"""
    searchable: bool = True
    """false: it is found by its key and in lists, not by searches"""
    ttl_s: float | None = None
    """how many seconds it lives after it was put, or read with `renew`"""
    vector: list[float] | None = None
    """its vector, with `include_vectors` and once it is computed"""
    usefulness: Usefulness | None = None
    """the sum of all feedback; null: there is none"""
    shared: str = ""
    """name of the shared root that holds it on another machine; empty: it is on this one"""


class Page(Listed[Memory], kw_only=True):
    """Memories in the order asked for, and how many match in all."""

    memories: list[Memory]
    """in the order asked for"""
    total: int
    """how many match in all"""
    degraded: list[str] = []
    """`shared:NAME` for each shared root that did not answer in time, `unreadable:NAME` if a row of it was left out"""

    def __getitem__(self, index: int) -> Memory:
        return self.memories[index]


class Added(Struct, kw_only=True):
    """Outcome of `add`: the memory is on disk and searchable."""

    id: str
    """id of the new memory or of the one it was merged into"""
    outcome: Literal["created", "merged"]
    """what happened"""
    embedded: bool
    """false: its vector waits in the queue; searches by words find it already"""
    similarity: float | None = None
    """cosine with the nearest memory above the threshold"""
    contradicts: list[str] = []
    """ids of memories that disagree with it"""
    contradicts_texts: list[str] = []
    """what each of these says: its first 200 characters"""
    operation: str
    """id of the operation, for `undo`"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""
    namespace: str | None = None
    """the namespace that it is in; null from older daemons"""
    nearest: str | None = None
    """id of the nearest saved memory of the same namespace, type and subject, which the new one may replace"""
    nearest_text: str = ""
    """the first 200 characters of that memory"""
    shared: str = ""
    """name of the shared root on another machine that it was sent to; empty: it is on this machine alone"""
    waiting: bool = False
    """the other machine did not answer: the memory is here and is sent later"""


class AddedMany(Listed[Added], kw_only=True):
    """Outcome of `add_many`, which is one operation."""

    results: list[Added]
    """one `Added` per memory, in order"""
    created: int
    """how many are new"""
    merged: int
    """how many were merged"""
    operations: list[str]
    """the id of the operation, for `undo`, in a list of one"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


class Changed(Struct, kw_only=True):
    """A memory after its change, and the operation that `undo` takes back."""

    memory: Memory
    """the memory after the change"""
    operation: str
    """id of the operation, for `undo`"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


class Deleted(Struct, kw_only=True):
    """What was deleted, or would be in a dry run, and the operation that `undo` takes back."""

    count: int
    """how many memories and turns"""
    ids: list[str]
    """full ids of what was deleted; with a filter the first 1,000, oldest first"""
    operation: str | None = None
    """id of the operation, for `undo`; null in a dry run, or if there was nothing to delete"""
    turns: int = 0
    """how many of the given ids are turns of L0"""
    derived: list[str] = []
    """full ids of summaries and facts that were derived from the given turns and are deleted too"""
    documents: int = 0
    """parts of files that match the filter too and stay: they are changed in their files"""
    dry_run: bool = False
    """nothing was deleted"""


class Confirmed(Struct, kw_only=True):
    """The memories that are confirmed now, and the operation that `undo` takes back."""

    ids: list[str]
    """full ids of the memories"""
    operation: str
    """id of the operation, for `undo`; empty for memories of a shared root"""


class NewMemory(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A memory to add. `id` and `created_at` are for imports.

    The words of short `neighbours` count a little in searches, if the content is short too. Where age counts, a memory
    from a file named YYYY-MM-DD.md is as old as the name says, and one from another file does not age.
    """

    content: str
    """the text, at most 1 MiB of UTF-8"""
    type: str = "fact"
    """any word, such as `fact` or `decision`"""
    summary: str = ""
    """a shorter text"""
    metadata: Metadata = {}
    """any JSON object: at most 64 KiB, 16 levels; no binary data, no NaN"""
    importance: Fraction = 0.5
    """how much it matters"""
    source: str = "manual"
    """how it is stored, such as `manual`"""
    origin: MemoryOrigin = "agent"
    """whose words the text is: `person` only if a person wrote or chose it; a caller with a token is an agent"""
    created_at: Seconds | None = None
    """when it was created or said; left out: now"""
    expires_at: Seconds | None = None
    """when it expires and is not found any more; left out: never"""
    pinned: bool = False
    """it never decays and never expires"""
    supersedes: str | list[str] | None = None
    """ids of memories that it replaces in results until it is deleted or expires. A memory that the person saved or
    confirmed is replaced by the person alone; otherwise it stays, and is shown with this one until the person settles
    which holds"""
    id: str | None = None
    """32 lower-case hex digits, for imports; left out: a random one"""
    neighbours: list[str] = []
    """the turns before and after it in a conversation"""
    path: str | None = None
    """the file that it is from: relative or absolute, at most 4096 bytes"""
    start_line: LineNumber | None = None
    """its first line in the file, counted from 1"""
    end_line: LineNumber | None = None
    """its last line in the file"""


@rpc("outward", grows=True, page=True)
class Add(Scoped[Added], kw_only=True, frozen=True):
    """Add one memory. It is on disk and searchable when the call returns.

    An equal text, or a near-duplicate that does not disagree, is merged into the stored memory of the same namespace
    and type. Likely credentials are removed first, unless `allow_secrets`; `redacted` counts them by kind.
    """

    memory: NewMemory
    """the memory to add"""
    dedup: bool = True
    """look for a duplicate first"""
    dedup_threshold: Fraction | None = None
    """cosine above which texts are compared; left out: the model's own"""
    allow_secrets: bool = False
    """store likely credentials as they are"""
    idempotency_key: Annotated[str, Meta(max_length=64)] = ""
    """a random text that the caller chooses: a repeated call with the same key within 90 days does nothing and returns
    the result of the first, even if the memory was changed or deleted since"""


@rpc("outward", grows=True, lane="bulk", page=False)
class AddMany(Scoped[AddedMany], kw_only=True, frozen=True):
    """Add many memories as one operation, which one `undo` takes back. Sends progress while it embeds.

    All are checked before the first is stored. They are committed in parts of at most fifty, so that no other write
    waits long: a crash, or a client that disconnects, ends the call between two parts. If a later part is refused (at
    the size limit, by a stop of the daemon, by an undo meanwhile), the error says how many memories are stored, from
    the first on (`data["stored"]`), and in which operation (`data["operations"]`). Do not repeat such a call as a
    whole.
    """

    memories: list[NewMemory]
    """the memories to add, in order"""
    dedup: bool = True
    """look for duplicates first"""
    dedup_threshold: Fraction | None = None
    """cosine above which texts are compared; left out: the model's own"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


class MemoryDetail(Memory, kw_only=True):
    """A memory, and the turns of its conversation around it."""

    around: list[Memory] = []
    """with `around`: turns in the order in which they were said, whether in L0 or memories by now; for a fact those
    around the first turn that it was derived from, for a summary or an outcome those around its time"""


@rpc("within", reads=True, lane="inline", page=True)
class Get(Scoped[MemoryDetail], kw_only=True, frozen=True):
    """Read one memory by id, unique prefix of 4 or more digits, or key. With `touch` this counts as an access."""

    id: str = ""
    """id or unique prefix of 4 or more digits"""
    key: str = ""
    """instead of an id: the key of a memory in the namespace itself"""
    renew: bool = False
    """start the memory's time to live again"""
    include_vectors: bool = False
    """return its vector too"""
    touch: bool = True
    """count an access of the memory"""
    around: Annotated[int, Meta(ge=0, le=200)] | None = None
    """return itself and this many turns before and after it in its conversation; left out: none"""


@rpc("within", reads=True, page=True)
class List(Filtered[Page], kw_only=True, frozen=True):
    """List memories by filter, newest first unless `sort` says otherwise; superseded and expired ones on request.

    If the memories are large, fewer than asked for are returned; the next page begins at `offset` + their number.
    """

    sort: Sort = "created"
    """the order"""
    ascending: bool = False
    """smallest or oldest first"""
    limit: Limit = 20
    """how many at most"""
    offset: Annotated[int, Meta(ge=0, le=MAX_INTEGER)] = 0
    """how many to skip"""
    words: Annotated[str, Meta(max_length=1000)] = ""
    """only memories whose text has each of these words, even within a longer word"""
    all_states: bool = False
    """superseded and expired ones too"""
    ids: list[str] = []
    """only memories with one of these ids or unique prefixes"""


@rpc("within", grows=True, page=True)
class Update(Scoped[Changed], kw_only=True, frozen=True):
    """Change the given fields of one memory. `metadata` is merged key by key (null removes a key) unless replaced."""

    id: str
    """id or unique prefix"""
    content: str | UnsetType = UNSET
    """new text, which is embedded again"""
    type: str | UnsetType = UNSET
    """new type"""
    summary: str | UnsetType = UNSET
    """new summary"""
    metadata: Metadata | UnsetType = UNSET
    """merged key by key; null removes a key"""
    replace_metadata: bool = False
    """`metadata` replaces all metadata"""
    importance: Fraction | UnsetType = UNSET
    """new importance"""
    expires_at: Seconds | UnsetType | None = UNSET
    """new expiry; null: never"""
    pinned: bool | UnsetType = UNSET
    """pin or unpin"""
    origin: MemoryOrigin = "agent"
    """who changes it: a new content, summary or type is then theirs and not confirmed any more"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


@rpc("within", grows=True, page=True)
class Tag(Scoped[Changed], kw_only=True, frozen=True):
    """Add words to a memory's `tags` list and set metadata values."""

    id: str
    """id or unique prefix"""
    tags: list[str] = []
    """words to add to the list `tags` in the metadata"""
    values: Metadata = {}
    """metadata keys to set"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


@rpc("owner", grows=True, page=True)
class Confirm(Scoped[Confirmed], kw_only=True, frozen=True):
    """Confirm memories in the person's name, as they are now: all or none. They then count as the person's own.

    The confirmation ends when an agent or an import changes content, summary or type; `undo` takes it back. Memories of
    a shared root are confirmed on this machine only, until anybody changes them there.
    """

    ids: list[str]
    """ids or unique prefixes"""


@rpc("within", page=True)
class Delete(Filtered[Deleted], kw_only=True, frozen=True):
    """Delete memories by id, unique prefix or key, all or none; or all that match a filter, turns in L0 included.

    The deletion is one operation, which `undo` takes back. Ids and a filter cannot be given together, and a call
    without either is refused.

    With a filter `reach` is `subtree` if left out, so that memories of enclosing namespaces stay. All matches are
    checked before the first is deleted; if the caller may not change one of them, none is deleted. They are deleted in
    parts, on the `bulk` lane, so that no other write waits long: a crash ends the call between two parts.
    """

    ids: list[str] = []
    """ids or unique prefixes"""
    keys: list[str] = []
    """keys of memories in the namespace itself"""
    all_states: bool = False
    """with a filter: superseded and expired ones too"""
    dry_run: bool = False
    """with a filter: only return what would be deleted"""
