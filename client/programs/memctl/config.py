"""The `config` commands: show the effective settings, and the path of their file."""

from argparse import Namespace
from typing import Any

import msgspec

from memoryd.client.programs.memctl.arguments import declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.local import effective_settings
from memoryd.client.programs.memctl.output import paint, print_note, show
from memoryd.client.programs.memctl.text_table import format_fields
from memoryd.client.transport import paths


def _show(args: Namespace) -> None:
    settings = effective_settings()
    show(args, settings, lambda: _text(settings))


def _text(settings: dict[str, Any]) -> str:
    plain = {name: value for name, value in settings.items() if not isinstance(value, dict)}
    sections = {name: value for name, value in settings.items() if isinstance(value, dict)}
    parts = [_format_section(plain)] if plain else []
    parts += [f"{paint(f'[{name}]', 'bold')}\n{_format_section(section)}" for name, section in sections.items()]
    return "\n\n".join(parts)


def _format_section(section: dict[str, Any]) -> str:
    return format_fields([(name, msgspec.json.encode(value).decode()) for name, value in section.items()], indent="")


def _show_path(args: Namespace) -> None:
    path = paths.config_path()
    exists = path.is_file()
    show(args, {"path": str(path), "exists": exists}, lambda: str(path))
    if not exists and not args.json:
        print_note("memctl: the file does not exist, so the defaults apply.")


COMMANDS = {
    "config show": Command(declare_nothing, _show, "  memctl config\n  memctl config show --json"),
    "config path": Command(declare_nothing, _show_path, "  $EDITOR $(memctl config path)"),
}
