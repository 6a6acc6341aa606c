"""The `workspace` commands: folders of Markdown files that the daemon indexes and watches."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from shlex import quote

from memoryd.client import calls
from memoryd.client.programs.hooks import notes
from memoryd.client.programs.memctl.arguments import add_optional
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for, send, show_result
from memoryd.client.programs.memctl.output import complain, make_printable, paint, show
from memoryd.client.programs.memctl.progress import send_with_bar
from memoryd.client.programs.memctl.source_file import shorten_home
from memoryd.client.programs.memctl.text_table import count_text, format_fields, format_table
from memoryd.client.projects.project import project_namespace, project_root
from memoryd.client.protocol import workspaces as declared
from memoryd.client.times import iso

SHOWN = 50  # listed problems per workspace
_PAGE = 1000  # files per call
_COLOURS = {"inotify": "green", "scanning": "yellow", "gone": "red"}
_ALL = "**/*.md"
_MEANINGS = {
    "inotify": "changes are seen at once",
    "scanning": "the files are checked every few seconds",
    "gone": "the folder does not exist; its index stays",
    "off": "the daemon is starting or stopping",
}


# add -----------------------------------------------------------------------------------------------------------------


def _declare_add(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a folder; its namespace is that of its project, else its name")
    files = "files to index, relative to the folder; repeatable (default: MEMORY.md and memory/, else all *.md)"
    parser.add_argument("--glob", action="append", default=[], metavar="PATTERN", help=files)


def _add(args: Namespace) -> int:
    call = calls.add_workspace(args.path, namespace=args.namespace or _project_namespace(args.path), globs=args.glob)
    added = send(args, call)
    done = send_with_bar(args, calls.index_workspace(added.root), "index", "index {}")
    [added] = send(args, calls.workspaces(added.root))
    show(args, {"workspace": added, "indexed": done.workspaces[0]}, lambda: _added_text(added, done))
    return _exit_code(done)


def _project_namespace(path: str) -> str | None:
    """Return the namespace of a folder that is a whole project, so that its notes are with its memories.

    A folder `memory` inside a project has the project's namespace; an agent's own notes have a namespace below it.
    """
    root = os.path.realpath(os.path.expanduser(path))
    if namespace := notes.find_namespace(Path(root)):
        return namespace
    is_project = os.path.isdir(root) and (project_root(root) == root or os.path.basename(root) == "memory")
    return (project_namespace(root) or None) if is_project else None


def _added_text(added: declared.Workspace, done: declared.Indexed) -> str:
    root, namespace = (paint(make_printable(text), "cyan") for text in (added.root, added.namespace))
    head = f"Added {root} as {namespace}; it is watched."
    counts = f"{count_text(added.files, 'file')} as {count_text(added.chunks, 'chunk')}"
    lines = [head, f"Indexed {counts} ({done.workspaces[0].seconds:.2f} s).", *_problem_lines(added)]
    if added.left_out and _ALL not in added.globs:
        command = f"memctl workspace add {quote(added.root)} --glob '{_ALL}'"
        lines.append(f"Its patterns are {', '.join(added.globs)}; `{make_printable(command)}` indexes the others too.")
    return "\n".join(lines)


# remove --------------------------------------------------------------------------------------------------------------


def _declare_workspace(parser: ArgumentParser) -> None:
    parser.add_argument("workspace", metavar="WORKSPACE", help="its namespace, or a path in it (/…, ~/…, ./…)")


def _remove(args: Namespace) -> None:
    done = send_with_bar(args, calls.remove_workspace(args.workspace), "remove")
    show(args, done, lambda: f"Removed {make_printable(done.message)}.")


# status --------------------------------------------------------------------------------------------------------------


def _declare_optional_workspace(parser: ArgumentParser) -> None:
    add_optional(parser, "workspace", "its namespace, or a path in it (/…, ~/…, ./…); all if left out")


def _declare_status(parser: ArgumentParser) -> None:
    _declare_optional_workspace(parser)
    parser.add_argument("--files", action="store_true", help="list the indexed files")


def _show_status(args: Namespace) -> None:
    if args.workspace is None:
        show_result(args, calls.workspaces(), _list_text, lambda found: found.workspaces)
        return
    with client_for(args) as client:
        [status] = client.call(calls.workspaces(args.workspace))
        while args.files and len(status.listed) < status.files:
            [page] = client.call(calls.workspaces(args.workspace, files=_PAGE, offset=len(status.listed)))
            if not page.listed:
                break
            status.listed += page.listed
    show(args, status, lambda: _status_text(status))


def _list_text(found: declared.WorkspaceList) -> str:
    rows = [[w.namespace, w.watching, f"{w.files:,}", f"{w.chunks:,}", shorten_home(w.root)] for w in found]
    none = "No workspaces; `memctl workspace add PATH` makes a folder of Markdown files one."
    return format_table(["NAMESPACE", "WATCHED BY", "FILES", "CHUNKS", "FOLDER"], rows, none, right=(2, 3))


def _status_text(status: declared.Workspace) -> str:
    head = f"{paint(make_printable(status.namespace), 'bold')}  {make_printable(shorten_home(status.root))}"
    pairs = [
        ("files", make_printable(", ".join(status.globs))),
        ("indexed", _indexed_text(status)),
        ("watched by", _watching_text(status)),
        ("dreams", "write MEMORY.md" if status.dreams_write else "only propose changes to MEMORY.md"),
        ("last read", iso(status.indexed_at) or "never"),
        ("last checked", iso(status.scanned_at) or "not since the daemon started"),
    ]
    files = [_files_text(status.listed)] if status.listed else []
    return "\n".join([head, format_fields(pairs), *_problem_lines(status), *files])


def _files_text(listed: list[declared.IndexedFile]) -> str:
    rows = [
        [make_printable(one.path), f"{one.chunks:,}", iso(one.changed_at) or "", make_printable(one.problem)]
        for one in listed
    ]
    return format_table(["FILE", "CHUNKS", "CHANGED", "PROBLEM"], rows, right=(1,))


def _indexed_text(status: declared.Workspace) -> str:
    text = f"{count_text(status.files, 'file')}, {count_text(status.chunks, 'chunk')}"
    if status.pending_embeddings:
        text += f"; {status.pending_embeddings:,} wait for a vector (searches by words find them already)"
    if status.indexing:
        text += f"; {count_text(status.indexing, 'file')} still to read"
    return text


def _watching_text(status: declared.Workspace) -> str:
    watching = status.watching
    text = paint(watching, _COLOURS.get(watching, "dim"))
    if status.watches:
        text += f", {status.watches:,} watch{'es' if status.watches > 1 else ''}"
    text += f" ({_MEANINGS[watching]})"
    since = f" since {iso(status.since)}" if status.since and watching != "inotify" else ""
    return text + since + (f": {make_printable(status.reason)}" if status.reason else "")


def _problem_lines(status: declared.Workspace) -> list[str]:
    lines = []
    groups = (
        (status.problems, count_text(len(status.problems), "problem")),
        (status.differing, f"{count_text(len(status.differing), 'file')} changed and not indexed again yet"),
        (status.left_out, f"{len(status.left_out):,} left out"),
    )
    for files, head in groups:
        lines += [f"  {paint(head, 'yellow')}:"] if files else []
        lines += [f"    {make_printable(one.path)}: {make_printable(one.problem)}" for one in files[:SHOWN]]
        if len(files) > SHOWN:
            lines.append(f"    … and {len(files) - SHOWN:,} more (--json shows all)")
    return lines


# index ---------------------------------------------------------------------------------------------------------------


def _declare_index(parser: ArgumentParser) -> None:
    _declare_optional_workspace(parser)
    parser.add_argument("--force", action="store_true", help="read all files, even if they look unchanged")
    parser.add_argument("--wait", action="store_true", help="return when each part has its vector")


def _index(args: Namespace) -> int:
    call = calls.index_workspace(args.workspace, force=args.force, wait=args.wait)
    done = send_with_bar(args, call, "index", "index {}")
    none = "No workspaces; `memctl workspace add PATH` adds one."
    show(args, done.workspaces, lambda: "\n".join(map(_workspace_text, done)) or none)
    return _exit_code(done)


def _workspace_text(done: declared.IndexedWorkspace) -> str:
    name = make_printable(done.namespace)
    if done.problem:
        return f"{name}: {paint(make_printable(done.problem), 'red')}"
    parts = [f"{done.indexed:,} indexed", f"{done.unchanged:,} unchanged", f"{done.removed:,} removed"]
    chunks = f"; {count_text(done.chunks_new, 'new chunk')}, {done.chunks_kept:,} kept" if done.indexed else ""
    return f"{name}: {count_text(done.scanned, 'file')}, {', '.join(parts)}{chunks} ({done.seconds:.2f} s)"


def _exit_code(done: declared.Indexed) -> int:
    failed = [one.namespace for one in done if one.problem]
    return complain(f"not indexed: {', '.join(failed)}", 1) if failed else 0


COMMANDS = {
    "workspace add": Command(
        _declare_add,
        _add,
        "  memctl workspace add .\n"
        "  memctl workspace add ~/notes --namespace acme/notes\n"
        "  memctl workspace add docs --glob '**/*.md' --glob README.md",
    ),
    "workspace remove": Command(_declare_workspace, _remove, "  memctl workspace remove notes"),
    "workspace status": Command(
        _declare_status,
        _show_status,
        "  memctl workspace status\n  memctl workspace status notes\n  memctl workspace status . --files --json",
    ),
    "workspace index": Command(
        _declare_index,
        _index,
        "  memctl workspace index\n  memctl workspace index . --force --wait\n  memctl workspace index ./today.md",
    ),
}
