"""The commands `hooks install`, `hooks uninstall`, `hooks status` and `hooks preview`, and `hook`, which agents run."""

import difflib
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from memoryd.client.errors import Invalid
from memoryd.client.extras import advise
from memoryd.client.methods import get_unasked
from memoryd.client.programs.hooks import folders, installing, notes, spool
from memoryd.client.programs.hooks.hosts import EVENTS, HOSTS
from memoryd.client.programs.hooks.installing import UNFIT, FileChange, Refusal, Target
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import named_namespace, send
from memoryd.client.programs.memctl.local import is_installed
from memoryd.client.programs.memctl.output import (
    complain,
    make_printable,
    paint,
    paused_text,
    print_note,
    say,
    say_degraded,
    show,
)
from memoryd.client.programs.memctl.source_file import shorten_home
from memoryd.client.programs.memctl.spooled import describe_waiting, send_spooled
from memoryd.client.programs.memctl.text_table import count_text, format_table, shorten
from memoryd.client.programs.memctl.upkeep.restart import get_status
from memoryd.client.projects import known as projects
from memoryd.client.projects.project import current_namespace, project_root
from memoryd.client.protocol import Unasked
from memoryd.client.transport import paths

_SHOWN_COLUMNS = 80  # the width of a memory that a preview names as left out
# Offers to import past sessions; imported by name, since it imports modules that import this one.
_OFFER = "memoryd.client.programs.backfill.offer"


def _declare_agent(parser: ArgumentParser) -> None:
    parser.add_argument("agent", choices=tuple(HOSTS), metavar="AGENT", help=", ".join(HOSTS))
    parser.add_argument("--project", metavar="DIR", type=_folder, help="for one project (default: for all of yours)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be changed, and change nothing")


def _folder(text: str) -> Path:
    path = Path(text).expanduser().resolve()
    if not path.is_dir():
        raise Invalid(f"{text} is not a folder.")
    return path


def _install_arguments(parser: ArgumentParser) -> None:
    _declare_agent(parser)
    parser.add_argument("--print", action="store_true", help="print what belongs into the files, and change nothing")
    import_module(_OFFER).declare(parser)
    notes.declare(parser)


def _install(args: Namespace) -> int:
    targets = installing.list_targets(args.agent, args.project)
    command = installing.own_command()
    if args.print:
        entries = [{"path": str(target.path), "text": target.add(target.empty, command)} for target in targets]
        show(args, entries, lambda: _paste_text(targets, command))
        return 0
    done = _change(args, targets, lambda target: installing.plan_install(target, command))
    if done == 0 and not args.json and not args.dry_run:
        if not args.project:
            print_note("memctl: That is for all your projects; with --project DIR it is for one.")
        elif (Path(project_root(args.project)) / ".git").exists():
            print_note("memctl: Do not commit these files: they name a path of this machine.")
            print_note("memctl: Lines in .git/info/exclude keep git from showing new ones.")
        print_note(f"memctl: {HOSTS[args.agent].advice}")
        print_note(f"memctl: What is said in sessions is kept, on this machine alone, in {paths.data_folder()}.")
        print_note("memctl: To pause that: memctl observe off. To take it out for good: memctl erase --help.")
        if own := " and ".join(paths.list_overrides()):
            print_note(f"memctl: WARNING: {own}, set in this shell, lead to another memory than the usual one.")
            print_note("memctl: An agent that is started without them uses the usual one.")
        if not is_installed():
            print_note("memctl: WARNING: nothing is kept or given yet: the daemon's packages are not here;")
            print_note(f"memctl: {advise('daemon')}")
        if find_spec("mcp") is None:
            print_note(f"memctl: the MCP server needs a package that is not here; {advise('mcp')}")
    if done == 0 and not args.dry_run and (not args.json or getattr(args, "backfill", None)):
        import_module(_OFFER).offer(args)
    if done == 0 and not args.dry_run and (not args.json or args.notes):
        notes.offer(args)
    return done


