"""explain and why-not: how a search came to its results, stage by stage."""

import os
import shlex
from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import get_args

from memoryd.client import Client, calls, methods
from memoryd.client.confidence import FLOOR, describe_confidence
from memoryd.client.errors import NotFound
from memoryd.client.patterns import compile_late
from memoryd.client.programs.memctl.arguments import Usage, add_filters, add_query, query_of
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for, named_namespace, send, show_result
from memoryd.client.programs.memctl.output import columns, make_printable, paint, show
from memoryd.client.programs.memctl.table import (
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
    CandidateTrace,
    Explain,
    Explanation,
    GetOperation,
    List,
    Operations,
    Page,
    StageTrace,
    Tier,
    Trace,
    TraceSummary,
    Why,
)
from memoryd.client.times import iso

BAR = 16
NONE_KEPT = "No search is kept. They are forgotten when the daemon ends and when something is erased or redacted."
ASKED = ["search", "get_context", "get_unasked"]  # what agents and programs call
MEANT_CHARS = 160  # of what may be meant
DELETIONS = ["delete", "job:expire"]
_DELETIONS, _CHANGES = 100, 1000  # operations and changes of each that are looked at
_WORD = compile_late(r"\w+")
_NEAREST = 4  # memories that may be meant by words
_KEPT = 1000  # more traces than are kept
_ID = compile_late(r"[0-9a-fA-F]{4,32}")
NOTE_LINES = 4
TIERS = {"L0": "L0 active", "L1": "L1 recent", "L2": "L2 registry", "documents": "documents"}
ORIGINS = ("words", "meaning", "hot", "graph", "L0")
SURENESS = "sureness"  # the stage that decides what comes up beside a prompt
MAX_CANDIDATES = 20  # lines; --json has all of them


