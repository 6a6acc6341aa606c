"""How the daemon is, how quick, what is in it, who is there."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from memoryd.client.memctl.table import count_text, duration_text, ms_text, size_text
from memoryd.client.memctl.web.reports.parts import (
    Part,
    act,
    badge,
    count_memories,
    facts,
    format_counts,
    link,
    list_items,
    panel,
    place,
    remark,
    state,
    table,
    time,
)
from memoryd.client.protocol import (
    GetSharing,
    GetStats,
    GetStatus,
    ListTokens,
    SharedConflict,
    SharedConflicts,
    SharedRoot,
    Sharing,
    Stats,
    Status,
    Token,
    Workspace,
    Workspaces,
)
from memoryd.client.protocol.roots import ListConflicts
from memoryd.client.protocol.statistics import Connected
from memoryd.client.transport.aio import AsyncClient


class _Finding(msgspec.Struct):
    """One check of `memctl doctor`."""

    state: str
    name: str
    message: str
    fix: str = ""


_LOOKS = {"ok": "good", "warn": "warn", "fail": "bad"}
_METHODS, _NAMESPACES = 14, 30  # shown


async def read_health(client: AsyncClient, query: Mapping[str, str]) -> Part:
    """Return the panels of the view Health, without doctor's findings."""
    status, stats, tokens, spaces, sharing, conflicts = await asyncio.gather(
        client.call(GetStatus()),
        client.call(GetStats(reach="all")),
        client.call(ListTokens()),
        client.call(Workspaces()),
        client.call(GetSharing()),
        client.call(ListConflicts()),
    )
    no_token, no_space = ["code", "memctl token add"], ["code", "memctl workspace add PATH"]
    return [
        "div",
        panel("Daemon", _show_daemon(status, stats)),
        panel("How quick", _show_methods(stats)),
        panel(
            "Namespaces",
            list_items(
                map(_show_namespace, sorted(stats.by_namespace.items(), key=_by_size)[:_NAMESPACES]),
                "None holds a memory.",
            ),
        ),
        panel("Connected", list_items(map(_show_client, stats.daemon.clients if stats.daemon else []))),
        panel(
            "Tokens", list_items(map(_show_token, tokens), ["span", "None binds an agent to a namespace: ", no_token])
        ),
        panel(
            "Workspaces", list_items(map(_show_space, spaces), ["span", "No folder of notes is indexed: ", no_space])
        ),
        _show_sharing(sharing, conflicts) if sharing.roots else None,
    ]


def show_findings(text: bytes) -> Part:
    """Return what `memctl doctor --json` found, with the commands that fix it: they are shown, not run."""
    found = msgspec.json.decode(text, type=list[_Finding])
    wrong = [finding for finding in found if finding.state != "ok"]
    checks = count_text(len(found), "check")
    said = f"{len(wrong)} of {checks} found something." if wrong else f"{checks} found nothing."
    return panel("Findings", remark(said), *map(_show_finding, wrong))


def _show_finding(finding: _Finding) -> Part:
    fix = ["br"], ["code", finding.fix]
    title = [badge(finding.state, _LOOKS[finding.state]), " ", ["b", finding.name], ["br"]]
    return ["p.hit", *title, finding.message, *(fix if finding.fix else ())]


def _by_size(entry: tuple[str, int]) -> int:
    return -entry[1]


def _show_daemon(status: Status, stats: Stats) -> Part:
    model, waiting = status.model, format_counts(stats.daemon.queues) if stats.daemon else ""
    held = count_memories(status.memories)
    if status.pending_embeddings:
        held += f", {status.pending_embeddings:,} wait for a vector"
    return facts(
        [
            ("version", status.version),
            ("runs for", duration_text(status.uptime_s)),
            ("model", ["span", model.name, " ", state(model.state, "ready"), " ", model.error]),
            ("does not work", ", ".join(status.degraded)),
            ("holds", held),
            ("RAM", size_text(status.rss_bytes)),
            ("database", ["span", size_text(status.database_bytes), ["br"], ["span.dim", status.data_dir]]),
            ("clock", status.clock.state if status.clock else None),
            ("waiting", waiting or "nothing"),
        ]
    )


def _show_methods(stats: Stats) -> Part:
    most = sorted(stats.methods.items(), key=lambda entry: -entry[1].calls)[:_METHODS]
    rows = [
        (name, f"{one.calls:,}", f"{ms_text(one.p50_ms)} ms", f"{ms_text(one.p95_ms)} ms", f"{one.errors:,}")
        for name, one in most
    ]
    return table("Latencies", ["Call", ">Calls", ">Median", ">95 %", ">Failed"], rows)


def _show_namespace(entry: tuple[str, int]) -> Part:
    return ["span", place(entry[0]), " ", ["span.dim", f"{entry[1]:,}"]]


def _show_client(one: Connected) -> Part:
    more = [count_text(one.calls, "call"), one.token and f"token {one.token}", one.subscriptions and "follows events"]
    return ["span", one.name or f"process {one.pid}", " ", ["span.dim", ", ".join(str(text) for text in more if text)]]


def _show_token(token: Token) -> Part:
    used = ["span.dim", "last used ", time(token.last_used_at)]
    return ["span", ["b", token.name], " ", badge(token.role), " ", place(token.namespace), " ", used]


def _show_space(space: Workspace) -> Part:
    sizes = f" {count_text(space.files, 'file')}, {count_text(space.chunks, 'part')}"
    name = ["b", place(space.namespace)]
    return ["span", name, " ", state(space.watching, "inotify"), sizes, ["br"], ["span.dim", space.root]]


def _show_sharing(sharing: Sharing, conflicts: SharedConflicts) -> Part:
    roots = list_items(map(_show_root, sharing))
    return panel("Shared with other machines", roots, *map(_show_conflict, conflicts))


def _show_root(root: SharedRoot) -> Part:
    held = f"{count_memories(root.memories)}, {root.waiting:,} wait, {root.conflicts:,} in conflict"
    return [
        "span",
        ["b", place(root.root)],
        " ",
        state(root.state, "ready"),
        " ",
        root.error,
        ["br"],
        ["span.dim", held],
    ]


def _show_conflict(conflict: SharedConflict) -> Part:
    """Return two versions of a memory, the first to reach the server and the other one, and what can be kept."""
    first, other = conflict.memory, conflict.other
    who = f"{conflict.author or 'this machine'}{conflict.machine and f' on {conflict.machine}'}"
    kept: dict[str, dict[str, Any]] = {"Keep the first": {"id": first.id}, "Keep the second": {"id": other.id}}
    choices = {**kept, "Keep both": {"id": first.id, "both": True}}
    return [
        "div.hit",
        badge("conflict", "warn"),
        " ",
        link(first.id, first.content),
        ["br"],
        f"and, by {who}, ",
        link(other.id, other.content),
        [
            "div.acts",
            *(act(text, "Resolved the conflict", "resolve_conflict", fields) for text, fields in choices.items()),
        ],
    ]
