"""The table of commands: name → module and help, in the groups that `memctl help --all` shows.

A module holds a table `COMMANDS` of its own: name → `Command`. A name of two words is a verb of a command
(`model pull`). To add a command: a row here and a row in its module; a test finds the half that is missing.
"""

import argparse
from collections.abc import Callable
from functools import cache

from msgspec import Struct


class CommandRow(Struct, frozen=True):
    """Where a command lives, a module of a folder of `client/programs/`, and its line in the help.

    `common` is for those that `memctl` by itself shows.
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
        "context": CommandRow("context", "what matters for a task, as text for a prompt"),
        "get": CommandRow("memories", "show one memory by its id, or a turn in its conversation", common=True),
        "log": CommandRow("log", "what was done, session by session", common=True),
        "list": CommandRow("memories", "list memories by filter, newest first", common=True),
        "update": CommandRow("memories", "change fields of a memory", common=True),
        "tag": CommandRow("memories", "add tags and metadata values to a memory"),
        "confirm": CommandRow("memories", "confirm memories that agents saved or an import brought"),
        "delete": CommandRow("memories", "delete memories", common=True),
        "erase": CommandRow("erase", "erase memories and turns for good, everywhere on disk"),
        "feedback": CommandRow("memories", "say whether a memory was useful, which moves its rank a little"),
        "links": CommandRow("links", "which memories contradict each other; dismiss such a link"),
        "changes": CommandRow("changes", "what a later statement seems to change; settle which holds", common=True),
        "namespaces": CommandRow("share", "which namespaces hold memories, and how many"),
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
        "hooks uninstall": CommandRow("commands", "take memoryd out of an agent's configuration", "hooks"),
        "hooks status": CommandRow("commands", "what is installed where, and what waits for the daemon", "hooks"),
        "hooks preview": CommandRow("commands", "what a new session would receive here, and why", "hooks"),
        "given": CommandRow("given", "what sessions were shown, memory by memory"),
        "usefulness": CommandRow("usefulness", "how many of the lines that sessions were shown were used"),
        "hook": CommandRow("commands", "what an installed hook runs: an event as JSON on stdin", "hooks"),
        "project list": CommandRow("project", "the projects that agents work in, and their namespaces"),
        "project rename": CommandRow("project", "give a project another namespace; its memories move with it"),
        "project move": CommandRow("project", "say in which folder a project is now; its memories are found there"),
        "mcp": CommandRow("command", "serve memories to an agent over the Model Context Protocol (stdio)", "mcp"),
        "backfill": CommandRow("backfill", "import past sessions of Claude Code, Codex and others", "backfill"),
    },
    "Export and import": {
        "export": CommandRow("export", "all memories as JSON lines, or as a folder of Markdown files"),
        "import": CommandRow("import_", "take memories of an export back in, or those of another system"),
        "sync": CommandRow("sync", "bring this machine and another one to the same memories, over ssh"),
    },
    "History": {
        "history": CommandRow("history", "changes of one memory, or the operation log"),
        "undo": CommandRow("history", "take back an operation", common=True),
    },
    "Tiers": {
        "tiers": CommandRow("tiers", "what L0, the hot buffer, L1 and L2 hold, and where turns went"),
        "consolidate": CommandRow("tiers", "move all turns out of L0 now, to L1 or L2 by their importance"),
    },
    "Database": {
        "backup": CommandRow("upkeep.backup", "copy the whole database while it is in use, and check the copy"),
        "restore": CommandRow("upkeep.backup", "put a copy in place of the database; the former one is kept"),
        "verify": CommandRow("upkeep.repair", "check the database and all that is derived from it"),
        "repair": CommandRow("upkeep.repair", "rebuild what is derived; --recover reads out a damaged file"),
        "reset": CommandRow("upkeep.repair", "delete everything, or with --namespace all of a namespace"),
    },
    "Daemon": {
        "up": CommandRow("service", "start the daemon"),
        "down": CommandRow("service", "stop the daemon"),
        "status": CommandRow("service", "health of the daemon"),
        "top": CommandRow("top", "what `stats` prints, each second"),
        "tail": CommandRow("tail", "follow what happens: memories, turns, jobs, warnings"),
        "service install": CommandRow(
            "commands", "make the daemon a service of systemd: it starts by itself, also after a fault", "systemd"
        ),
        "service uninstall": CommandRow("commands", "remove the service; the data stays", "systemd"),
        "service status": CommandRow("commands", "whether the service is installed, and how it is", "systemd"),
        "stats": CommandRow("stats", "what is stored, how the daemon is used and who is connected"),
        "metrics": CommandRow("metrics", "all figures in the text format of Prometheus"),
        "doctor": CommandRow("commands", "check everything and say how to fix what is wrong", "doctor", common=True),
        "uninstall": CommandRow(
            "commands", "remove memoryd from this machine: hooks, service, data, models, sockets", "uninstall"
        ),
        "web": CommandRow("command", "a page in the browser: see and correct what agents remember", "web", common=True),
    },
    "Access": {
        "token list": CommandRow("token", "who has a token, for which namespace"),
        "token add": CommandRow("token", "make a token that binds an agent to a namespace"),
        "token revoke": CommandRow("token", "revoke a token at once"),
        "shared create": CommandRow("joining", "make a root for some repositories, here or on another machine"),
        "shared join": CommandRow("joining", "use a root: checkouts of its repositories lie in it from now on"),
        "shared leave": CommandRow("joining", "no longer use a root; keep what you saved there, all of it or nothing"),
        "shared status": CommandRow("shared", "the roots that lie on other machines, and the line to each"),
        "shared grant": CommandRow("granting", "let a role of PostgreSQL use a root that lies there, or no longer"),
        "shared grants": CommandRow("granting", "who may use a root that lies in PostgreSQL"),
        "shared migrate": CommandRow("migrating", "make the vectors of a root in PostgreSQL anew, by another model"),
        "shared waiting": CommandRow("shared", "saves that wait for another machine; send them again"),
        "serve-stdio": CommandRow("serve_stdio", "what another machine runs over ssh to reach a token's memories"),
    },
    "Background jobs": {
        "jobs list": CommandRow("jobs", "background jobs: state, last run, next run; of one its latest runs"),
        "jobs run": CommandRow("jobs", "run a job now, or show what it would do"),
        "jobs pause": CommandRow("jobs", "keep jobs from running by themselves"),
        "jobs resume": CommandRow("jobs", "let jobs run again, after a pause or failures"),
    },
    "Models and settings": {
        "model list": CommandRow("model", "embedding models: installed and available"),
        "model pull": CommandRow("model", "install a model of the catalogue"),
        "model import": CommandRow("model", "install a model from a folder"),
        "model use": CommandRow("model", "switch to another installed model"),
        "config show": CommandRow("config", "the settings in force"),
        "config path": CommandRow("config", "where the configuration file is"),
    },
    "Shell": {
        "completion": CommandRow("completion", "a script that completes memctl's words in bash, zsh or fish"),
    },
    "Graph": {
        "graph nodes": CommandRow("graph", "the clusters of L2, or one with its memories and neighbours", "topics"),
        "graph topics": CommandRow("graph", "communities of nodes", "topics"),
        "graph rebuild": CommandRow("graph", "rebuild the graph, as the nightly job does", "topics"),
    },
    "Markdown workspaces": {
        "workspace add": CommandRow("workspace", "index and watch a folder of Markdown files"),
        "workspace remove": CommandRow("workspace", "forget a workspace; its files stay"),
        "workspace status": CommandRow("workspace", "all workspaces, or what is indexed of one, what is not and why"),
        "workspace index": CommandRow("workspace", "bring the index up to date with the files now"),
        "remember": CommandRow("notes", "write a note into a file of a workspace, by default today's"),
        "forget": CommandRow("notes", "take memories out of their files; delete those that come from no file"),
        "dream": CommandRow("dream", "propose changes to MEMORY.md from the daily files"),
    },
    "Trying out": {
        "demo": CommandRow("command", "three agents share a memory, in a temporary folder", "demo"),
    },
}

# The verb meant where a command of two words is given as one.
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
    """Return the rows whose name begins with a word."""
    return {name: row for name, row in list_commands().items() if name.split()[0] == first}


def verbs(first: str) -> list[str]:
    """Return the second words that may follow `first`, none for a command of one word."""
    return [name.split()[1] for name in find_rows(first) if " " in name]


def summary_of_common() -> str:
    """Return the commands that most people need, a line each that fits 80 columns."""
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
