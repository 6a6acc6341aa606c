"""The commands on memories: add, get, list, update, tag, confirm, delete, feedback."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from typing import Any, get_args

import msgspec

from memoryd.client import calls, methods, protocol
from memoryd.client.errors import Invalid
from memoryd.client.fields import new_memory
from memoryd.client.programs.memctl import arguments
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.empty import count_turns, explain_empty
from memoryd.client.programs.memctl.link import (
    check_person,
    describe_project,
    named_namespace,
    own_origin,
    send,
    show_result,
)
from memoryd.client.programs.memctl.output import make_printable, paint, say_degraded, show, undo_text
from memoryd.client.programs.memctl.source_file import make_link, place_link, short_path
from memoryd.client.programs.memctl.text_table import (
    GAP,
    count_kept,
    count_text,
    disagreement_lines,
    format_fields,
    format_table,
    list_texts,
    origin_text,
    to_one_line,
)
from memoryd.client.projects.project import current_namespace
from memoryd.client.times import is_past, iso

_SHOWN = 20  # memories that a dry run lists
_MOST_CHANGES = 1000  # how many changes of an operation are read
_EXPIRED = "It has expired already, so no search finds it; `memctl list --all-states` shows it."


def read_content(argument: str) -> str:
    """Return the argument, or for `-` the text of standard input, without its last line end."""
    if argument != "-":
        return argument
    if sys.stdin is None:
        raise Invalid("There is no standard input to read the content from.")
    data = sys.stdin.buffer.read(protocol.MAX_FRAME_BYTES)
    if len(data) == protocol.MAX_FRAME_BYTES:
        limit = protocol.MAX_CONTENT_BYTES
        raise Invalid(f"The content is far longer than {limit} bytes; split it or keep it in a file.")
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise Invalid("The content on standard input is not UTF-8 text.") from None


# add -----------------------------------------------------------------------------------------------------------------


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("content", metavar="CONTENT", help="what to remember; `-` reads standard input")
    _add_fields(parser, is_new=True)
    parser.add_argument("--tag", action="append", metavar="WORD", help="a tag; repeat it for more")
    parser.add_argument("--key", metavar="KEY", help="a name in its namespace; it replaces the memory that has it")
    parser.add_argument("--supersedes", metavar="ID", help="a memory that this one replaces in results")
    no_dedup = arguments.Rare("store it even if a duplicate exists (default: merge it into the duplicate)")
    parser.add_argument("--no-dedup", action="store_true", help=no_dedup)
    arguments.add_secrets(parser)


def _add(args: Namespace) -> None:
    metadata = {**arguments.merge(args.metadata), **({"tags": args.tag} if args.tag else {})}
    names = ("type", "importance", "expires_at", "pinned", "supersedes")
    values = {name: getattr(args, name) for name in names if getattr(args, name) != "never"}
    memory = new_memory({"content": read_content(args.content), "metadata": metadata, "origin": own_origin(), **values})
    if args.key is None:
        call = protocol.Add(memory=memory, dedup=not args.no_dedup)
        show_result(args, call, lambda added: _added_text(args, added))
    else:
        if args.supersedes or args.no_dedup:
            raise arguments.Usage("--key says which memory is replaced; leave out --supersedes and --no-dedup.")
        put = protocol.Put(entries=[protocol.KeyedEntry(key=args.key, memory=memory)])
        show_result(args, put, lambda put: _put_text(args, put.results[0]), lambda put: put.results[0])


def _put_text(args: Namespace, outcome: protocol.KeyedOutcome) -> str:
    words = {"created": "Stored", "updated": "Replaced", "unchanged": "Unchanged"}
    name = make_printable(args.key) + describe_project(args)
    return f"{words[outcome.outcome]}: {name} ({paint(outcome.id or '', 'cyan')})"


def _added_text(args: Namespace, added: protocol.Added) -> str:
    """Return the outcome of an add as text: what happened, where the memory is, and who sees it there."""
    verb = "Remembered" if added.outcome == "created" else "Merged into an existing memory"
    lines = [f"{verb}: {paint(added.id, 'cyan')}"]
    if added.waiting:
        lines.append(f"It waits here for the shared root {added.shared}, whose machine does not answer now.")
    elif added.shared:
        lines.append(
            f"Kept in {make_printable(added.namespace or '')}, on the machine of the shared root {added.shared}:"
        )
        lines.append("seen by everyone who may read that root.")
    elif added.namespace:
        there = make_printable(added.namespace)
        readers = "seen there and from every namespace inside it"
        if named_namespace(args) is None:
            readers = "seen by sessions of that project"
        lines.append(f"Kept in {there}: {readers}.")
    elif added.namespace is not None:
        is_shown = own_origin() == "person" and (args.pinned or args.type == "preference")
        lines.append(f"Kept at /: yours, {'shown in all projects' if is_shown else 'found everywhere when asked for'}.")
    contradicted = zip(added.contradicts, added.contradicts_texts, strict=False)
    replaced = args.supersedes
    if replaced:
        lines.append(f"It replaces {replaced[:8]} in results.")
    if others := [(id, text) for id, text in contradicted if not replaced or not id.startswith(replaced)]:
        lines.append("Both are kept; it disagrees with:")
        lines += [f"  {line}" for line in disagreement_lines(*zip(*others, strict=True))]
        lines.append("To have it replace one: add it once more with --supersedes ID.")
    elif added.nearest and not replaced:
        lines.append(f"Nearest: {added.nearest[:8]}: {to_one_line(added.nearest_text)}")
        lines.append("If this replaces it: add it once more with --supersedes ID.")
    if is_past(args.expires_at) and not args.pinned:
        lines.append(_EXPIRED)
    if not added.embedded:
        lines.append("Searches find it by its words now, and by its meaning as soon as it has a vector.")
    return "\n".join(lines)


def _add_fields(parser: ArgumentParser, *, is_new: bool) -> None:
    """Declare the options for fields of a memory; left out, a new memory gets defaults and another stays as it is."""
    kind, importance, expiry, pinned = ("fact", "0.5", "never", "no") if is_new else ("as it is",) * 4
    about = f"its type: fact, decision, preference, lesson … (default: {kind})"
    parser.add_argument("--type", metavar="T", help=about)
    about = "a JSON object or KEY=VALUE; repeatable"
    parser.add_argument("--metadata", action="append", type=arguments.parse_metadata, metavar="M", help=about)
    about = f"how much it matters, 0 to 1 (default: {importance})"
    parser.add_argument("--importance", type=arguments.parse_share, metavar="X", help=about)
    about = f"when it expires and is not found any more: a date, or never (default: {expiry})"
    parser.add_argument("--expires-at", type=_parse_when, metavar="DATE", help=about)
    about = f"it never expires, its age does not count, and sessions are shown it first (default: {pinned})"
    parser.add_argument("--pinned", action=BooleanOptionalAction, help=about)


def _parse_when(text: str) -> float | str:
    return text if text == "never" else arguments.parse_date(text)


# get, list -----------------------------------------------------------------------------------------------------------


def _get_arguments(parser: ArgumentParser) -> None:
    arguments.add_optional(parser, "id", "an id or its first digits, at least 4")
    parser.add_argument("--key", metavar="KEY", help="instead of an id: the key of a memory in the namespace")
    parser.add_argument(
        "--around",
        type=arguments.accept_whole(0, 200),
        metavar="N",
        help="also show N turns before and after it in its conversation",
    )
    arguments.add_reach(parser)


def _get(args: Namespace) -> None:
    if (args.id is None) == (args.key is None) or (args.key is not None and args.around is not None):
        raise arguments.Usage("give an ID or --key; --around is for an ID (see `memctl get --help`).")
    if args.around is not None:
        show_result(
            args,
            methods.get(args.id, around=args.around),
            lambda memory: "\n".join(map(turn_text, memory.around)) or "No turn of its conversation is stored.",
            lambda memory: memory.around,
        )
    else:
        show_result(args, methods.get(args.id or "", key=args.key or ""), memory_text)


def turn_text(turn: protocol.Memory) -> str:
    """Return a turn as a headline with its text below."""
    who = str(turn.metadata.get("speaker") or turn.metadata.get("role") or turn.type)
    files = [str(path) for path in turn.metadata.get("files", [])]
    about = GAP.join([iso(turn.created_at) or "", to_one_line(who), *map(to_one_line, files)])
    return f"{paint(turn.id[:8], 'cyan')}  {paint(about, 'dim')}\n{make_printable(turn.content)}"


def memory_text(memory: protocol.Memory) -> str:
    """Return all fields of a memory that are not empty."""
    contradicted = zip(memory.contradicts, memory.contradicts_texts, strict=False)
    others = [
        (id, text) for id, text in contradicted if id != memory.superseded_by
    ]  # the line "replaced by" shows this one
    disagreements = disagreement_lines(*zip(*others, strict=True)) if others else []
    accesses = f"{count_text(memory.access_count, 'time')}, last {iso(memory.last_accessed_at)}"
    rows = [
        ("id", memory.id),
        ("namespace", memory.namespace or "/"),
        ("key", to_one_line(memory.key or "")),
        ("type", memory.type),
        ("tier", f"{memory.tier}, source {memory.source}, importance {memory.importance:g}"),
        ("origin", origin_text(memory)),
        ("created", iso(memory.created_at)),
        ("updated", iso(memory.updated_at) if memory.updated_at != memory.created_at else None),
        ("accessed", accesses if memory.last_accessed_at else "never"),
        (
            "expired" if _is_expired(memory) else "expires",
            "never (pinned)" if memory.pinned else iso(memory.expires_at),
        ),
        ("replaced by", memory.superseded_by),
        *(("" if at else "disagrees with", line) for at, line in enumerate(disagreements)),
        ("metadata", _format_tags(memory)),
        ("feedback", feedback_text(memory.usefulness) if memory.usefulness else None),
        ("notes", " / ".join(memory.usefulness.notes) if memory.usefulness else None),
        ("summary", memory.summary),
    ]
    pairs = [(name, make_printable(value)) for name, value in rows if value]
    head = format_fields([*pairs, *_format_file_rows(memory)], indent="")
    return f"{head}\n\n{make_printable(memory.content)}"


def _format_file_rows(memory: protocol.Memory) -> list[tuple[str, str]]:
    """Return the file and lines of a memory, and the linked files; a click opens them."""
    rows = [("from", place_link(memory))] if memory.path else []
    if memory.tier == "documents" and isinstance(heading := memory.metadata.get("heading"), str):
        rows.append(("heading", to_one_line(heading)))
    for name, paths in (("links to", memory.links), ("linked from", memory.linked_from)):
        for at, path in enumerate(paths):
            rows.append(("" if at else name, make_link(to_one_line(short_path(path)), path)))
    return rows


def _list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--limit", type=arguments.parse_limit, default=20, metavar="N", help="how many (default: 20)")
    offset = arguments.Rare("skip the first N (default: 0)")
    parser.add_argument("--offset", type=arguments.parse_offset, default=0, metavar="N", help=offset)
    parser.add_argument(
        "--sort", choices=get_args(protocol.Sort), default="created", help="the field to sort by (default: created)"
    )
    parser.add_argument("--all-states", action="store_true", help="superseded and expired ones too")
    arguments.add_all_filters(parser)


def _list(args: Namespace) -> None:
    names = ("limit", "offset", "sort", "all_states")
    call = calls.list_(**{name: getattr(args, name) for name in names}, **arguments.filters_of(args))
    page = show_result(args, call, lambda page: _page_text(args, page), lambda page: page.memories)
    say_degraded(page.degraded)


def _page_text(args: Namespace, page: protocol.Page) -> str:
    if page.total and not page.memories:
        return f"There are no more than {count_text(page.total, 'memory')}."
    more = ""
    if not args.all_states:
        every = calls.list_(limit=1, all_states=True, **arguments.filters_of(args))
        count = send(args, every).total - page.total
        more = f"{count:,} more, superseded or expired, with --all-states" if count > 0 else ""
    if not page.memories:
        return ". ".join(filter(None, [explain_empty(args).rstrip("."), more])) + "."
    turns = "" if arguments.filters_of(args) else count_turns(args)
    hints = filter(None, (more, turns, _suggest_reach(args, page)))
    return "\n".join([_list_text(page.memories, page.total), *(paint(line, "dim") for line in hints)])


def _suggest_reach(args: Namespace, page: protocol.Page) -> str:
    """Return the command that lists what the folder's project sees, if the list has memories of other projects too."""
    here = current_namespace(note=False) if args.reach is None and named_namespace(args) is None else ""
    inside = f"{here}/"
    if not here or all(not m.namespace or inside.startswith(f"{m.namespace}/") for m in page.memories):
        return ""
    return f"of all projects; what {make_printable(here)} sees: `memctl list --reach visible`"


