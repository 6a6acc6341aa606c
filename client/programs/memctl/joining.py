"""The commands `shared create`, `shared join` and `shared leave`: which repositories a root has, and who joins it.

The roots that a machine has joined are listed in its own configuration only. The repositories of a root are listed in
the configuration of the machine, or in the database, that has the root.
"""

import os
import shlex
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple, get_args

import msgspec

from memoryd.client.errors import Conflict, Forbidden, Invalid, MemorydError, NotFound, Unavailable
from memoryd.client.programs.memctl import database
from memoryd.client.programs.memctl.arguments import Usage
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.confirming import confirm
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.output import make_printable, print_note, show
from memoryd.client.programs.memctl.project import give_name
from memoryd.client.programs.memctl.sections import read_section, write_section
from memoryd.client.programs.memctl.service import restart
from memoryd.client.programs.memctl.source_file import shorten_home
from memoryd.client.programs.memctl.text_table import count_text, format_table
from memoryd.client.projects import known as projects
from memoryd.client.projects.roots import find_root, is_name, is_pattern
from memoryd.client.protocol import AddMany, AddToken, GetShared, List, Memory, NewMemory, RootStatus
from memoryd.client.protocol.shared import Auto, Greeting
from memoryd.client.transport import paths, spawn, ssh
from memoryd.client.transport.batches import split_evenly
from memoryd.client.transport.postgres.connection import SCHEME, is_address
from memoryd.client.transport.sync import Client

_GREETING_S, _PAUSE_S, _POLL_S = 30.0, 1.0, 0.1
_PAGE, _BATCH = 1000, 100
_KEEP = ("mine", "all", "none")
_NOTE = (
    "All that is saved in {name}/… on this machine, preferences and what was saved before too, is read by everybody who"
    " has a token for {name}. Conversations and files are not."
)
_OTHER_ENVIRONMENT = (
    "It has the environment that it was started with, such as another $PATH or no ssh-agent: `memctl down`, then"
    " `memctl up` here. As a service it needs a key without a passphrase."
)


class Placing(NamedTuple):
    """A checkout that belongs to a root because of its remote, with its present namespace and that in the root."""

    folder: str
    namespace: str
    place: str


def _check_name(name: str) -> str:
    if not is_name(name):
        raise Invalid(f"{name[:80]!r} cannot be a root: it is a letter and up to 39 of a-z, 0-9 and _, without `/`.")
    return name


def _check_server(server: str) -> str:
    if not ssh.is_address(server) and not is_address(server):
        raise Usage(
            f"{server[:80]!r} is no machine; write --server ssh://HOST, ssh://USER@HOST, ssh://USER@HOST:PORT or"
            " postgresql://USER@HOST/DATABASE"
        )
    return server


def _check_patterns(patterns: list[str]) -> list[str]:
    for pattern in patterns:
        if not is_pattern(pattern):
            raise Invalid(f"{pattern[:80]!r} names no host and owner; write it like 'github.com/acme/*'.")
    return patterns


# create --------------------------------------------------------------------------------------------------------------


