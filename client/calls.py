"""Methods of both clients whose arguments are easier to write than the fields of their calls.

The methods that follow directly from the contract are in `methods.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from memoryd.client import protocol
from memoryd.client.fields import (
    GivenMemory,
    Words,
    build,
    convert_each,
    convert_entry,
    namespace_text,
    new_memory,
    new_message,
    new_turn,
    query_fields,
    to_list,
    to_summary,
)
from memoryd.client.method import method
from memoryd.client.methods import DeclaredMethods
from memoryd.client.protocol import Call, Reach
from memoryd.client.times import When, seconds
from memoryd.client.transport.batches import split_batches
from memoryd.client.transport.paths import make_absolute, resolve_workspace

R = TypeVar("R")

Postprocessor = Callable[[str, "list[protocol.Hit]"], "list[protocol.Hit]"]


def add(
    content: str,
    *,
    type: str = "fact",
    metadata: Mapping[str, Any] | None = None,
    dedup: bool = True,
    dedup_threshold: float | None = None,
    allow_secrets: bool = False,
    **fields: Any,
) -> protocol.Add:
    """Store a memory. `fields` are those of `NewMemory`: summary, importance, source, origin, created_at, supersedes …
    `origin` is `agent`, or `person` if a person wrote or chose the text.

    Likely credentials in it are removed first unless `allow_secrets`; the result's `redacted` counts them by kind."""
    memory = new_memory({"content": content, "type": type, "metadata": metadata, **fields})
    return protocol.Add(memory=memory, dedup=dedup, dedup_threshold=dedup_threshold, allow_secrets=allow_secrets)


def add_many_calls(
    memories: Iterable[GivenMemory],
    *,
    dedup: bool = True,
    dedup_threshold: float | None = None,
    allow_secrets: bool = False,
) -> Iterator[protocol.AddMany]:
    """Yield the calls that add `memories`: one, or several where one frame cannot hold them."""
    for batch in split_batches(convert_each("memories", new_memory, memories)):
        yield protocol.AddMany(
            memories=batch, dedup=dedup, dedup_threshold=dedup_threshold, allow_secrets=allow_secrets
        )


def search(query: str = "", *, limit: int = 10, **fields: Any) -> protocol.Search:
    """Find memories for `query`, near a `vector`, or `like` another memory, the best first. `fields` are filters
    (type, source, tier, where, after, before, path_prefix, reach) and the parameters of `Search`
    (offset, mode, floor, deadline_ms …); `options` is a mapping of `SearchOptions` (distinct, min_score …)."""
    return build(protocol.Search, query=query, limit=limit, **query_fields(fields))


def find_related(id: str, *, limit: int = 5, **fields: Any) -> protocol.Search:
    """Find memories that are near a memory in meaning; `fields` are those of `search`."""
    return build(protocol.Search, like=id, limit=limit, **query_fields(fields))


def explain(query: str, *, limit: int = 10, **fields: Any) -> protocol.Search:
    """Run a search whose result has the whole trace as `.explanation`; `fields` are those of `search`."""
    return build(protocol.Search, query=query, limit=limit, explain=True, **query_fields(fields))


def why_not(id: str, query: str, *, limit: int = 10, **fields: Any) -> protocol.WhyNot:
    """Explain why memory `id` is or is not among the hits of `query`; `fields` are those of `search`."""
    return build(protocol.WhyNot, id=id, query=query, limit=limit, **query_fields(fields))


def trace(id: str | None = None) -> protocol.GetTrace:
    """Return the kept trace of an earlier search, by default the latest."""
    return protocol.GetTrace(id=id)


def list_(*, limit: int = 20, **fields: Any) -> protocol.List:
    """List memories, the newest first, at most 1,000 at once. `fields` are the filters of `search` and sort, ascending,
    offset, all_states, ids; `.total` of the result counts all that match. Without `reach` memories of enclosing
    namespaces are listed too."""
    return build(protocol.List, limit=limit, **query_fields(fields))


def update(id: str, *, expires_at: When | UnsetType | None = UNSET, **fields: Any) -> protocol.Update:
    """Change the given fields of a memory: content, type, summary, metadata, importance, expires_at, pinned.

    Metadata is merged key by key, unless `replace_metadata`."""
    if not (expires_at is None or expires_at is UNSET):
        expires_at = seconds(expires_at)
    return build(protocol.Update, id=id, expires_at=expires_at, **fields)