def _state_text(memory: protocol.Memory) -> str:
    """Return why no search finds a memory; empty if searches find it."""
    if memory.superseded_by:
        return f"replaced by {memory.superseded_by[:8]}"
    return "expired" if _is_expired(memory) else ""


def _list_text(memories: list[protocol.Memory], total: int) -> str:
    has_namespaces, has_states = any(memory.namespace for memory in memories), any(map(_state_text, memories))
    headers = ["ID", "CREATED", "TYPE", "ORIGIN", *["NAMESPACE"] * has_namespaces, *["STATE"] * has_states, "CONTENT"]
    rows = [
        [
            m.id[:8],
            iso(m.created_at) or "",
            m.type,
            origin_text(m),
            *[m.namespace or "/"] * has_namespaces,
            *[_state_text(m)] * has_states,
            m.content,
        ]
        for m in memories
    ]
    sentence = f"{len(memories)} of {count_text(total, 'memory')}"
    return f"{format_table(headers, rows)}\n{paint(sentence, 'dim')}"


# update, tag, delete -------------------------------------------------------------------------------------------------


def _declare_update(parser: ArgumentParser) -> None:
    arguments.add_id(parser)
    parser.add_argument("--content", metavar="TEXT", help="new content; `-` reads standard input")
    _add_fields(parser, is_new=False)
    parser.add_argument("--remove", action="append", metavar="KEY", help="remove a key from the metadata")
    arguments.add_secrets(parser)
    parser.add_argument("--replace-metadata", action="store_true", help="replace the metadata instead of merging it")
    arguments.add_reach(parser)


