"""The command `erase`: erase memories and turns for good, in the database, its copies and the spool of hooks."""

from argparse import ArgumentParser, Namespace
from shlex import quote
from typing import TYPE_CHECKING, Any

from memoryd.client.programs.memctl.arguments import Usage, add_filters, add_origin, filters_of
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.confirming import confirm
from memoryd.client.programs.memctl.link import client_for, named_namespace, send
from memoryd.client.programs.memctl.memories import read_content
from memoryd.client.programs.memctl.output import columns, complain, make_printable, show
from memoryd.client.programs.memctl.text_table import GAP, count_text, shorten, to_one_line
from memoryd.client.protocol import Erase, Erased, List, Memory, Mentioned, Turn, Turns
from memoryd.client.text_match import Wording
from memoryd.client.times import iso

if TYPE_CHECKING:
    from memoryd.client.programs.hooks.spool import SpooledText

_SHOWN = 20
_NAMED = 3  # sessions named in one line
_TURNS = 1000  # how many turns of L0 are read, the newest
_MIN_COLUMNS = 30  # the least width of a text
_ROLES = {"user": "prompt", "assistant": "answer"}
_PLACES = {
    "summary": "its summary",
    "key": "its key",
    "session": "the name of its session",
    "speaker": "the speaker's name",
    "files": "the files that it is about",
    "metadata": "its metadata",
    "feedback": "a note of feedback on it",
    "neighbours": "its neighbours: the turns before and after it",
}


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="ID", help="ids or their first digits, deleted ones too")
    parser.add_argument("--session", metavar="S", help="turns of this session; its first 4 characters are enough")
    parser.add_argument(
        "--matching",
        metavar="TEXT",
        help="memories that mention this text, now or in a former version, in any case; white space, hyphens and"
        " underscores count as equal; `-` reads the text from stdin",
    )
    parser.add_argument("--copies", action="store_true", help="also rewrite the copies in the data directory")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be erased")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_origin(add_filters(parser))


def _erase(args: Namespace) -> int:
    fields = _read_fields(args)
    if not fields and not (named_namespace(args) and args.reach in ("exact", "subtree")):
        raise Usage("say what to erase: ids, --matching, --session, --after … (see `memctl erase --help`).")
    preview = send(args, Erase(dry_run=True, unsent=_list_unsent_sessions(args.session), **fields))
    unsent = _erase_unsent(args, fields, preview, dry_run=True)
    places = _find_places(args, preview.derived)
    has_any = bool(preview.count or preview.skipped or preview.waiting or preview.around or unsent)
    if args.dry_run or not (has_any or args.matching or args.copies or preview.already):
        show(args, _add_unsent(preview, unsent), lambda: _found_text(args, preview, unsent, places))
        return 0
    if has_any and not args.yes:
        comma = "," if preview.derived else ""
        warning = f"This erases {_count_all(preview, len(unsent))}{comma} for good; it cannot be undone."
        confirm(
            "erase", warning, f"{_found_text(args, preview, unsent, places)}\nmemctl: {warning}", "Nothing was erased."
        )
    if preview.session is not None:
        fields["session"] = preview.session
    sessions = _sessions_of(unsent)
    report = send(args, Erase(copies=args.copies, unsent=sessions, **fields))
    unsent = _erase_unsent(args, fields, report)
    if later := sorted({*_sessions_of(unsent)} - {*sessions}):  # hooks have spooled more calls meanwhile
        send(args, Erase(unsent=later, **fields))
    show(args, _add_unsent(report, unsent), lambda: _erased_text(args, report, len(unsent), places))
    remains = ["It is still in indexed files."] if report.notes else []
    remains += ["It may still be in copies of the database."] if args.copies and report.copies else []
    return complain(" ".join(remains), 1) if remains else 0


def _read_fields(args: Namespace) -> dict[str, Any]:
    if args.matching is not None:
        args.matching = read_content(args.matching)
    fields = filters_of(args)
    options = {
        "ids": args.targets,
        "session": args.session,
        "matching": args.matching,
    }
    return fields | {name: value for name, value in options.items() if value not in (None, [])}


def _list_unsent_sessions(beginning: str | None) -> list[str]:
    """Return the sessions in the hooks' spool whose name begins with a prefix."""
    from memoryd.client.programs.hooks import spool

    return [] if beginning is None else [name for name in spool.list_sessions() if name.startswith(beginning)]


def _sessions_of(unsent: "list[SpooledText]") -> list[str]:
    return sorted({one.session for one in unsent if one.session})


