"""The commands `explain` and `why-not`: how a search came to its results, stage by stage."""

import os
import shlex
from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import get_args

from memoryd.client import calls, methods
from memoryd.client.patterns import compile_late
from memoryd.client.programs.memctl.arguments import Usage, add_filters, add_query, query_of
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import named_namespace, send, show_result
from memoryd.client.programs.memctl.output import columns, make_printable, paint, show
from memoryd.client.programs.memctl.text_table import (
    draw_bar,
    format_fields,
    format_table,
    ms_text,
    text_of,
    to_one_line,
    wrap,
)
from memoryd.client.projects.project import current_namespace
from memoryd.client.protocol import (
    StageTrace,
    Tier,
    Trace,
    TraceSummary,
    Why,
)
from memoryd.client.times import iso

BAR = 16
NO_TRACES = "There are no traces: they are cleared when the daemon stops and when something is erased or redacted."
CALLS = ["search", "get_context", "get_unasked"]  # the calls of agents and programs
_LIMIT = 1000  # more traces than the daemon stores
_ID = compile_late(r"[0-9a-fA-F]{4,32}")
NOTE_LINES = 4
TIERS = {"L0": "L0 active", "L1": "L1 recent", "L2": "L2 registry", "documents": "documents"}
ORIGINS = ("words", "meaning", "hot", "graph", "L0")
MAX_CANDIDATES = 20  # lines; --json has all of them


