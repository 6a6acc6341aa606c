"""Write the unit files: the templates of the package with the paths of this installation.

A template has each directive to replace exactly once. Paths are absolute and escaped as described in systemd.unit(5):
`%` is doubled, words of a command line and of `Environment` are quoted, and `:` before the command disables `$`.
"""

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import memoryd
from memoryd.client.errors import Invalid
from memoryd.client.transport import paths
from memoryd.client.transport.activation import SERVICE_UNIT, SOCKET_UNIT

MARK = "# Written by `memctl service install`; `memctl service uninstall` removes it.\n"
_SIZE = re.compile(r"[0-9]+[KMGT]?|(100|[1-9]?[0-9])%|infinity")


class Installation(NamedTuple):
    """The paths in the units: of the installation, the socket, the data and the settings."""

    python: Path
    socket: Path
    data_dir: Path
    config: Path
    models: Path | None = None
    memory_max: str = ""


def current_place(socket: Path, data_dir: str | None, config: str | None, memory_max: str) -> Installation:
    """Return the paths of this installation; by default those that a daemon started here would use.

    The service does not have the variables of a shell, so paths that they set are written into the units.
    """
    if memory_max and not _SIZE.fullmatch(memory_max):
        raise Invalid(f"{memory_max!r} is no memory limit; write one like 2G, 500M, 25% or infinity.")
    names_models = any(os.environ.get(name) for name in ("MEMORYD_MODEL_DIR", "XDG_CACHE_HOME"))
    return Installation(
        Path(os.path.abspath(sys.executable)),
        socket,
        paths.data_dir(data_dir),
        paths.config_path(config),
        paths.models_dir() if names_models else None,
        memory_max,
    )


def format_units(place: Installation) -> dict[str, str]:
    """Return the content of each unit file by name."""
    socket = _escape_socket(place.socket)
    if set("\"'\\") & set(str(place.python)):
        raise Invalid(f"systemd runs no program whose path has quotes or backslashes: {place.python}.")
    options = {"--data-dir": place.data_dir, "--config": place.config}
    arguments = " ".join(f"{option} {_format_word(value)}" for option, value in options.items())
    start = f"ExecStart=:{_format_word(place.python)} -P -m memoryd.daemon {arguments} --socket {_quote(socket)}"
    if place.models:
        start += f"\nEnvironment={_format_word(f'MEMORYD_MODEL_DIR={place.models}')}"
    service = {"ExecStart": start, "MemoryMax": f"MemoryMax={place.memory_max}" if place.memory_max else ""}
    return {
        SOCKET_UNIT: MARK + _replace(SOCKET_UNIT, {"ListenStream": f"ListenStream={socket}"}),
        SERVICE_UNIT: MARK + _replace(SERVICE_UNIT, service),
    }


def is_ours(text: str) -> bool:
    """Return whether a unit file was written by memctl."""
    return text.startswith(MARK)


def command_of(unit: str) -> str:
    """Return the interpreter in a service unit that memctl wrote."""
    found = re.search(r'^ExecStart=:"((?:[^"\\]|\\.)*)"', unit, re.MULTILINE)
    return re.sub(r"\\(.)", r"\1", found.group(1)).replace("%%", "%") if found else ""


def _replace(name: str, lines: dict[str, str]) -> str:
    """Replace the lines of directives in a template; an empty line keeps the line of the template."""
    text = (Path(memoryd.__file__).parent / "systemd" / name).read_text("utf-8")
    for directive, line in lines.items():
        if line:
            text, times = re.subn(rf"^{directive}=.*$", lambda _, line=line: line, text, flags=re.MULTILINE)  # type: ignore[misc]
            assert times == 1, directive
    return text


def _escape_socket(socket: Path) -> str:
    """Return the socket's path with specifiers escaped, relative to `%t` if it is in the runtime directory."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and socket.is_relative_to(runtime):
        return f"%t/{_escape(socket.relative_to(runtime))}"
    return _escape(socket)


def _format_word(value: Path | str) -> str:
    return _quote(_escape(value))


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escape(value: Path | str) -> str:
    text = str(value)
    if not text.isprintable() or text != text.strip():
        raise Invalid(f"systemd cannot hold this path: {text!r}; choose one without control characters.")
    return text.replace("%", "%%")
