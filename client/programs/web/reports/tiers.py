"""Where memories are and how turns moved; the turns in L0; what was not kept, and why."""

import asyncio
from collections.abc import Mapping
from typing import Any

from memoryd.client import protocol
from memoryd.client.programs.memctl.table import count_text, size_text
from memoryd.client.programs.web.reports.parts import Part, act, badge, format_counts, line, link, place, table, time
from memoryd.client.transport.aio import AsyncClient

_SHOWN = 200
_ABOUT = {
    "L0": "the last turns of each namespace",
    "hot": "what searches returned lately",
    "L1": "recent: what was added, important turns",
    "L2": "the rest, for good",
    "documents": "parts of files in workspaces",
}
_HOOKS = "No turn is in L0: nothing was observed lately. Hooks observe what is said to an agent: "


async def read_tiers(client: AsyncClient, query: Mapping[str, str]) -> Part:
    """Return the view Tiers: what is paused, the tiers, and the list that `tab` names."""
    scope: dict[str, Any] = {"namespace": query.get("namespace", ""), "reach": query.get("reach")}
    tab = query.get("tab", "L0")
    report, observing = await asyncio.gather(client.call(protocol.Tiers(**scope)), client.call(protocol.GetObserving()))
    if tab == "places":
        shown = _show_places(report)
    elif tab == "skipped":
        skipped = [_show_skipped(turn) for turn in await client.call(protocol.Skipped(**scope, limit=_SHOWN))]
        shown = ["div", *(skipped or [["div.empty", "Nothing was skipped."]])]
    else:
        turns = [_show_turn(turn) for turn in await client.call(protocol.Turns(**scope, limit=_SHOWN))]
        shown = ["div", *(turns or [["div.empty", _HOOKS, ["code", "memctl hooks install claude-code"]]])]
    return [["div", *_show_pauses(observing, scope["namespace"] or ""), *_show_flow(report)], shown]


def _show_pauses(observing: protocol.Observing, namespace: str) -> list[Part]:
    own = protocol.Pause(kind="namespace", name=namespace)
    shown: list[Part] = [_show_pause(pause) for pause in observing.pauses]
    if observing.only:
        shown.append(["p.panel.about", f"Only {', '.join(observing.only)} is observed: the settings, [observe] only."])
    if not any((pause.kind, pause.name) == (own.kind, own.name) for pause in observing.pauses):
        shown.append(["p.acts", _make_switch(own, f"Pause observing {namespace or 'everywhere'}", "pause")])
    return shown


def _show_pause(pause: protocol.Pause) -> Part:
    where = f"the {pause.kind} {pause.name}" if pause.name else "any namespace"
    end = _make_switch(pause, "Observe again", "resume") if pause.since else "The settings say so: [observe] never."
    return ["p.panel.about", f"Nothing is observed in {where}. ", end]


def _make_switch(pause: protocol.Pause, text: str, turn: str) -> Part:
    """Return a button that pauses or resumes; the other one of both undoes it."""
    said, back = {"pause": ("is paused", "resume"), "resume": ("is resumed", "pause")}[turn]
    fields = {"kind": pause.kind, "name": pause.name}
    return act(text, f"Observing {said}", f"{turn}_observing", fields, f"{back}_observing")


def _show_flow(report: protocol.TierReport) -> list[Part]:
    tiers: dict[str, protocol.TierState] = {tier.name: tier for tier in report.tiers}
    line: list[Part] = [
        _make_arrow(report.flows.get("observed", 0), "observed"),
        _show_tier(tiers["L0"]),
        _make_arrow(sum(_begin(report.flows, "gone: job:").values()), "became memories"),
        _show_tier(tiers["L1"]),
        _make_arrow(tiers["L2"].count, "older, or less important"),
        _show_tier(tiers["L2"], f", {count_text(report.nodes, 'node')}"),
    ]
    return [["div.flow", *line], ["div.flow", *_show_rest(report, tiers)]]


def _show_rest(report: protocol.TierReport, tiers: Mapping[str, protocol.TierState]) -> list[Part]:
    skipped, waiting = _begin(report.flows, "skipped: "), {**report.waiting, **report.resting}
    reasons = sorted(skipped.items(), key=lambda entry: -entry[1])
    cards = [
        *(_show_tier(tiers[name]) for name in ("hot", "documents")),
        _make_card("Not kept", sum(skipped.values()), *(["div.dim", f"{many:,} {reason}"] for reason, many in reasons)),
    ]
    if any(waiting.values()):
        cards.append(_make_card("Waiting", sum(waiting.values()), ["div.dim", format_counts(waiting)]))
    return cards


def _begin(flows: Mapping[str, int], start: str) -> dict[str, int]:
    return {name.removeprefix(start): many for name, many in flows.items() if name.startswith(start)}


def _make_arrow(many: int, text: str) -> Part:
    return ["div.arrow", ["b", f"{many:,}"], text]


def _make_card(title: str, many: int, *parts: Part) -> Part:
    return ["section.panel.tier", ["h2.small", title], ["b", f"{many:,}"], *parts]


def _show_tier(tier: protocol.TierState, more: str = "") -> Part:
    in_ram = f", {size_text(tier.ram_bytes)} in RAM" if tier.ram_bytes > 1000 else ""
    return _make_card(tier.title or tier.name, tier.count, ["div.dim", f"{_ABOUT[tier.name]}{more}{in_ram}"])


def _show_turn(turn: protocol.Turn) -> Part:
    rated = f"{'' if turn.judged else 'first guess: '}importance {turn.importance:.2f}"
    where = turn.speaker, place(turn.namespace), turn.session and f"session {turn.session[:24]}", time(turn.created_at)
    return ["article.panel", link(turn.id, turn.content), line(badge(turn.role), rated, *where)]


def _show_skipped(turn: protocol.SkippedTurn) -> Part:
    where = place(turn.namespace), turn.session and f"session {turn.session[:24]}", time(turn.at)
    text = ["span.clamp.text", turn.content]
    return ["article.panel", text, line(badge(turn.reason, "warn"), badge(turn.role), *where)]


def _show_places(report: protocol.TierReport) -> Part:
    names = [tier.name for tier in report.tiers]
    rows = [
        [place(one.namespace), *(f"{one.tiers.get(name, 0):,}" for name in names)] for one in report.namespaces[:_SHOWN]
    ]
    return table("By namespace", ["Namespace", *(f">{name}" for name in names)], rows)