def _update(args: Namespace) -> None:
    names = ("type", "importance", "pinned", "expires_at")
    changes: dict[str, Any] = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if changes.get("expires_at") == "never":
        changes["expires_at"] = None
    if args.content is not None:
        changes["content"] = read_content(args.content)
    if args.metadata or args.remove or args.replace_metadata:
        changes["metadata"] = {**arguments.merge(args.metadata), **dict.fromkeys(args.remove or [])}
        changes["replace_metadata"] = args.replace_metadata
    if not changes:
        raise arguments.Usage("nothing to change; give --content, --type, --metadata … (see `memctl update --help`).")
    call = calls.update(args.id, origin=own_origin(), **changes)
    show_result(args, call, _changed_text)


def _changed_text(result: protocol.Changed) -> str:
    text = f"Changed: {result.memory.id} (operation {result.operation[:8]})"
    return f"{text}\n{_EXPIRED}" if _is_expired(result.memory) else text


def _is_expired(memory: protocol.Memory) -> bool:
    return is_past(memory.expires_at) and not memory.pinned


def _declare_confirm(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="an id or its first digits, at least 4")
    arguments.add_reach(parser)


def _confirm(args: Namespace) -> None:
    check_person("Run `memctl confirm`")
    show_result(args, methods.confirm(args.ids), _confirmed_text)


