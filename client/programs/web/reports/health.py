"""How the daemon is, how quick, what is in it, who is there."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Mapping

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import MemorydError, TimedOut
from memoryd.client.programs.memctl.table import count_text, duration_text, ms_text, size_text
from memoryd.client.programs.web.reports import parts
from memoryd.client.programs.web.workspaces import read_panel
from memoryd.client.transport.aio import AsyncClient


class _Finding(msgspec.Struct):
    """One check of `memctl doctor`."""

    state: str
    name: str
    message: str
    fix: str = ""


_LOOKS = {"ok": "good", "warn": "warn", "fail": "bad"}
_MODEL = {"fetching": "fetched", "loading": "loaded"}
_WAITING = {
    "rate": "Turns are rated",
    "embed": "Turns get their vectors",
    "condense": "Long texts are condensed",
    "summary": "Conversations that rest or end are summed up",
    "extract": "Facts are drawn from conversations that rest or end",
}
_METHODS, _NAMESPACES = 14, 30  # shown
_DOCTOR_S = 60.0


async def read_health(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return the panels of the view Health, without doctor's findings."""
    status, stats, tokens, workspaces = await asyncio.gather(
        client.call(protocol.GetStatus()),
        client.call(protocol.GetStats(reach="all")),
        client.call(protocol.ListTokens()),
        read_panel(client),
    )
    largest = sorted(stats.by_namespace.items(), key=lambda entry: -entry[1])[:_NAMESPACES]
    sizes: list[parts.Part] = [["span", parts.place(name), " ", ["span.dim", f"{held:,}"]] for name, held in largest]
    no_token = ["span", "None binds an agent to a namespace: ", ["code", "memctl token add"]]
    return [
        "div",
        parts.panel("Daemon", _show_daemon(status, stats)),
        parts.panel("How quick", _show_methods(stats)),
        parts.panel("Namespaces", parts.list_items(sizes, "None holds a memory.")),
        parts.panel("Connected", parts.list_items(map(_show_client, stats.daemon.clients if stats.daemon else []))),
        parts.panel("Tokens", parts.list_items(map(_show_token, tokens), no_token)),
        workspaces,
    ]


async def read_progress(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return what is under way, each with how far it is as far as that is known; the page asks again and again."""
    status, jobs, tiers = await asyncio.gather(
        client.call(protocol.GetStatus()), client.call(protocol.Jobs()), client.call(protocol.Tiers(reach="all"))
    )
    shown = [*_show_vectors(status), *(_show_job(job, jobs.at) for job in jobs.jobs if job.state == "running")]
    for name, many in {**tiers.waiting, **tiers.resting}.items():
        if many:
            shown.append(_show_step(_WAITING.get(name, name), f"{count_text(many, 'turn')} to go"))
    return parts.panel("Under way", *(shown or [parts.remark("Nothing: all that came in is ready to be found.")]))


def _show_vectors(status: protocol.Status) -> list[parts.Part]:
    """Return how far the model is, and the vectors of texts."""
    model, shown = status.model, list[parts.Part]()
    if model.state in ("fetching", "loading"):
        shown.append(_show_step(f"The model {model.name} is being {_MODEL[model.state]}", "words find all meanwhile"))
    if model.reembedding:
        done, total = model.reembedding.done, model.reembedding.total
        shown.append(
            _show_step("All texts get vectors of another model", f"{done:,} of {total:,}", done / max(total, 1))
        )
    if waiting := status.pending_embeddings:
        done, total = max(status.memories - waiting, 0), max(status.memories, waiting)
        shown.append(_show_step("Texts get their vectors", f"{done:,} of {total:,}", done / total))
    return shown


def _show_job(job: protocol.Job, now: float) -> parts.Part:
    runs = duration_text(max(now - (job.last_run_at or now), 0.0))
    return _show_step(f"The job {job.name}: {job.about}", f"for {runs} now, at most {duration_text(job.deadline_s)}")


def _show_step(title: str, far: str, share: float | None = None) -> parts.Part:
    return ["div.hit.said", title, *([parts.bar(share)] if share is not None else []), parts.line(far)]


async def read_findings(args: Namespace) -> bytes:
    """Return what `memctl doctor --json` prints, as a panel."""
    words = [*(["--socket", args.socket] if args.socket else []), "--json", "--no-autostart"]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "memoryd.client.programs.memctl", "doctor", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        found, _ = await asyncio.wait_for(child.communicate(), _DOCTOR_S)
    except TimeoutError:
        raise TimedOut(f"memctl doctor took more than {_DOCTOR_S:.0f} s.") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if not found:
        raise MemorydError("memctl doctor printed nothing.")
    return msgspec.json.encode(show_findings(found))


def show_findings(text: bytes) -> parts.Part:
    """Return what `memctl doctor --json` found, with the commands that fix it: they are shown, not run."""
    found = msgspec.json.decode(text, type=list[_Finding])
    wrong = [finding for finding in found if finding.state != "ok"]
    checks = count_text(len(found), "check")
    said = f"{len(wrong)} of {checks} found something." if wrong else f"{checks} found nothing."
    return parts.panel("Findings", parts.remark(said), *map(_show_finding, wrong))


def _show_finding(finding: _Finding) -> parts.Part:
    fix = ["br"], ["code", finding.fix]
    title = [parts.badge(finding.state, _LOOKS[finding.state]), " ", ["b", finding.name], ["br"]]
    return ["p.hit", *title, finding.message, *(fix if finding.fix else ())]


def _show_daemon(status: protocol.Status, stats: protocol.Stats) -> parts.Part:
    model, waiting = status.model, parts.format_counts(stats.daemon.queues) if stats.daemon else ""
    held = count_text(status.memories, "memory")
    if status.pending_embeddings:
        held += f", {status.pending_embeddings:,} wait for a vector"
    return parts.facts(
        [
            ("version", status.version),
            ("runs for", duration_text(status.uptime_s)),
            ("model", ["span", model.name, " ", parts.state(model.state, "ready"), " ", model.error]),
            ("does not work", ", ".join(status.degraded)),
            ("holds", held),
            ("RAM", size_text(status.rss_bytes)),
            ("database", ["span", size_text(status.database_bytes), ["br"], ["span.dim", status.data_dir]]),
            ("clock", status.clock.state if status.clock else None),
            ("waiting", waiting or "nothing"),
        ]
    )


def _show_methods(stats: protocol.Stats) -> parts.Part:
    rows = [
        (name, f"{one.calls:,}", f"{ms_text(one.p50_ms)} ms", f"{ms_text(one.p95_ms)} ms", f"{one.errors:,}")
        for name, one in sorted(stats.methods.items(), key=lambda entry: -entry[1].calls)[:_METHODS]
    ]
    return parts.table("Latencies", ["Call", ">Calls", ">Median", ">95 %", ">Failed"], rows)


def _show_client(one: protocol.Connected) -> parts.Part:
    more = [count_text(one.calls, "call"), one.token and f"token {one.token}", one.subscriptions and "follows events"]
    return ["span", one.name or f"process {one.pid}", " ", ["span.dim", ", ".join(str(text) for text in more if text)]]


def _show_token(token: protocol.Token) -> parts.Part:
    used = ["span.dim", "last used ", parts.time(token.last_used_at)]
    return ["span", ["b", token.name], " ", parts.badge(token.role), " ", parts.place(token.namespace), " ", used]