def _uninstall(args: Namespace) -> int:
    command = installing.own_command()
    targets = installing.list_targets(args.agent, args.project)
    was_there = any(check_state(args.agent, target)["state"] != "not installed" for target in targets)
    done = _change(args, targets, lambda target: installing.plan_uninstall(target, command))
    if done == 0 and args.project and not args.dry_run and not list_hooked(args.project):
        folders.forget_folder(args.project)
    if done == 0 and not args.dry_run:
        send_spooled(args)
    if done == 0 and not args.json and not args.dry_run and was_there:
        print_note("memctl: Running sessions keep the hooks until they end. Memories and the daemon stay:")
        print_note("memctl: `memctl uninstall` removes all of memoryd.")
    return done


def _change(args: Namespace, targets: Sequence[Target], planned: Callable[[Target], FileChange]) -> int:
    """Plan the changes of all files, then apply them; if one is refused none is changed."""
    try:
        changes = [planned(target) for target in targets]
    except Refusal as refusal:
        complain(str(refusal), 1)
        if not args.json and hasattr(args, "print"):  # `hooks install`
            print_note("memctl: fix the file, or put this into it by hand:")
            say(_paste_text([refusal.target], installing.own_command()))
        return 1
    if not args.dry_run:
        if hasattr(args, "print"):
            folders.note_installation(args.project, [target.path for target in targets])
        for change in changes:
            installing.apply(change)
        folders.remove_empty(folders.list_made())
    done = [{"path": str(change.target.path), "change": _choose_verb(change)} for change in changes]
    show(args, done, lambda: _changes_text(changes, args.dry_run))
    return 0


def _choose_verb(change: FileChange) -> str:
    if not change.has_effect:
        text = installing.text_of(change.target, change.before)
        return "unchanged" if any(change.target.read_entries(text)) else "not installed"
    return "deleted" if change.after is None else "created" if change.before is None else "changed"


def _changes_text(changes: Sequence[FileChange], dry_run: bool) -> str:
    lines = []
    size = max(9, *(len(_choose_verb(change)) for change in changes))
    for change in changes:
        verb = _choose_verb(change)
        lines.append(f"{paint(verb.ljust(size), 'green' if change.has_effect else 'dim')}  {_shorten(change.target)}")
        if dry_run:
            lines += _format_difference(change)
    if dry_run and any(change.has_effect for change in changes):
        lines.append("Nothing was changed: this was a dry run.")
    return "\n".join(lines)


def _format_difference(change: FileChange) -> list[str]:
    old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (change.before, change.after))
    colours = {"+": "green", "-": "red"}
    lines = [line for line in difflib.unified_diff(old, new, lineterm="", n=1) if line[:3] not in ("---", "+++")]
    return [f"    {paint(line, colours.get(line[:1], 'dim'))}" for line in lines]


def _paste_text(targets: Sequence[Target], command: Sequence[str]) -> str:
    return "\n".join(f"# {_shorten(target)}\n{target.add(target.empty, command).rstrip()}" for target in targets)


def _shorten(target: Target) -> str:
    return shorten_home(str(target.path))


def _status(args: Namespace) -> None:
    files = [check_state(agent, target) for agent in HOSTS for target in installing.list_targets(agent, None)]
    files += [file for folder in folders.list_current() for file in list_hooked(folder)]
    calls = {"spooled": spool.count_waiting(), "dropped": spool.count_dropped()}
    status = get_status(args)
    paused = paused_text(status.pauses) if status else ""
    text = f"\nObserving is {paused}." if paused else ""
    show(args, {"files": files, **calls}, lambda: _status_text(files, **calls) + text)


def list_hooked(project: Path) -> list[dict[str, str]]:
    """Return the files of all agents that have hooks in a project; two agents may share a file."""
    found = []
    for agent in HOSTS:
        files = [check_state(agent, target) for target in installing.list_targets(agent, project)]
        found += files if files[0]["state"] != "not installed" else []
    return found


def check_state(agent: str, target: Target) -> dict[str, str]:
    """Return the state of the entries in an agent's file: installed, not installed, outdated, or an obstacle."""
    command = installing.own_command()
    try:
        text = installing.text_of(target, installing.read_file(target.path))
        present = target.read_entries(text)
        wanted = target.read_entries(target.add(target.remove(text), command)) if any(present) else []
    except Refusal as refusal:
        state = f"unreadable: {refusal.reason}"
    except UNFIT as error:
        state = f"something is in the way: {error}"
    else:
        state = "not installed" if not any(present) else "installed" if present == wanted else "outdated: install again"
    return {"agent": agent, "path": str(target.path), "state": state}