def _erase_unsent(
    args: Namespace, fields: dict[str, Any], report: Erased, dry_run: bool = False
) -> "list[SpooledText]":
    """Erase from the hooks' spool; return the text of each changed call."""
    from memoryd.client.programs.hooks import spool

    is_plain = fields.keys() <= {"session", "matching"} and not named_namespace(args)
    session, matching = (report.session, fields.get("matching")) if is_plain else (None, None)
    return spool.erase({*report.ids, *report.derived}, session, matching, dry_run)


def _add_unsent(report: Erased, unsent: "list[SpooledText]") -> dict[str, Any]:
    """Return the report for JSON, which includes the texts that were erased from the spool."""
    texts = [one.text for one in unsent]
    return {name: getattr(report, name) for name in report.__struct_fields__} | {"unsent": texts}


# Output --------------------------------------------------------------------------------------------------------------


def _count(report: Erased, unsent: int) -> str:
    """Describe how much is or would be erased."""
    parts = [
        count_text(report.count, "memory") if report.count else "",
        count_text(report.skipped, "skipped turn") if report.skipped else "",
        f"{count_text(report.waiting, 'conversation')} waiting for a summary"
        if report.waiting and not report.count  # otherwise the conversation belongs to the counted turns
        else "",
        f"{count_text(unsent, 'message')} that hooks have not sent yet" if unsent else "",
        f"the neighbours of {count_text(len(report.around), 'memory')}" if report.around else "",
    ]
    return ", ".join(filter(None, parts))


def _count_all(report: Erased, unsent: int) -> str:
    """Describe how much is or would be erased, including derived memories."""
    derived = f", with {count_text(len(report.derived), 'memory')} derived from it" if report.derived else ""
    return f"{_count(report, unsent)}{derived}"


def _found_text(args: Namespace, preview: Erased, unsent: "list[SpooledText]", places: str) -> str:
    """List what would be erased: memories, memories derived from them, and other places with the text."""
    if preview.mentions:
        lines = _list_mentions(args, preview.mentions, preview.count)
    else:
        lines = _list_memories(args, preview.ids, preview.count)
    if preview.derived:
        derived = _list_memories(args, preview.derived, len(preview.derived), is_derived=True)
        lines += [f"Also erased, derived from it{places}:", *map("  {}".format, derived)]
    if preview.around:
        lines.append("These memories stay, but the text of their neighbours, which searches use too, is removed:")
        lines += map("  {}".format, _list_mentions(args, preview.around, len(preview.around)))
    if unsent:
        messages = [shorten(to_one_line(one.text), columns() - 2) for one in unsent]
        lines += ["Messages that hooks have not sent yet:", *map("  {}".format, messages)]
    lines += _describe(args, preview)
    total = _count_all(preview, len(unsent))
    if not total:
        lines.insert(0, _describe_nothing(preview, args.matching))
    elif total != count_text(1, "memory"):
        lines.append(f"In all: {total}.")
    return "\n".join([*_describe_notes(preview), *lines])


def _list_mentions(args: Namespace, mentions: list[Mentioned], total: int) -> list[str]:
    shown = mentions[:_SHOWN]
    records = _read_records(args, [one.id for one in shown])
    lines = [_format_mention(one, records.get(one.id)) for one in shown]
    return [*lines, *([f"… and {total - len(lines):,} more"] if total > len(lines) else [])]


def _format_mention(one: Mentioned, record: Memory | Turn | None) -> str:
    """Return a line for a memory: the text around the match, and where it is if that is not obvious."""
    why = [f"in {_PLACES[one.place]}"] if one.place in _PLACES else []
    if one.is_deleted:
        why.insert(0, f"deleted; `memctl history {one.id[:8]}` shows it")
    elif one.is_former:
        why.insert(0, "only in a former version")
    reason = f"({', '.join(why)}) " if why else ""
    return f"{_head(one.id, record)}{reason}{to_one_line(one.text)}"


def _list_memories(args: Namespace, ids: list[str], total: int, is_derived: bool = False) -> list[str]:
    """Return a line for each memory; for derived ones say if they do not contain the text."""
    records = _read_records(args, ids[:_SHOWN])
    wording, lines = Wording(args.matching) if is_derived and args.matching else None, []
    for id in ids[:_SHOWN]:
        record = records.get(id)
        text = record.content if record else f"(deleted; `memctl history {id[:8]}` shows it)"
        if wording and record and not _contains(record, wording):
            text = f"(does not contain the text) {text}"
        head = _head(id, record)
        lines.append(head + shorten(to_one_line(text), max(columns() - 2 - len(head), _MIN_COLUMNS)))
    return [*lines, *([f"… and {total - len(lines):,} more"] if total > len(lines) else [])]


def _head(id: str, record: Memory | Turn | None) -> str:
    """Return the beginning of a line: id, type or role, namespace and date."""
    if record is None:
        return f"{id[:8]}{GAP}"
    role = record.role if isinstance(record, Turn) else str(record.metadata.get("role") or "")
    kind = _ROLES.get(role, role) or (record.type if isinstance(record, Memory) else "turn")
    about = [id[:8], kind, record.namespace or "/", (iso(record.created_at) or "")[:10], ""]
    return GAP.join(map(make_printable, about))