def _declare_create(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what to call it; its namespaces are NAME/REPOSITORY")
    parser.add_argument(
        "--repo",
        action="append",
        required=True,
        metavar="PATTERN",
        help="its repositories, such as 'github.com/acme/*'; may be given several times",
    )
    _declare_server(parser, "create it there: ssh://home, or postgresql://host/database; by default on this machine")
    parser.add_argument(
        "--existing", action="store_true", help="what is in such namespaces there already is shared too"
    )


def _declare_server(parser: ArgumentParser, about: str) -> None:
    parser.add_argument("--server", metavar="URL", help=about)
    parser.add_argument("--memctl", metavar="COMMAND", help="how memctl is called there (default: memctl)")


def _create(args: Namespace) -> int | None:
    name, patterns = _check_name(args.name), _check_patterns(args.repo)
    if args.server:
        return _create_there(args, name, patterns)
    section = read_section(name)
    if section and section.get("server"):
        raise Conflict(f"{name} lies on {section['server']}; create it there with --server {section['server']}.")
    if section is None:
        _check_strays(name, patterns)
    with client_for(args) as client:
        held = 0 if args.existing or section else client.call(List(namespace=name, reach="subtree", limit=1)).total
        if held:
            raise Conflict(
                f"{name} holds {count_text(held, 'memory')} here, which everybody in the root would see;"
                f" --existing says that this is meant. `memctl list --namespace {name} --reach subtree` shows them."
            )
        with suppress(Conflict):
            client.call(AddToken(name=name, namespace=name))
    write_section(name, {"repositories": patterns})
    _restart(args, name)
    said = {"name": name, "repositories": patterns}
    text = (
        f"{name} lies on this machine, for {', '.join(patterns)}. {_NOTE.format(name=name)} `memctl shared join {name}`"
        " says which checkouts here lie in it; elsewhere add --server ssh://THIS-MACHINE. `memctl token add PERSON"
        f" --namespace {name}` lets somebody else in (docs/sharing.md)."
    )
    show(args, said, lambda: text)
    return None


def _create_there(args: Namespace, name: str, patterns: list[str]) -> int:
    server = _check_server(args.server)
    if server.startswith(SCHEME):
        database.create_root(args, name, patterns, server)
        return 0
    words = ["shared", "create", name, *(word for pattern in patterns for word in ("--repo", pattern))]
    words += ["--existing"] if args.existing else []
    command = ssh.build_command(server, f"{args.memctl or 'memctl'} {shlex.join(words)}")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        refused = (
            said.splitlines()[-1] if said.startswith("memctl") else ssh.explain(ssh.place_of(name), done.stderr, "")
        )
        raise MemorydError(make_printable(refused.removeprefix("memctl: ")))
    return 0


# join ----------------------------------------------------------------------------------------------------------------


def _declare_join(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the root")
    _declare_server(
        parser, "the place that has it, such as ssh://home or postgresql://host/database; not for a root that lies here"
    )
    parser.add_argument("--token", metavar="TOKEN", help="name of the token there (default: the root's)")
    about = "which saves go there by themselves: decisions, rules, lessons and conventions (default), all, or none"
    parser.add_argument("--auto", choices=get_args(Auto), help=about)
    parser.add_argument("--dry-run", action="store_true", help="show what would be done")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _join(args: Namespace) -> None:
    name = _check_name(args.name)
    section = read_section(name) or {}
    given = {"server": args.server and _check_server(args.server), "token": args.token, "memctl": args.memctl}
    settings = {**section, **{key: value for key, value in {**given, "auto": args.auto}.items() if value}}
    speaks = ""
    if settings.get("server"):
        greeting = ask_greeting(name, settings)
        if greeting.namespace != name:
            raise Forbidden(
                f"The token {greeting.name} there is for {greeting.namespace[:80]}, not for {name}; name another one"
                " with --token."
            )
        if not greeting.repositories:
            raise NotFound(
                f"{name} names no repositories there. On that machine: memctl shared create {name} --repo"
                " 'github.com/OWNER/*'"
            )
        settings["repositories"] = _check_patterns(greeting.repositories)
        speaks = f"; {greeting.name} is {greeting.role} there"
    elif section:
        speaks = f".\n{_NOTE.format(name=name).rstrip('.')}"
    else:
        raise Usage(f"which machine has {name}? give --server ssh://HOST (or create it here: memctl shared create).")
    plan = _plan_moves(name, settings["repositories"])
    about = f"{name}{' on ' + settings['server'] if settings.get('server') else ''} is for"
    preview = make_printable(f"{about} {', '.join(settings['repositories'])}{speaks}.\n{_plan_text(plan)}")
    report: dict[str, Any] = {"name": name, "settings": settings, "dry_run": args.dry_run, "placed": []}
    if args.dry_run:
        report["placed"] = [one._asdict() for one in plan]
        show(args, report, lambda: preview)
        return
    if not args.yes:
        confirm(name, "This says what is shared.", preview, "Nothing was changed.")
    write_section(name, settings)
    _restart(args, name)
    for one in plan:
        given_name, _, _ = give_name(args, one.folder, one.place, join=True)
        report["placed"].append({**one._asdict(), "moved": given_name["moved"], "operations": given_name["operations"]})
    show(args, report, lambda: f"{_plan_text(plan)}\n{_joined_text(name, settings)}")
    if settings.get("server") and (problem := _try_connection(args, name)):
        print_note(make_printable(f"memctl: memctl reaches it, the daemon does not: {problem} {_OTHER_ENVIRONMENT}"))


def _try_connection(args: Namespace, name: str) -> str:
    """Let a running daemon connect to the root; return why that failed, empty if it succeeded or no daemon runs."""
    if not spawn.locate(paths.socket_path(args.socket)):
        return ""
    with client_for(args, autostart=False) as client:
        client.call(List(namespace=name, reach="subtree", tier=["L3"], limit=1))
        give_up_at = time.monotonic() + _GREETING_S
        while (root := _get_root(client, name)).state == "connecting" and time.monotonic() < give_up_at:
            time.sleep(_POLL_S)
    return root.problem


def _get_root(client: Client, name: str) -> RootStatus:
    for root in client.call(GetShared()).roots:
        if root.name == name:
            return root
    raise NotFound(f"The daemon knows no root {name}: memctl doctor")


def ask_greeting(name: str, settings: dict[str, Any]) -> Greeting:
    """Return the greeting of a root's machine or database: facts about the root, and this machine's rights there."""
    server = settings["server"]
    if server.startswith(SCHEME):
        return database.ask_greeting(name, server)
    command = ssh.build_line_command(server, settings.get("memctl", "memctl"), settings.get("token") or name)
    return ssh.ask_greeting(name, command, _GREETING_S)


def _plan_moves(name: str, patterns: list[str]) -> list[Placing]:
    """Return the known checkouts whose namespace will change; refuse if any other one has a namespace of the root."""
    _check_strays(name, patterns)
    placings = []
    for project in projects.read_table()["projects"]:
        folder = next((one for one in reversed(project["folders"]) if os.path.isdir(one)), None)
        if folder and (place := projects.find_place(folder, {name: patterns})) and place != project["namespace"]:
            placings.append(Placing(folder, project["namespace"], place))
    return placings


def _check_strays(name: str, patterns: list[str]) -> None:
    for project in projects.read_table()["projects"]:
        for folder in project["folders"]:
            if projects.is_stray(project, folder, projects.find_place(folder, {name: patterns}), {name: patterns}):
                new = project["namespace"].partition("/")[2].replace("/", "-") or f"{name}-2"
                raise Conflict(
                    f"{project['namespace']} is the namespace of {folder}, whose remote is none of {name}:"
                    f" memctl project rename {shlex.quote(folder)} {shlex.quote(new)}"
                )


def _plan_text(plan: list[Placing]) -> str:
    rows = [[make_printable(text) for text in (shorten_home(one.folder), one.namespace, one.place)] for one in plan]
    none = "No other checkout known here is one of them; one that is cloned later lies in it by itself."
    return format_table(["CHECKOUT", "NAMESPACE", "FROM NOW ON"], rows, none)


def _joined_text(name: str, settings: dict[str, Any]) -> str:
    if not settings.get("server"):
        return _NOTE.format(name=name)
    auto = settings.get("auto", "decisions")
    saves = {"decisions": "Decisions, rules, lessons and conventions", "all": "All memories", "none": "No memories"}[
        auto
    ]
    where = f"{saves} saved in {name}/… go to {settings['server']} by themselves, where all of {name} read them"
    return f"{where}; what was saved before stays here. `memctl shared leave {name}` takes that back."


# leave ---------------------------------------------------------------------------------------------------------------


def _declare_leave(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the root")
    about = "which of its memories to copy to this machine: those that you saved (mine, the default), all, or none"
    parser.add_argument("--keep", choices=_KEEP, help=about)


def _leave(args: Namespace) -> None:
    name = _check_name(args.name)
    section = read_section(name)
    if section is None:
        raise NotFound(f"No root {name} is joined here; `memctl shared status` shows those that are.")
    if not section.get("server"):
        raise Invalid(f"{name} lies here. `memctl token revoke NAME` takes its members' access away.")
    keep = args.keep or _ask_what_to_keep(name)
    with client_for(args) as client:
        author = ""  # the root records memories that this machine saved by the name of its role or token
        if keep == "mine" and section["server"].startswith(SCHEME):
            author = database.ask_greeting(name, section["server"]).name
        elif keep == "mine":
            author = section.get("token", name)
        kept = 0 if keep == "none" else _copy_memories(client, name, author)
        waiting = [save for save in client.call(GetShared()).waiting if find_root(save.namespace, {name: []})]
    write_section(name, None)
    _restart(args, "")
    report = {"name": name, "keep": keep, "kept": kept, "waiting": len(waiting)}
    show(args, report, lambda: _left_text(name, kept, len(waiting)))


def _ask_what_to_keep(name: str) -> str:
    if not (sys.stdin and sys.stdin.isatty()):
        return "mine"
    print_note(f"Copy which memories of {name} to this machine: mine, all or none? [mine]")
    answer = sys.stdin.readline().strip() or "mine"
    if answer not in _KEEP:
        raise MemorydError("Nothing was changed. Say mine, all or none.")
    return answer


def _left_text(name: str, kept: int, waiting: int) -> str:
    waits = (
        f" {count_text(waiting, 'save')} that waited for it {'stays' if waiting == 1 else 'stay'} here."
        if waiting
        else ""
    )
    return f"Left {name}; {count_text(kept, 'memory')} of it copied to this machine, in the same namespaces.{waits}"


def _copy_memories(client: Client, name: str, author: str) -> int:
    """Copy the memories of a root, or those of one author, to this machine; return how many there are."""
    by_namespace: dict[str, list[NewMemory]] = {}
    for memory in _read_all(client, name, author):
        copy = msgspec.convert(memory, NewMemory, from_attributes=True)
        by_namespace.setdefault(memory.namespace, []).append(msgspec.structs.replace(copy, id=None))
    for namespace, memories in by_namespace.items():
        for part in split_evenly(memories, _BATCH):
            client.call(AddMany(memories=part, namespace=namespace))
    return sum(map(len, by_namespace.values()))


def _read_all(client: Client, name: str, author: str) -> Iterator[Memory]:
    seen: set[str] = set()
    before: float | None = None
    give_up_at = time.monotonic() + _GREETING_S
    while True:
        call = List(namespace=name, reach="subtree", tier=["L3"], limit=_PAGE, before=before)
        page = client.call(msgspec.structs.replace(call, where={"metadata.author": author}) if author else call)
        if f"shared:{name}" in page.degraded:
            root = _get_root(client, name)
            is_refused = root.state == "ready" and root.problem
            if time.monotonic() < give_up_at and not is_refused:  # the daemon is still connecting
                time.sleep(_PAUSE_S)
                continue
            why = root.problem or f"The place of {name} does not answer."
            raise Unavailable(f"{why} Nothing was changed; --keep none leaves without a copy.")
        new = [memory for memory in page.memories if memory.id not in seen]
        yield from new
        if not new:
            return
        seen |= {memory.id for memory in new}
        before = new[-1].created_at + 1e-6  # several memories may have the same time


def _restart(args: Namespace, name: str) -> None:
    """Restart a running daemon, so that it reads the configuration; it must then know the root `name`, if given."""
    if not spawn.locate(paths.socket_path(args.socket)):
        return
    with client_for(args, autostart=False) as client:
        restart(client, args.timeout)
        if name and name not in {root.name for root in client.call(GetShared()).roots}:
            raise MemorydError(f"The daemon reads another configuration than {paths.config_path()}: memctl doctor")


COMMANDS = {
    "shared create": Command(
        _declare_create,
        _create,
        "  memctl shared create acme --repo 'github.com/acme/*'\n"
        "  memctl shared create acme --repo 'github.com/acme/*' --server ssh://home\n"
        "  memctl shared create acme --repo 'github.com/acme/*' \\\n      --server postgresql://db.acme.dev/team",
    ),
    "shared join": Command(
        _declare_join,
        _join,
        "  memctl shared join acme --server ssh://home --dry-run\n"
        "  memctl shared join acme --server ssh://home --token ada",
    ),
    "shared leave": Command(
        _declare_leave, _leave, "  memctl shared leave acme\n  memctl shared leave acme --keep all"
    ),
}
