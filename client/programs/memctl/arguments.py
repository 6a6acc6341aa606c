"""Parse the command line into a command and its arguments.

Only the parser of the given command is built: building all of them would take longer than a search. Options that every
command has may come before or after its name.
"""

import argparse
import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any, NoReturn, get_args

import msgspec

import memoryd
from memoryd.client import linux
from memoryd.client.errors import Invalid
from memoryd.client.patterns import compile_late
from memoryd.client.programs.memctl.commands import (
    DEFAULT_VERBS,
    EXAMPLES,
    Command,
    find_rows,
    list_commands,
    summary,
    summary_of_common,
    verbs,
)
from memoryd.client.programs.memctl.output import columns, say
from memoryd.client.protocol import Reach, SearchOptions, Tier
from memoryd.client.times import local_seconds, moment

MAX_TIMEOUT_S = 86400.0
_WITH_VALUE = ("--socket", "--namespace", "--timeout")
_INTEGER = compile_late(r"-?(0|[1-9][0-9]{0,17})")
_DECIMAL = compile_late(r"-?[0-9]+\.[0-9]+(e[+-]?[0-9]{1,2})?", re.IGNORECASE)

_COMPARISON = compile_late(r"([^=<>!]+)([=<>!]+)(.*)", re.DOTALL)
_OPERATORS = {"=": "$eq", "!=": "$ne", ">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}
# Fields that people try as options, and how to write them with `--where`.
_FILTERED = {
    "--tag": "tags=…",
    "--tags": "tags=…",
    **{f"--{name}": f"{name}=…" for name in ("role", "session", "speaker")},
    **{f"--{name}": f"memory.{name}=…" for name in ("importance", "key", "pinned", "source")},
    "--expires-at": "memory.expires_at=…",
    "--after": "'memory.created_at>…'",
    "--before": "'memory.created_at<…'",
}

# Error messages of argparse, and their replacements.
_MISSING = compile_late(r"the following arguments are required: (.*)")
_REWORDED = (
    (compile_late(r"argument (?:[^ :/]+/)?([^ :/]+): (must|needs|takes) "), r"\1 \2 "),
    (compile_late(r"argument (?:[^ :/]+/)?([^ :/]+): expected one argument"), r"\1 needs a value"),
    (compile_late(r"argument (?:[^ :/]+/)?([^ :/]+): expected at least one argument"), r"\1 needs a value or several"),
    (compile_late(r"argument (?:[^ :/]+/)?([^ :/]+): expected (\d+) arguments"), r"\1 needs \2 values"),
    (compile_late(r"argument (?:[^ :/]+/)?([^ :/]+): ignored explicit argument (.*)"), r"\1 takes no value like \2"),
    (compile_late(r"argument ([^ :]+): not allowed with argument ([^ :]+)"), r"give \1 or \2, not both"),
    (compile_late(r"one of the arguments (\S+) (\S+) is required"), r"give \1 or \2"),
    (compile_late(r"argument (?:[^ :/]+/)?([^ :/]+): "), r"\1: "),
)


class Rare(str):
    """The help of an option that few people need: `--help` leaves it out, `--help --all` shows it."""


class Usage(Exception):
    """The command line is wrong; the text is one sentence."""


class Parser(argparse.ArgumentParser):
    """A parser that raises `Usage` with one sentence, and formats its help for the width of the terminal."""

    shows_all = False  # whether its help includes the rare options

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog, description=description, epilog=epilog, formatter_class=self._make_formatter, allow_abbrev=False
        )

    def _make_formatter(self, prog: str) -> argparse.HelpFormatter:
        # The width is given because argparse would import shutil to find it.
        formatter = _Formatter(prog, max_help_position=30, width=_width())
        formatter.shows_all = self.shows_all
        return formatter

    def format_help(self) -> str:
        """Return the help; its last line says how many options are hidden and how to see them."""
        number = 0 if self.shows_all else sum(isinstance(action.help, Rare) for action in self._actions)
        more = f"\n{number} more options: {self.prog} --help --all\n" if number else ""
        return super().format_help() + more

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse the words; raise `Usage` if they are wrong."""
        self.shows_all = "--all" in words
        args, rest = self.parse_known_args(words)
        if rest and rest[0].startswith("-"):
            name = rest[0].partition("=")[0]
            field = _FILTERED.get(name) if "--where" in self._option_string_actions else None
            hint = f"; write `--where {field}`" if field else _suggest_name(name, self._option_string_actions)
            self.error(f"there is no option {name}{hint}")
        if rest:
            self.error(f"{rest[0]!r} is one word too many{self._advise(rest[0])}")
        return args

    def _advise(self, word: str) -> str:
        if "--content" in self._option_string_actions:
            return "; a new text is given with --content"
        if self.prog == "memctl export":
            return "; it writes to standard output: `memctl export > FILE`"
        return "; quote a text of several words" if self._get_positional_actions() and " " not in word else ""

    def error(self, message: str) -> NoReturn:
        """Raise `Usage` instead of printing the usage; if an argument is missing, give an example."""
        sentence = message.rstrip(".")
        if missing := _MISSING.fullmatch(sentence):
            example = (self.epilog or "").partition("\n")[2].partition("\n")[0].strip()
            names = missing[1].split(", ")
            be = "is" if len(names) == 1 else "are"
            raise Usage(f"{' and '.join(names)} {be} missing; for example: {example}")
        for pattern, words in _REWORDED:
            sentence = pattern.sub(words, sentence)
        raise Usage(f"{sentence} (see `{self.prog} --help`).")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise an error for a value that is not among the choices, and list them."""
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            sentence = f"must be one of {', '.join(choices)}, not {value!r}{_suggest_name(str(value), choices)}"
            raise argparse.ArgumentError(action, sentence)


