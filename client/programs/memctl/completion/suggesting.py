"""Suggest the next word of a command line, from memctl's parsers.

A suggested value is a choice of the parser, a path, or a name that the daemon, the catalogue or memctl knows.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

from memoryd.client import protocol
from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.arguments import Parser, add_global_options, command_of, find_next_word
from memoryd.client.programs.memctl.commands import DEFAULT_VERBS, find_rows, list_commands, verbs
from memoryd.client.programs.memctl.completion.scripts import SCRIPTS
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.output import say
from memoryd.client.programs.memctl.text_table import shorten, to_one_line
from memoryd.client.protocol import GetStats, List, ListTokens
from memoryd.client.transport.sync import Client

ABOUT = 60  # the most characters of a word's meaning
LIMIT_S = 1.0
IDS = 30
ID_DIGITS = 8
FILE, FOLDER = ":file", ":folder"  # the shell itself completes paths
PATHS = (FILE, FOLDER)


class Word(NamedTuple):
    """A word that may be typed, and its meaning."""

    text: str
    about: str = ""

    def continue_from(self, begin: str) -> "Word":
        """Return the word with `begin` before it; a path marker stays as it is."""
        return self if self.text in PATHS else Word(begin + self.text, self.about)


def print_words(args: argparse.Namespace) -> None:
    """Print the words that may replace the last one, a line each."""
    words = suggest(args.line.split("\n")[1:] or [""], args)
    if words:
        say("\n".join(f"{word.text}\t{shorten(to_one_line(word.about), ABOUT)}".rstrip() for word in words))


def suggest(typed: Sequence[str], args: argparse.Namespace) -> list[Word]:
    """Return the words that may replace the last one of `typed` and begin with it."""
    *before, beginning = typed
    line = _parse_line(before)
    if line.name is None:
        words = [] if beginning.startswith("-") else line.next_names
        words = words or _suggest_next(_make_global_parser(), line, beginning, args)
    else:
        words = _suggest_next(command_of(line.name)[1], line, beginning, args)
        words = [*([] if beginning.startswith("-") else line.next_names), *words]
    return [word for word in words if word.text.startswith(beginning) or word.text in PATHS]


class _Line(NamedTuple):
    """A line typed so far: the command (None: not given yet), names that may come next, and the other words."""

    name: str | None
    next_names: list[Word]
    rest: list[str]


def _parse_line(before: Sequence[str]) -> _Line:
    rest = list(before)
    first = find_next_word(rest, 0)
    if first is None:
        return _Line(None, [] if _is_waiting(rest) else _list_commands(), rest)
    name = rest.pop(first)
    if name in find_rows(name):
        return _Line(name, [], rest)
    choices = {verb: find_rows(name)[f"{name} {verb}"].help for verb in verbs(name)}
    second = find_next_word(rest, first)
    if second is not None and rest[second] in choices:
        return _Line(f"{name} {rest.pop(second)}", [], rest)
    default = DEFAULT_VERBS.get(name)
    full_name = f"{name} {default}" if default else None
    next_names = [] if second is not None or _is_waiting(rest) else [Word(*pair) for pair in choices.items()]
    return _Line(full_name, next_names, rest)


def _list_commands() -> list[Word]:
    """Return the first words of all commands, each with its help or its verbs."""
    helps: dict[str, str] = {}
    for name, row in list_commands().items():
        first = name.split()[0]
        helps[first] = row.help if first == name else f"{', '.join(verbs(first))}"
    return [Word(*pair) for pair in helps.items()]


def _is_waiting(rest: Sequence[str]) -> bool:
    """Return whether the last word is a global option whose value comes next."""
    option = _find_option(_make_global_parser(), rest[-1]) if rest else None
    return bool(option and option.nargs != 0)


def _make_global_parser() -> Parser:
    parser = Parser("memctl", "", "")
    add_global_options(parser)
    return parser


# Arguments -----------------------------------------------------------------------------------------------------------


def _suggest_next(parser: Parser, line: _Line, beginning: str, args: argparse.Namespace) -> list[Word]:
    """Return what may follow the words of a command: the value of an option, an option, or a positional argument."""
    waiting, positional, bare = _parse_state(parser, line.rest)
    if waiting and (waiting.nargs is None or waiting.nargs == "+" or not beginning.startswith("-")):
        return _list_values(waiting, line.name or "", args)
    name, equals, _ = beginning.partition("=")
    if equals and (option := _find_option(parser, name)) and option.nargs != 0 and not bare:
        return [word.continue_from(f"{name}=") for word in _list_values(option, line.name or "", args)]
    if beginning.startswith("-") and not bare:
        return _list_options(parser, line.rest)
    words = _list_values(positional, line.name or "", args) if positional else []
    return words if words or beginning or bare or line.next_names else _list_options(parser, line.rest)


def _parse_state(parser: Parser, rest: Sequence[str]) -> tuple[argparse.Action | None, argparse.Action | None, bool]:
    """Return the option that waits for a value, the positional argument that is next, and whether `--` was typed."""
    waiting: argparse.Action | None = None
    bare, number = False, 0
    for word in rest:
        if bare or not word.startswith("-") or word == "-":
            if waiting is None:
                number += 1
            waiting = waiting if waiting and waiting.nargs in ("+", "*") else None
        elif word == "--":
            bare, waiting = True, None
        else:
            option = None if "=" in word else _find_option(parser, word)
            waiting = option if option and option.nargs != 0 else None
    return waiting, _find_positional(parser, number), bare


def _find_positional(parser: Parser, number: int) -> argparse.Action | None:
    """Return the positional argument that the next word belongs to; one with several words takes all that follow."""
    actions = [action for action in parser._get_positional_actions() if action.help != argparse.SUPPRESS]
    for action in actions:
        if action.nargs in ("+", "*") or number == 0:
            return action
        number -= 1
    return None


def _find_option(parser: Parser, word: str) -> argparse.Action | None:
    return parser._option_string_actions.get(word.partition("=")[0])


def _list_options(parser: Parser, rest: Sequence[str]) -> list[Word]:
    """Return the options that are not given yet, and those that may be repeated."""
    given = {id(option) for word in rest if (option := _find_option(parser, word))}
    return [
        Word(text, option.help or "")
        for option in parser._get_optional_actions()
        for text in option.option_strings
        if text.startswith("--")
        and option.help != argparse.SUPPRESS
        and (id(option) not in given or isinstance(option, argparse._AppendAction))
    ]


# Values --------------------------------------------------------------------------------------------------------------


def _list_values(action: argparse.Action, command: str, args: argparse.Namespace) -> list[Word]:
    """Return possible values of an argument of a command; empty if they are unknown."""
    if action.choices:
        return [Word(str(choice)) for choice in action.choices]
    kind = _value_kind(action, command)
    try:
        if kind in FROM_DAEMON:
            args.timeout = min(args.timeout, LIMIT_S)
            with client_for(args, autostart=False) as client:
                return FROM_DAEMON[kind](client)
        return FROM_HERE[kind]() if kind in FROM_HERE else []
    except (MemorydError, OSError):
        return []


def _value_kind(action: argparse.Action, command: str) -> str:
    """Return the kind of a value: its metavar, for NAME together with the command."""
    if action.dest in ("session", "plan", "last"):  # their metavar is ID too, but they take no ids of memories
        return ""
    if action.metavar == "NAME" and not action.option_strings:
        return f"NAME of {command.split()[0]}"
    return str(action.metavar)


def _list_namespaces(client: Client) -> list[Word]:
    counts = client.call(GetStats(reach="all")).by_namespace
    return [Word(name, f"{number:,} memories") for name, number in counts.items() if name]


def _list_workspaces(client: Client) -> list[Word]:
    return [Word(space.namespace, space.root) for space in client.call(protocol.Workspaces())]


# Values that a running daemon is asked for, by kind.
FROM_DAEMON: dict[str, Callable[[Client], list[Word]]] = {
    "NS": _list_namespaces,
    "ID": lambda client: [Word(one.id[:ID_DIGITS], one.content) for one in client.call(List(limit=IDS, reach="all"))],
    "WORKSPACE": _list_workspaces,
    "W": _list_workspaces,
    "PLACE": _list_workspaces,
    "NAME of jobs": lambda client: [Word(job.name, job.about) for job in client.jobs().jobs],
    "NAME of token": lambda client: [Word(token.name, token.namespace) for token in client.call(ListTokens())],
}


def _list_models() -> list[Word]:
    import msgspec

    from memoryd.client.programs.memctl.local import read_output

    models = msgspec.json.decode(read_output("memoryd.models", ["list", "--json"]))
    return [Word(row["name"], row["description"]) for row in models]


def _list_projects() -> list[Word]:
    from memoryd.client.projects import known as projects

    return [Word(one["namespace"], ", ".join(one["folders"])) for one in projects.read_table()["projects"]]


def _list_checks() -> list[Word]:
    from memoryd.client.programs.doctor.checks import AREAS, list_checks

    areas = [Word(area, f"{len(checks)} checks") for area, checks in AREAS.items()]
    return areas + [Word(name, str(check.__doc__)) for name, check in list_checks().items()]


# Values that need no daemon, by kind.
FROM_HERE: dict[str, Callable[[], list[Word]]] = {
    "FILE": lambda: [Word(FILE)],
    "PATH": lambda: [Word(FILE)],
    "DIR": lambda: [Word(FOLDER)],
    "PROJECT": _list_projects,
    "CHECK": _list_checks,
    "SHELL": lambda: [Word(shell) for shell in SCRIPTS],
    "NAME of model": _list_models,
}
