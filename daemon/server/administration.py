"""Handlers of the calls that look after the daemon."""

import os
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import msgspec

import memoryd
from memoryd.client.protocol import (
    PROTOCOL_VERSION,
    Done,
    GetStatus,
    Hello,
    ModelState,
    Restart,
    Shutdown,
    Status,
    Subscribe,
    Subscribed,
    UseModel,
    Welcome,
)
from memoryd.daemon.memories import reading
from memoryd.daemon.registry import handles
from memoryd.daemon.server.dispatch import Context
from memoryd.daemon.server.view import View
from memoryd.daemon.system.process import rss_bytes


@handles(GetStatus)
def status(context: Context, call: GetStatus) -> Status:
    """Return the daemon's health; a bound caller sees nothing that depends on others' memories."""
    core, server, caller = context.core, context.server, context.caller
    if caller.bound:
        memories, waiting = (0, 0) if caller.role == "nobody" else reading.count_within(core, caller)
        return _status(
            context, memories, waiting, msgspec.structs.replace(core.embedding.report_state(), reembedding=None)
        )
    pending, generation = core.embedding.count_pending(), core.embedding.active
    memories = reading.count(core)
    return msgspec.structs.replace(
        _status(context, memories, memories if pending is None else pending, core.embedding.report_state()),
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
    )


def _measure_folder(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    found = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it was deleted meanwhile
                found += os.lstat(os.path.join(path, name)).st_size
    return found


def _status(context: Context, memories: int, pending: int, model: ModelState) -> Status:
    """Return what everybody is shown."""
    core, server = context.core, context.server
    return Status(
        version=memoryd.__version__,
        protocol=PROTOCOL_VERSION,
        pid=os.getpid(),
        uptime_s=round(time.monotonic() - server.started_at, 3),
        socket=server.socket,
        data_dir=str(core.folder),
        memories=memories,
        pending_embeddings=pending,
        model=model,
        degraded=[] if core.embedding.active else ["vector"],
    )


@handles(UseModel)
def use_model(context: Context, call: UseModel) -> Done:
    """Switch to another model in the background."""
    context.core.embedding.use(call.name)
    return Done(message=f"switching to {call.name}")


@handles(Shutdown)
def shutdown(context: Context, call: Shutdown) -> Done:
    """End the daemon after the calls under way."""
    context.server.stop()
    return Done(message="stopping")


@handles(Restart)
def restart(context: Context, call: Restart) -> Done:
    """Start again on the same socket after the calls under way."""
    context.server.restart()
    return Done(message="restarting")


@handles(Hello)
def hello(context: Context, call: Hello) -> Welcome:
    """Greet a client, which may be the first one of a newer version."""
    return context.server.welcome(call.version)


@handles(Subscribe)
def subscribe(context: Context, call: Subscribe) -> "Future[Subscribed]":
    """Follow events; the lane is free again at once."""
    return context.follow(View(context.core, call, context.caller), call.limit)