def _contains(record: Memory | Turn, wording: Wording) -> bool:
    if isinstance(record, Turn) or record.content_bytes is not None:
        return True  # the text may be shortened
    texts = (record.content, record.summary, record.key or "", *map(str, record.metadata.values()))
    return any(map(wording.is_in, texts))


def _read_records(args: Namespace, ids: list[str]) -> dict[str, Memory | Turn]:
    """Return the existing memories and turns by id."""
    found: dict[str, Memory | Turn] = {memory.id: memory for memory in _read(args, ids)} if ids else {}
    if found.keys() >= set(ids):
        return found
    with client_for(args) as client:
        active = client.call(Turns(limit=_TURNS, namespace="", reach="all")).turns
    return {turn.id: turn for turn in active} | found


def _find_places(args: Namespace, ids: list[str]) -> str:
    """Return the namespaces of memories as the end of a phrase, empty if all are deleted."""
    names = sorted({make_printable(memory.namespace) or "/" for memory in _read(args, ids)} if ids else ())
    return f" (in {', '.join(names)})" if names else ""


def _read(args: Namespace, ids: list[str]) -> list[Memory]:
    """Return memories by id from all namespaces, since derived ones may be outside the given one."""
    with client_for(args) as client:
        return client.call(List(ids=ids, all_states=True, limit=len(ids), namespace="", reach="all")).memories


def _describe_nothing(report: Erased, matching: str | None) -> str:
    number = len((matching or "").strip().splitlines())
    hint = ""
    if number > 1 and not report.already:
        hint = f"\nThe {number} lines were searched for as one text; run the command once for each line."
    already = f"Erased already: {', '.join(id[:8] for id in report.already)}" if report.already else ""
    none = "No other memory or turn matches" if report.notes else "No memory or turn matches"
    if report.rewritten:
        return f"{already or f'{none} in the database'}; {_count_copies(len(report.rewritten))} rewritten.{hint}"
    if report.copies:
        return f"{already or f'{none} in the database'}, but in copies of it.{hint}"
    if already:
        return f"{already}. Nothing here has it any more.{hint}"
    if not report.looked_at:
        return f"{none}; the database has no copies here.{hint}"
    copies = "copy" if report.looked_at == 1 else _count_copies(report.looked_at)
    return f"{none}, neither in the database nor in its {copies}.{hint}"


def _count_copies(number: int) -> str:
    return "1 copy" if number == 1 else f"{number:,} copies"


def _describe_notes(report: Erased) -> list[str]:
    if not report.notes:
        return []
    heading = "It is still in the index, because these files of yours have it; remove it there, then erase again:"
    return [heading, *map("  {}".format, report.notes)]


def _describe(args: Namespace, report: Erased) -> list[str]:
    lines = []
    if report.copies:
        heading = (
            "These copies could not be rewritten and may still have it; the daemon's log says why. Delete them:"
            if args.copies and not report.dry_run
            else "These copies of the database still have it (--copies rewrites all):"
        )
        lines += [heading, *map("  {}".format, report.copies)]
    return lines


def _erased_text(args: Namespace, report: Erased, unsent: int, places: str) -> str:
    erased = _count(report, unsent)
    lines = [
        *_describe_notes(report),
        f"Erased {erased}. memoryd does not know copies outside the data directory."
        if erased
        else _describe_nothing(report, args.matching),
    ]
    if report.rewritten:
        lines.append(f"Rewritten: {', '.join(report.rewritten)}.")
    if report.derived:
        lines.append(f"Also erased: {count_text(len(report.derived), 'memory')} derived from it{places}.")
    lines += _describe(args, report)
    if report.recent:
        more = f" and {len(report.recent) - _NAMED} more" if len(report.recent) > _NAMED else ""
        sessions = f"{', '.join(map(make_printable, report.recent[:_NAMED]))}{more}"
        which = make_printable(quote(report.recent[0])) if len(report.recent) == 1 else "ID"
        lines.append(
            f"Some of it was said within the last hour, in session {sessions}: if it is said there again, it is"
            f" recorded again. `memctl observe off --session {which}` prevents that."
        )
    return "\n".join(lines)


COMMANDS = {
    "erase": Command(
        _declare,
        _erase,
        "  memctl erase 3f9a\n"
        "  memctl erase --session 7c41 --dry-run\n"
        "  memctl erase --after yesterday --copies --yes\n"
        "  memctl erase --matching - --dry-run < key.txt\n"
        "  memctl erase --matching - --copies --yes < key.txt",
    ),
}
