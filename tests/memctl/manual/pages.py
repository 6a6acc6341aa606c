"""Write the manual pages from the tables: python tests/memctl/manual/pages.py, or `make manual`."""

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect as types

import memoryd
from memoryd.client.memctl.arguments import Parser, add_global_options, add_query, command_of
from memoryd.client.memctl.commands import COMMANDS, EXAMPLES, GROUPS
from memoryd.client.memctl.doctor.checks import AREAS
from memoryd.client.memctl.manual import page_path
from memoryd.daemon import __main__ as daemon
from memoryd.daemon.config import Config

DATE = "2026-11-21"
INPUT_COLUMNS = 78  # of a line in the source
ABOUT = {
    "MEMORYD_SOCKET": "the socket; a path of at most 107 bytes",
    "MEMORYD_DATA_DIR": "the folder of the database and the log",
    "MEMORYD_CONFIG": "the configuration file",
    "MEMORYD_NAMESPACE": "the place of a client, like acme/api",
    "MEMORYD_TOKEN": "the token that a client presents",
    "MEMORYD_MODEL_DIR": "the folder of embedding models",
    "MEMORYD_OBSERVE": "when off, the hooks of coding agents send no turns",
    "MEMORYD_OFFLINE": "when set, nothing leaves this machine, as with offline in [network]",
    "MEMORYD_LLM_KEY": "the key of the language model, unless [llm] names another variable or a file",
    "NO_COLOR": "when set, memctl uses no colours",
}
FILES = {
    "$XDG_RUNTIME_DIR/memoryd/memoryd.sock": "the socket; /tmp/memoryd-UID/memoryd.sock where there is no such folder",
    "~/.local/share/memoryd/memoryd.sqlite": "the database",
    "~/.local/share/memoryd/backups/": "copies of the database",
    "~/.local/share/memoryd/projects.json": "which checkouts and folders have which namespace",
    "~/.local/share/memoryd/memoryd.log": "the log of a daemon that a client started",
    "~/.config/memoryd/config.toml": "the configuration, which need not exist",
    "~/.cache/memoryd/models/": "embedding models",
}
MEMCTL_EXITS = {
    "0": "done",
    "1": "an error, told in one sentence on standard error",
    "2": "wrong usage",
    "3": "no daemon answers, and none could be started",
    "130": "interrupted",
    "141": "nobody reads the output",
}
SIGNALS = {
    "SIGTERM, SIGINT": "finish the calls under way, write everything down, end",
}


# roff ----------------------------------------------------------------------------------------------------------------


EXIT_STATUS = {
    "0": "ended as it was told to",
    "1": "failed; the log says why",
    "74": "its database, lock or socket was deleted or moved while it ran",
    "75": "asks systemd to start it again, after an upgrade",
}