def tag(id: str, *tags: str, **values: Any) -> protocol.Tag:
    """Add words to a memory's `tags` and set metadata values."""
    return protocol.Tag(id=id, tags=list(tags), values=values)


def delete(*ids: str, key: Words | None = None, **fields: Any) -> protocol.Delete:
    """Delete memories by id or unique prefix, or by `key`; or all that match the filters of `search`, which `dry_run`
    only counts. `undo` brings them back; after `erase` nothing does."""
    return build(protocol.Delete, ids=list(ids), keys=to_list("key", key), **query_fields(fields))


def put(
    key: str,
    content: str,
    *,
    metadata: Mapping[str, Any] | None = None,
    searchable: bool = True,
    ttl_s: float | None = None,
    allow_secrets: bool = False,
    **fields: Any,
) -> protocol.Put:
    """Store a memory under a key, replacing the memory that has this key. `fields` are those of `NewMemory`."""
    memory = new_memory({"content": content, "metadata": metadata, **fields})
    entry = protocol.KeyedEntry(key=key, memory=memory, searchable=searchable, ttl_s=ttl_s)
    return protocol.Put(entries=[entry], allow_secrets=allow_secrets)


def put_many(
    entries: Iterable[protocol.KeyedEntry | Mapping[str, Any]], *, allow_secrets: bool = False
) -> protocol.Put:
    """Put and delete many memories by their keys, all or nothing. An entry is a mapping with `key`, `memory` (a mapping
    as well), `below`, `clears`, `searchable` and `ttl_s`; without a memory the key is deleted."""
    return protocol.Put(entries=list(convert_each("entries", convert_entry, entries)), allow_secrets=allow_secrets)


def share(*ids: str, to: str | Sequence[str], move: bool = False) -> protocol.Share:
    """Copy memories outward to the namespace `to`, or move them there."""
    return protocol.Share(ids=list(ids), to=namespace_text(to), move=move)


def observe(
    turns: Iterable[protocol.NewTurn | Mapping[str, Any]], *, session: str = "", allow_secrets: bool = False
) -> protocol.Observe:
    """Record turns of a conversation: mappings with `role`, `content` and, if they matter, `created_at` and `id`."""
    return protocol.Observe(
        turns=list(convert_each("turns", new_turn, turns)), session=session, allow_secrets=allow_secrets
    )


def flush(turns: Iterable[protocol.NewTurn | Mapping[str, Any]], workspace: str, **fields: Any) -> protocol.Flush:
    """Write the essence of a conversation into a file of a workspace, by default today's note."""
    return build(protocol.Flush, turns=list(convert_each("turns", new_turn, turns)), workspace=workspace, **fields)


def forget(*ids: str, text: str | None = None, dry_run: bool = False, **lines: Any) -> protocol.Forget:
    """Forget memories: the lines of a file's memory are removed from the file, any other memory is deleted. `text`, or
    `start_line` and `end_line`, names a part of one memory."""
    return build(protocol.Forget, ids=list(ids), text=text, dry_run=dry_run, **lines)


def summarize(
    messages: Iterable[protocol.Message | Mapping[str, Any]],
    running_summary: protocol.RunningSummary | Mapping[str, Any] | None = None,
    *,
    max_tokens: int,
    **fields: Any,
) -> protocol.Summarize:
    """Keep a conversation within a budget of tokens: its older part becomes a summary; `wait` asks a language model."""
    plain = list(convert_each("messages", new_message, messages))
    former = to_summary(running_summary)
    return build(protocol.Summarize, messages=plain, running_summary=former, max_tokens=max_tokens, **fields)


def export_memories(after_id: str = "", *, limit: int = 500, **fields: Any) -> protocol.ExportMemories:
    """Return one batch of memories with everything that is stored of them; continue with `after_id` = its `next` until
    that is None. `fields` are the filters of `search`."""
    return build(protocol.ExportMemories, after_id=after_id, limit=limit, **query_fields(fields))


def import_memories(
    records: Iterable[protocol.Record], *, overwrite: bool = False, dry_run: bool = False, **fields: Any
) -> protocol.ImportMemories:
    """Restore exported memories exactly; where one differs from the stored memory, the later change wins."""
    return build(
        protocol.ImportMemories,
        records=list(convert_each("records", lambda record: record, records)),
        overwrite=overwrite,
        dry_run=dry_run,
        **fields,
    )