def parse(argv: list[str]) -> tuple[Command, argparse.Namespace]:
    """Return the command and its parsed arguments."""
    name, rest = find_command([*argv[1:], "--help"] if argv[:1] == ["help"] else argv)
    if name is None:
        parser = _make_top_parser("--all" in rest)
        args = parser.read(rest)
        if linux.is_here():
            from memoryd.client.programs.memctl import overview  # no other call needs it

            return Command(declare_nothing, overview.show_overview), args
        parser.print_help()
        raise SystemExit(0)
    linux.check()
    command, parser = command_of(name)
    return command, parser.read(rest)


def command_of(name: str) -> tuple[Command, Parser]:
    """Return a command and its parser."""
    row = find_rows(name.split()[0])[name]
    module = import_module(f"memoryd.client.programs.{row.folder}.{row.module}")
    if name not in module.COMMANDS:
        raise LookupError(f"give {name!r} a row in COMMANDS of {module.__file__}")
    command: Command = module.COMMANDS[name]
    about = row.help
    examples = command.examples and f"examples:\n{command.examples}"
    parser = Parser(f"memctl {name}", f"{about[:1].upper()}{about[1:]}.", examples)
    command.configure(parser)
    add_global_options(parser)
    places = [
        _format_positional(action) for action in parser._get_positional_actions() if action.help != argparse.SUPPRESS
    ]
    parser.usage = " ".join([parser.prog, *places, "[options]"])
    return command, parser


