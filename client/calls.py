"""The convenience methods of both clients, written once: each builds a call from friendly arguments.

`method(builder)` makes a method of it: on a `Client` it returns the result, on an `AsyncClient` an awaitable of it.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

import msgspec
from msgspec import UNSET, UnsetType

from memoryd.client.batches import batches
from memoryd.client.errors import Invalid
from memoryd.client.paths import absolute, place
from memoryd.client.protocol import (
    Add,
    AddedMany,
    AddMany,
    AddWorkspace,
    Backup,
    Call,
    Changed,
    CompleteTask,
    Consolidate,
    CountTokens,
    Delete,
    DiffWorkspaces,
    Dream,
    EndSession,
    Explain,
    Explanation,
    ExportMemories,
    Feedback,
    Forget,
    Get,
    GetContext,
    GetStats,
    GetStatus,
    GetTrace,
    GetWorkspace,
    GraphAbstract,
    GraphDedupe,
    GraphEdges,
    GraphExport,
    GraphNode,
    GraphNodes,
    GraphRegroup,
    GraphTopics,
    History,
    Hit,
    Hits,
    ImportMemories,
    IndexWorkspace,
    JobHistory,
    JobRun,
    Jobs,
    List,
    Memory,
    Message,
    NewMemory,
    NewTurn,
    Observe,
    Operations,
    Page,
    PauseJob,
    Query,
    Reach,
    Record,
    Redacted,
    Remember,
    RemoveWorkspace,
    ResetSession,
    ResumeJob,
    RunJob,
    RunningSummary,
    Search,
    Seed,
    Share,
    Skipped,
    Subscribe,
    Summarize,
    Tag,
    Tiers,
    Turns,
    Undo,
    Update,
    Verify,
    WhyNot,
    Workspaces,
)
from memoryd.client.times import When, seconds

P = ParamSpec("P")
R = TypeVar("R")
Words = str | Sequence[str]

Postprocessor = Callable[[str, list[Hit]], list[Hit]]


class SyncCaller(Protocol):
    """Sends a call and returns its result."""

    def call(self, call: Call[R], /) -> R: ...


class AsyncCaller(Protocol):
    """Sends a call and returns an awaitable of its result."""

    def call(self, call: Call[R], /) -> Awaitable[R]: ...


class method(Generic[P, R]):
    """A client's method made of a builder: it builds the call, the client sends it."""

    def __init__(self, build: Callable[P, Call[R]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, client: SyncCaller, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, client: AsyncCaller, owner: type) -> Callable[P, Awaitable[R]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self.build

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.call(self.build(*args, **kwargs))

        call.__doc__ = self.build.__doc__
        call.__name__ = self.build.__name__
        return call


def namespace_text(namespace: str | Sequence[str] | None) -> str:
    """Return the wire form of a namespace: `("acme", "api")` and `"acme/api"` are the same."""
    if namespace is None or isinstance(namespace, str):
        return namespace or ""
    if not all(isinstance(part, str) and part and "/" not in part for part in namespace):
        raise Invalid(f"The namespace {tuple(namespace)!r} has a part that is empty, has a slash or is not text.")
    return "/".join(namespace)


def words(value: Words | None) -> list[str]:
    """Return a list for one word or several."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def add(
    content: str,
    *,
    type: str = "fact",
    metadata: Mapping[str, Any] | None = None,
    dedup: bool = True,
    dedup_threshold: float | None = None,
    allow_secrets: bool = False,
    **fields: Any,
) -> Add:
    """Remember `content`. `fields` are those of `NewMemory`: summary, importance, source, created_at, supersedes …

    Likely credentials in it are taken out first unless `allow_secrets`; the result's `redacted` tells which."""
    memory = new_memory({"content": content, "type": type, "metadata": metadata, **fields})
    return Add(memory=memory, dedup=dedup, dedup_threshold=dedup_threshold, allow_secrets=allow_secrets)


def new_memory(item: NewMemory | Mapping[str, Any]) -> NewMemory:
    """Return a `NewMemory` for a mapping of its fields; dates may be ISO text or datetimes."""
    if isinstance(item, NewMemory):
        return item
    fields = {name: value for name, value in item.items() if value is not None}
    for name in ("created_at", "expires_at"):
        if name in fields:
            fields[name] = seconds(fields[name])
    try:
        return msgspec.convert(fields, NewMemory)
    except msgspec.ValidationError as error:
        raise Invalid(f"Not a memory: {error}.") from None


def add_many_calls(
    memories: Iterable[NewMemory | Mapping[str, Any]],
    *,
    dedup: bool = True,
    dedup_threshold: float | None = None,
    allow_secrets: bool = False,
) -> Iterator[AddMany]:
    """Yield the calls that add `memories`: one, or more where they would not fit into a frame."""
    for batch in batches(map(new_memory, memories)):
        yield AddMany(memories=batch, dedup=dedup, dedup_threshold=dedup_threshold, allow_secrets=allow_secrets)


def joined(parts: Sequence[AddedMany]) -> AddedMany:
    """Return the results of several `add_many` calls as one."""
    return AddedMany(
        results=[result for part in parts for result in part.results],
        created=sum(part.created for part in parts),
        merged=sum(part.merged for part in parts),
        operations=[operation for part in parts for operation in part.operations],
        redacted=summed(part.redacted for part in parts),
    )


def summed(parts: Iterable[Redacted]) -> Redacted:
    """Return how many credentials of each kind were taken out in all."""
    total: Redacted = {}
    for part in parts:
        for kind, number in part.items():
            total[kind] = total.get(kind, 0) + number
    return total


def _filters(
    type: Words | None = None,
    source: Words | None = None,
    tier: Words | None = None,
    metadata: Mapping[str, Any] | None = None,
    after: When | None = None,
    before: When | None = None,
    path_prefix: str | None = None,
    ids: Sequence[str] = (),
    reach: str | None = None,
) -> dict[str, Any]:
    return {
        "type": words(type),
        "source": words(source),
        "tier": words(tier),
        "metadata": dict(metadata or {}),
        "after": None if after is None else seconds(after),
        "before": None if before is None else seconds(before),
        "path_prefix": path_prefix,
        "ids": list(ids),
        "reach": reach,
    }


_FILTER_NAMES = frozenset(_filters())


def _query_fields(fields: dict[str, Any]) -> dict[str, Any]:
    filters = _filters(**{name: fields.pop(name) for name in _FILTER_NAMES & fields.keys()})
    return {**filters, **fields}


def search(query: str, *, limit: int = 10, **fields: Any) -> Search:
    """Find memories for `query`. `fields` are filters (type, source, tier, metadata, after, before, path_prefix, ids,
    reach) and the parameters of `Search` (deadline_ms, min_score, min_similarity, fusion …)."""
    return _built(Search, query=query, limit=limit, **_query_fields(fields))


def explain(query: str, *, limit: int = 10, **fields: Any) -> Explain:
    """Run a search and return its trace with the hits; takes what `search` takes."""
    return _built(Explain, query=query, limit=limit, **_query_fields(fields))


def why_not(id: str, query: str, *, limit: int = 10, **fields: Any) -> WhyNot:
    """Say why memory `id` is or is not among the hits of `query`; takes what `search` takes."""
    return _built(WhyNot, id=id, query=query, limit=limit, **_query_fields(fields))


def trace(id: str | None = None) -> GetTrace:
    """Return the kept trace of an earlier search, by default the latest."""
    return GetTrace(id=id)


def get(id: str) -> Call[Memory]:
    """Read one memory by id or unique prefix."""
    return Get(id=id)


def list_(*, limit: int = 20, **fields: Any) -> Call[Page]:
    """List memories; takes the filters of `search` and sort, ascending, offset, all_states."""
    return _built(List, limit=limit, **_query_fields(fields))


def update(id: str, *, expires_at: When | UnsetType | None = UNSET, **fields: Any) -> Call[Changed]:
    """Change the given fields of a memory: content, type, summary, metadata, importance, expires_at, pinned."""
    if not (expires_at is None or expires_at is UNSET):
        expires_at = seconds(expires_at)
    return _built(Update, id=id, expires_at=expires_at, **fields)


def tag(id: str, *tags: str, **values: Any) -> Call[Changed]:
    """Add words to a memory's `tags` and set metadata values."""
    return Tag(id=id, tags=list(tags), values=values)


def delete(*ids: str) -> Delete:
    """Delete memories by id or unique prefix."""
    return Delete(ids=list(ids))


def feedback(id: str, useful: bool, note: str = "") -> Feedback:
    """Say whether a memory was useful; it ranks a little higher or lower from then on."""
    return Feedback(id=id, useful=useful, note=note)


def share(*ids: str, to: str | Sequence[str], move: bool = False) -> Share:
    """Copy memories outward to the namespace `to`, or move them there."""
    return Share(ids=list(ids), to=namespace_text(to), move=move)


def history(id: str) -> History:
    """Return every change of a memory."""
    return History(id=id)


def operations(limit: int = 20) -> Operations:
    """Return the latest operations."""
    return Operations(limit=limit)


def undo(operation: int | None = None) -> Undo:
    """Take back one operation, by default the latest."""
    return Undo(operation=operation)


def jobs() -> Jobs:
    """Return the background jobs with their states."""
    return Jobs()


def run_job(name: str, *, dry_run: bool = False, plan: str | None = None, **fields: Any) -> Call[JobRun]:
    """Run a job now, make its plan with `dry_run`, or carry out such a plan by its id."""
    return _built(RunJob, name=name, dry_run=dry_run, plan=plan, **fields)


def pause_job(name: str) -> PauseJob:
    """Keep a job from running by itself."""
    return PauseJob(name=name)


def resume_job(name: str) -> ResumeJob:
    """Let a job run by itself again."""
    return ResumeJob(name=name)


def job_history(name: str | None = None, *, limit: int = 20) -> JobHistory:
    """Return the latest runs of a job, or of all."""
    return JobHistory(name=name, limit=limit)


def observe(turns: Iterable[NewTurn | Mapping[str, Any]], *, session: str = "", allow_secrets: bool = False) -> Observe:
    """Take note of turns of a conversation: mappings with role and content, and created_at and id if they matter."""
    return Observe(turns=[new_turn(turn) for turn in turns], session=session, allow_secrets=allow_secrets)


def end_session(session: str) -> EndSession:
    """Say that a conversation is over: it is summed up, and facts are drawn out of it, at once in the background."""
    return EndSession(session=session)


def reset_session(session: str) -> ResetSession:
    """Say that a session has lost what contexts gave it, as by a compaction: the next ones may give it again."""
    return ResetSession(session=session)


def complete_task(outcome: str, output: str, *, task: str = "", session: str = "", **fields: Any) -> CompleteTask:
    """Keep what came of a task: `completed`, `failed`, `partial` or `cancelled`, and its output or why it failed."""
    return _built(CompleteTask, outcome=outcome, output=output, task=task, session=session, **fields)


def new_turn(item: NewTurn | Mapping[str, Any]) -> NewTurn:
    """Return a `NewTurn` for a mapping of its fields; the date may be ISO text or a datetime."""
    if isinstance(item, NewTurn):
        return item
    fields = {name: value for name, value in item.items() if value is not None}
    if "created_at" in fields:
        fields["created_at"] = seconds(fields["created_at"])
    try:
        return msgspec.convert(fields, NewTurn)
    except msgspec.ValidationError as error:
        raise Invalid(f"Not a turn: {error}.") from None


def turns(*, session: str | None = None, limit: int = 100, reach: str | None = None) -> Turns:
    """Return the turns in L0, newest first."""
    return _built(Turns, session=session, limit=limit, reach=reach)


def skipped(*, limit: int = 100, offset: int = 0, reach: str | None = None) -> Skipped:
    """Return turns that were not kept, newest first, each with the reason."""
    return _built(Skipped, limit=limit, offset=offset, reach=reach)


def tiers(*, reach: str | None = None) -> Tiers:
    """Return what each tier holds, and how many turns went which way."""
    return _built(Tiers, reach=reach)


def consolidate(*, dry_run: bool = False, reach: str | None = None) -> Consolidate:
    """Judge, promote, move to the registry and cluster everything within reach now."""
    return _built(Consolidate, dry_run=dry_run, reach=reach)


def seed(
    *,
    turns: Iterable[NewTurn | Mapping[str, Any]] = (),
    memories: Iterable[NewMemory | Mapping[str, Any]] = (),
    session: str = "",
    allow_secrets: bool = False,
) -> Seed:
    """Take in many turns (at most 500 a call) or memories at once, without the gate."""
    return Seed(
        turns=[new_turn(turn) for turn in turns],
        memories=[new_memory(m) for m in memories],
        session=session,
        allow_secrets=allow_secrets,
    )


def graph_nodes(query: str = "", *, limit: int = 20, **fields: Any) -> GraphNodes:
    """List the nodes of the graph, the largest first; `fields`: topic, kind, sort, offset, reach."""
    return _built(GraphNodes, query=query, limit=limit, **fields)


def graph_edges(*, limit: int = 20, **fields: Any) -> GraphEdges:
    """List the edges of the graph, the heaviest first; `fields`: kind, node, offset, reach."""
    return _built(GraphEdges, limit=limit, **fields)


def graph_node(node: int) -> GraphNode:
    """Show one node with its members and neighbours."""
    return GraphNode(node=node)


def graph_topics() -> GraphTopics:
    """List the topics, the largest first."""
    return GraphTopics()


def graph_dedupe(threshold: float | None = None, *, dry_run: bool = False) -> GraphDedupe:
    """Merge nodes that are alike."""
    return GraphDedupe(threshold=threshold, dry_run=dry_run)


def graph_abstract(threshold: float | None = None, *, dry_run: bool = False) -> GraphAbstract:
    """Give groups of clusters that are alike a concept node."""
    return GraphAbstract(threshold=threshold, dry_run=dry_run)


def graph_regroup(*, dry_run: bool = False) -> GraphRegroup:
    """Find the topics anew."""
    return GraphRegroup(dry_run=dry_run)


def graph_export(after: int = 0, *, limit: int = 500, preview: int = 80) -> GraphExport:
    """Return one part of the graph; ask again with `after` = the part's `next` until that is None."""
    return GraphExport(after=after, limit=limit, preview=preview)


def remember(text: str, workspace: str, *, file: str = "today", allow_secrets: bool = False) -> Remember:
    """Write a note into a file of a workspace (its namespace, or a path inside it): today's, or the one named."""
    return Remember(text=text, workspace=workspace, file=file, allow_secrets=allow_secrets)


def forget(*ids: str, text: str | None = None, dry_run: bool = False, **lines: Any) -> Forget:
    """Forget memories: lines of files are taken out, others are deleted. `text`, or `start_line` and `end_line`, name
    a part of one."""
    return _built(Forget, ids=list(ids), text=text, dry_run=dry_run, **lines)


def dream(place: str | None = None, *, dry_run: bool = False, force: bool = False, **fields: Any) -> Dream:
    """Put MEMORY.md of a workspace in order, or the memories of a namespace; `undo` takes back the latest dream."""
    return _built(Dream, place=place, dry_run=dry_run, force=force, **fields)


def summarize(
    messages: Iterable[Message | Mapping[str, Any]],
    running_summary: RunningSummary | Mapping[str, Any] | None = None,
    *,
    max_tokens: int,
    **fields: Any,
) -> Summarize:
    """Keep a conversation within a budget of tokens: its older part becomes a summary; `wait` asks a language model."""
    given = msgspec.convert(list(messages), list[Message], from_attributes=True)
    former = msgspec.convert(running_summary, RunningSummary | None, from_attributes=True)
    return _built(Summarize, messages=given, running_summary=former, max_tokens=max_tokens, **fields)


def diff_workspaces(workspace: str | None = None) -> DiffWorkspaces:
    """Compare the index with the files of a workspace, or of all."""
    return DiffWorkspaces(workspace=workspace)


def export_memories(after_id: str = "", *, limit: int = 500, **fields: Any) -> ExportMemories:
    """Return one portion of the memories with all that is stored of them; go on with `after_id` = its `next` until that
    is None. `fields` are the filters of `search`."""
    return _built(ExportMemories, after_id=after_id, limit=limit, **_query_fields(fields))


def import_memories(
    records: Iterable[Record], *, overwrite: bool = False, dry_run: bool = False, **fields: Any
) -> ImportMemories:
    """Put exported memories back exactly; where one differs from what is stored the later change wins."""
    return _built(ImportMemories, records=list(records), overwrite=overwrite, dry_run=dry_run, **fields)


def backup(path: str | os.PathLike[str] = "") -> Backup:
    """Copy the whole database to one checked file: a new file, into a folder, or into `backups` beside the database."""
    return Backup(path=absolute(path) if path else "")


def verify(*, repair: bool = False) -> Verify:
    """Check the database and all that is derived from its rows; with `repair` build that anew."""
    return Verify(repair=repair)


def add_workspace(path: str | os.PathLike[str], *, namespace: str | None = None, globs: Words = ()) -> AddWorkspace:
    """Make a folder of Markdown files a workspace; a relative path is one from the current directory."""
    return _built(
        AddWorkspace, path=absolute(path), namespace=namespace, globs=[globs] if isinstance(globs, str) else list(globs)
    )


def remove_workspace(workspace: str) -> RemoveWorkspace:
    """Forget a workspace, given by its namespace or a path in it, and what is indexed of it; its files stay."""
    return RemoveWorkspace(workspace=place(workspace))


def workspaces() -> Workspaces:
    """Return the workspaces."""
    return Workspaces()


def workspace_status(workspace: str) -> GetWorkspace:
    """Tell how a workspace is: what is indexed, what is not and why, how it is watched."""
    return GetWorkspace(workspace=place(workspace))


def index_workspace(workspace: str | None = None, *, force: bool = False) -> IndexWorkspace:
    """Bring the index of a workspace, or of all, up to date with the files; `force` reads them all."""
    return IndexWorkspace(workspace=None if workspace is None else place(workspace), force=force)


def context(task: str, *, max_tokens: int = 800, session: str = "", fresh: bool = False, **fields: Any) -> GetContext:
    """Return the memories that matter for `task` as text for a prompt, within `max_tokens`; `.text` is empty when
    nothing is relevant. A `session` is given nothing twice, unless it is `fresh`. `fields` are filters, `opening`,
    `compact` and `deadline_ms`."""
    return _built(GetContext, task=task, max_tokens=max_tokens, session=session, fresh=fresh, **_query_fields(fields))


def count_tokens(texts: Sequence[str]) -> CountTokens:
    """Return how many tokens each text has, counted as `context` counts them."""
    return CountTokens(texts=list(texts))


def subscribe(kinds: Words = (), *, reach: Reach | None = None, limit: int | None = None) -> Subscribe:
    """Follow what happens; the clients' `subscribe` gives an iterator of it."""
    return _built(Subscribe, kinds=words(kinds), reach=reach, limit=limit)


def stats() -> GetStats:
    """Return counts of what is stored."""
    return GetStats()


def status() -> GetStatus:
    """Return the daemon's health."""
    return GetStatus()


C = TypeVar("C", bound=Call[Any])


def _built(call: type[C], **fields: Any) -> C:
    """Return the call, its fields checked here so that a mistake is an `Invalid` at the caller's line."""
    unknown = fields.keys() - set(call.__struct_fields__)
    if unknown:
        raise Invalid(f"{call.__name__} has no parameter {', '.join(sorted(unknown))}.")
    return call(**fields)


class Methods:
    """The convenience methods; a client adds `call`."""

    _postprocessors: tuple[Postprocessor, ...] = ()

    def register_postprocessor(self, process: Postprocessor) -> None:
        """Have `process(query, hits) -> hits` run on the hits of each search of this client, in this process."""
        self._postprocessors += (process,)

    def _processed(self, call: Call[R], result: R) -> R:
        if isinstance(result, Hits | Explanation) and isinstance(call, Query):
            for process in self._postprocessors:
                result.hits = process(call.query, result.hits)
        return result

    add = method(add)
    search = method(search)
    explain = method(explain)
    why_not = method(why_not)
    trace = method(trace)
    get = method(get)
    list = method(list_)
    update = method(update)
    tag = method(tag)
    delete = method(delete)
    feedback = method(feedback)
    share = method(share)
    history = method(history)
    operations = method(operations)
    undo = method(undo)
    jobs = method(jobs)
    run_job = method(run_job)
    pause_job = method(pause_job)
    resume_job = method(resume_job)
    job_history = method(job_history)
    observe = method(observe)
    end_session = method(end_session)
    reset_session = method(reset_session)
    complete_task = method(complete_task)
    turns = method(turns)
    skipped = method(skipped)
    tiers = method(tiers)
    consolidate = method(consolidate)
    seed = method(seed)
    graph_nodes = method(graph_nodes)
    graph_edges = method(graph_edges)
    graph_node = method(graph_node)
    graph_topics = method(graph_topics)
    graph_dedupe = method(graph_dedupe)
    graph_abstract = method(graph_abstract)
    graph_regroup = method(graph_regroup)
    graph_export = method(graph_export)
    remember = method(remember)
    forget = method(forget)
    dream = method(dream)
    summarize = method(summarize)
    diff_workspaces = method(diff_workspaces)
    export_memories = method(export_memories)
    import_memories = method(import_memories)
    add_workspace = method(add_workspace)
    remove_workspace = method(remove_workspace)
    workspaces = method(workspaces)
    workspace_status = method(workspace_status)
    index_workspace = method(index_workspace)
    context = method(context)
    count_tokens = method(count_tokens)
    stats = method(stats)
    backup = method(backup)
    verify = method(verify)
    status = method(status)
