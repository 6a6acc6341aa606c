"""erase: memories and turns for good, in the database, its copies and what hooks have not sent yet."""

from argparse import ArgumentParser, Namespace
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING, Any

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.arguments import Usage, add_filters, add_origin, filters_of, parse_date
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.confirming import confirm
from memoryd.client.programs.memctl.link import client_for, named_namespace, send
from memoryd.client.programs.memctl.memories import read_content
from memoryd.client.programs.memctl.output import columns, complain, make_printable, show
from memoryd.client.programs.memctl.table import GAP, count_text, shorten, to_one_line
from memoryd.client.projects import known as projects
from memoryd.client.protocol import Erase, Erased, List, Memory, Mentioned, StandingName, Turn, Turns
from memoryd.client.times import iso
from memoryd.client.wording import Wording

if TYPE_CHECKING:
    from memoryd.client.programs.hooks.spool import Said

_SHOWN = 20
_NAMED = 3  # sessions in a line
_EMPTY = "empty namespace"
_TURNS = 1000  # of L0, the newest
_LEAST = 30  # columns of a text
_ROLES = {"user": "prompt", "assistant": "answer"}
_PLACES = {
    "summary": "its summary",
    "key": "its key",
    "session": "the name of its session",
    "speaker": "the name of who said it",
    "files": "the files that it is about",
    "metadata": "its metadata",
    "feedback": "a note of feedback on it",
    "neighbours": "what was said around it",
}
_ACTS = {
    "namespace": "memctl share ID --to NEW --move (IDs: memctl list --namespace {name}), or erase all that is there:"
    " memctl erase --namespace {name} --reach exact",
    "namespace of a project": "memctl project rename {name} NEW",
    "workspace": "memctl workspace remove {name}",
    "folder of a workspace": "rename the folder, or memctl workspace remove {name}",
    "file": "rename the file",
    "token": "memctl token revoke {name}",
    "session": "memctl observe on --session {name}",
    "folder": "memctl observe on --folder {name}",
    "paused namespace": "memctl observe on --namespace {name}",
    "project": "memctl project rename {name} NEW",
    "folder of a project": "rename the folder, then in it: memctl project move {name} .",
    "remote of a project": "change the remote of the checkout, then in it: memctl project move NAMESPACE",
}


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="ID", help="ids or their first digits, deleted ones too")
    parser.add_argument("--session", metavar="S", help="what was said in this session; its first 4 characters will do")
    parser.add_argument("--since", type=parse_date, metavar="DATE", help="what was created after this date")
    parser.add_argument(
        "--matching",
        metavar="TEXT",
        help="what mentions this text, now or formerly, in any case; white space, hyphens and underscores are alike;"
        " `-` reads it from stdin",
    )
    parser.add_argument("--copies", action="store_true", help="rewrite the copies in the data directory that hold it")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be erased")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_origin(add_filters(parser))


def _erase(args: Namespace) -> int:
    fields = _read_fields(args)
    if not fields and not (named_namespace(args) and args.reach in ("exact", "subtree")):
        raise Usage("say what is to be erased: ids, --matching, --session, --since … (see `memctl erase --help`).")
    preview = send(args, Erase(dry_run=True, unsent=_list_unsent_sessions(args.session), **fields))
    unsent = _erase_unsent(args, fields, preview, dry_run=True)
    preview.names += _find_projects(args.matching)
    places = _find_places(args, preview.derived)
    there = bool(preview.count or preview.skipped or preview.waiting or preview.around or unsent)
    if args.dry_run or not (there or args.matching or args.copies or preview.already):
        show(args, _add_unsent(preview, unsent), lambda: _found_text(args, preview, unsent, places))
        return 0
    if there and not args.yes:
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
    if later := sorted({*_sessions_of(unsent)} - {*sessions}):  # hooks had more that they could not send
        send(args, Erase(unsent=later, **fields))
    if args.matching:
        with suppress(OSError, MemorydError):  # `memctl doctor` looks at that file
            projects.forget_gone(Wording(args.matching).is_in)
    report.names += _find_projects(args.matching)
    cleared = _select_spaces(preview.names) - _select_spaces(report.names)
    show(args, _add_unsent(report, unsent), lambda: _erased_text(args, report, len(unsent), places, cleared))
    left = {"indexed files": report.notes, "names": report.names, "copies": args.copies and report.copies}
    places = " and ".join(place for place, held in left.items() if held)
    return complain(f"It is still in {places}.", 1) if places else 0