def find_command(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the command's name and the remaining words; raise `Usage` for an unknown command."""
    rest = list(argv)
    first = find_next_word(rest, 0)
    if first is None:
        return None, rest
    name = rest.pop(first)
    choices = verbs(name)
    if not choices:
        if name not in find_rows(name):
            commands = {command.split()[0] for command in list_commands()}
            question = _suggest_name(name, commands, "memctl ")
            raise Usage(f"{name!r} is not a command{question or ';'} `memctl help --all` lists them.")
        return name, rest
    second = find_next_word(rest, first)
    if second is None and {"-h", "--help"} & set(rest):
        say(f"usage: memctl {name} {{{','.join(choices)}}} …\n{summary(name, _width())}")
        raise SystemExit(0)
    if second is not None and rest[second] in choices:
        return f"{name} {rest.pop(second)}", rest
    default = DEFAULT_VERBS.get(name)
    if default and (second is None or second > first):  # otherwise the word may be the value of an option
        return f"{name} {default}", rest
    raise Usage(f"`memctl {name}` needs one of: {', '.join(choices)}.")


def _suggest_name(word: str, names: Iterable[str], before: str = "") -> str:
    """Return "; did you mean …?" with the name most similar to a word, empty if none is similar."""
    from difflib import get_close_matches  # here: no other call needs it

    matches = get_close_matches(word, sorted(names), n=1)
    return f"; did you mean `{before}{matches[0]}`?" if matches else ""


def find_next_word(argv: Sequence[str], start: int) -> int | None:
    """Return the index of the next word that is neither an option nor the value of a global option."""
    at = start
    while at < len(argv) and argv[at] != "--":
        if not argv[at].startswith("-"):
            return at
        at += 2 if argv[at] in _WITH_VALUE else 1
    return None


def add_global_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of every command."""
    group = parser.add_argument_group("options of every command")
    socket = Rare("the daemon's socket (default: $MEMORYD_SOCKET, else yours)")
    group.add_argument("--socket", metavar="PATH", help=socket)
    place = "your namespace, like acme/api; / is the root (default: $MEMORYD_NAMESPACE, else the project's)"
    group.add_argument("--namespace", metavar="NS", help=place)
    group.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    timeout = Rare("seconds that one call may take (default: 30)")
    group.add_argument("--timeout", metavar="S", type=parse_timeout, default=30.0, help=timeout)
    group.add_argument("--no-autostart", action="store_true", help=Rare("do not start a daemon when none answers"))
    version = f"memctl {memoryd.__version__}"
    group.add_argument("--version", action="version", version=version, help=Rare("print the version and exit"))


def declare_nothing(parser: argparse.ArgumentParser) -> None:
    """Declare nothing: for a command with the common options only."""


def add_secrets(parser: argparse._ActionsContainer) -> None:
    """Declare `--allow-secrets`."""
    allowed = Rare("store credentials too (default: they are removed before a text is stored)")
    parser.add_argument("--allow-secrets", action="store_true", help=allowed)


def add_optional(parser: argparse.ArgumentParser, name: str, help: str) -> None:
    """Declare an optional positional argument."""
    parser.add_argument(name, nargs="?", metavar=name.upper(), help=help)


def add_id(parser: argparse.ArgumentParser) -> None:
    """Declare the id of a memory."""
    parser.add_argument("id", metavar="ID", help="an id or its first digits, at least 4")


_REACH = "all, also in a project; visible with --namespace or a token"


def add_reach(parser: argparse._ActionsContainer, default: str = _REACH) -> None:
    """Declare `--reach`."""
    meaning = "visible: yours and enclosing ones; subtree: yours and inner ones; exact: yours alone"
    about = f"the namespaces to look in: {meaning}; all (default: {default})"
    parser.add_argument("--reach", choices=get_args(Reach), help=about)


def add_filters(
    parser: argparse.ArgumentParser, near: argparse._ActionsContainer | None = None, reach: str = _REACH
) -> Callable[..., argparse.Action]:
    """Declare `--reach` (in the group `near` if given) and the filters; return a function that adds more filters."""
    add_reach(near or parser, reach)
    add = parser.add_argument_group("filters (all must hold; repeat one to give several values)").add_argument
    add("--type", action="append", metavar="T", help="the type: fact, decision, lesson …")
    add("--where", action="append", type=parse_where, metavar="W", help="KEY=VALUE, KEY>=4 …, or a JSON object")
    return add


def add_origin(add: Callable[..., argparse.Action]) -> None:
    """Declare the filters by source and time."""
    add("--source", action="append", metavar="S", help=Rare("how it was stored: manual, conversation …"))
    add(
        "--after",
        type=parse_date,
        metavar="DATE",
        help="created after this date: 2026-03-31, yesterday, last Tuesday …",
    )
    add("--before", type=parse_date, metavar="DATE", help="created before it")


def add_all_filters(parser: argparse.ArgumentParser, near: argparse._ActionsContainer | None = None) -> None:
    """Declare all filters of searches and lists."""
    add = add_filters(parser, near)
    add_origin(add)
    add("--on", type=parse_span, metavar="TIME", help="created within this time: yesterday, 'last Tuesday', October …")
    add("--tier", action="append", choices=get_args(Tier), help=Rare("the tier that it is in"))
    add("--path-prefix", metavar="PATH", help=Rare("from files below this path"))


def add_query(parser: argparse.ArgumentParser) -> argparse._ActionsContainer:
    """Declare the options that `search` shares with the commands that explain it; return their group."""
    group = parser.add_argument_group("how to search")
    add = group.add_argument
    add("--limit", type=parse_limit, default=10, metavar="N", help="how many results (default: 10)")
    add(
        "--mode",
        choices=("hybrid", "lexical", "dense"),
        help=Rare("by words and meaning (the default), words alone, meaning alone"),
    )
    about = Rare(f"for experiments, repeatable: {', '.join(EXPERIMENTS)}")
    add("--set", action="append", type=parse_setting, dest="options", metavar="NAME=VALUE", help=about)
    return group


def filters_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given filters as fields of a call."""
    given = vars(args)  # some commands lack some of them
    after, before = given.get("on") or (given.get("after"), given.get("before"))
    fields = {
        "type": args.type or [],
        "source": given.get("source") or [],
        "tier": given.get("tier") or [],
        "where": join(args.where),
        "after": after,
        "before": before,
        "path_prefix": given.get("path_prefix"),
    }
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


# Options of a search for `--set`; docs/search.md explains them.
EXPERIMENTS = tuple(name for name in SearchOptions.__struct_fields__ if name != "vector")


def query_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given parameters of a search as fields of a call."""
    values = {name: value for name in ("floor", "mode") if (value := getattr(args, name, None)) is not None}
    options = {"options": dict(args.options)} if args.options else {}
    return {"limit": args.limit, **values, **options, **filters_of(args)}


# Types of values -----------------------------------------------------------------------------------------------------


def accept_whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a type of options: a whole number within these limits."""

    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")
        _check_limits(text, int(text), least, most)
        return int(text)

    return parse


def accept_number(least: float, most: float | None = None) -> Callable[[str], float]:
    """Return a type of options: a number within these limits."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")
        _check_limits(text, value, least, most)
        return value

    return parse


def _check_limits(text: str, value: float, least: float, most: float | None) -> None:
    if value < least:
        raise argparse.ArgumentTypeError(f"must be {least} or more, not {text}")
    if most is not None and value > most:
        raise argparse.ArgumentTypeError(f"must be {most} or less, not {text}")


parse_limit = accept_whole(1, 1000)  # as the protocol's `Limit`
parse_offset = accept_whole(0)
parse_share = accept_number(0, 1)


def parse_date(text: str) -> float:
    """Return UTC seconds for a date, which may be in words such as `yesterday`."""
    try:
        return moment(text)
    except Invalid as error:
        raise argparse.ArgumentTypeError(error.message) from None


def parse_span(text: str) -> tuple[float, float]:
    """Return begin and end, in UTC seconds, of a day, week or month given in words."""
    from memoryd.client.dates import EXAMPLES, span_of

    span = span_of(text, datetime.now().astimezone())
    if span is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write it like {EXAMPLES}")
    return local_seconds(span.start) - 0.001, local_seconds(span.end)  # `after` excludes the moment itself


def parse_timeout(text: str) -> float:
    """Return a time limit in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= MAX_TIMEOUT_S:
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0 to {MAX_TIMEOUT_S:.0f}, not {text!r}")
    return value


def parse_port(text: str) -> int:
    """Return a port number."""
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"must be a port from 1 to 65535, not {text!r}")
    return int(text)


