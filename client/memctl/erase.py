"""erase: memories and turns for good, in the database, its copies and what hooks have not sent yet."""

from argparse import ArgumentParser, Namespace
from typing import Any

from memoryd.client.memctl.arguments import Usage, add_filters, filters_of, parse_date
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.confirming import confirm
from memoryd.client.memctl.link import send
from memoryd.client.memctl.output import show
from memoryd.client.memctl.table import count_text
from memoryd.client.protocol import Erase, Erased, List, Turns

_NOTHING = "Nothing is to be erased: no memory and no turn is like that."
_SHOWN = 20
_CHARS = 70
_TURNS = 1000  # of L0, the newest


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="ID", help="ids or their first digits, deleted ones too")
    parser.add_argument("--session", metavar="S", help="what was said in this session, skipped turns too")
    parser.add_argument("--since", type=parse_date, metavar="DATE", help="what was created after this date")
    parser.add_argument("--matching", metavar="TEXT", help="what mentions this text, in any case, now or formerly")
    parser.add_argument("--copies", action="store_true", help="rewrite the copies in the data directory that hold it")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be erased")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_filters(parser)


def _erase(args: Namespace) -> None:
    fields = _read_fields(args)
    if not fields:
        raise Usage("say what is to be erased: ids, --matching, --session, --since … (see `memctl erase --help`).")
    preview: Erased = send(args, Erase(dry_run=True, **fields))
    if args.dry_run or not (preview.count or args.session or args.matching or args.copies):
        show(args, preview, lambda: _found_text(args, preview))
        return
    if not args.yes and (preview.count or args.session):
        warning = f"This erases {count_text(preview.count, 'memory')} for good; it cannot be undone."
        confirm("erase", warning, f"{_found_text(args, preview)}\nmemctl: {warning}", "Nothing was erased.")
    report: Erased = send(args, Erase(copies=args.copies, **fields))
    from memoryd.client.agents.hooks import spool

    spool.erase({*report.ids, *report.derived}, args.session, args.matching)
    show(args, report, lambda: _erased_text(report))


def _read_fields(args: Namespace) -> dict[str, Any]:
    fields = filters_of(args)
    options = {
        "ids": [*args.targets, *fields.get("ids", [])],
        "session": args.session,
        "matching": args.matching,
        "after": args.since,
    }
    return fields | {name: value for name, value in options.items() if value not in (None, [])}


def _found_text(args: Namespace, preview: Erased) -> str:
    """Return what would be erased: each with its beginning, what was made of it, what else holds it."""
    if not preview.count:
        if args.session:
            nothing = "No memory and no turn of that session is kept; what was skipped of it, or waits, is erased."
            return "\n".join([nothing, *_describe(preview)])
        return "\n".join([_NOTHING, *_describe(preview)])
    page = send(args, List(ids=preview.ids[:_SHOWN], all_states=True, limit=_SHOWN, reach="all"))
    texts = {memory.id: memory.content for memory in page.memories}
    if not texts.keys() >= set(preview.ids[:_SHOWN]):
        texts |= {turn.id: turn.content for turn in send(args, Turns(limit=_TURNS, reach="all")).turns}
    lines_shown = [
        f"{id[:8]}  {' '.join(texts[id].split())[:_CHARS] if id in texts else '(deleted; the history has it)'}"
        for id in preview.ids[:_SHOWN]
    ]
    if preview.count > len(lines_shown):
        lines_shown.append(f"… and {preview.count - len(lines_shown):,} more")
    return "\n".join([*lines_shown, *_describe(preview)])


def _describe(report: Erased) -> list[str]:
    lines = []
    if report.derived:
        lines.append(f"With it: {count_text(len(report.derived), 'memory')} made of it.")
    if report.notes:
        lines += ["These files of yours mention it; take it out there:", *map("  {}".format, report.notes)]
    if report.copies:
        lines += ["These copies of the database hold it (--copies rewrites them):", *map("  {}".format, report.copies)]
    return lines


def _erased_text(report: Erased) -> str:
    lines = [_NOTHING]
    if report.count:
        lines = [f"Erased {count_text(report.count, 'memory')}. Copies outside the data directory are not known here."]
    if report.rewritten:
        lines.append(f"Rewritten: {', '.join(report.rewritten)}.")
    lines += _describe(report)
    if report.left:
        still = "Words of it are still in these files; another memory or a file of yours may say the same:"
        lines += [still, *map("  {}".format, report.left)]
    if report.absent:
        lines.append(
            f"Not installed: {', '.join(report.absent)}. Their tables may keep words of it until they are back."
        )
    return "\n".join(lines)


COMMANDS = {
    "erase": Command(
        _declare,
        _erase,
        "  memctl erase 3f9a\n  memctl erase --session 7c41 --dry-run\n  memctl erase --since yesterday --copies --yes",
    ),
}