def _read_fields(args: Namespace) -> dict[str, Any]:
    if args.matching is not None:
        args.matching = read_content(args.matching)
    fields = filters_of(args)
    options = {
        "ids": [*args.targets, *fields.get("ids", [])],
        "session": args.session,
        "matching": args.matching,
        "after": args.since,
    }
    return fields | {name: value for name, value in options.items() if value not in (None, [])}


def _list_unsent_sessions(beginning: str | None) -> list[str]:
    """Return the sessions whose name begins so and of which hooks have something that they could not send yet."""
    from memoryd.client.programs.hooks import spool

    return [] if beginning is None else [name for name in spool.list_sessions() if name.startswith(beginning)]


def _sessions_of(unsent: "list[Said]") -> list[str]:
    return sorted({said.session for said in unsent if said.session})


def _select_spaces(names: list[StandingName]) -> set[str]:
    return {one.name for one in names if one.kind in ("namespace", _EMPTY)}


def _erase_unsent(args: Namespace, fields: dict[str, Any], report: Erased, dry_run: bool = False) -> "list[Said]":
    """Erase what hooks have not sent yet; return what it says, for each call concerned."""
    from memoryd.client.programs.hooks import spool

    is_plain = fields.keys() <= {"session", "matching"} and not named_namespace(args)
    session, matching = (report.session, fields.get("matching")) if is_plain else (None, None)
    return spool.erase({*report.ids, *report.derived}, session, matching, dry_run)


def _add_unsent(report: Erased, unsent: "list[Said]") -> dict[str, Any]:
    """Return a report for JSON, with what hooks have not sent yet."""
    texts = [said.text for said in unsent]
    return {name: getattr(report, name) for name in report.__struct_fields__} | {"unsent": texts}


# What is said of it --------------------------------------------------------------------------------------------------


def _count(report: Erased, unsent: int) -> str:
    """Return how much is or would be erased."""
    parts = [
        count_text(report.count, "memory") if report.count else "",
        count_text(report.skipped, "skipped turn") if report.skipped else "",
        f"{count_text(report.waiting, 'conversation')} waiting for a summary"
        if report.waiting and not report.count  # else it is theirs
        else "",
        f"{count_text(unsent, 'message')} that hooks have not sent yet" if unsent else "",
        f"what was said around {count_text(len(report.around), 'memory')}" if report.around else "",
    ]
    return ", ".join(filter(None, parts))


def _count_all(report: Erased, unsent: int) -> str:
    """Return how much is or would be erased, with what was made of it."""
    made = f", with {count_text(len(report.derived), 'memory')} made of it" if report.derived else ""
    return f"{_count(report, unsent)}{made}"


def _found_text(args: Namespace, preview: Erased, unsent: "list[Said]", places: str) -> str:
    """Return what would be erased: each with its beginning, what was made of it, what else holds it."""
    lines = _list_mentions(args, preview) if preview.mentions else _list_memories(args, preview.ids, preview.count)
    if preview.derived:
        made = _list_memories(args, preview.derived, len(preview.derived), is_made=True)
        lines += [f"With it goes what was made of it{places}:", *map("  {}".format, made)]
    if preview.around:
        lines.append("These memories stay; what was said around them, by which a search finds them too, is taken out:")
        shown = preview.around[:_SHOWN]
        records = _read_records(args, [one.id for one in shown])
        lines += [f"  {_format_mention(one, records.get(one.id))}" for one in shown]
        lines += [f"  … and {len(preview.around) - _SHOWN} more"] if len(preview.around) > _SHOWN else []
    if unsent:
        said = [shorten(to_one_line(one.text), columns() - 2) for one in unsent]
        lines += ["Of what hooks have not sent yet:", *map("  {}".format, said)]
    lines += _describe(preview)
    every = _count_all(preview, len(unsent))
    if not every:
        lines.insert(0, _describe_nothing(preview, args.matching))
    elif every != count_text(1, "memory"):
        lines.append(f"In all: {every}.")
    return "\n".join([*_describe_notes(preview), *lines])


def _list_mentions(args: Namespace, preview: Erased) -> list[str]:
    shown = preview.mentions[:_SHOWN]
    records = _read_records(args, [one.id for one in shown])
    lines = [_format_mention(one, records.get(one.id)) for one in shown]
    return [*lines, *([f"… and {preview.count - len(lines):,} more"] if preview.count > len(lines) else [])]


