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
    """What one caller (a token or a namespace) said of a memory.

    `cited` are digests of the caller's sessions that referred to it. `useful` is null if it only cited the memory."""

    by: str
    """`token NAME`, or the namespace of a caller without a token"""
    useful: bool | None = None
    """what it said; null: it only cited the memory"""
    note: str = ""
    """why"""
    at: float
    """when it last said or cited it"""
    cited: list[str] = []
    """digests of its sessions that cited the memory; two count"""


class Usefulness(Struct, kw_only=True):
    """What feedback comes to: the `factor` of its score, how many callers said what, how often it was cited.

    `notes` are the latest reasons given; `get` alone shows them.
    """

    factor: float
    """of the score, 0.85 to 1.15"""
    useful: int = 0
    """callers who found it useful"""
    useless: int = 0
    """callers who did not"""
    cited: int = 0
    """sessions that cited it, two of a caller at most"""
    notes: list[str] = []
    """the latest reasons"""


class LaterStatement(Struct, kw_only=True):
    """What was said or saved later and seems to change a memory."""

    id: str
    """of the turn or memory"""
    at: float
    """when it was said or saved"""
    role: str = ""
    """who said it: `user` or `assistant`; empty: the person saved it; else the origin of what was saved"""
    text: str
    """the sentence that tells of the change, shortened to 200 characters"""
    likely: bool = True
    """false: it only may be a change"""


class Memory(Struct, kw_only=True):
    """One remembered item."""

    id: str
    """32 hex digits"""
    namespace: str
    """its path"""
    type: str
    """what it is"""
    content: str
    """the text"""
    content_bytes: int | None = None
    """the length of the whole text where it comes shortened, with a mark at its end; `get` returns the whole"""
    summary: str = ""
    """a shorter text, or empty"""
    metadata: Metadata = {}
    """the JSON object"""
    importance: float = 0.5
    """0 to 1"""
    source: str = "manual"
    """how it came in"""
    origin: MemoryOrigin = "import"
    """whose words they are"""
    confirmed_at: float | None = None
    """when the person confirmed them; null: not, or somebody else changed them since"""
    tier: Tier = "L1"
    """where in the hierarchy it is"""
    created_at: float
    """when it came about"""
    updated_at: float
    """when it was last changed"""
    last_accessed_at: float | None = None
    """when it was last among the relevant hits or read by id"""
    access_count: int = 0
    """how often it was among the relevant hits or read by id"""
    expires_at: float | None = None
    """when it leaves search"""
    pinned: bool = False
    """never decays, never expires"""
    superseded_by: str | None = None
    """id of the memory that replaces it in results; null when there is none, or it was deleted or has expired"""
    path: str | None = None
    """the file it came from"""
    start_line: int | None = None
    """its first line there"""
    end_line: int | None = None
    """its last line there"""
    contradicts: list[str] = []
    """ids of memories that disagree with it"""
    contradicts_texts: list[str] = []
    """what each of these says: its first 200 characters"""
    later: LaterStatement | None = None
    """the newest later statement that seems to change it, as long as nobody has settled which holds; null: none"""
    links: list[str] = []
    """files that this part of a file links to, as paths or `name (not found)`; returned by `get` alone"""
    linked_from: list[str] = []
    """files that link to the file it came from; returned by `get` alone"""
    key: str | None = None
    """its key, unique in its namespace"""
    searchable: bool = True
    """false: it is found by its key and in lists, not by searches"""
    ttl_s: float | None = None
    """how long it lives after it was put, or read with `renew`"""
    vector: list[float] | None = None
    """its vector, if `include_vectors` asked for it and it is made"""
    usefulness: Usefulness | None = None
    """what feedback comes to; null: nobody has given any"""
    shared: str = ""
    """name of the shared root that holds it, on another machine; empty: it is on this one"""


class Page(Listed[Memory], kw_only=True):
    """Memories in the order asked for, and how many match in all."""

    memories: list[Memory]
    """in the order asked for"""
    total: int
    """how many match in all"""
    degraded: list[str] = []
    """`shared:NAME` for each shared root that did not answer in time, `unreadable:NAME` where a row was left out"""

    def __getitem__(self, index: int) -> Memory:
        return self.memories[index]