def parse_metadata(text: str) -> dict[str, Any]:
    """Return a metadata object for JSON text or `KEY=VALUE`."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return dict([parse_pair(text)])
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE or a JSON object, not {text!r}")
    return value


def parse_pair(text: str) -> tuple[str, Any]:
    """Return key and value of `KEY=VALUE`; the value is converted by `parse_scalar`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or key.lstrip().startswith("{"):
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE or a JSON object, not {text!r}")
    return key, parse_scalar(value)


def parse_setting(text: str) -> tuple[str, Any]:
    """Return name and value of an option that is given by `--set`."""
    name, equals, value = text.partition("=")
    if not equals or name not in EXPERIMENTS:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE with one of {', '.join(EXPERIMENTS)}, not {text!r}")
    return name, parse_scalar(value)


# Names in `--where` whose values are dates, written as for `--after`.
_TIMES = ("memory.created_at", "memory.updated_at", "memory.last_accessed_at", "memory.expires_at")


def parse_where(text: str) -> dict[str, Any]:
    """Return the conditions of a JSON object, of `KEY=VALUE`, or of a comparison with != > >= < <=.

    A value that begins with one of these signs needs a space before it.
    """
    if text.lstrip().startswith("{"):
        return parse_metadata(text)
    match = _COMPARISON.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(f"must be like KEY=VALUE or KEY>=4, or a JSON object, not {text!r}")
    key, sign, text = match.groups()
    if sign not in _OPERATORS:
        raise argparse.ArgumentTypeError(f"{sign} is no comparison; there are {', '.join(_OPERATORS)}")
    value: Any = parse_scalar(text.strip())
    if key.strip() in _TIMES and isinstance(value, str):
        value = parse_date(value)
    return {key.strip(): {_OPERATORS[sign]: value}}


