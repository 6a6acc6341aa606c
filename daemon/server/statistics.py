"""Handler of the call that reports what is stored and the state of the daemon."""

import os
import time

import memoryd
from memoryd.client.protocol import GetStats, Runtime, Stats, Tiers
from memoryd.daemon.jobs import tiers as reporting
from memoryd.daemon.memories import reading
from memoryd.daemon.registry import handles
from memoryd.daemon.server.dispatch import Context
from memoryd.daemon.store import upkeep
from memoryd.daemon.system.process import rss_bytes


@handles(GetStats)
def stats(context: Context, call: GetStats) -> Stats:
    """Count what is stored; a bound caller sees no figures of the daemon, which depend on others."""
    result = reading.stats(context.core, call, context.caller)
    if not context.caller.bound:
        result.methods = context.server.methods()
        result.daemon = _read_runtime(context, result)
    return result


def _read_runtime(context: Context, found: Stats) -> Runtime:
    core, server = context.core, context.server
    generation = core.embedding.active
    tiers = reporting.tiers(core, Tiers(reach="all"))
    return Runtime(
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
        queues={**server.queued(), "vectors": found.pending_embeddings, **tiers.waiting, **tiers.heard},
        tiers=tiers.tiers,
        jobs=context.jobs.list().jobs,
        clients=server.clients(),
        threads=core.supervisor.list_states(),
        shared=context.lines.report().roots,
    )
