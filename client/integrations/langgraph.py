"""A store for LangGraph: `MemorydStore` stores items as memories with keys, shared by every process of the machine.

The value of an item is the metadata of a memory; the first of its searched texts (all texts, or those of `fields`) is
the content. Each further text is a memory of its own, so that it is found by its own meaning; a search returns the item
once. The daemon embeds with its own model, so `embed` and `dims` are not accepted. Expired items disappear at once.

The key of a further text is that of the item, a line break and a number. `values` replaces control characters, so the
key of an item has no line break and never equals that of another item's text.
"""

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict, get_args

from memoryd.client.errors import Invalid, MemorydError, NotFound
from memoryd.client.extras import named_extra
from memoryd.client.integrations.clients import check_count, choose_client, describe_item, put_entries
from memoryd.client.integrations.langgraph_terms import (
    build_key,
    build_part_key,
    build_where,
    find_item_key,
    is_match,
    join_labels,
    list_leaves,
    split_labels,
)
from memoryd.client.integrations.values import build_content, decode, encode
from memoryd.client.protocol import (
    MAX_ENTRIES,
    MAX_FRAME_BYTES,
    Delete,
    Get,
    Hit,
    KeyedEntry,
    List,
    Memory,
    Namespaces,
    NewMemory,
    Search,
    SearchOptions,
)
from memoryd.client.transport.batches import count_bytes
from memoryd.client.transport.sync import Client

