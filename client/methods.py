"""The clients' methods that follow from the contract. Written by `make protocol`; do not edit."""

from __future__ import annotations

from typing import Any, Literal

from memoryd.client import protocol
from memoryd.client.fields import Words, to_list, to_moment
from memoryd.client.method import method
from memoryd.client.protocol import Reach
from memoryd.client.times import When


def get(
    id: str = "",
    key: str = "",
    renew: bool = False,
    include_vectors: bool = False,
    touch: bool = True,
    around: int | None = None,
    *,
    reach: Reach | None = None,
) -> protocol.Get:
    """Read one memory by id, unique prefix of 4 or more digits, or key. With `touch` this counts as an access."""
    return protocol.Get(
        id=id, key=key, renew=renew, include_vectors=include_vectors, touch=touch, around=around, reach=reach
    )


def confirm(ids: Words, *, reach: Reach | None = None) -> protocol.Confirm:
    """Confirm memories in the person's name, as they are now: all or none. They then count as the person's own."""
    return protocol.Confirm(ids=to_list("ids", ids), reach=reach)


def traces(kind: Words = (), limit: int = 20, *, reach: Reach | None = None) -> protocol.Traces:
    """List the stored traces of searches and contexts, newest first; the root lists those of all namespaces."""
    return protocol.Traces(kind=to_list("kind", kind), limit=limit, reach=reach)


def get_unasked(
    prompt: str = "",
    session: str = "",
    agent: str = "",
    fresh: bool = False,
    deadline_ms: int | None = None,
    touch: bool = True,
    folder: str = "",
    *,
    reach: Reach | None = None,
) -> protocol.GetUnasked:
    """Return what an agent is to be shown automatically, at a session's start or with a `prompt`."""
    return protocol.GetUnasked(
        prompt=prompt,
        session=session,
        agent=agent,
        fresh=fresh,
        deadline_ms=deadline_ms,
        touch=touch,
        folder=folder,
        reach=reach,
    )


def list_given(since: float | None = None, limit: int = 20, *, reach: Reach | None = None) -> protocol.ListGiven:
    """List what agents were given by contexts and automatically within the last 400 days, session by session."""
    return protocol.ListGiven(since=since, limit=limit, reach=reach)


def measure_usefulness(since: float | None = None, *, reach: Reach | None = None) -> protocol.MeasureUsefulness:
    """Count by project and month how many of the lines shown to sessions were used, said again or corrected."""
    return protocol.MeasureUsefulness(since=since, reach=reach)


def links(limit: int = 20, *, reach: Reach | None = None) -> protocol.Links:
    """List the memories within reach that contradict each other, the latest link first."""
    return protocol.Links(limit=limit, reach=reach)


def dismiss_link(id: str, other: str, restore: bool = False, *, reach: Reach | None = None) -> protocol.DismissLink:
    """Declare that two memories do not contradict each other: their link is removed and not made again."""
    return protocol.DismissLink(id=id, other=other, restore=restore, reach=reach)


def list_changes(limit: int = 20, *, reach: Reach | None = None) -> protocol.ListChanges:
    """List the saved memories within reach that a later turn or memory seems to change."""
    return protocol.ListChanges(limit=limit, reach=reach)


def settle_change(
    id: str,
    verdict: Literal["new", "both", "open"],
    origin: Literal["person", "agent", "heard", "file", "import"] = "agent",
    *,
    reach: Reach | None = None,
) -> protocol.SettleChange:
    """Settle whether a saved memory, the newest later statement that seems to change it, or both hold."""
    return protocol.SettleChange(id=id, verdict=verdict, origin=origin, reach=reach)


def feedback(
    id: str, useful: bool, note: str = "", allow_secrets: bool = False, *, reach: Reach | None = None
) -> protocol.Feedback:
    """Say whether a memory was useful, and why."""
    return protocol.Feedback(id=id, useful=useful, note=note, allow_secrets=allow_secrets, reach=reach)


def history(
    id: str = "", operation: str = "", limit: int = 100, offset: int = 0, *, reach: Reach | None = None
) -> protocol.History:
    """Return every change of one memory, even a deleted one, or an operation's changes to memories within reach."""
    return protocol.History(id=id, operation=operation, limit=limit, offset=offset, reach=reach)