def _declare_explain(parser: ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", metavar="QUERY", help="what to look for, in plain words")
    last = "the latest search of anyone, or the one with this trace id"
    parser.add_argument("--last", nargs="?", const="", metavar="ID", help=last)
    parser.add_argument("--recent", action="store_true", help="list what was asked for lately, with ids for --last")
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
        show_result(args, call, lambda explained: trace_text(explained.trace))


def _show_recent(args: Namespace) -> None:
    """List what agents and programs asked for; looks of a person are left out, as on the page."""
    page = send(args, methods.traces(kind=ASKED, limit=_KEPT))
    asked = [one for one in page if one.touch][: args.limit]
    show(args, asked, lambda: _recent_text(asked))


def _recent_text(asked: list[TraceSummary]) -> str:
    rows = []
    for t in asked:
        by = " ".join(filter(None, [t.token or t.namespace or "/", t.session and f"(session {t.session[:24]})"]))
        rows.append([t.id[:8], iso(t.at) or "", t.kind, f"{t.given}", to_one_line(by), to_one_line(t.query)])
    return format_table(["TRACE", "AT", "CALL", "RESULTS", "BY", "QUERY"], rows, NONE_KEPT, right=(3,))


def trace_text(trace: Trace) -> str:
    """Return a trace as a page: what was asked, the stages, the candidates."""
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
    """Return the stages with their share of the time as bars, and how many candidates came in and went on."""
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
    """Return from which tier how many candidates and hits came, and what brought them."""
    rows = []
    most = max(Counter(candidate.tier for candidate in trace.candidates).values(), default=1)
    for tier in get_args(Tier):
        here = [candidate for candidate in trace.candidates if candidate.tier == tier]
        if here:
            number = sum(not candidate.lost for candidate in here)
            brought = Counter(origin for candidate in here for origin in candidate.origins)
            how = ", ".join(f"{origin} {brought[origin]}" for origin in ORIGINS if brought[origin])
            bar = draw_bar(len(here) / most, BAR).ljust(BAR)
            rows.append([TIERS.get(tier, tier), bar, f"{len(here)}", f"{number}", how])
    return format_table(["TIER", "", "CANDIDATES", "HITS", "BROUGHT BY"], rows, right=(2, 3)) if rows else ""


def _candidates_text(trace: Trace) -> str:
    candidates = trace.candidates
    if not candidates:
        return "No candidates."
    rows = []
    for c in candidates[:MAX_CANDIDATES]:
        numbers = [_format_number(c.similarity), _format_number(c.bm25, 2), _format_number(c.score)]
        rows.append([c.id[:8], *numbers, _outcome_text(c, trace), c.preview])
    headers = ["ID", "SIMILARITY", "BM25", "SCORE", "OUTCOME", "CONTENT"]
    text = format_table(headers, rows, right=(1, 2, 3))
    more = len(candidates) - MAX_CANDIDATES
    return f"{text}\n{paint(f'… and {more} more (--json has all)', 'dim')}" if more > 0 else text


def _outcome_text(candidate: CandidateTrace, trace: Trace) -> str:
    """Return why it was lost or left out, or how sure its finding is; what feedback did to its score.

    Of what comes up beside a prompt it is how sure it is that it is about the prompt, which decides there.
    """
    rated = "" if candidate.usefulness == 1.0 else f" (feedback ×{candidate.usefulness:.3f})"
    sureness = {id: one for stage in trace.stages if stage.name == SURENESS for id, one in stage.notes.items()}
    if candidate.id in trace.left_out:
        outcome = f"not given: {trace.left_out[candidate.id]}"
    elif candidate.id in sureness:
        outcome = f"given, {sureness[candidate.id]['sure']:.0%} sure to be about the prompt"
    else:
        if trace.kind in ("search", "explain"):
            outcome = "found, not shown" if candidate.confidence < FLOOR else "found"
        else:
            outcome = "given" if candidate.id in trace.given else "found, not given"
        outcome += f", {describe_confidence(candidate.confidence)}"
    return f"{candidate.lost or outcome}{rated}"


def _format_number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _declare_missing(parser: ArgumentParser) -> None:
    parser.add_argument("memory", metavar="ID", help="what was missed: its id, or words of it in quotes")
    parser.add_argument("query", nargs="+", metavar="QUERY", help="the search that should have found it")
    add_filters(parser, add_query(parser))


def _explain_missing(args: Namespace) -> None:
    _check_order(args.memory, args.query)
    if _ID.fullmatch(args.memory):
        try:
            _show_why(args, [(args.memory, "")])
        except NotFound as error:
            if error.data.keys() - {"id"}:  # it was, or it is elsewhere
                raise
            with client_for(args) as client:
                found, listed = meant_calls(args.memory)
                near = list_meant(client.call(found), client.call(listed))
            meant = [one for one in near if has_words(args.memory, one[1])]
            if not meant:
                raise
            _show_why(args, meant)
    else:
        _show_why(args, _find_meant(args))


def _show_why(args: Namespace, meant: list[tuple[str, str]]) -> None:
    """Show why the first of some memories, given as id and text, is missing; name the others."""
    (id, text), *others = meant
    is_meant = (
        "is meant" if has_words(args.memory, text) else "is the nearest to these words, all of which no memory has"
    )
    head = f"{id[:8]} {is_meant}: {to_one_line(text)[:MEANT_CHARS]}\n" if text else ""
    call = calls.why_not(id, " ".join(args.query), touch=False, **query_of(args))
    foot = "".join(f"\nOr is {id[:8]} meant? {to_one_line(text)[:MEANT_CHARS]}" for id, text in others)
    show_result(
        args,
        call,
        lambda why: f"{head}{_why_text(why)}{_absent_text(args, why)}{_agents_text(args, why)}{foot}",
    )


def _absent_text(args: Namespace, why: Why) -> str:
    """Return which values there are, where a filter left a memory out that names what no memory has."""
    if why.stage != "filter":
        return ""
    from memoryd.client.programs.memctl.empty import explain_absent  # needed seldom

    absent = explain_absent(args)
    return f"\n{absent}" if absent else ""


def _agents_text(args: Namespace, why: Why) -> str:
    """Return what a memory that is found is to the agents of the project: whether they see it, and are told it."""
    if not why.found or os.environ.get("MEMORYD_TOKEN"):
        return ""
    named = named_namespace(args)
    here = current_namespace(note=False) if named is None else named
    if here and not f"{here}/".startswith(f"{why.namespace}/" if why.namespace else ""):
        text = f"An agent in {here} does not see it: it is in {why.namespace}."
    else:
        at = f" --namespace {shlex.quote(named)}" if named else ""
        text = f"What comes up unasked: memctl hooks preview{at} --prompt {shlex.quote(' '.join(args.query))}"
    return f"\n{paint(make_printable(text), 'dim')}"


def has_words(wanted: str, text: str) -> bool:
    """Return whether a text has each word of another."""
    return set(_WORD.findall(wanted.casefold())) <= set(_WORD.findall(text.casefold()))


def _find_meant(args: Namespace) -> list[tuple[str, str]]:
    """Return id and text of what the words for a memory mean, the likeliest first; of deleted ones if none has all."""
    with client_for(args) as client:
        found, listed = meant_calls(args.memory)
        page = client.call(listed)
        meant = ([] if page.memories else _list_deleted(client, args.memory)) or list_meant(client.call(found), page)
    if not meant:
        raise NotFound(
            f"No memory is like {args.memory!r}. It was not kept, or it is gone: `memctl history --kind delete"
            " --kind job:expire` lists what was deleted, `memctl tiers --turns` what was said last."
        )
    return meant


def _list_deleted(client: Client, words: str) -> list[tuple[str, str]]:
    """Return id and text of what was deleted lately and has each word, the latest first."""
    deleted = dict[str, str]()
    for one in client.call(Operations(kind=DELETIONS, limit=_DELETIONS, reach="all")).operations:
        if one.undone_by is None:
            for change in client.call(GetOperation(operation=one.id, limit=_CHANGES, reach="all")).changes:
                text = str(change.changed.get("content", ("", ""))[0] or "")
                if change.action == "deleted" and has_words(words, text):
                    deleted.setdefault(change.id, text)
    return list(deleted.items())[:_NEAREST] if _WORD.search(words) else []


def meant_calls(words: str) -> tuple[Explain, List]:
    """Return the calls that find what is meant by some words: what is near to them, and what has each, in any state."""
    return (
        Explain(query=words, limit=_NEAREST, floor=FLOOR, touch=False, reach="all"),
        List(words=words, all_states=True, limit=_NEAREST, reach="all"),
    )


def list_meant(found: Explanation, listed: Page) -> list[tuple[str, str]]:
    """Return id and text of all that was found by `meant_calls`; first what has each word."""
    with_words = {one.id for one in listed.memories}
    texts = {one.id: one.content for one in (*found.hits, *listed.memories)}
    return sorted(texts.items(), key=lambda pair: pair[0] not in with_words)


def _check_order(first: str, others: list[str]) -> None:
    """Raise `Usage` where the query was given before the id, or words for the memory are not in quotes."""
    if _ID.fullmatch(first):
        return
    if not _ID.fullmatch(others[-1]):
        if len(others) == 1:
            return
        raise Usage(
            "first what was missed (an id, or words of it in quotes), then the QUERY:"
            " memctl why-not 'we use Valkey' 'which cache'."
        )
    query = shlex.quote(" ".join([first, *others[:-1]]))
    raise Usage(f"the id comes before the query: memctl why-not {others[-1]} {query}")


def _why_text(why: Why) -> str:
    if why.found and why.confidence is not None and why.confidence < FLOOR:
        because = f"\nPerhaps since {to_one_line(why.reason)}." if why.reason else ""
        needed = f"{describe_confidence(why.confidence)}, {FLOOR:.0%} are needed"
        text = f"is found, but not shown: {needed}; `memctl search … --all` shows it."
        verdict = paint(f"{why.id[:8]} {text}{because}", "yellow")
    elif why.found:
        sure = "" if why.confidence is None else f", {describe_confidence(why.confidence)}"
        verdict = paint(f"{why.id[:8]} is found, at rank {why.rank}{sure}.", "green")
    elif why.shown_with:
        verdict = paint(f"{why.id[:8]} is a part of another result: {to_one_line(why.reason)}.", "green")
    else:
        verdict = paint(
            f"{why.id[:8]} is not among the results: {to_one_line(why.reason)} (stage {why.stage}).", "yellow"
        )
    rows = [
        ("similarity", _format_rank(why.similarity, why.similarity_rank)),
        ("bm25", _format_rank(why.bm25, why.bm25_rank)),
        ("score", _format_number(why.score) + sum_text(why.parts, why.score)),
        ("confidence", confidence_text(why)),
        ("last result", _last_text(why)),
    ]
    return f"{verdict}\n{format_fields([(name, to_one_line(value)) for name, value in rows if value])}"


def confidence_text(why: Why) -> str:
    """Return how sure a memory is, or would be within the limit, and what that comes from; empty where not known."""
    if why.confidence is None or not why.confidence_reason:
        return ""
    is_hidden = why.confidence < FLOOR and not why.found
    needed = f", {FLOOR:.0%} are needed to be shown" if is_hidden else ""
    return f"{describe_confidence(why.confidence)}{needed}: {why.confidence_reason}"


def _last_text(why: Why) -> str:
    sure = why.last_hit_confidence
    return _format_number(why.last_hit_score) + ("" if sure is None else f", {describe_confidence(sure)}")


def sum_text(parts: dict[str, float], score: float | None) -> str:
    """Return what a score is made of, as a sum: ` = 0.610 meaning + 0.300 words`; empty where that is not known."""
    shown = {name: value for name, value in parts.items() if abs(value) >= 0.0005}
    if not score or not shown:
        return ""
    terms = [f" {'-' if value < 0 else '+'} {abs(value):.3f} {name}" for name, value in shown.items()]
    return " = " + "".join(terms).removeprefix(" + ")


def _format_rank(value: float | None, rank: int | None) -> str:
    return _format_number(value) + (f", rank {rank}" if rank is not None else "")


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