def _format_mention(one: Mentioned, record: Memory | Turn | None) -> str:
    """Return a line for a memory: the words around the text, and why it is meant where that is not plain."""
    why = [f"in {_PLACES[one.place]}"] if one.place in _PLACES else []
    if one.is_deleted:
        why.insert(0, f"deleted; `memctl history {one.id[:8]}` shows it")
    elif one.is_former:
        why.insert(0, "only in a former version")
    reason = f"({', '.join(why)}) " if why else ""
    return f"{_head(one.id, record)}{reason}{to_one_line(one.text)}"


def _list_memories(args: Namespace, every: list[str], total: int, is_made: bool = False) -> list[str]:
    """Return a line for each; `is_made` says of those that were made of others where they do not hold the text."""
    records = _read_records(args, every[:_SHOWN])
    wording, lines = Wording(args.matching) if is_made and args.matching else None, []
    for id in every[:_SHOWN]:
        record = records.get(id)
        text = record.content if record else f"(deleted; `memctl history {id[:8]}` shows it)"
        if wording and record and not _holds(record, wording):
            text = f"(does not hold the text) {text}"
        head = _head(id, record)
        lines.append(head + shorten(to_one_line(text), max(columns() - 2 - len(head), _LEAST)))
    return [*lines, *([f"… and {total - len(lines):,} more"] if total > len(lines) else [])]


def _head(id: str, record: Memory | Turn | None) -> str:
    """Return the beginning of a line: the id, whether it is a prompt, an answer or of which type, where, from when."""
    if record is None:
        return f"{id[:8]}{GAP}"
    role = record.role if isinstance(record, Turn) else str(record.metadata.get("role") or "")
    kind = _ROLES.get(role, role) or (record.type if isinstance(record, Memory) else "turn")
    about = [id[:8], kind, record.namespace or "/", (iso(record.created_at) or "")[:10], ""]
    return GAP.join(map(make_printable, about))


def _holds(record: Memory | Turn, wording: Wording) -> bool:
    if isinstance(record, Turn) or record.content_bytes is not None:
        return True  # a shortened text may
    return any(
        map(wording.is_in, (record.content, record.summary, record.key or "", *map(str, record.metadata.values())))
    )


def _read_records(args: Namespace, ids: list[str]) -> dict[str, Memory | Turn]:
    """Return by id the memories and turns that there are."""
    found: dict[str, Memory | Turn] = {memory.id: memory for memory in _read(args, ids)} if ids else {}
    if found.keys() >= set(ids):
        return found
    with client_for(args) as client:
        active = client.call(Turns(limit=_TURNS, namespace="", reach="all")).turns
    return {turn.id: turn for turn in active} | found


def _find_places(args: Namespace, ids: list[str]) -> str:
    """Return where memories are, as the end of a phrase; nothing of those that are deleted."""
    if not ids:
        return ""
    names = sorted({make_printable(memory.namespace) or "/" for memory in _read(args, ids)})
    return f" (in {', '.join(names)})" if names else ""


def _read(args: Namespace, ids: list[str]) -> list[Memory]:
    """Return the memories with some ids, wherever they are: what is made of others may be outside the namespace."""
    with client_for(args) as client:
        return client.call(List(ids=ids, all_states=True, limit=len(ids), namespace="", reach="all")).memories


def _describe_nothing(report: Erased, matching: str | None) -> str:
    number = len((matching or "").strip().splitlines())
    if number > 1 and not report.already:
        hint = f"The {number} lines are looked for as one text; give each line to a command of its own."
        return f"{_describe_no_memory(report)}\n{hint}"
    return _describe_no_memory(report)


def _describe_no_memory(report: Erased) -> str:
    nothing = f"Erased already: {', '.join(id[:8] for id in report.already)}" if report.already else ""
    none = "Beside that no memory and no turn" if report.notes else "No memory and no turn"
    if report.rewritten:
        return f"{nothing or f'{none} in the database'}; {_count_copies(len(report.rewritten))} rewritten."
    if report.copies:
        return f"{nothing or f'{none} in the database'}, but in copies of it."
    if nothing:
        return f"{nothing}. Nothing holds it here."
    if not report.looked_at:
        return f"{none} is like that; the database has no copies here."
    copies = "copy" if report.looked_at == 1 else _count_copies(report.looked_at)
    return f"{none} is like that, neither in the database nor in its {copies}."


