"""The commands `tiers` and `consolidate`: the sizes of the tiers, the account of turns, and emptying L0."""

import math
from argparse import ArgumentParser, Namespace

from memoryd.client import methods, protocol
from memoryd.client.programs.memctl.arguments import add_reach, parse_limit
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import show_result
from memoryd.client.programs.memctl.output import paint, show
from memoryd.client.programs.memctl.progress import send_with_bar
from memoryd.client.programs.memctl.text_table import (
    count_text,
    draw_bar,
    format_fields,
    format_table,
    ms_text,
    pad,
    size_text,
)
from memoryd.client.times import iso

BAR, RING = 20, 10  # widths
LISTED = 10  # namespaces that are listed


# tiers ---------------------------------------------------------------------------------------------------------------


def _declare_tiers(parser: ArgumentParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--turns", action="store_true", help="list the turns in L0")
    choice.add_argument("--skipped", action="store_true", help="list turns that were skipped, with the reasons")
    parser.add_argument(
        "--limit", type=parse_limit, default=50, metavar="N", help="how many turns are listed (default: 50)"
    )
    add_reach(parser)


def _tiers(args: Namespace) -> None:
    if args.turns:
        show_result(args, methods.turns(limit=args.limit), _turns_text, lambda active: active.turns)
    elif args.skipped:
        show_result(args, methods.turns(limit=args.limit, skipped=True), _skipped_text, lambda page: page.skipped)
    else:
        show_result(args, methods.tiers(), report_text)


def report_text(report: protocol.TierReport) -> str:
    """Return the report as text: the tiers, the account of turns, the namespaces."""
    parts = [_format_levels(report), _format_flows(report)]
    if report.namespaces:
        parts.append(_format_namespaces(report))
    return "\n\n".join(part for part in parts if part)


def _format_levels(report: protocol.TierReport) -> str:
    most = max((tier.count for tier in report.tiers), default=0)
    rows = []
    for tier in report.tiers:
        share = math.log1p(tier.count) / math.log1p(most) if most else 0.0  # so that 20 are visible beside 100,000
        bar = pad(draw_bar(share, BAR), BAR)
        used = size_text(tier.ram_bytes) if tier.ram_bytes else "–"
        cells = [count_text(tier.count, tier.unit), used, _day(tier.oldest_at), _day(tier.newest_at)]
        limit = f"at most {tier.limit:,} each" if tier.limit else ""
        rows.append([tier.title or tier.name, bar, *cells, limit])
    return format_table(["TIER", "", "SIZE", "IN RAM", "OLDEST", "NEWEST", ""], rows, right=(2, 3))


def _day(at: float | None) -> str:
    return (iso(at) or "")[:10] or "–"


def _format_flows(report: protocol.TierReport) -> str:
    observed = report.flows.get("observed", 0)
    if not observed:
        return paint("No turns were observed so far: `memctl observe`, or client.observe(…).", "dim")
    here = next((tier.count for tier in report.tiers if tier.name == "L0"), 0)
    losses = []
    for name in ("skipped", "dropped", "gone"):
        kinds = {  # without the group's name: `skipped: too short` → `too short`
            kind.partition(": ")[2].removeprefix("job:"): number
            for kind, number in report.flows.items()
            if kind.startswith(f"{name}: ")
        }
        pairs = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
        losses.append((name, sum(kinds.values()), ", ".join(f"{kind} {number:,}" for kind, number in pairs if number)))
    remaining = observed - here - sum(number for _, number, _ in losses)
    rows = [("in L0", here, ""), ("memories", remaining, "each with the id of its turn"), *losses]
    bars = [
        (name, f"{number:>9,}  {pad(draw_bar(number / observed, BAR), BAR)}  {paint(reasons, 'dim')}".rstrip())
        for name, number, reasons in rows
        if number or name in ("in L0", "memories")
    ]
    evidence = report.flows.get("evidence", 0)
    remark = f"; {count_text(evidence, 'recalled memory')} merely repeated" if evidence else ""
    unjudged = ", ".join(f"{number:,} to {task}" for task, number in report.waiting.items() if number)
    waiting = f"; {unjudged}" if unjudged else ""
    most = max(report.resting.values(), default=0)
    queued = f"; {count_text(most, 'turn')} of conversations in progress" if most else ""
    return f"{paint('TURNS', 'bold')}  {observed:,} observed{remark}{waiting}{queued}\n{format_fields(bars)}"


def _format_namespaces(report: protocol.TierReport) -> str:
    ring = next((tier.limit for tier in report.tiers if tier.name == "L0"), 0)
    entries = report.namespaces[:LISTED]
    tiers = [name for name in (*protocol.MEMORY_TIERS, "documents") if any(one.tiers.get(name) for one in entries)]
    rows = []
    for one in entries:
        number = one.tiers.get("L0", 0)
        bar = f"{pad(draw_bar(number / ring if ring else 0.0, RING), RING)} {number:>2}"
        rows.append([bar, *(f"{one.tiers.get(name, 0):,}" for name in tiers), one.namespace or "/"])
    text = format_table([f"L0 of {ring}", *tiers, "NAMESPACE"], rows, right=range(1, len(tiers) + 1))
    more = len(report.namespaces) - len(entries)
    return f"{text}\n{paint(f'and {more} more', 'dim')}" if more > 0 else text


def _turns_text(active: protocol.ActiveTurns) -> str:
    if not active.turns:
        return "L0 is empty."
    spaces = any(turn.namespace for turn in active)
    rows = []
    for turn in active:
        importance = f"{draw_bar(turn.importance, 5):<5} {turn.importance:.2f}{' ' if turn.judged else '?'}"
        where = [turn.namespace or "/"] if spaces else []
        rows.append([turn.id[:8], importance, turn.role, *where, turn.content])
    text = format_table(["ID", "IMPORTANCE", "ROLE", *(["NAMESPACE"] if spaces else []), "CONTENT"], rows)
    guessed = " · ? not judged yet" if any(not turn.judged for turn in active) else ""
    sentence = f"{len(active)} of {count_text(active.total, 'turn')}, newest first{guessed}"
    return f"{text}\n{paint(sentence, 'dim')}"


def _skipped_text(page: protocol.ActiveTurns) -> str:
    rows = [[_day(turn.at), turn.reason, turn.role, turn.namespace or "/", turn.content] for turn in page.skipped]
    return format_table(["DATE", "REASON", "ROLE", "NAMESPACE", "CONTENT"], rows, "No turns were skipped.")


# consolidate ---------------------------------------------------------------------------------------------------------


def _consolidate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only count what would be moved")


def _consolidate(args: Namespace) -> None:
    report = send_with_bar(args, methods.consolidate(dry_run=args.dry_run), "consolidate")
    show(args, report, lambda: _consolidated_text(report))


def _consolidated_text(report: protocol.Consolidated) -> str:
    rows = [
        ("judged", f"{report.judged:,}", "turns whose importance was judged first"),
        ("promoted", f"{report.promoted:,}", "turns of L0, now memories of L1 or L2"),
        ("dropped", f"{report.dropped:,}", "unimportant turns of L0 (`drop_unimportant`)"),
    ]
    text = format_table(["DONE" if not report.dry_run else "WOULD DO", "", ""], rows, right=(1,))
    if report.dry_run:
        return f"{text}\n{paint('Nothing was changed.', 'dim')}"
    undo = f"; `memctl undo {report.operation[:8]}` takes the moves back" if report.operation else ""
    return f"{text}\n{paint(f'{ms_text(report.took_ms)} ms{undo}', 'dim')}"


COMMANDS = {
    "tiers": Command(
        _declare_tiers, _tiers, "  memctl tiers\n  memctl tiers --turns --namespace acme/api\n  memctl tiers --skipped"
    ),
    "consolidate": Command(
        _consolidate_arguments,
        _consolidate,
        "  memctl consolidate --dry-run\n  memctl consolidate --namespace acme",
    ),
}
