"""Handlers of the calls about the daemon itself: status, statistics, shutdown, tokens, events."""

import os
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import msgspec

import memoryd
from memoryd.client import protocol
from memoryd.client.errors import NotFound, StorageFailed, Unauthenticated
from memoryd.client.protocol import NewToken, Subscribed
from memoryd.daemon.jobs import tier_report
from memoryd.daemon.memories import reading
from memoryd.daemon.registry import handles
from memoryd.daemon.server.dispatch import CallContext
from memoryd.daemon.server.view import EventView
from memoryd.daemon.store import upkeep
from memoryd.daemon.store.caller import ANONYMOUS
from memoryd.daemon.system.process import rss_bytes


@handles(protocol.GetStatus)
def status(context: CallContext, call: protocol.GetStatus) -> protocol.Status:
    """Return the daemon's health; a bound caller sees nothing that depends on the memories of others."""
    core, server, caller = context.core, context.server, context.caller
    if caller.bound:
        memories, waiting = (0, 0) if caller is ANONYMOUS else reading.count_within(core, caller)
        return _status(
            context, memories, waiting, msgspec.structs.replace(core.embedding.report_state(), reembedding=None)
        )
    pending, generation, model = core.embedding.count_pending(), core.embedding.active, core.embedding.report_state()
    degraded, unread = [] if generation else ["vector"], None
    try:
        memories, unread = reading.count(core), core.languages.find_unread(model.name)
    except StorageFailed:  # the file is damaged, but the arrays in RAM still have the count
        memories = len(core.arrays.columns.list_places())
        degraded.append("database")
    return msgspec.structs.replace(
        _status(context, memories, memories if pending is None else pending, model),
        degraded=degraded,
        connections=server.connections(),
        queued=server.queued(),
        rss_bytes=rss_bytes(),
        index_bytes=generation.size_bytes() if generation else 0,
        database_bytes=core.store.size_bytes(),
        database_limit_bytes=core.store.limit_bytes,
        database_used_bytes=core.store.used_bytes,
        clock=core.clock.read_state(),
        threads=core.supervisor.list_states(),
        turns=len(core.active.list_turns(None)),
        data_bytes=_measure_folder(core.folder),
        disk_full=core.store.reserve.is_spent(),
        options=core.options,
        unread=unread,
        pauses=core.pauses.list_all(),
    )


def _measure_folder(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it was deleted meanwhile
                total += os.lstat(os.path.join(path, name)).st_size
    return total


def _status(context: CallContext, memories: int, pending: int, model: protocol.ModelState) -> protocol.Status:
    """Return the fields that every caller may see."""
    core, server = context.core, context.server
    return protocol.Status(
        version=memoryd.__version__,
        protocol=protocol.PROTOCOL_VERSION,
        pid=os.getpid(),
        uptime_s=round(time.monotonic() - server.started_at, 3),
        socket=server.socket,
        data_dir=str(core.folder),
        memories=memories,
        pending_embeddings=pending,
        model=model,
        degraded=[] if core.embedding.active else ["vector"],
    )


@handles(protocol.UseModel)
def use_model(context: CallContext, call: protocol.UseModel) -> protocol.Done:
    """Switch to another model in the background."""
    context.core.embedding.use(call.name)
    return protocol.Done(message=f"switching to {call.name}")


@handles(protocol.Shutdown)
def shutdown(context: CallContext, call: protocol.Shutdown) -> protocol.Done:
    """Stop the daemon after the running calls, or restart it on the same socket."""
    (context.server.restart if call.restart else context.server.stop)()
    return protocol.Done(message="restarting" if call.restart else "stopping")


@handles(protocol.Hello)
def hello(context: CallContext, call: protocol.Hello) -> protocol.Welcome:
    """Answer the greeting of a client, which may be the first one of a newer version."""
    return context.server.welcome(call.version)


@handles(protocol.Subscribe)
def subscribe(context: CallContext, call: protocol.Subscribe) -> "Future[Subscribed]":
    """Subscribe to events. The reply comes at the end, but the lane is free at once."""
    return context.follow(EventView(context.core, call, context.caller), call.limit)


@handles(protocol.GetStats)
def stats(context: CallContext, call: protocol.GetStats) -> protocol.Stats:
    """Count what is stored; a bound caller sees no figures of the daemon, because these depend on others."""
    result = reading.stats(context.core, call, context.caller)
    if not context.caller.bound:
        result.methods = context.server.methods()
        result.daemon = _read_runtime(context, result)
    return result


def _read_runtime(context: CallContext, stats: protocol.Stats) -> protocol.Runtime:
    core, server = context.core, context.server
    generation = core.embedding.active
    tiers = tier_report.tiers(core, protocol.Tiers(reach="all"))
    return protocol.Runtime(
        version=memoryd.__version__,
        pid=os.getpid(),
        at=core.clock(),
        uptime_s=round(time.monotonic() - server.started_at, 3),
        cpu_s=round(time.process_time(), 3),
        rss_bytes=rss_bytes(),
        index_bytes=generation.size_bytes() if generation else 0,
        wal_bytes=upkeep.log_size_bytes(core.store),
        model=core.embedding.report_state(),
        degraded=[] if generation else ["vector"],
        queues={**server.queued(), "vectors": stats.pending_embeddings, **tiers.waiting, **tiers.resting},
        tiers=tiers.tiers,
        jobs=context.jobs.list().jobs,
        clients=server.clients(),
        threads=core.supervisor.list_states(),
    )


@handles(protocol.Authenticate)
def authenticate(context: CallContext, call: protocol.Authenticate) -> protocol.Identity:
    """Bind the connection to the caller of a token; after a wrong token it acts for nobody."""
    try:
        caller = context.core.tokens.find_caller(call.token)
    except Unauthenticated:
        context.become(ANONYMOUS)
        raise
    context.become(caller)
    return protocol.Identity(name=caller.name, namespace=caller.namespace, role=caller.role)


@handles(protocol.Confine)
def confine(context: CallContext, call: protocol.Confine) -> protocol.Identity:
    """Bind the connection to the token with a name, for somebody on another machine."""
    caller = context.core.tokens.find_named(call.name)
    if caller is None:
        raise NotFound(f"There is no token {call.name[:80]!r}; `memctl token list` lists them.", {"name": call.name})
    assert caller.role in ("reader", "agent", "lead")  # the owner's has no name
    context.become(caller._replace(confined=True))
    return protocol.Identity(name=caller.name, namespace=caller.namespace, role=caller.role)


@handles(protocol.AddToken)
def add_token(context: CallContext, call: protocol.AddToken) -> "Future[NewToken]":
    """Create a token."""
    return context.core.tokens.add(call)


@handles(protocol.ListTokens)
def list_tokens(context: CallContext, call: protocol.ListTokens) -> protocol.TokenList:
    """List the tokens."""
    return context.core.tokens.list_tokens()


@handles(protocol.RevokeToken)
def revoke_token(context: CallContext, call: protocol.RevokeToken) -> protocol.Done:
    """Revoke a token."""
    context.core.tokens.revoke(call.name).result()
    return protocol.Done(message=f"revoked {call.name}")