def backup(path: str | os.PathLike[str] = "") -> protocol.Backup:
    """Copy the whole database to one file and check it: a new file, one in a folder, or one in `backups` beside the
    database."""
    if not path:
        return protocol.Backup()
    slash = "/" if str(path).endswith("/") else ""  # it says that the path is a folder, which must exist
    return protocol.Backup(path=make_absolute(path) + slash)


def add_workspace(
    path: str | os.PathLike[str], *, namespace: str | None = None, globs: Words = ()
) -> protocol.AddWorkspace:
    """Make a folder of Markdown files a workspace; a relative path starts from the current directory."""
    return build(protocol.AddWorkspace, path=make_absolute(path), namespace=namespace, globs=to_list("globs", globs))


def remove_workspace(workspace: str) -> protocol.RemoveWorkspace:
    """Remove a workspace, given by its namespace or a path in it, and its index; its files stay."""
    return protocol.RemoveWorkspace(workspace=resolve_workspace(workspace))


def workspaces(workspace: str | None = None, *, files: int = 0, offset: int = 0) -> protocol.Workspaces:
    """List the workspaces, or report on one: what is indexed, what is not and why, and the first `files` files."""
    place = None if workspace is None else resolve_workspace(workspace)
    return protocol.Workspaces(workspace=place, files=files, offset=offset)


def index_workspace(
    workspace: str | None = None, *, force: bool = False, wait: bool = False
) -> protocol.IndexWorkspace:
    """Update the index of a workspace, of one file or of all workspaces from the files. `force` reads them all; with
    `wait` the call returns when each part has its vector."""
    place = None if workspace is None else resolve_workspace(workspace)
    return protocol.IndexWorkspace(workspace=place, force=force, wait=wait)


def context(
    task: str, *, max_tokens: int = 800, session: str = "", fresh: bool = False, **fields: Any
) -> protocol.GetContext:
    """Return the memories that matter for `task` as text for a prompt, within `max_tokens`; `.text` is empty if none is
    relevant enough, even if `search` finds some. A `session` gets nothing twice, unless it is `fresh`. `fields` are
    filters, `touch` and `deadline_ms`."""
    return build(
        protocol.GetContext, task=task, max_tokens=max_tokens, session=session, fresh=fresh, **query_fields(fields)
    )


def subscribe(kinds: Words = (), *, reach: Reach | None = None, limit: int | None = None) -> protocol.Subscribe:
    """Subscribe to events; the clients' `subscribe` returns an iterator of them."""
    return build(protocol.Subscribe, kinds=to_list("kinds", kinds), reach=reach, limit=limit)


def stats() -> protocol.GetStats:
    """Return counts of what is stored."""
    return protocol.GetStats()


def status() -> protocol.GetStatus:
    """Return the daemon's health."""
    return protocol.GetStatus()


class Methods(DeclaredMethods):
    """The methods of both clients; each client adds its own `call`."""

    _postprocessors: tuple[Postprocessor, ...] = ()

    def register_postprocessor(self, process: Postprocessor) -> None:
        """Run `process(query, hits) -> hits` on the hits of each search of this client, in this process."""
        self._postprocessors += (process,)

    def _postprocess(self, call: Call[R], result: R) -> R:
        if isinstance(result, protocol.Hits) and isinstance(call, protocol.Query):
            for process in self._postprocessors:
                result.hits = process(call.query, result.hits)
        return result

    add = method(add)
    search = method(search)
    related = method(find_related)
    explain = method(explain)
    why_not = method(why_not)
    trace = method(trace)
    list = method(list_)
    update = method(update)
    tag = method(tag)
    put = method(put)
    put_many = method(put_many)
    delete = method(delete)
    share = method(share)
    observe = method(observe)
    flush = method(flush)
    forget = method(forget)
    summarize = method(summarize)
    export_memories = method(export_memories)
    import_memories = method(import_memories)
    add_workspace = method(add_workspace)
    remove_workspace = method(remove_workspace)
    workspaces = method(workspaces)
    index_workspace = method(index_workspace)
    context = method(context)
    stats = method(stats)
    backup = method(backup)
    status = method(status)