def _declare_explain(parser: ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", metavar="QUERY", help="what to look for, in plain words")
    last = "explain the latest search of anyone, or the one with this trace id"
    parser.add_argument("--last", nargs="?", const="", metavar="ID", help=last)
    parser.add_argument("--recent", action="store_true", help="list recent searches, with ids for --last")
    add_filters(parser, add_query(parser))


def _explain(args: Namespace) -> None:
    if bool(args.query) + (args.last is not None) + args.recent > 1:
        raise Usage("give a QUERY, --last [ID] or --recent, only one of them.")
    if args.recent:
        _show_recent(args)
    elif args.last is not None:
        show_result(args, calls.trace(args.last or None), trace_text)
    elif not args.query:
        raise Usage("give a QUERY, or --last for the latest search (see `memctl explain --help`).")
    else:
        call = calls.explain(" ".join(args.query), touch=False, **query_of(args))
        show_result(args, call, lambda hits: trace_text(hits.explanation) if hits.explanation else "")


def _show_recent(args: Namespace) -> None:
    """List the searches of agents and programs; a person's previews are left out, as on the page."""
    page = send(args, methods.traces(kind=CALLS, limit=_LIMIT))
    recent = [one for one in page if one.touch][: args.limit]
    show(args, recent, lambda: _recent_text(recent))


def _recent_text(recent: list[TraceSummary]) -> str:
    rows = []
    for t in recent:
        by = " ".join(filter(None, [t.token or t.namespace or "/", t.session and f"(session {t.session[:24]})"]))
        rows.append([t.id[:8], iso(t.at) or "", t.kind, f"{t.given}", to_one_line(by), to_one_line(t.query)])
    return format_table(["TRACE", "AT", "CALL", "RESULTS", "BY", "QUERY"], rows, NO_TRACES, right=(3,))


def trace_text(trace: Trace) -> str:
    """Return a trace as text: the query, the stages, the candidates."""
    head = [
        ("query", to_one_line(trace.query)),
        ("seen from", f"{trace.namespace or '/'}, reach {trace.reach}"),
        ("model", trace.model or "none: words only"),
        ("at", f"{iso(trace.at)}, {ms_text(trace.took_ms)} ms in all, trace {trace.id}"),
    ]
    if trace.degraded:
        head.append(("left out", paint(", ".join(trace.degraded), "yellow")))
    parts = [
        stages_text(trace.stages),
        _tiers_text(trace),
        _candidates_text(trace),
    ]
    return "\n\n".join(filter(None, [format_fields(head, indent=""), *parts]))


def stages_text(stages: list[StageTrace]) -> str:
    """Return a table of the stages: their share of the time as bars, and how many candidates entered and left."""
    total = sum(stage.took_ms for stage in stages) or 1.0
    room = columns() - BAR - max((len(stage.name) for stage in stages), default=0) - 26
    rows = []
    for s in stages:
        notes = wrap(", ".join(f"{key} {text_of(value)}" for key, value in s.notes.items()), max(room, 30), NOTE_LINES)
        bar = draw_bar(s.took_ms / total, BAR).ljust(BAR)
        rows.append([s.name, ms_text(s.took_ms), bar, f"{s.entered}", f"{s.left}", notes[0]])
        rows += [["", "", "", "", "", line] for line in notes[1:]]
    return format_table(["STAGE", "MS", "TIME", "IN", "OUT", "NOTES"], rows, right=(1, 3, 4))


def _tiers_text(trace: Trace) -> str:
    """Return a table of the tiers: how many candidates and hits each has, and what found them."""
    rows = []
    most = max(Counter(candidate.tier for candidate in trace.candidates).values(), default=1)
    for tier in get_args(Tier):
        here = [candidate for candidate in trace.candidates if candidate.tier == tier]
        if here:
            number = sum(not candidate.lost for candidate in here)
            counts = Counter(origin for candidate in here for origin in candidate.origins)
            found_by = ", ".join(f"{origin} {counts[origin]}" for origin in ORIGINS if counts[origin])
            bar = draw_bar(len(here) / most, BAR).ljust(BAR)
            rows.append([TIERS.get(tier, tier), bar, f"{len(here)}", f"{number}", found_by])
    return format_table(["TIER", "", "CANDIDATES", "HITS", "FOUND BY"], rows, right=(2, 3)) if rows else ""


def _candidates_text(trace: Trace) -> str:
    candidates = trace.candidates
    if not candidates:
        return "No candidates."
    rows = []
    for c in candidates[:MAX_CANDIDATES]:
        numbers = [_format_number(c.similarity), _format_number(c.bm25, 2), _format_number(c.score)]
        rows.append([c.id[:8], *numbers, to_one_line(c.outcome), c.preview])
    headers = ["ID", "SIMILARITY", "BM25", "SCORE", "OUTCOME", "CONTENT"]
    text = format_table(headers, rows, right=(1, 2, 3))
    more = len(candidates) - MAX_CANDIDATES
    return f"{text}\n{paint(f'… and {more} more (--json has all)', 'dim')}" if more > 0 else text


def _format_number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _declare_missing(parser: ArgumentParser) -> None:
    parser.add_argument("memory", metavar="ID", help="the memory: its id, or words of it in quotes")
    parser.add_argument("query", nargs="+", metavar="QUERY", help="the search that should have found it")
    add_filters(parser, add_query(parser))


def _explain_missing(args: Namespace) -> None:
    _check_order(args.memory, args.query)
    call = calls.why_not(args.memory, " ".join(args.query), touch=False, **query_of(args))
    show_result(args, call, lambda why: why_text(why) + _agents_text(args, why))


def why_text(why: Why) -> str:
    """Return the daemon's explanation, its figures, and other memories that the words may mean."""
    said = [paint(to_one_line(line), "green" if why.found else "yellow") for line in why.said]
    figures = format_fields([(name, to_one_line(value)) for name, value in why.figures.items()])
    others = [f"Or is {one.id[:8]} meant? {to_one_line(one.text)}" for one in why.others]
    return "\n".join(filter(None, [*said, figures, *others]))


def _agents_text(args: Namespace, why: Why) -> str:
    """Return whether the project's agents see a memory that was found, and how to check that they are shown it."""
    if not why.found or os.environ.get("MEMORYD_TOKEN"):
        return ""
    named = named_namespace(args)
    here = current_namespace(note=False) if named is None else named
    if here and not f"{here}/".startswith(f"{why.namespace}/" if why.namespace else ""):
        text = f"An agent in {here} does not see it: it is in {why.namespace}."
    else:
        at = f" --namespace {shlex.quote(named)}" if named else ""
        text = f"What is shown automatically: memctl hooks preview{at} --prompt {shlex.quote(' '.join(args.query))}"
    return f"\n{paint(make_printable(text), 'dim')}"


def _check_order(first: str, others: list[str]) -> None:
    """Raise `Usage` if the query was given before the id, or words for the memory without quotes."""
    if _ID.fullmatch(first):
        return
    if not _ID.fullmatch(others[-1]):
        if len(others) == 1:
            return
        raise Usage(
            "give the memory first (an id, or words of it in quotes), then the QUERY:"
            " memctl why-not 'we use Valkey' 'which cache'."
        )
    query = shlex.quote(" ".join([first, *others[:-1]]))
    raise Usage(f"the id comes before the query: memctl why-not {others[-1]} {query}")


COMMANDS = {
    "explain": Command(
        _declare_explain,
        _explain,
        '  memctl explain "which cache do we use"\n'
        "  memctl explain cache --namespace acme/api --limit 5\n"
        "  memctl explain --last\n  memctl explain --recent",
    ),
    "why-not": Command(
        _declare_missing,
        _explain_missing,
        '  memctl why-not 3f9a "which cache do we use"\n  memctl why-not 3f9a cache --limit 3\n'
        '  memctl why-not "we use Valkey" "which cache do we use"',
    ),
}
