"""The table of commands: name → module and help, in the groups that `memctl help --all` shows.

Each module has a table `COMMANDS` of its own: name → `Command`. A name of two words is a verb of a command
(`model pull`). A command has a row here and a row in its module; a test finds a missing one.
"""

import argparse
from collections.abc import Callable
from functools import cache

from msgspec import Struct


class CommandRow(Struct, frozen=True):
    """The module of a command, in a folder of `client/programs/`, and its line in the help.

    `memctl` without arguments lists the `common` commands.
    """

    module: str
    help: str
    folder: str = "memctl"
    common: bool = False


class Command(Struct, frozen=True):
    """One command: `configure` declares its arguments, `run` runs it and returns an exit code or None for 0."""

    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]
    examples: str = ""


GROUPS: dict[str, dict[str, CommandRow]] = {
    "Memories": {
        "add": CommandRow("memories", "remember one thing (`-` reads standard input)", common=True),
        "observe": CommandRow("observe", "record turns of a conversation"),
        "search": CommandRow("search", "find memories by meaning and by words, best first", common=True),
        "context": CommandRow("context", "print the memories that matter for a task, as text for a prompt"),
        "get": CommandRow("memories", "show one memory by its id, or a turn in its conversation", common=True),
        "log": CommandRow("log", "list what was done, session by session", common=True),
        "list": CommandRow("memories", "list memories by filter, newest first", common=True),
        "update": CommandRow("memories", "change fields of a memory", common=True),
        "tag": CommandRow("memories", "add tags and metadata values to a memory"),
        "confirm": CommandRow("memories", "confirm memories of agents or imports as your own"),
        "delete": CommandRow("memories", "delete memories", common=True),
        "erase": CommandRow("erase", "erase memories and turns for good, everywhere on disk"),
        "feedback": CommandRow("memories", "rate a memory as useful or useless, which changes its rank a little"),
        "links": CommandRow("changes", "list memories that contradict each other, or dismiss such a link"),
        "changes": CommandRow("changes", "list what later statements seem to change; settle which holds", common=True),
        "namespaces": CommandRow("share", "list the namespaces and how many memories each has"),
        "share": CommandRow("share", "copy or move memories to another namespace, mostly an enclosing one"),
    },
    "Understanding a search": {
        "explain": CommandRow("explain", "show stage by stage how a search came to its results"),
        "why-not": CommandRow("explain", "say why a search did not find a memory, or how it did"),
    },
    "Coding agents": {
        "hooks install": CommandRow(
            "commands", "install the hooks and MCP server in a coding agent", "hooks", common=True
        ),
        "hooks uninstall": CommandRow("commands", "remove memoryd from an agent's configuration", "hooks"),
        "hooks status": CommandRow("commands", "show which hooks are installed and which calls wait", "hooks"),
        "hooks preview": CommandRow("commands", "show what a new session would receive here, and why", "hooks"),
        "given": CommandRow("given", "list the memories that sessions were shown"),
        "usefulness": CommandRow("given", "count how many of the lines shown to sessions were used"),
        "hook": CommandRow("commands", "run by an installed hook, with an event as JSON on stdin", "hooks"),
        "project list": CommandRow("project", "list the projects that agents work in, and their namespaces"),
        "project rename": CommandRow("project", "give a project another namespace; its memories move with it"),
        "project move": CommandRow("project", "tell where a project's folder is now; its memories are found there"),
        "mcp": CommandRow("command", "serve memories to an agent over the Model Context Protocol (stdio)", "mcp"),
        "backfill": CommandRow("backfill", "import past sessions of Claude Code, Codex and others", "backfill"),
    },
    "Export and import": {
        "export": CommandRow("export", "write all memories as JSON lines, or as a folder of Markdown files"),
        "import": CommandRow("import_", "read memories from an export or from another system"),
        "sync": CommandRow("sync", "bring this machine and another one to the same memories, over ssh"),
    },
    "History": {
        "history": CommandRow("history", "list the changes of one memory, or the operation log"),
        "undo": CommandRow("history", "take back an operation", common=True),
    },
    "Tiers": {
        "tiers": CommandRow("tiers", "count what L0, the hot buffer, L1 and L2 have, and where turns went"),
        "consolidate": CommandRow("tiers", "move all turns out of L0 now, to L1 or L2 by their importance"),
    },
    "Database": {
        "backup": CommandRow("upkeep.backup", "copy the whole database while it is in use, and check the copy"),
        "restore": CommandRow("upkeep.backup", "replace the database with a copy; the former one is kept"),
        "verify": CommandRow("upkeep.repair", "check the database and all that is derived from it"),
        "repair": CommandRow("upkeep.repair", "rebuild derived data; --recover copies what a damaged file still has"),
        "reset": CommandRow("upkeep.repair", "delete everything, or with --namespace all of a namespace"),
    },
    "Daemon": {
        "up": CommandRow("service", "start the daemon"),
        "down": CommandRow("service", "stop the daemon"),
        "status": CommandRow("service", "show the health of the daemon"),
        "top": CommandRow("top", "print `stats` every second"),
        "tail": CommandRow("tail", "follow events: memories, turns, jobs, warnings"),
        "service install": CommandRow("commands", "let systemd start the daemon at login and after a crash", "systemd"),
        "service uninstall": CommandRow("commands", "remove the service; the data stays", "systemd"),
        "service status": CommandRow("commands", "show whether the service is installed and running", "systemd"),
        "stats": CommandRow("stats", "show counts of memories, use of the daemon, and connected clients"),
        "metrics": CommandRow("stats", "print all metrics in the text format of Prometheus"),
        "doctor": CommandRow("commands", "check everything and say how to fix problems", "doctor", common=True),
        "uninstall": CommandRow(
            "commands", "remove memoryd from this machine: hooks, service, data, models, sockets", "uninstall"
        ),
        "web": CommandRow("command", "open a page in the browser to see and correct memories", "web", common=True),
    },
    "Access": {
        "token list": CommandRow("token", "list the tokens and their namespaces"),
        "token add": CommandRow("token", "make a token that binds an agent to a namespace"),
        "token revoke": CommandRow("token", "revoke a token at once"),
        "shared create": CommandRow("joining", "make a root for some repositories, here or on another machine"),
        "shared join": CommandRow("joining", "use a root: checkouts of its repositories lie in it from now on"),
        "shared leave": CommandRow("joining", "no longer use a root; keep what you saved there, all of it or nothing"),
        "shared status": CommandRow("shared", "the roots that lie on other machines, and the line to each"),
        "shared grant": CommandRow("database", "let a role of PostgreSQL use a root that lies there, or no longer"),
        "shared grants": CommandRow("database", "who may use a root that lies in PostgreSQL"),
        "shared migrate": CommandRow("database", "make the vectors of a root in PostgreSQL anew, by another model"),
        "shared waiting": CommandRow("shared", "saves that wait for another machine; send them again"),
        "serve-stdio": CommandRow("serve_stdio", "what another machine runs over ssh to reach a token's memories"),
    },
    "Background jobs": {
        "jobs list": CommandRow("jobs", "list background jobs with their last and next runs, or the runs of one"),
        "jobs run": CommandRow("jobs", "run a job now, or show what it would do"),
        "jobs pause": CommandRow("jobs", "stop jobs from running by themselves"),
        "jobs resume": CommandRow("jobs", "let jobs run by themselves again, after a pause or failures"),
    },
    "Models and settings": {
        "model list": CommandRow("model", "list embedding models: installed and available"),
        "model pull": CommandRow("model", "install a model of the catalogue"),
        "model import": CommandRow("model", "install a model from a folder"),
        "model use": CommandRow("model", "switch to another installed model"),
        "config show": CommandRow("config", "show the effective settings"),
        "config path": CommandRow("config", "print the path of the configuration file"),
    },
    "Shell": {
        "completion": CommandRow("completion", "print a script that completes memctl's words in bash, zsh or fish"),
    },
    "Graph": {
        "graph nodes": CommandRow("graph", "list the clusters of L2, or show one with its memories"),
        "graph topics": CommandRow("graph", "list the topics: communities of clusters"),
        "graph rebuild": CommandRow("graph", "rebuild the graph, as the nightly job does"),
    },
    "Markdown workspaces": {
        "workspace add": CommandRow("workspace", "index and watch a folder of Markdown files"),
        "workspace remove": CommandRow("workspace", "remove a workspace from the index; its files stay"),
        "workspace status": CommandRow("workspace", "list the workspaces, or show what is indexed of one"),
        "workspace index": CommandRow("workspace", "update the index from the files now"),
        "remember": CommandRow("notes", "write a note into a file of a workspace, by default today's"),
        "forget": CommandRow("notes", "remove memories from their files; delete those that are in no file"),
        "dream": CommandRow("dream", "propose changes to MEMORY.md from the daily files"),
    },
    "Trying out": {
        "demo": CommandRow("command", "let three agents share a memory, in a temporary folder", "demo"),
    },
}