def parse_scalar(text: str) -> bool | int | float | str:
    """Return a boolean or a number for a text that looks like one, otherwise the text."""
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def join(parts: Sequence[dict[str, Any]] | None) -> dict[str, Any]:
    """Return one filter that matches where all given filters match."""
    return {"$and": list(parts)} if parts and len(parts) > 1 else merge(parts)


def merge(parts: Sequence[dict[str, Any]] | None) -> dict[str, Any]:
    """Return several metadata objects as one; a later value replaces an earlier one."""
    return {key: value for part in parts or () for key, value in part.items()}


# Help ----------------------------------------------------------------------------------------------------------------


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Writes help, without the rare options unless all are requested."""

    shows_all = False

    def add_argument(self, action: argparse.Action) -> None:
        if self.shows_all or not isinstance(action.help, Rare):
            super().add_argument(action)


def _width() -> int:
    return min(columns(), 120)


def _make_top_parser(shows_all: bool = False) -> Parser:
    commands = summary(columns=_width()) if shows_all else f"\n{summary_of_common()}"
    description = f"The admin command of memoryd, one memory for every agent on a machine.\n{commands}"
    others = "" if shows_all else "\nAll commands: memctl help --all"
    epilog = f"{EXAMPLES}\nThe arguments and examples of a command: memctl COMMAND --help{others}"
    parser = Parser("memctl", description, epilog)
    parser.usage = "memctl COMMAND [arguments] [options]"
    add_global_options(parser)
    return parser


def _format_positional(action: argparse.Action) -> str:
    """Return how a positional argument is written in the usage; argparse's own would list every option before it."""
    name = str(action.metavar or action.dest)
    return {"+": f"{name}…", "*": f"[{name}…]", "?": f"[{name}]"}.get(str(action.nargs), name)
