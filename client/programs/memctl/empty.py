"""Explain why a list or a search is empty: there are no memories, or none has the value of a filter."""

from argparse import Namespace

from memoryd.client import sandboxed
from memoryd.client.calls import stats as stats_call
from memoryd.client.programs.memctl.arguments import filters_of
from memoryd.client.programs.memctl.link import client_for, named_namespace, send
from memoryd.client.programs.memctl.output import make_printable
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.protocol import GetStats, List, Stats

_SHOWN = 12  # listed values of a filter
_ELSEWHERE = "`memctl namespaces` lists where there are some"


def explain_empty(args: Namespace) -> str:
    """Return why nothing matches the filters of a command, in one sentence."""
    stats = send(args, stats_call())
    if stats.turns:
        stats.by_type.setdefault("turn", stats.turns)
        stats.by_tier["L0"] = stats.turns
    if stats.turns and (not stats.memories or getattr(args, "tier", None) == ["L0"]):
        return "Recent turns are not memories yet; `memctl tiers --turns` lists them."
    if not stats.memories:
        there = make_printable(named_namespace(args) or "")
        if there:
            relation = {"exact": "are in", "subtree": "are in or inside"}.get(args.reach or "", "can be seen from")
            return f"No memories {relation} {there}; {explain_place(args) or _ELSEWHERE}."
        if others := sandboxed.list_folders():
            return f"No memories here; there may be some in {others[0]}: `memctl doctor data-folder`."
        return "No memories yet; `memctl add TEXT` adds the first."
    if absent := _name_absent(args, stats):
        return absent
    if getattr(args, "mode", None) == "lexical" and not filters_of(args):
        return 'No memory has one of these words; words like "the" are not searched for.'
    place, number = explain_place(args), stats.memories
    if not getattr(args, "all_states", False):
        number = send(args, List(limit=1)).total
    return f"None of {count_text(number, 'memory')} matches{f'; {place}' if place else ''}."


def _name_absent(args: Namespace, stats: Stats) -> str:
    for name, counts in (("type", stats.by_type), ("source", stats.by_source), ("tier", stats.by_tier)):
        wanted = getattr(args, name, None) or []
        if wanted and not counts.keys() & set(wanted):
            commonest = sorted(counts.items(), key=lambda item: -item[1])
            values = ", ".join(f"{make_printable(value)} ({count:,})" for value, count in commonest[:_SHOWN])
            more = " …" if len(commonest) > _SHOWN else ""
            return f"No memory has the {name} {make_printable(' or '.join(wanted))}; there are: {values}{more}."
    return ""


def count_turns(args: Namespace) -> str:
    """Return a hint with the number of turns in L0, which a list does not show; empty if there are none."""
    turns = send(args, stats_call()).turns
    return f"and {count_text(turns, 'recent turn')}, not listed here: `memctl tiers --turns`" if turns else ""


def explain_place(args: Namespace) -> str:
    """Return where memories are if the namespace of a command has none of its own; otherwise an empty text."""
    there = named_namespace(args)
    if not there or args.reach in ("subtree", "all"):
        return ""
    with client_for(args) as client:
        stats = client.call(GetStats(namespace=there, reach="subtree"))
    if stats.by_namespace.get(there):
        return ""
    if stats.memories:
        return f"{stats.memories:,} are inside {make_printable(there)}: `--reach subtree`"
    return "" if stats.turns else f"there are none in {make_printable(there)}, {_ELSEWHERE}"
