"""Why a list or a search has nothing to show: nothing is kept there, or a filter names what there is not."""

from argparse import Namespace

from memoryd.client.calls import stats as stats_call
from memoryd.client.memctl.link import named_namespace, send
from memoryd.client.memctl.output import make_printable
from memoryd.client.memctl.table import count_text

_SHOWN = 12  # values of a filter that are named


def explain_empty(args: Namespace) -> str:
    """Return why nothing matches the filters of a command, in one sentence."""
    stats = send(args, stats_call())
    if stats.turns:
        stats.by_type.setdefault("turn", stats.turns)
        stats.by_tier["L0"] = stats.turns
    if stats.turns and (not stats.memories or args.tier == ["L0"]):
        return "What was said last is not a memory yet; `memctl tiers --turns` shows it."
    if not stats.memories:
        there = make_printable(named_namespace(args) or "")
        if there:
            return f"No memories can be seen from {there}; `memctl namespaces` shows where there are some."
        return "No memories yet; `memctl add TEXT` keeps the first."
    for name, counts in (("type", stats.by_type), ("source", stats.by_source), ("tier", stats.by_tier)):
        wanted = getattr(args, name) or []
        if wanted and not counts.keys() & set(wanted):
            commonest = sorted(counts.items(), key=lambda item: -item[1])
            values = ", ".join(f"{make_printable(value)} ({count:,})" for value, count in commonest[:_SHOWN])
            more = " …" if len(commonest) > _SHOWN else ""
            return f"No memory has the {name} {make_printable(' or '.join(wanted))}; there are: {values}{more}."
    return f"None of {count_text(stats.memories, 'memory')} matches."