class Added(Struct, kw_only=True):
    """Outcome of an add: durable and searchable. `embedded` is false while its vector waits in the queue."""

    id: str
    """id of the new memory or of the one it was merged into"""
    outcome: Literal["created", "merged"]
    """what happened"""
    embedded: bool
    """false while its vector waits in the queue; words find it at once"""
    similarity: float | None = None
    """cosine with the nearest one above the threshold"""
    contradicts: list[str] = []
    """ids of memories that disagree with it"""
    contradicts_texts: list[str] = []
    """what each of these says: its first 200 characters"""
    operation: str
    """its id, for `undo`"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""
    namespace: str | None = None
    """where it is; null from a daemon that does not say"""
    nearest: str | None = None
    """id of the nearest saved memory of its namespace and type, if one is about the same, which it may replace"""
    nearest_text: str = ""
    """what that one says: its first 200 characters"""
    shared: str = ""
    """name of the shared root that it went to, on another machine; empty: it is on this machine alone"""
    waiting: bool = False
    """the other machine did not answer: it is here, and is sent when that is back"""


class AddedMany(Listed[Added], kw_only=True):
    """Outcome of `add_many`: one `Added` per memory, in order. One call is one operation."""

    results: list[Added]
    """one per memory, in order"""
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
    """its id, for `undo`"""
    redacted: Redacted = {}
    """credentials and private passages that were taken out before anything was stored, by kind"""


class Deleted(Struct, kw_only=True):
    """What was deleted, or would be in a dry run, and the operation that `undo` takes back."""

    count: int
    """how many memories and turns"""
    ids: list[str]
    """full ids of what was deleted; by a filter those of the first 1,000, oldest first"""
    operation: str | None = None
    """its id, for `undo`; null in a dry run, or where there was nothing to delete"""
    turns: int = 0
    """how many of those given by id are turns of L0"""
    derived: list[str] = []
    """full ids of the summaries and facts that were made of turns given by id, and are deleted too"""
    documents: int = 0
    """parts of files that the filter leaves too: they stay, since they are changed in their files"""
    dry_run: bool = False
    """nothing was deleted"""


class Confirmed(Struct, kw_only=True):
    """Ids of the memories that are confirmed, and the operation that `undo` takes back."""

    ids: list[str]
    """full ids of what is confirmed"""
    operation: str
    """its id, for `undo`; empty for memories of a shared root"""


class NewMemory(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A memory to add. `supersedes` names one that it replaces in results; `id` and `created_at` serve imports.

    `neighbours` are the turns before and after it in a conversation. Where these and the content are short, a search
    counts their words lightly. `path` and lines name the file that it came from. Where age counts, a file named
    YYYY-MM-DD.md is as old as its name says, and any other file does not age.
    """

    content: str
    """the text, at most 1 MiB of UTF-8"""
    type: str = "fact"
    """a free word for what it is"""
    summary: str = ""
    """a shorter text"""
    metadata: Metadata = {}
    """any JSON object: at most 64 KiB, 16 levels; no binary data, no NaN"""
    importance: Fraction = 0.5
    """how much it matters"""
    source: str = "manual"
    """how it came in"""
    origin: MemoryOrigin = "agent"
    """whose words they are: `person` only where a person wrote or chose them; a caller bound to a token is an agent"""
    created_at: Seconds | None = None
    """when it came about; left out: now"""
    expires_at: Seconds | None = None
    """when it leaves search; left out: never"""
    pinned: bool = False
    """never decays and never expires"""
    supersedes: str | list[str] | None = None
    """ids of memories that it replaces in results until it is deleted or expires; what the person saved or confirmed is
    replaced by the person alone, else it stays and is shown with this one until they settle it"""
    id: str | None = None
    """32 lower-case hex digits, for imports; left out: a random one"""
    neighbours: list[str] = []
    """the turns before and after it in a conversation"""
    path: str | None = None
    """the file that it came from: relative or absolute, at most 4096 bytes"""
    start_line: LineNumber | None = None
    """where it begins in that file, counted from 1"""
    end_line: LineNumber | None = None
    """where it ends there"""


@rpc("outward", grows=True, page=True)
class Add(Scoped[Added], kw_only=True, frozen=True):
    """Remember one thing. Durable and searchable when it returns.

    Equal text, or a near-duplicate that does not disagree, is merged into the memory that is there (same namespace and
    type). `dedup_threshold` is the cosine above which texts are compared; left out, the model's own. Likely credentials
    are taken out first, unless `allow_secrets`; `redacted` counts them by kind.
    """

    memory: NewMemory
    """what to remember"""
    dedup: bool = True
    """look for a duplicate first"""
    dedup_threshold: Fraction | None = None
    """cosine above which texts are compared; left out: the model's own"""
    allow_secrets: bool = False
    """store likely credentials as they are"""
    idempotency_key: Annotated[str, Meta(max_length=64)] = ""
    """a random text of the caller's choice: the same call with the same key, within 90 days, does nothing and returns
    what the first one did, whatever became of the memory since"""