def operations(
    limit: int = 20,
    offset: int = 0,
    after: When | None = None,
    before: When | None = None,
    kind: Words = (),
    *,
    reach: Reach | None = None,
) -> protocol.Operations:
    """List the latest operations, which `undo` can take back, newest first."""
    return protocol.Operations(
        limit=limit,
        offset=offset,
        after=to_moment(after),
        before=to_moment(before),
        kind=to_list("kind", kind),
        reach=reach,
    )


def undo(operation: str | None = None, *, reach: Reach | None = None) -> protocol.Undo:
    """Undo one operation as a whole; without an id the latest of the caller's namespace, whoever did it."""
    return protocol.Undo(operation=operation, reach=reach)


def erase(
    ids: Words = (),
    session: str | None = None,
    matching: str | None = None,
    unsent: Words = (),
    copies: bool = False,
    dry_run: bool = False,
    *,
    reach: Reach | None = None,
    type: Words = (),
    source: Words = (),
    tier: list[Literal["L0", "L1", "L2", "documents", "waiting", "L3"]] = [],
    where: dict[str, Any] = {},
    after: When | None = None,
    before: When | None = None,
    path_prefix: str | None = None,
) -> protocol.Erase:
    """Erase memories and turns for good: no undo brings them back, and only copies of the database still have
    them."""
    return protocol.Erase(
        ids=to_list("ids", ids),
        session=session,
        matching=matching,
        unsent=to_list("unsent", unsent),
        copies=copies,
        dry_run=dry_run,
        reach=reach,
        type=to_list("type", type),
        source=to_list("source", source),
        tier=tier,
        where=where,
        after=to_moment(after),
        before=to_moment(before),
        path_prefix=path_prefix,
    )


def turns(
    session: str | None = None, limit: int = 100, skipped: bool = False, *, reach: Reach | None = None
) -> protocol.Turns:
    """List the turns in L0, newest first."""
    return protocol.Turns(session=session, limit=limit, skipped=skipped, reach=reach)


def tiers(*, reach: Reach | None = None) -> protocol.Tiers:
    """Return the size of each tier, and the account of turns: how many were observed and where they went."""
    return protocol.Tiers(reach=reach)


def consolidate(dry_run: bool = False, *, reach: Reach | None = None) -> protocol.Consolidate:
    """Move all turns within reach from L0 to L1 or L2 now, by their importance, and cluster the memories of L2."""
    return protocol.Consolidate(dry_run=dry_run, reach=reach)


def get_observing() -> protocol.GetObserving:
    """Return where observing is paused."""
    return protocol.GetObserving()


def pause_observing(
    kind: Literal["session", "namespace", "folder"], name: str, resume: bool = False
) -> protocol.PauseObserving:
    """Stop observing in a session, namespace or folder, or with `resume` start again. What was observed before
    stays."""
    return protocol.PauseObserving(kind=kind, name=name, resume=resume)


def end_session(session: str, wait: bool = False, *, reach: Reach | None = None) -> protocol.EndSession:
    """Report that a conversation is over: it is summarised in the background, and a language model extracts its
    facts."""
    return protocol.EndSession(session=session, wait=wait, reach=reach)


def reset_session(session: str, *, reach: Reach | None = None) -> protocol.ResetSession:
    """Report that a session has lost the contexts it was given, as by a compaction: it may be given the same
    again."""
    return protocol.ResetSession(session=session, reach=reach)


def complete_task(
    outcome: Literal["completed", "failed", "partial", "cancelled"],
    output: str,
    task: str = "",
    session: str = "",
    allow_secrets: bool = False,
    *,
    reach: Reach | None = None,
) -> protocol.CompleteTask:
    """Record the result of a task for later sessions: as a note, or as a lesson if it failed."""
    return protocol.CompleteTask(
        outcome=outcome, output=output, task=task, session=session, allow_secrets=allow_secrets, reach=reach
    )


