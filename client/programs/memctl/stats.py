"""The commands `stats` and `metrics`: counts of what is stored, use of the daemon, and its present state."""

from argparse import ArgumentParser, Namespace

from memoryd.client.calls import stats as stats_call
from memoryd.client.exposition import format_stats
from memoryd.client.programs.memctl.arguments import add_reach, declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import ask_running, show_result
from memoryd.client.programs.memctl.local import read_output
from memoryd.client.programs.memctl.output import make_printable, paint, say_bytes, say_json, show
from memoryd.client.programs.memctl.service import model_text
from memoryd.client.programs.memctl.text_table import (
    count_stored,
    count_text,
    duration_text,
    format_fields,
    format_table,
    ms_text,
    size_text,
    to_one_line,
)
from memoryd.client.protocol import Connected, Job, LlmUsage, MethodStats, Runtime, Stats
from memoryd.client.times import iso

TOP = 8  # values listed per count
CLIENTS = 12  # clients listed
ATTENTION = ("failing", "quarantined")  # states of jobs that are highlighted
QUEUES = {  # name of a queue → singular and plural of its items
    "interactive": ("call", "calls"),
    "bulk": ("bulk call", "bulk calls"),
    "control": ("call about the daemon", "calls about the daemon"),
    "vectors": ("text without a vector", "texts without a vector"),
    "writes": ("write", "writes"),
    "rate": ("turn to rate", "turns to rate"),
    "embed": ("turn to embed", "turns to embed"),
    "condense": ("memory to condense", "memories to condense"),
    "extract": ("turn for facts", "turns for facts"),
    "summary": ("turn for a summary", "turns for summaries"),
}


def _declare(parser: ArgumentParser) -> None:
    add_reach(parser)
    parser.add_argument("--schema", action="store_true", help="print the schema of the database instead")


def _show_stats(args: Namespace) -> None:
    if args.schema:
        schema = read_output("memoryd.daemon.store.schema", []).decode().rstrip()
        show(args, {"schema": schema}, lambda: schema)
    else:
        show_result(args, stats_call(), stats_text)


def stats_text(stats: Stats) -> str:
    """Return all statistics as text: what is stored, the daemon, its clients, its calls."""
    parts = [_stored_text(stats)]
    if stats.daemon:
        parts = [_head_text(stats.daemon), parts[0], _state_text(stats.daemon), _clients_text(stats.daemon)]
    return "\n\n".join(part for part in (*parts, _methods_text(stats)) if part)


def _head_text(daemon: Runtime) -> str:
    used = f"{duration_text(daemon.cpu_s)} of processor time"
    return f"memoryd {daemon.version} runs, pid {daemon.pid}, up {duration_text(daemon.uptime_s)}, {used}."


def _stored_text(stats: Stats) -> str:
    cached = f", {stats.embedding_cache:,} on disk" if stats.embedding_cache else ""
    log = f", with the write-ahead log {size_text(stats.daemon.wal_bytes)}" if stats.daemon else ""
    rows = [
        ("kept", count_stored(stats.memories, stats.turns, stats.by_tier)),
        ("created", f"{iso(stats.oldest_at)} to {iso(stats.newest_at)}" if stats.memories else ""),
        ("by namespace", _counts_text(stats.by_namespace)),
        ("by type", _counts_text(stats.by_type)),
        ("by source", _counts_text(stats.by_source)),
        ("by tier", _counts_text(stats.by_tier)),
        ("vectors", f"{stats.embedded:,}, {stats.pending_embeddings:,} pending{cached}"),
        ("operations", f"{stats.operations:,}"),
        ("database", size_text(stats.database_bytes) + log if stats.database_bytes else ""),
        ("language model", _llm_text(stats.llm) if stats.llm else ""),
    ]
    return format_fields([row for row in rows if row[1]], indent="")


def _state_text(daemon: Runtime) -> str:
    tiers = [f"{tier.name} {size_text(tier.ram_bytes)}" for tier in daemon.tiers if tier.ram_bytes]
    index = f"vector index {size_text(daemon.index_bytes)}"
    rows = [
        ("model", model_text(daemon.model)),
        ("degraded", paint(", ".join(daemon.degraded), "yellow")),
        ("resident", f"{size_text(daemon.rss_bytes)}; {', '.join([index, *tiers])}"),
        ("waiting", _waiting_text(daemon.queues) or "nothing"),
        ("jobs", _jobs_text(daemon.jobs, daemon.at)),
    ]
    return format_fields([row for row in rows if row[1]], indent="")