with named_extra("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
    from langgraph.store.base.batch import AsyncBatchedBaseStore

SOURCE, PART = "langgraph", "langgraph part"  # `source` of items, and of their further texts
_MOST = 1000  # memories per reply
_MOST_TEXTS = 100  # texts per item
_MOST_BYTES = MAX_FRAME_BYTES - 64 * 1024  # bytes of entries per call
_MOST_MINUTES = 1_000_000_000  # the longest time to live
_Mode = Literal["hybrid", "lexical", "dense"]


class Index(TypedDict, total=False):
    """The parts of values that are searched: `fields` are paths in LangGraph's syntax, by default all texts."""

    fields: list[str]


class MemorydStore(BaseStore):
    """A LangGraph store in memoryd. Its namespaces are below that of `client`, by default the root.

    `mode` is the ranking of searches with a query: by words and meaning, or by one of them; scores of `dense` are
    cosines. With `with_unindexed`, items without a searched text follow the others without a score, as in
    `InMemoryStore`. Credentials (passwords, API keys) are removed from values before they are stored; with
    `allow_secrets` values are stored unchanged.
    """

    supports_ttl = True

    def __init__(
        self,
        client: Client | None = None,
        *,
        index: Index | None = None,
        ttl: TTLConfig | None = None,
        mode: _Mode = "hybrid",
        with_unindexed: bool = False,
        allow_secrets: bool = False,
    ) -> None:
        self._client = choose_client(client)
        if not isinstance(index, Mapping | None):
            raise ValueError(f"`index` must be a dict such as {{'fields': ['text']}}, not {index!r}.")
        if foreign := sorted((index or {}).keys() - {"fields"}):
            raise ValueError(f"`index` has only `fields`, no {', '.join(foreign)}: memoryd embeds with its own model.")
        self._fields = _check_paths("fields", (index or {}).get("fields") or ["$"])
        if mode not in get_args(_Mode):
            raise ValueError(f"`mode` must be one of {', '.join(get_args(_Mode))}, not {mode!r}.")
        self.ttl_config = _check_ttl_config(ttl)
        self._mode: _Mode = mode
        self._with_unindexed = with_unindexed
        self._allow_secrets = allow_secrets

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations like LangGraph's own stores: reads see the state before the batch.

        Puts and deletes are one transaction of up to 1,000 texts and 15 MiB; a larger batch is several transactions.
        """
        listed = list(ops)
        for op in listed:
            _check_op(op)
            validate_op_namespace(op)
        try:
            latest = {(tuple(op.namespace), op.key): op for op in listed if isinstance(op, PutOp)}
            results = self._read(listed, bool(latest))
            for entries in list(_join_entries(map(self._build_entries, latest.values()))):
                put_entries(self._client, entries, self._allow_secrets)
        except Invalid as error:
            raise ValueError(error.message) from None
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations like `batch`, in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete expired items, which are hidden already and which the daemon deletes later; return how many."""
        where = {"memory.expires_at": {"$lte": datetime.now(UTC).timestamp()}}
        gone = Delete(source=[SOURCE], where=where, all_states=True, reach="subtree")
        self._client.call(Delete(source=[PART], where=where, all_states=True, reach="subtree"))
        return self._client.call(gone).count

    def _read(self, ops: Sequence[Op], puts: bool) -> list[Result]:
        """Return the results of the reads; if they fail, the error says that the `puts` of the batch were not made."""
        try:
            return [None if isinstance(op, PutOp) else self._execute(op) for op in ops]
        except MemorydError as error:
            if not puts or isinstance(error, Invalid):
                raise
            message = f"Of this batch nothing was put or deleted, since what it reads failed. {error.message}"
            raise type(error)(message, error.data) from None

    def _execute(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op) if op.query else self._list(op)
            case ListNamespacesOp():
                return self._list_namespaces(op)
        raise ValueError(f"Unknown operation {type(op).__name__}.")

    def _find_place(self, labels: Sequence[str]) -> str:
        """Return the namespace of labels below that of the client."""
        return "/".join(filter(None, [self._client.namespace, join_labels(labels)]))

    def _split_labels(self, namespace: str) -> tuple[str, ...]:
        return split_labels(namespace[len(self._client.namespace) :].strip("/"))

    def _get(self, op: GetOp) -> Item | None:
        call = Get(
            key=build_key(op.key), namespace=self._find_place(op.namespace), reach="exact", renew=self._is_renewing(op)
        )
        try:
            memory = self._client.call(call)
        except NotFound:
            return None
        return Item(**self._build_fields(memory)) if memory.source == SOURCE else None

    def _build_entries(self, op: PutOp) -> list[KeyedEntry]:
        """Return the entries that replace or delete an item and its further texts."""
        key, below, texts = build_key(op.key), join_labels(op.namespace), self._list_texts(op)
        clears = build_part_key(key, "")
        if op.value is None:
            return [KeyedEntry(key=key, below=below, clears=clears)]
        try:
            value = encode(op.value)
        except ValueError as error:
            raise ValueError(f"{describe_item(key, below)}: {error}") from None
        ttl_s = None if op.ttl is None else op.ttl * 60.0
        return [
            KeyedEntry(
                key=build_part_key(key, str(number)) if number else key,
                memory=NewMemory(content=text, metadata=value, type="item", source=PART if number else SOURCE),
                below=below,
                clears="" if number else clears,
                searchable=bool(texts),
                ttl_s=ttl_s,
            )
            for number, text in enumerate(texts or [build_content(op.key).strip() or "item"])
        ]

    def _list_texts(self, op: PutOp) -> list[str]:
        """Return the searched texts of an item; none if it is found by its key only."""
        if op.value is None or op.index is False:
            return []
        found: list[str] = []
        for path in self._fields if op.index is None else _check_paths("index", op.index):
            found += ["\n".join(list_leaves(op.value))] if path == "$" else get_text_at_path(op.value, path)
        texts = list(dict.fromkeys(text for text in found if text.strip()))
        texts[_MOST_TEXTS - 1 :] = filter(None, ["\n".join(texts[_MOST_TEXTS - 1 :])])
        return list(filter(str.strip, map(build_content, texts)))

    def _list(self, op: SearchOp, also: Mapping[str, Any] | None = None) -> list[SearchItem]:
        found: list[SearchItem] = []
        while len(found) < op.limit:
            call = List(
                namespace=self._find_place(op.namespace_prefix),
                reach="subtree",
                source=[SOURCE],
                where={**build_where(op.filter), **(also or {})},
                limit=min(_MOST, op.limit - len(found)),
                offset=op.offset + len(found),
                sort="updated",
            )
            page = self._client.call(call)
            found += [SearchItem(**self._build_fields(memory)) for memory in page]
            if not page.memories or op.offset + len(found) >= page.total:
                break
        self._renew(op, found)
        return found

    def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted, found, offset = op.offset + op.limit, dict[tuple[str, str], Hit](), 0
        while len(found) < wanted:
            call = Search(
                query=build_content(op.query or ""),
                namespace=self._find_place(op.namespace_prefix),
                reach="subtree",
                source=[SOURCE, PART],
                where=build_where(op.filter),
                limit=min(_MOST, wanted),
                offset=offset,
                mode=self._mode,
                options=SearchOptions(distinct=False),
            )
            hits = self._client.call(call).hits
            for hit in hits:
                found.setdefault((hit.namespace, find_item_key(hit)), hit)
            offset += len(hits)
            if not hits:  # only an empty page is the last: large values make a page shorter than the limit
                break
        page = list(found.values())[op.offset : wanted]
        items = [SearchItem(**self._build_fields(hit), score=self._score(hit)) for hit in page]
        if self._with_unindexed and len(items) < op.limit:
            rest = op._replace(limit=op.limit - len(items), offset=max(0, op.offset - len(found)))
            items += self._list(rest, {"memory.searchable": False})
        self._renew(op, items)
        return items

    def _score(self, hit: Hit) -> float:
        """Return the score of a hit; for `dense` the cosine, which may be negative."""
        return hit.similarity if self._mode == "dense" and hit.similarity is not None else hit.score

    def _renew(self, op: SearchOp, items: Sequence[Item]) -> None:
        for item in items if self._is_renewing(op) else ():
            self._get(GetOp(item.namespace, item.key, refresh_ttl=True))

    def _is_renewing(self, op: GetOp | SearchOp) -> bool:
        """Return whether a read renews the time to live: both the store's configuration and the operation say so."""
        return op.refresh_ttl and bool(self.ttl_config and self.ttl_config.get("refresh_on_read"))

    def _build_fields(self, memory: Memory) -> dict[str, Any]:
        return {
            "namespace": self._split_labels(memory.namespace),
            "key": find_item_key(memory),
            "value": decode(memory.metadata),
            "created_at": datetime.fromtimestamp(memory.created_at, UTC),
            "updated_at": datetime.fromtimestamp(memory.updated_at, UTC),
        }

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        found: dict[tuple[str, ...], None] = {}
        for labels in self._list_every_namespace():
            if all(is_match(labels, condition.match_type, condition.path) for condition in conditions):
                found[labels[: op.max_depth]] = None
        return list(found)[op.offset : op.offset + op.limit]

    def _list_every_namespace(self) -> Iterator[tuple[str, ...]]:
        offset = 0
        while True:
            page = self._client.call(Namespaces(reach="subtree", limit=_MOST, offset=offset))
            yield from filter(None, (self._split_labels(one.name) for one in page.namespaces))
            offset += len(page.namespaces)
            if offset >= page.total:
                return


class AsyncMemorydStore(AsyncBatchedBaseStore):
    """The same for asyncio: concurrent operations are one batch. It belongs to the event loop that created it."""

    supports_ttl = True

    def __init__(self, client: Client | None = None, **options: Any) -> None:
        self._task = None  # read by `__del__`, even if `__init__` fails
        self.store = MemorydStore(client, **options)
        try:
            super().__init__()
        except RuntimeError:
            raise RuntimeError(
                "Make an AsyncMemorydStore in a coroutine: it belongs to the event loop there."
            ) from None
        self.ttl_config = self.store.ttl_config
        self._thread = threading.get_ident()

    def _ensure_task(self) -> None:
        if self._loop is not asyncio.get_running_loop():
            raise RuntimeError("This AsyncMemorydStore was made in another event loop; make one in each.")
        super()._ensure_task()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations like `MemorydStore.batch`, from another thread than that of the event loop."""
        if threading.get_ident() == self._thread:
            raise asyncio.InvalidStateError("Within the loop use the methods that are awaited, such as `aput`.")
        return self.store.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations like `MemorydStore.batch`, in a thread."""
        return await self.store.abatch(ops)

    async def sweep_ttl(self) -> int:
        """Delete expired items; return how many."""
        return await asyncio.to_thread(self.store.sweep_ttl)


def _check_paths(name: str, paths: Any) -> list[str]:
    """Check paths in values; raise `ValueError` for a single text, whose characters would be used as paths."""
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
        raise ValueError(f"{name} must be a list of texts, such as ['text'], not {paths!r}.")
    return list(paths)


def _check_ttl_config(ttl: Any) -> TTLConfig | None:
    """Check the configuration of times to live; raise `ValueError` for one that would fail later."""
    if ttl is None:
        return None
    known = TTLConfig.__annotations__
    if not isinstance(ttl, Mapping):
        raise ValueError(f"`ttl` must be a dict such as {{'default_ttl': 60}}, not {ttl!r}.")
    if foreign := sorted(map(str, ttl.keys() - known.keys())):
        raise ValueError(f"`ttl` has no {', '.join(foreign)}, only {', '.join(known)}.")
    _check_minutes("default_ttl", ttl.get("default_ttl"))
    return TTLConfig(**ttl)


def _check_minutes(name: str, minutes: Any) -> None:
    if minutes is None:
        return
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes <= _MOST_MINUTES:
        raise ValueError(
            f"`{name}` must be a number of minutes above 0 and at most {_MOST_MINUTES:,}, not {minutes!r}."
        )


def _check_op(op: Op) -> None:
    """Raise `ValueError` for an argument of a wrong type, such as a text for a tuple of labels."""
    match op:
        case PutOp() | GetOp():
            _check_labels(op.namespace)
            if not isinstance(op.key, str):
                raise ValueError(f"A key is a text, not {op.key!r}.")
        case SearchOp():
            _check_labels(op.namespace_prefix)
            _check_kind("query", op.query, str, "a text")
            _check_kind("filter", op.filter, Mapping, "a dict")
    if isinstance(op, SearchOp | ListNamespacesOp):
        for name in ("limit", "offset"):
            check_count(name, getattr(op, name))
    if isinstance(op, PutOp):
        _check_kind("value", op.value, Mapping, "a dict")
        _check_minutes("ttl", op.ttl)


def _check_labels(labels: Any) -> None:
    if not isinstance(labels, list | tuple):
        raise ValueError(f"A namespace is a tuple of labels such as ('users', 'ada'), not {labels!r}.")


def _check_kind(name: str, value: Any, kind: type, words: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"The {name} must be {words}, not {type(value).__name__}.")


def _join_entries(items: Iterable[list[KeyedEntry]]) -> Iterator[list[KeyedEntry]]:
    """Yield the entries of items in lists that fit into one call; the entries of an item stay together."""
    joined, size = list[KeyedEntry](), 0
    for entries in items:
        added = count_bytes(entries)
        if added > _MOST_BYTES:
            named = describe_item(entries[0].key, entries[0].below)
            raise ValueError(f"{named} is too large: {added} bytes, its value once per text.")
        if len(joined) + len(entries) > MAX_ENTRIES or size + added > _MOST_BYTES:
            yield joined
            joined, size = [], 0
        joined, size = joined + entries, size + added
    if joined:
        yield joined