def verbatim(words: str) -> str:
    """Return text so that roff takes none of it for its own."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    escaped = escaped.replace("~", "\\(ti").replace("^", "\\(ha").replace("…", "\\&...").replace("–", "\\(en")
    escaped = escaped.replace("→", "\\(->").replace("×", "\\(mu").replace("“", "\\(lq").replace("”", "\\(rq")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def text(words: str) -> str:
    """Return text in lines of the source that are not too long."""
    lines = textwrap.wrap(verbatim(words), INPUT_COLUMNS, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(f"\\&{line}" if line.startswith((".", "\\(aq")) else line for line in lines)


def head(name: str) -> str:
    return f'.TH {name.upper()} 1 "{DATE}" "memoryd {memoryd.__version__}" "memoryd"'


def section(title: str, *lines: str) -> list[str]:
    return [f".SH {title.upper()}", *lines]


def items(pairs: dict[str, str], style: str = ".B") -> list[str]:
    return [line for name, about in pairs.items() for line in (".TP", f"{style} {text(name)}", text(about))]


def example(lines: str) -> list[str]:
    body = [verbatim(line.removeprefix("  ")) for line in lines.strip("\n").splitlines()]
    return [".in +4n", ".EX", *body, ".EE", ".in"]


# Arguments -----------------------------------------------------------------------------------------------------------


def option(action: argparse.Action) -> list[str]:
    """Return an argument and what it means."""
    names = ", ".join(f"\\fB{text(name)}\\fR" for name in action.option_strings)
    value = "" if action.nargs == 0 else f"\\fI{text(_value(action))}\\fR"
    about = action.help or ""
    return [".TP", " ".join(part for part in (names, value) if part), text(about % vars(action))]


def _value(action: argparse.Action) -> str:
    name = str(action.metavar or "|".join(map(str, action.choices or [action.dest])))
    many = {"?": f"[{name}]", "+": f"{name} …", "*": f"[{name} …]"}
    return many.get(str(action.nargs), name)


def shown(parser: argparse.ArgumentParser, left_out: set[str]) -> Iterator[argparse.Action]:
    """Return the arguments that are described with a command itself."""
    for action in [*parser._get_positional_actions(), *parser._get_optional_actions()]:
        if action.help != argparse.SUPPRESS and not left_out & set(action.option_strings):
            yield action


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {name for action in parser._actions for name in action.option_strings}


def global_parser() -> Parser:
    parser = Parser("memctl", "", "")
    add_global_options(parser)
    return parser


def search_parser() -> Parser:
    parser = Parser("memctl", "", "")
    add_query(parser)
    return parser


def command(name: str, common: set[str]) -> Iterator[str]:
    """Return one command: how it is called, what it does, its own arguments, examples."""
    found, parser = command_of(name)
    everywhere = options_of(global_parser())
    yield ".SS " + verbatim(parser.usage.removesuffix(" [options]") if parser.usage else name)
    row = COMMANDS[name].help
    yield text(f"{row[:1].upper()}{row[1:]}.")
    taken = options_of(parser)
    whole, part = "--fusion" in taken, "--path-prefix" in taken
    if whole or part:
        yield f"The {'options' if whole else 'filters'} of a search apply."
    elif "--reach" in taken:
        yield "\\fB\\-\\-reach\\fR applies."
    left_out = everywhere | {"--reach"} | (common if whole else _filters() if part else set())
    for action in shown(parser, left_out):
        yield from option(action)
    yield ".PP"
    yield from example(found.examples)


def _filters() -> set[str]:
    group = next(group for group in search_parser()._action_groups if str(group.title).startswith("filters"))
    return {name for action in group._group_actions for name in action.option_strings}


# Pages ---------------------------------------------------------------------------------------------------------------


def memctl() -> str:
    """Return memctl(1)."""
    common = options_of(global_parser()) | options_of(search_parser())
    lines = [
        head("memctl"),
        *section("name", "memctl \\- the admin command of memoryd, one memory for every agent on a machine"),
        *section("synopsis", ".B memctl", ".I COMMAND", "[\\fIarguments\\fR] [\\fIoptions\\fR]"),
        *section("description", *_paragraphs(MEMCTL)),
        *section("examples", *example(EXAMPLES.removeprefix("examples:\n"))),
        *section("options of every command"),
        *[line for action in shown(global_parser(), {"-h"}) for line in option(action)],
        *section("options of a search"),
        *[line for action in shown(search_parser(), {"-h"}) for line in option(action)],
    ]
    for group, rows in GROUPS.items():
        lines += section(f"commands: {text(group)}")
        lines += [line for name in rows for line in command(name, common)]
    checks = {area: ", ".join(names) for area, names in AREAS.items()}
    lines += section("checks of doctor", *items(checks))
    lines += section("exit status", *items(MEMCTL_EXITS)) + _ending("memoryd")
    return "\n".join(lines) + "\n"


def memoryd_page() -> str:
    """Return memoryd(1)."""
    parser = daemon._build_parser()
    lines = [
        head("memoryd"),
        *section("name", "memoryd \\- one memory for every agent on a machine: the daemon"),
        *section("synopsis", ".B memoryd", "[\\fIoptions\\fR]"),
        *section("description", *_paragraphs(MEMORYD)),
        *section("options", *[line for action in shown(parser, {"-h"}) for line in option(action)]),
        *section("configuration", *_paragraphs(CONFIGURATION)),
        *_settings(),
        *section("signals", *items(SIGNALS)),
        *section("exit status", *items(EXIT_STATUS)),
    ]
    return "\n".join(lines + _ending("memctl")) + "\n"


def _settings() -> Iterator[str]:
    """Return the settings by section, with defaults and meanings."""
    described: Any = types.type_info(Config)
    for part in described.fields:
        is_named = isinstance(part.type, types.DictType)  # one section for each name, such as [shared.acme]
        section = part.type.value_type if is_named else part.type
        yield f".SS [{part.name}{'.NAME' * is_named}]"
        yield text(str(section.cls.__doc__).splitlines()[0])
        hints = get_type_hints(section.cls, include_extras=True)
        for field in section.fields:
            value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            yield from (".TP", f"\\fB{verbatim(field.name)}\\fR = {verbatim(msgspec.json.encode(value).decode())}")
            yield text(next(meta for meta in hints[field.name].__metadata__ if isinstance(meta, str)))


def _ending(other: str) -> list[str]:
    return [
        *section("environment", *items(ABOUT)),
        *section("files", *items(FILES, ".I")),
        *section("see also", f".BR {other} (1)"),
    ]


def _paragraphs(words: str) -> list[str]:
    """Return paragraphs, a sentence a line."""
    lines: list[str] = []
    for paragraph in words.strip().split("\n\n"):
        sentences = " ".join(paragraph.split()).replace(". ", ".\n").splitlines()
        lines += [".PP"] * bool(lines) + [text(sentence) for sentence in sentences]
    return lines


MEMCTL = """
memctl speaks to the daemon of this user over a Unix socket, and starts it when none answers. Memories lie in
namespaces such as acme/api; what is stored in one is seen from those inside it.

With --json a command prints one JSON document on standard output and nothing else; notes and errors go to standard
error. Times are written in ISO 8601. An id may be shortened to its first digits, at least four.
"""
MEMORYD = """
memoryd keeps what agents are to remember: an embedding model, an exact vector index and a full-text index in memory,
and one SQLite file. What was acknowledged is on disk. Clients reach it over a Unix socket that only its user can open;
there is no network port. The first client starts it, so it need not be started by hand: memctl up and memctl down do.
"""
CONFIGURATION = """
The file is TOML: sections in brackets, then name = value. What is left out has the default that is given here. What
it holds must be known and in range, or the daemon says what is wrong and does not start. A change takes effect at the
next start. memctl config show prints the settings in force, memctl doctor tells when they are not.
"""


def main() -> None:
    """Write both pages."""
    for name, made in (("memctl", memctl()), ("memoryd", memoryd_page())):
        Path(page_path(name)).write_text(made)


if __name__ == "__main__":
    main()