def _confirmed_text(done: protocol.Confirmed) -> str:
    back = f"{undo_text(done.operation)} takes it back" if done.operation else "a change of it in its root ends that"
    return f"Confirmed {count_text(len(done.ids), 'memory')}; {back}."


def _tag_arguments(parser: ArgumentParser) -> None:
    arguments.add_id(parser)
    parser.add_argument("words", nargs="+", metavar="WORD|KEY=VALUE", help="a tag, or a metadata value")


def _tag(args: Namespace) -> None:
    tags = [word for word in args.words if "=" not in word]
    try:
        values = dict(arguments.parse_pair(word) for word in args.words if "=" in word)
    except ArgumentTypeError as error:
        raise arguments.Usage(f"a metadata value {error}.") from None
    call = protocol.Tag(id=args.id, tags=tags, values=values)
    show_result(args, call, lambda result: f"Tagged: {result.memory.id} {_format_tags(result.memory)}".rstrip())


def _format_tags(memory: protocol.Memory) -> str:
    pairs = []
    for key, value in memory.metadata.items():
        if key != "heading" or memory.tier != "documents":
            pairs.append(f"{key}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}")
    return make_printable("  ".join(pairs))


def _delete_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="ID", help="ids or their first digits; all are deleted or none")
    parser.add_argument(
        "--key", action="append", metavar="KEY", help="the key of a memory in the namespace; repeatable"
    )
    parser.add_argument("--dry-run", action="store_true", help="with filters: only show what would be deleted")
    arguments.add_origin(arguments.add_filters(parser))


def _delete(args: Namespace) -> None:
    filters = arguments.filters_of(args)
    if bool(args.targets or args.key) == bool(filters):
        not_both = ", not both" if filters else ""
        raise arguments.Usage(
            f"give ids of memories to delete, or filters like --where{not_both} (see `memctl delete --help`)."
        )
    if filters:
        _delete_where(args, filters)
        return
    if args.dry_run:
        raise arguments.Usage("--dry-run needs filters like --where.")
    call = calls.delete(*args.targets, key=args.key)
    show_result(args, call, lambda report: _deleted_ids_text(args, report))


