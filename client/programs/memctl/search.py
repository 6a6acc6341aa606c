"""The command `search`. Shells run it most often, so it imports no more than it needs."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from memoryd.client.calls import search as search_call
from memoryd.client.confidence import FLOOR, UNLIKELY, word_of
from memoryd.client.programs.memctl.arguments import Rare, Usage, add_all_filters, add_query, parse_share, query_of
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import send
from memoryd.client.programs.memctl.output import columns, paint, say_degraded, show
from memoryd.client.programs.memctl.snippet import make_snippet
from memoryd.client.programs.memctl.source_file import place_link
from memoryd.client.programs.memctl.text_table import (
    GAP,
    count_text,
    disagreement_lines,
    ms_text,
    origin_text,
    shorten,
    to_one_line,
    wrap,
)
from memoryd.client.prompt_text import say_later
from memoryd.client.protocol import Hit, Hits
from memoryd.client.times import iso

INDENT = " " * 7
LINES = 3  # of content shown for each hit


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", metavar="QUERY", help="what to look for, in plain words")
    parser.add_argument("--like", default="", metavar="ID", help=Rare("find memories near this one instead"))
    parser.add_argument("--all", action="store_true", help=f"also show results with a confidence below {FLOOR}")
    group = add_query(parser)
    floor = Rare(f"leave out results with a lower confidence, 0 to 1 (default: {FLOOR}, with --all 0)")
    group.add_argument("--floor", type=parse_share, metavar="X", help=floor)
    add_all_filters(parser, group)


def _search(args: Namespace) -> None:
    query = " ".join(args.query)
    if not (args.query or args.like):
        raise Usage("give a QUERY, or --like ID for memories near another one (see `memctl search --help`).")
    hits = send(args, search_call(query, like=args.like, **query_of(args)))
    show(args, hits.hits, lambda: _text(args, hits, query))
    say_degraded(hits.degraded)


def _text(args: Namespace, hits: Hits, query: str) -> str:
    """Return the hits; those below the floor are only counted, unless --all or --floor is given."""
    if not hits.hits:
        from memoryd.client.programs.memctl.empty import explain_empty  # rarely needed, as below

        least = f" with a confidence of {args.floor:g} or more" if args.floor else ""
        return f"Nothing found{least}. {explain_empty(args)}"
    is_all = args.floor is not None or args.all or args.on
    likely = [hit for hit in hits if is_all or word_of(hit.confidence) != UNLIKELY]
    number = len(hits) - len(likely)
    less = f"{count_text(number, 'less likely one')} with --all" if number else ""
    if not likely:
        from memoryd.client.programs.memctl.empty import explain_place

        place = explain_place(args)
        more = f"; {place}" if place else ""
        return f"No likely result; {less}{more}{_advise_time(args, query)}"
    took = paint(f"{len(likely)} found in {ms_text(hits.took_ms)} ms", "dim")
    return "\n".join(filter(None, [*(hit_text(hit, query) for hit in likely), less, took]))


def _advise_time(args: Namespace, query: str) -> str:
    """Return a hint for a query that names a time, which a filter answers better than words do."""
    from datetime import datetime
    from shlex import quote

    from memoryd.client.dates import find_phrases

    if args.after or args.before or not (times := find_phrases(query, datetime.now().astimezone())):
        return ""
    return f"\nAll memories of that time, whatever they say: --on {quote(times[0])}"


def hit_text(hit: Hit, query: str) -> str:
    """Return a hit as a headline and, below it, the part of its content that the query is about."""
    where = [hit.tier, hit.type, origin_text(hit), hit.namespace, iso(hit.created_at)]
    about = GAP.join(filter(None, [*(to_one_line(part or "") for part in where), place_link(hit)]))
    lines = [*make_snippet(hit.content, query, columns() - len(INDENT), LINES, _mark_word), *_related_lines(hit, query)]
    if hit.newer_than and hit.newer_than not in hit.contradicts:
        lines.append(f"newer than {hit.newer_than[:8]}")
    lines += [
        shorten(f"disagrees with {line}", columns() - len(INDENT))
        for line in disagreement_lines(hit.contradicts, hit.contradicts_texts)
    ]
    if hit.later:
        lines.append(say_later(hit.later))
    content = f"\n{INDENT}".join(lines)
    head = GAP.join([paint(f"{hit.score:.3f}", "bold"), word_of(hit.confidence), paint(hit.id[:8], "cyan")])
    return f"{head}  {paint(about, 'dim')}\n{INDENT}{content}"


def _related_lines(hit: Hit, query: str) -> Iterator[str]:
    """Yield the lines of memories related to a hit: the beginning of an answer, one line of any other memory."""
    for one in hit.related:
        head = f"{one.kind} {one.id[:8]}"
        room = columns() - len(INDENT) - len(head) - len(GAP)
        if one.kind == "answer":
            first, *others = wrap(one.content, room, LINES)
        else:
            first, *others = make_snippet(one.content, query, room, 1, _mark_word) if one.content else [""]
        yield GAP.join(filter(None, [paint(head, "dim"), first]))
        yield from (" " * (len(head) + len(GAP)) + line for line in others)


def _mark_word(word: str) -> str:
    return paint(word, "bold", "yellow")


COMMANDS = {
    "search": Command(
        _declare,
        _search,
        '  memctl search "which cache do we use"\n'
        "  memctl search deployment rules --type decision --limit 3 --after 2026-01-01\n"
        '  memctl search "cache" --namespace acme/api --json\n'
        "  memctl search --like 3f9a --limit 3",
    ),
}