# The second word of a command that is given with its first word alone.
DEFAULT_VERBS = {
    "model": "list",
    "jobs": "list",
    "config": "show",
    "token": "list",
    "hooks": "status",
    "project": "list",
    "service": "status",
    "graph": "nodes",
    "workspace": "status",
    "shared": "status",
}

EXAMPLES = """\
examples:
  memctl add "We use Valkey, not Redis" --type decision --namespace acme/api
  memctl search "which cache do we use" --limit 5
  memctl explain "which cache do we use"
  memctl status
"""


def list_commands() -> dict[str, CommandRow]:
    """Return all commands by name."""
    return {name: row for rows in GROUPS.values() for name, row in rows.items()}


@cache
def find_rows(first: str) -> dict[str, CommandRow]:
    """Return the rows of the commands with this first word."""
    return {name: row for name, row in list_commands().items() if name.split()[0] == first}


def verbs(first: str) -> list[str]:
    """Return the second words that may follow `first`; none for a command of one word."""
    return [name.split()[1] for name in find_rows(first) if " " in name]


def summary_of_common() -> str:
    """Return the common commands, a line each that fits 80 columns."""
    rows = {name: row.help for name, row in list_commands().items() if row.common}
    broadest = max(map(len, rows))
    return "\n".join(f"  {name:<{broadest}}  {help}" for name, help in rows.items())


def summary(first: str = "", columns: int = 80) -> str:
    """Return the commands in their groups for `memctl help --all`, or those that begin with the word `first`."""
    from textwrap import wrap

    names_by_group = {
        group: [name for name in rows if first in ("", name.split()[0])] for group, rows in GROUPS.items()
    }
    broadest = max(len(name) for names in names_by_group.values() for name in names)
    lines = []
    for group, names in names_by_group.items():
        lines += [f"\n{group}:"] if names else []
        for name in names:
            first_line, *others = wrap(GROUPS[group][name].help, columns - broadest - 4)
            lines += [f"  {name:<{broadest}}  {first_line}", *(f"{'':{broadest + 4}}{other}" for other in others)]
    return "\n".join(lines)