def _delete_where(args: Namespace, filters: dict[str, Any]) -> None:
    report = send(args, protocol.Delete(dry_run=args.dry_run, **filters))
    if args.json or not args.dry_run or not report.ids:
        show(args, report, lambda: _deleted_text(report))
        return
    page = send(
        args, calls.list_(ids=report.ids[:_SHOWN], all_states=True, limit=_SHOWN, reach=args.reach or "subtree")
    )
    print(f"{_list_text(page.memories, report.count)}\nThese would be deleted; to delete them leave out --dry-run.")


def _deleted_ids_text(args: Namespace, report: protocol.Deleted) -> str:
    deleted = count_kept(len(report.ids) - report.turns, report.turns)
    lines = [f"Deleted {deleted}; {undo_text(report.operation or '')} brings back what was deleted."]
    if report.derived:
        changes = send(args, methods.history(operation=report.operation or "", limit=_MOST_CHANGES)).changes
        derived = [(one.id, str(one.changed.get("content", ("",))[0])) for one in changes if one.id in report.derived]
        lines += ["Also deleted, derived from it:", *map("  {}".format, list_texts(derived, len(report.derived)))]
    return "\n".join(lines)


def _deleted_text(report: protocol.Deleted) -> str:
    note = f"\n{count_text(report.documents, 'part')} of files stay; edit the files." if report.documents else ""
    if report.operation is None:
        return f"No memory is deleted: none matches the filters.{note}"
    deleted = f"Deleted {count_text(report.count, 'memory')}"
    return f"{deleted}; {undo_text(report.operation)} brings back what was deleted.{note}"


# feedback ------------------------------------------------------------------------------------------------------------


def _declare_feedback(parser: ArgumentParser) -> None:
    arguments.add_id(parser)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--useful", action="store_true", help="it helped; it ranks a little higher from now on")
    group.add_argument("--useless", action="store_true", help="it did not help; it ranks a little lower")
    parser.add_argument("--note", default="", metavar="TEXT", help="why; `memctl get` shows it")


def _give_feedback(args: Namespace) -> None:
    show_result(args, methods.feedback(args.id, args.useful, args.note), _rating_text)


def _rating_text(result: protocol.Changed) -> str:
    rated = feedback_text(result.memory.usefulness)
    return f"Noted: {result.memory.id[:8]} is {rated}; {undo_text(result.operation)} takes it back."


def feedback_text(usefulness: protocol.Usefulness | None) -> str:
    """Return the sum of the feedback in a phrase."""
    if usefulness is None:
        return "not rated"
    parts = [
        f"useful to {count_text(usefulness.useful, 'caller')}" if usefulness.useful else "",
        f"useless to {count_text(usefulness.useless, 'caller')}" if usefulness.useless else "",
        f"cited {count_text(usefulness.cited, 'time')}" if usefulness.cited else "",
    ]
    return f"{', '.join(part for part in parts if part)} (score ×{usefulness.factor:.3f})"


COMMANDS = {
    "add": Command(
        _add_arguments,
        _add,
        '  memctl add "We use Valkey, not Redis" --type decision\n'
        '  memctl add "Deploys run on Tuesdays" --namespace acme/api --tag release\n'
        "  git log -1 --format=%B | memctl add - --type codebase-knowledge\n"
        '  memctl add "We cache in Valkey" --key cache',
    ),
    "get": Command(
        _get_arguments,
        _get,
        "  memctl get 3f9a\n  memctl get 3f9a02c4 --json\n  memctl get 3f9a --around 5\n  memctl get --key cache",
    ),
    "list": Command(
        _list_arguments,
        _list,
        "  memctl list --reach visible\n"
        "  memctl list --type decision --after 2026-01-01 --sort importance\n"
        "  memctl list --where 'score>=4' --where team=api\n"
        "  memctl list --namespace acme --reach subtree --json",
    ),
    "update": Command(
        _declare_update,
        _update,
        '  memctl update 3f9a --content "We use Valkey 8"\n'
        "  memctl update 3f9a --importance 0.9 --pinned --remove draft",
    ),
    "tag": Command(
        _tag_arguments, _tag, "  memctl tag 3f9a cache backend\n  memctl tag 3f9a team=infra port=6379 checked=true"
    ),
    "confirm": Command(_declare_confirm, _confirm, "  memctl confirm 3f9a 77c0"),
    "delete": Command(
        _delete_arguments,
        _delete,
        "  memctl delete 3f9a 77c0\n  memctl delete --where status=done --where 'score<2' --dry-run\n  memctl undo",
    ),
    "feedback": Command(
        _declare_feedback,
        _give_feedback,
        '  memctl feedback 3f9a --useful\n  memctl feedback 3f9a --useless --note "outdated since version 8"',
    ),
}