def get_log(
    since: float | None = None,
    until: float | None = None,
    path: str = "",
    session: str | None = None,
    limit: int = 20,
    *,
    reach: Reach | None = None,
) -> protocol.GetLog:
    """Return what was done, session by session: the request, the summary, the results, the files that were
    written."""
    return protocol.GetLog(since=since, until=until, path=path, session=session, limit=limit, reach=reach)


def backfill(
    namespace: str = "",
    session: str = "",
    turns: list[protocol.PastTurn] = [],
    before: int = 0,
    after: int = 0,
    operation: str | None = None,
    dry_run: bool = False,
    allow_secrets: bool = False,
) -> protocol.Backfill:
    """Store turns of a past session as memories, with the times at which they were said."""
    return protocol.Backfill(
        namespace=namespace,
        session=session,
        turns=turns,
        before=before,
        after=after,
        operation=operation,
        dry_run=dry_run,
        allow_secrets=allow_secrets,
    )


def listen(
    agent: str,
    file: str,
    session: str,
    namespace: str = "",
    folder: str = "",
    size: int = 0,
    at: float = 0.0,
    moment: Literal["start", "turn", "stop", "end"] = "turn",
    turns: list[protocol.NewTurn] = [],
    allow_secrets: bool = False,
) -> protocol.Listen:
    """Report an event in a session of a coding agent whose host keeps a file of the session: that file is read
    soon."""
    return protocol.Listen(
        agent=agent,
        file=file,
        session=session,
        namespace=namespace,
        folder=folder,
        size=size,
        at=at,
        moment=moment,
        turns=turns,
        allow_secrets=allow_secrets,
    )


def remember(
    text: str, workspace: str, file: str = "today", allow_secrets: bool = False, *, reach: Reach | None = None
) -> protocol.Remember:
    """Write a note into a file of a workspace; searches find it when the call returns."""
    return protocol.Remember(text=text, workspace=workspace, file=file, allow_secrets=allow_secrets, reach=reach)


def dream(
    place: str | None = None, dry_run: bool = False, force: bool = False, undo: bool = False, allow: bool | None = None
) -> protocol.Dream:
    """Put MEMORY.md of a workspace in order, together with its daily files."""
    return protocol.Dream(place=place, dry_run=dry_run, force=force, undo=undo, allow=allow)


def graph_nodes(
    query: str = "",
    topic: str | None = None,
    node: str | None = None,
    limit: int = 20,
    offset: int = 0,
    *,
    reach: Reach | None = None,
) -> protocol.GraphNodes:
    """List the nodes of the graph, the largest first, or return one with its members and its neighbours."""
    return protocol.GraphNodes(query=query, topic=topic, node=node, limit=limit, offset=offset, reach=reach)


def graph_topics(*, reach: Reach | None = None) -> protocol.GraphTopics:
    """List the topics: communities of nodes that are alike or were retrieved together."""
    return protocol.GraphTopics(reach=reach)


def graph_rebuild(dry_run: bool = False, *, reach: Reach | None = None) -> protocol.GraphRebuild:
    """Rebuild the graph of the namespaces within reach, as the job `cluster` does each night."""
    return protocol.GraphRebuild(dry_run=dry_run, reach=reach)


def namespaces(
    prefix: str = "", limit: int = 100, offset: int = 0, *, reach: Reach | None = None
) -> protocol.Namespaces:
    """List the namespaces that have memories. In `prefix`, `*` stands for any one part."""
    return protocol.Namespaces(prefix=prefix, limit=limit, offset=offset, reach=reach)


def move_namespace(namespace: str, to: str) -> protocol.MoveNamespace:
    """Move the turns of L0 and the tokens of a namespace to another one; `share` moves memories."""
    return protocol.MoveNamespace(namespace=namespace, to=to)


def authenticate(token: str) -> protocol.Authenticate:
    """Bind this connection to the namespace and role of a token. After an unknown token all its calls are refused."""
    return protocol.Authenticate(token=token)


def confine(name: str) -> protocol.Confine:
    """Bind this connection for good to a token, given by its name instead of its secret, for another machine's
    user."""
    return protocol.Confine(name=name)


def add_token(name: str, namespace: str, role: Literal["reader", "agent", "lead"] = "agent") -> protocol.AddToken:
    """Make a token for an agent: a connection that presents it is bound to the namespace and the role."""
    return protocol.AddToken(name=name, namespace=namespace, role=role)