def _count_copies(number: int) -> str:
    return "1 copy" if number == 1 else f"{number:,} copies"


def _describe_notes(report: Erased) -> list[str]:
    if not report.notes:
        return []
    heading = "It is still in the index, because of these files of yours; take it out there, then erase again:"
    return [heading, *map("  {}".format, report.notes)]


def _describe(report: Erased) -> list[str]:
    lines = []
    if report.remains:
        lines += [
            "Words of it that removed text left are in these files; the command without --dry-run clears them:"
            if report.dry_run
            else "Words of it that removed text had left in these files were cleared:",
            *map("  {}".format, report.remains),
        ]
    if report.copies:
        lines += ["These copies of the database hold it (--copies rewrites them):", *map("  {}".format, report.copies)]
    empty = [one for one in report.names if one.kind == _EMPTY and not projects.is_claimed(one.name)]
    if empty:
        lines.append(
            "Nothing is in these namespaces; `memctl erase --matching` without --dry-run and other filters takes their"
            " names out:"
        )
        lines += [f"  {make_printable(one.name)}" for one in empty]
    if others := [one for one in report.names if one not in empty]:
        lines.append("The word is also in these names, which are not memories; do what is said, then erase again:")
        lines += map(_advise, others)
    return lines


def _advise(one: StandingName) -> str:
    """Return the line that says what to do with a name."""
    is_space = one.kind in ("namespace", _EMPTY)
    act = _ACTS["namespace of a project" if is_space and projects.is_claimed(one.name) else one.kind]
    called = f"{'namespace' if is_space else one.kind} {make_printable(one.name)}"
    return f"  {called}: {act.format(name=make_printable(quote(one.name)))}"


def _find_projects(text: str | None) -> list[StandingName]:
    """Return, of each project that is called so that it holds a text, a folder, else the namespace or the remote."""
    if text is None:
        return []
    try:
        table = projects.read_table()["projects"]
    except (OSError, MemorydError):
        return []
    wording, found = Wording(text), []
    for one in table:
        names = [("folder of a project", folder) for folder in one["folders"]]
        names += [("project", one["namespace"]), ("remote of a project", one["remote"])]
        found += [StandingName(kind=kind, name=name) for kind, name in names if wording.is_in(name)][:1]
    return found


def _erased_text(args: Namespace, report: Erased, unsent: int, places: str, cleared: set[str]) -> str:
    erased = _count(report, unsent)
    lines = [
        *_describe_notes(report),
        f"Erased {erased}. Copies outside the data directory are not known here."
        if erased
        else _describe_nothing(report, args.matching),
    ]
    if cleared:
        lines.append(f"Names of empty namespaces taken out: {', '.join(map(make_printable, sorted(cleared)))}.")
    if report.rewritten:
        lines.append(f"Rewritten: {', '.join(report.rewritten)}.")
    if report.derived:
        lines.append(f"With it: {count_text(len(report.derived), 'memory')} made of it{places}.")
    lines += _describe(report)
    if report.left:
        by = [make_printable(one) if one.startswith("/") else one[:8] for one in report.said_by[:_SHOWN]]
        more = f" and {len(report.said_by) - _SHOWN} more" if len(report.said_by) > _SHOWN else ""
        said = f", which stands in {', '.join(by)}{more} too," if by else ""
        is_clear = args.matching and not (report.notes or report.names)
        part = "The text that you looked for is gone. Another part" if is_clear else "A part"
        lines += [f"{part} of what was erased{said} is still in these files:"]
        lines += map("  {}".format, report.left)
    if report.recent:
        more = f" and {len(report.recent) - _NAMED} more" if len(report.recent) > _NAMED else ""
        sessions = f"{', '.join(map(make_printable, report.recent[:_NAMED]))}{more}"
        which = make_printable(quote(report.recent[0])) if len(report.recent) == 1 else "ID"
        lines.append(
            f"Some of it was said within the last hour, in session {sessions}: what is said there again is kept again."
            f" `memctl observe off --session {which}` stops that."
        )
    return "\n".join(lines)


COMMANDS = {
    "erase": Command(
        _declare,
        _erase,
        "  memctl erase 3f9a\n"
        "  memctl erase --session 7c41 --dry-run\n"
        "  memctl erase --since yesterday --copies --yes\n"
        "  memctl erase --matching - --dry-run < key.txt\n"
        "  memctl erase --matching - --copies --yes < key.txt",
    ),
}