def _waiting_text(queues: dict[str, int]) -> str:
    """Return how many items wait in each queue, not counting this call; empty if nothing waits."""
    others = {name: number - (name == "interactive") for name, number in queues.items()}
    pairs = [(number, QUEUES.get(name, (name, name))) for name, number in others.items() if number]
    return ", ".join(f"{number:,} {one if number == 1 else many}" for number, (one, many) in pairs)


def _jobs_text(jobs: list[Job], now: float) -> str:
    """Return a line about the jobs: which run, which need attention, and which is next."""
    groups: dict[str, list[str]] = {}
    for job in jobs:
        state = "failing" if job.failures and job.state == "waiting" else job.state
        groups.setdefault(state, []).append(job.name)
    parts = [
        paint(f"{state}: {', '.join(groups[state])}", *(["yellow"] if state in ATTENTION else []))
        for state in ("running", "queued", "quarantined", "failing", "paused")
        if state in groups
    ]
    due = [(job.next_run_at, job.name) for job in jobs if job.next_run_at is not None and job.state == "waiting"]
    if due:
        at, name = min(due)
        parts.append(f"next: {name} in {duration_text(max(0.0, at - now))}")
    return "; ".join(parts) or ("none runs by itself" if jobs else "")


def _llm_text(usage: LlmUsage) -> str:
    failed = f", {usage.failures:,} failed (the latest: {to_one_line(usage.last_error)})" if usage.failures else ""
    refused = f", {usage.refused:,} not asked" if usage.refused else ""
    tokens = f"{usage.tokens_in:,} tokens in, {usage.tokens_out:,} out"
    return f"{to_one_line(usage.model)}: {usage.answers:,} answers, {tokens}{failed}{refused}"


def _counts_text(counts: dict[str, int]) -> str:
    pairs = sorted(counts.items(), key=lambda item: -item[1])
    parts = [f"{make_printable(name) or '/'} {number:,}" for name, number in pairs[:TOP]]
    return ", ".join(parts + ([f"and {count_text(len(pairs) - TOP, 'other')}"] if len(pairs) > TOP else []))


def _clients_text(daemon: Runtime) -> str:
    clients = sorted(daemon.clients, key=lambda client: (-client.calls, client.pid))
    rows = [_client_row(client, daemon.at) for client in clients[:CLIENTS]]
    text = format_table(["PID", "CLIENT", "CONNECTED", "CALLS", "UNDER WAY"], rows, flexible=1, right=(0, 2, 3, 4))
    more = len(clients) - len(rows)
    return text + (f"\n{paint(f'and {more:,} more', 'dim')}" if more > 0 else "")


def _client_row(client: Connected, now: float) -> list[str]:
    """Return the cells of a client: process, name, time since it connected, calls, running calls."""
    name = (client.name or "?") + (f" ({client.token})" if client.token else "")
    subscriptions = f" +{client.subscriptions} events" if client.subscriptions else ""
    running = f"{client.under_way - client.subscriptions}{subscriptions}"
    return [str(client.pid), name, duration_text(max(0.0, now - client.since)), f"{client.calls:,}", running]


def _methods_text(stats: Stats) -> str:
    if not stats.methods:
        return ""
    rows = []
    for name, m in sorted(stats.methods.items(), key=lambda item: -item[1].calls):
        latencies = map(ms_text, (m.p50_ms, m.p95_ms, m.p99_ms))
        rows.append([name, f"{m.calls:,}", f"{m.errors:,}", _rate_text(m), *latencies])
    headers = ["CALL", "CALLS", "ERRORS", "NOW/S", "P50 MS", "P95 MS", "P99 MS"]
    return format_table(headers, rows, flexible=0, right=(1, 2, 3, 4, 5, 6))


def _rate_text(method: MethodStats) -> str:
    """Return the recent calls per second in few digits, empty if there were none."""
    rate = method.recent.calls / method.recent.over_s if method.recent and method.recent.over_s else 0.0
    return "" if not rate else f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}" if rate >= 0.1 else "<0.1"


def _print_metrics(args: Namespace) -> None:
    stats = ask_running(args, stats_call())
    if args.json:
        say_json(stats)
    else:
        say_bytes(format_stats(stats).encode())


COMMANDS = {
    "stats": Command(
        _declare,
        _show_stats,
        "  memctl stats\n  memctl stats --namespace acme --reach subtree\n  memctl stats --schema",
    ),
    "metrics": Command(
        declare_nothing,
        _print_metrics,
        "  memctl metrics\n"
        "  cd /var/lib/node_exporter\n"
        "  memctl metrics > memoryd.new && mv memoryd.new memoryd.prom  # from cron",
    ),
}