def list_tokens() -> protocol.ListTokens:
    """List the tokens, without their secrets."""
    return protocol.ListTokens()


def revoke_token(name: str) -> protocol.RevokeToken:
    """Revoke a token; connections that presented it lose access at once."""
    return protocol.RevokeToken(name=name)


def get_shared(send: bool = False) -> protocol.GetShared:
    """Return the shared roots of this machine and the saves that wait to be sent to them."""
    return protocol.GetShared(send=send)


def jobs(name: str | None = None, limit: int = 20) -> protocol.Jobs:
    """List the background jobs with their states, intervals and latest runs."""
    return protocol.Jobs(name=name, limit=limit)


def run_job(
    name: str,
    dry_run: bool = False,
    plan: str | None = None,
    offset: int = 0,
    limit: int = 1000,
    by: Literal["hand", "scheduler"] = "hand",
) -> protocol.RunJob:
    """Run a job now and wait for it. With `dry_run` return the plan and change nothing; `plan` runs such a plan."""
    return protocol.RunJob(name=name, dry_run=dry_run, plan=plan, offset=offset, limit=limit, by=by)


def pause_job(name: str) -> protocol.PauseJob:
    """Stop a job from running by itself, also after a restart of the daemon; a current run is interrupted."""
    return protocol.PauseJob(name=name)


def resume_job(name: str) -> protocol.ResumeJob:
    """Let a job run by itself again after a pause or after too many failures."""
    return protocol.ResumeJob(name=name)


def list_versions(after_id: str = "", *, reach: Reach | None = None) -> protocol.ListVersions:
    """Read digests of the saved memories, and what is gone, as far as the operation log has it."""
    return protocol.ListVersions(after_id=after_id, reach=reach)


def use_model(name: str) -> protocol.UseModel:
    """Switch to another installed embedding model. Memories are re-embedded in the background, search continues."""
    return protocol.UseModel(name=name)


def verify(repair: bool = False) -> protocol.Verify:
    """Check the database, and whether full text, vectors, hashes, graph and the account of turns agree with the
    rows."""
    return protocol.Verify(repair=repair)


def shutdown(restart: bool = False) -> protocol.Shutdown:
    """Finish the current calls, write everything to disk, and stop or restart the daemon."""
    return protocol.Shutdown(restart=restart)


def hello(version: str) -> protocol.Hello:
    """Tell the daemon the client's version, before the first call."""
    return protocol.Hello(version=version)


class DeclaredMethods:
    """A method for each call that has none written by hand."""

    get = method(get)
    confirm = method(confirm)
    traces = method(traces)
    get_unasked = method(get_unasked)
    list_given = method(list_given)
    measure_usefulness = method(measure_usefulness)
    links = method(links)
    dismiss_link = method(dismiss_link)
    list_changes = method(list_changes)
    settle_change = method(settle_change)
    feedback = method(feedback)
    history = method(history)
    operations = method(operations)
    undo = method(undo)
    erase = method(erase)
    turns = method(turns)
    tiers = method(tiers)
    consolidate = method(consolidate)
    get_observing = method(get_observing)
    pause_observing = method(pause_observing)
    end_session = method(end_session)
    reset_session = method(reset_session)
    complete_task = method(complete_task)
    get_log = method(get_log)
    backfill = method(backfill)
    listen = method(listen)
    remember = method(remember)
    dream = method(dream)
    graph_nodes = method(graph_nodes)
    graph_topics = method(graph_topics)
    graph_rebuild = method(graph_rebuild)
    namespaces = method(namespaces)
    move_namespace = method(move_namespace)
    authenticate = method(authenticate)
    confine = method(confine)
    add_token = method(add_token)
    list_tokens = method(list_tokens)
    revoke_token = method(revoke_token)
    get_shared = method(get_shared)
    jobs = method(jobs)
    run_job = method(run_job)
    pause_job = method(pause_job)
    resume_job = method(resume_job)
    list_versions = method(list_versions)
    use_model = method(use_model)
    verify = method(verify)
    shutdown = method(shutdown)
    hello = method(hello)