@rpc("outward", grows=True, lane="bulk", page=False)
class AddMany(Scoped[AddedMany], kw_only=True, frozen=True):
    """Remember many things as one operation, which one `undo` takes back. Sends progress while it embeds.

    All are checked before the first is stored. They are committed in parts of at most fifty, so that no other write
    waits long: a crash, or a client that leaves, ends the call between two parts. If a later part is refused (at the
    size limit, by a stop of the daemon, by an undo meanwhile), the error says how many memories are stored, from the
    first on (`data["stored"]`), and as which operation (`data["operations"]`). Such a call is not to be repeated whole.
    """

    memories: list[NewMemory]
    """what to remember, in order"""
    dedup: bool = True
    """look for duplicates first"""
    dedup_threshold: Fraction | None = None
    """cosine above which texts are compared; left out: the model's own"""
    allow_secrets: bool = False
    """store likely credentials as they are"""


class MemoryDetail(Memory, kw_only=True):
    """A memory, and the turns of its conversation around it."""

    around: list[Memory] = []
    """where `around` asked for them: turns in the order in which they were said, in L0 or memories by now; of a fact
    around the first turn that it was drawn from, of a summary or an outcome around its time"""


@rpc("within", reads=True, lane="inline", page=True)
class Get(Scoped[MemoryDetail], kw_only=True, frozen=True):
    """Read one memory by id, unique prefix of 4 or more digits, or key. With `touch` that counts as an access."""

    id: str = ""
    """id or unique prefix of 4 or more digits"""
    key: str = ""
    """instead of an id: the key of a memory in the namespace itself"""
    renew: bool = False
    """a memory with a time to live lives that long from now on"""
    include_vectors: bool = False
    """with its vector"""
    touch: bool = True
    """count an access of it"""
    around: Annotated[int, Meta(ge=0, le=200)] | None = None
    """with so many turns before it and after it in its conversation, and itself; left out: without"""


@rpc("within", reads=True, page=True)
class List(Filtered[Page], kw_only=True, frozen=True):
    """List memories by filter, newest first unless `sort` says otherwise. Superseded and expired ones on request.

    Where memories have large values, fewer come than asked for; the next page begins at `offset` + their number.
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
    """only memories whose text has each of these words, be it within a longer one"""
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
    """new text; it is embedded again"""
    type: str | UnsetType = UNSET
    """new type"""
    summary: str | UnsetType = UNSET
    """new summary"""
    metadata: Metadata | UnsetType = UNSET
    """merged key by key; null removes a key"""
    replace_metadata: bool = False
    """`metadata` replaces all there is"""
    importance: Fraction | UnsetType = UNSET
    """new importance"""
    expires_at: Seconds | UnsetType | None = UNSET
    """new expiry; null: never"""
    pinned: bool | UnsetType = UNSET
    """pin or unpin"""
    origin: MemoryOrigin = "agent"
    """who changes it: a new content, summary or type is theirs, and no longer confirmed"""
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
    """Confirm memories in the person's name, as they are now: all or none. They count as the person's own from then on.

    A change of content, summary or type by an agent or an import ends that; `undo` takes it back. Memories of a shared
    root are confirmed on this machine alone, until anybody changes them there.
    """

    ids: list[str]
    """ids or unique prefixes"""


@rpc("within", page=True)
class Delete(Filtered[Deleted], kw_only=True, frozen=True):
    """Delete memories by id or unique prefix, or by key, all or none; or all that a filter leaves, turns in L0 too.

    It is one operation, which `undo` takes back. Ids and a filter cannot be given together, and a call without either
    is refused.

    With a filter `reach`, left out, is `subtree`: what is shared with the caller stays. All matches are checked before
    the first is deleted; if the caller may not change one of them, none is. They are deleted in parts, on the `bulk`
    lane, so that no other write waits long: a crash ends the call between two parts.
    """

    ids: list[str] = []
    """ids or unique prefixes"""
    keys: list[str] = []
    """keys of memories in the namespace itself"""
    all_states: bool = False
    """with a filter: superseded and expired ones too"""
    dry_run: bool = False
    """with a filter: only return what would be deleted"""
