"""config …: the settings in force and where they come from."""

from argparse import ArgumentParser, Namespace
from typing import Any

import msgspec

from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.local import output_of
from memoryd.client.memctl.output import note, paint, show
from memoryd.client.memctl.table import fields
from memoryd.client.transport import paths


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="this file instead of the usual one")


def _show(args: Namespace) -> None:
    given = ["--config", args.config] if args.config else []
    settings = msgspec.json.decode(output_of("memoryd.daemon", ["--print-config", *given]))
    show(args, settings, lambda: _text(settings))


def _text(settings: dict[str, Any]) -> str:
    plain = {name: value for name, value in settings.items() if not isinstance(value, dict)}
    sections = {name: value for name, value in settings.items() if isinstance(value, dict)}
    parts = [_lines(plain)] if plain else []
    parts += [f"{paint(f'[{name}]', 'bold')}\n{_lines(section)}" for name, section in sections.items()]
    return "\n\n".join(parts)


def _lines(section: dict[str, Any]) -> str:
    return fields([(name, msgspec.json.encode(value).decode()) for name, value in section.items()], indent="")


def _path(args: Namespace) -> None:
    found = paths.config_path(args.config)
    there = found.is_file()
    show(args, {"path": str(found), "exists": there}, lambda: str(found))
    if not there and not args.json:
        note("memctl: the file is not there, so the defaults hold.")


COMMANDS = {
    "config show": Command(_arguments, _show, "  memctl config\n  memctl config show --json"),
    "config path": Command(_arguments, _path, "  $EDITOR $(memctl config path)"),
}