def _status_text(files: Sequence[dict[str, str]], spooled: int, dropped: int) -> str:
    rows = [[one["agent"], shorten_home(one["path"]), one["state"]] for one in files]
    text = format_table(["AGENT", "FILE", "STATE"], rows, flexible=0)  # names are short, so states are not cut
    if spooled:
        them = "them" if spooled > 1 else "it"
        text += (
            f"\n{describe_waiting(spooled)} for the daemon; `memctl up` sends {them}, as does the next hook that finds"
            " it (not at a prompt: you wait there)."
        )
    if dropped:
        text += f"\n{count_text(dropped, 'call')} dropped, as it says in {spool.dropped_path()}"
    return text


def _declare_preview(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--prompt",
        default="",
        metavar="TEXT",
        help="what comes with this prompt (default: with a session's start); what sessions were given: memctl given;"
        " what they were not, and why: memctl explain --recent, then --last ID",
    )


def _preview(args: Namespace) -> None:
    """Show the context that an agent would get in a new session, without side effects."""
    made = send(args, get_unasked(args.prompt, touch=False))
    if args.json or made.lines:
        show(args, made, lambda: _preview_text(made))
    here = current_namespace(note=False) if named_namespace(args) is None else ""
    if here and not projects.is_claimed(here):
        print_note(f"memctl: a project that is new here; it will be called {make_printable(here)}.")
        former, _, number = here.rpartition("-")
        if number.isdigit() and projects.is_claimed(former):
            print_note(f"memctl: If it is {make_printable(former)}, moved: memctl project move {shlex.quote(former)} .")
    if not made.lines:
        where = "with this prompt" if args.prompt.strip() else "at the start of a session here"
        print_note(f"memctl: an agent would be shown nothing {where}.")
        if args.prompt.strip() and not made.refused:
            print_note("memctl: A search finds nothing for it here either.")
    if made.refused:
        about = shorten(make_printable(made.refused.text), _SHOWN_COLUMNS)
        nearest = "The best that was left out" if made.lines else "The nearest"
        print_note(f"memctl: {nearest} is {made.refused.id[:8]} ({about}): {made.refused.why}.")
    say_degraded(made.degraded)


def _preview_text(made: Unasked) -> str:
    lines = [made.text.rstrip("\n"), "", f"{count_text(made.tokens, 'token')}. Why each line:"]
    return "\n".join([*lines, *(f"  {paint(line.id[:8], 'dim')}  {line.why}" for line in made.lines)])


def _declare_hook(parser: ArgumentParser) -> None:
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in EVENTS.items())
    parser.add_argument("event", choices=tuple(EVENTS), metavar="EVENT", help=meanings)
    parser.add_argument("--agent", choices=tuple(HOSTS), default=next(iter(HOSTS)), help="whose event it is")


def _run_hook(args: Namespace) -> None:
    from memoryd.client.programs.hooks import hook

    hook.main([args.event, "--agent", args.agent])


COMMANDS = {
    "hooks install": Command(
        _install_arguments,
        _install,
        "  memctl hooks install claude-code\n"
        "  memctl hooks install codex --dry-run\n"
        "  memctl hooks install cursor --project .\n"
        "  memctl hooks install gemini --print",
    ),
    "hooks uninstall": Command(_declare_agent, _uninstall, "  memctl hooks uninstall claude-code"),
    "hooks status": Command(lambda parser: None, _status, "  memctl hooks status\n  memctl hooks status --json"),
    "hooks preview": Command(
        _declare_preview,
        _preview,
        '  memctl hooks preview\n  memctl hooks preview --prompt "which port has the local database?"',
    ),
    "hook": Command(
        _declare_hook,
        _run_hook,
        """  echo '{"session_id": "s1", "prompt": "add a cache"}' | memctl hook prompt""",
    ),
}
