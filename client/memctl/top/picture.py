"""What top shows of the figures: the head with the daemon's state, and the sections for calls, jobs and clients."""

from typing import NamedTuple

from memoryd.client.memctl.service import model_text
from memoryd.client.memctl.stats import client_row, jobs_text, rate_of, rate_text, waiting_text
from memoryd.client.memctl.table import count_text, duration_text, ms_text, size_text, to_one_line
from memoryd.client.memctl.top.screen import Line, Section, lay_out
from memoryd.client.protocol import Connected, Job, MethodStats, Runtime, Stats

ORDERS = ("calls", "p95", "errors", "time")
_NEEDY = ("quarantined", "paused")
_LAST_SHOWN_S = 365 * 86400.0
_TOLD_BYTES = 100_000  # what a tier takes in RAM is shown from here on


class Sample(NamedTuple):
    """Figures at a moment of the monotonic clock; `error` says why there are no newer ones."""

    stats: Stats | None
    at: float
    error: str = ""


def draw_frame(now: Sample, before: Sample | None, order: str, size: tuple[int, int], foot: str = "") -> list[Line]:
    """Return one frame; rates are those between two samples of the same daemon."""
    stats = now.stats
    notice: list[Line] = [[(to_one_line(now.error), ("red",))]] if now.error else []
    bottom: Line = [(foot, ("dim",))]
    if stats is None or stats.daemon is None:
        return lay_out(notice, [], bottom, size)
    former = before.stats if before else None
    if not (former and former.daemon and former.daemon.pid == stats.daemon.pid):  # those of another process
        former = None
    seconds = now.at - before.at if former and before else 0.0
    rates = _call_rates(stats, former, seconds)
    head = [*notice, *_head_lines(stats, stats.daemon, former, seconds, sum(rates.values()))]
    sections = [
        _calls_section(stats.methods, rates, order),
        _jobs_section(stats.daemon),
        _clients_section(stats.daemon, former.daemon if former else None, seconds),
    ]
    return lay_out(head, sections, bottom, size)


def _call_rates(stats: Stats, former: Stats | None, seconds: float) -> dict[str, float]:
    """Return calls per second by method: since the sample before, else of the latest past."""
    if former is None or seconds <= 0:
        return {name: rate_of(method) for name, method in stats.methods.items()}
    earlier = {name: method.calls for name, method in former.methods.items()}
    return {name: max(0, one.calls - earlier.get(name, 0)) / seconds for name, one in stats.methods.items()}


def _head_lines(stats: Stats, daemon: Runtime, former: Stats | None, seconds: float, rate: float) -> list[Line]:
    used = ""
    if former and former.daemon and seconds > 0:
        used = f"CPU {max(0.0, daemon.cpu_s - former.daemon.cpu_s) / seconds:.0%}, "
    log = f" (log {size_text(daemon.wal_bytes)})" if daemon.wal_bytes else ""
    ready = daemon.model.state == "ready"
    waits = waiting_text(daemon.queues)
    tiers = []
    for tier in daemon.tiers:
        in_ram = f" ({size_text(tier.ram_bytes)})" if tier.ram_bytes >= _TOLD_BYTES else ""
        tiers.append(f"{tier.name} {tier.count:,}{in_ram}")
    up, ram, database = duration_text(daemon.uptime_s), size_text(daemon.rss_bytes), size_text(stats.database_bytes)
    first = f"  up {up}, {used}RSS {ram}, database {database}{log}, pid {daemon.pid}"
    return [
        [(f"memoryd {daemon.version}", ("bold",)), (first, ())],
        [_key_cell("calls"), (f"{rate_text(rate) or '0'}/s from {count_text(len(daemon.clients), 'client')}", ())],
        [_key_cell("tiers"), (" · ".join(tiers), ())],
        [_key_cell("model"), (model_text(daemon.model), () if ready else ("yellow",))],
        [_key_cell("waiting"), (waits or "nothing", ("yellow",) if waits else ())],
        [_key_cell("jobs"), (jobs_text(daemon.jobs, daemon.at, plain=True), ())],
    ]


def _key_cell(name: str) -> tuple[str, tuple[str, ...]]:
    return (f"{name:<9}", ("dim",))


def _calls_section(methods: dict[str, MethodStats], rates: dict[str, float], order: str) -> Section:
    def rank(item: tuple[str, MethodStats]) -> tuple[float, ...]:
        name, method = item
        recent = method.recent.p95_ms if method.recent else 0.0
        first = {"calls": rates[name], "p95": recent, "errors": method.errors, "time": method.total_s}[order]
        return (-first, -rates[name], -method.calls)

    rows, busy = [], list[tuple[str, ...]]()
    for name, method in sorted(methods.items(), key=rank):
        latest = method.recent if method.recent and method.recent.calls else method  # the latest past, where it has any
        latencies = [ms_text(latest.p50_ms), ms_text(latest.p95_ms), ms_text(latest.p99_ms)]
        rows.append([name, rate_text(rates[name]), *latencies, f"{method.calls:,}", f"{method.errors:,}"])
        busy.append(() if rates[name] else ("dim",))
    return Section(("CALL", "/S", "P50 MS", "P95 MS", "P99 MS", "CALLS", "ERRORS"), rows, busy, 6, "no calls yet")


def _jobs_section(daemon: Runtime) -> Section:
    def rank(job: Job) -> tuple[bool, bool, float]:
        urgent = job.state in ("running", "queued")
        return (not urgent, not (job.failures or job.state in _NEEDY), -(job.last_run_at or 0.0))

    rows, styles = [], list[tuple[str, ...]]()
    for job in sorted(daemon.jobs, key=rank):
        due = "" if job.next_run_at is None else duration_text(max(0.0, job.next_run_at - daemon.at))
        rows.append([job.name, job.state, _last_text(job, daemon.at), _took_text(job), due])
        is_busy = job.state in ("running", "queued")
        styles.append(("yellow",) if job.failures or job.state in _NEEDY else ("green",) if is_busy else ())
    return Section(("JOB", "STATE", "LAST RAN", "TOOK", "NEXT IN"), rows, styles, 3, "no jobs", (1,))


def _last_text(job: Job, now: float) -> str:
    age_s = now - job.last_run_at if job.last_run_at is not None else None
    return "never" if age_s is None or age_s > _LAST_SHOWN_S else f"{duration_text(max(0.0, age_s))} ago"


def _took_text(job: Job) -> str:
    if job.last is None:
        return ""
    return f"{ms_text(job.last.took_ms)} ms" if job.last.outcome in ("done", "running") else job.last.outcome


def _clients_section(daemon: Runtime, former: Runtime | None, seconds: float) -> Section:
    earlier = {(one.pid, one.since): one.calls for one in former.clients} if former else {}

    def rate(one: Connected) -> float:
        return max(0, one.calls - earlier.get((one.pid, one.since), one.calls)) / seconds if seconds > 0 else 0.0

    rows = []
    for one in sorted(daemon.clients, key=lambda one: (-rate(one), -one.calls, one.pid)):
        pid, name, since, calls, under_way = client_row(one, daemon.at)
        rows.append([name, pid, since, calls, rate_text(rate(one)), under_way])
    return Section(("CLIENT", "PID", "THERE FOR", "CALLS", "/S", "UNDER WAY"), rows, [() for _ in rows], 3, "nobody")
