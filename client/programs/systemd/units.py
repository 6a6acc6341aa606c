"""The unit files as they are installed: the templates of the package with the paths of this installation in place.

A template has each directive to replace exactly once. Paths are absolute and escaped as systemd.unit(5) says: `%` is
doubled, words of a command line and of `Environment` are quoted, and `:` before the command keeps `$` as it is.
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
    """Of what installation, for which socket, data and settings the units are."""

    python: Path
    socket: Path
    data_dir: Path
    config: Path
    models: Path | None = None
    memory_max: str = ""


def current_place(socket: Path, data_dir: str | None, config: str | None, memory_max: str) -> Installation:
    """Return the place of this installation; what is not given is as a daemon started here would have it.

    The service does not see a shell's variables, so what they say about places is written into the units.
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
    """Return the text of each unit file by its name."""
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
    """Return the interpreter that a service unit of ours starts."""
    found = re.search(r'^ExecStart=:"((?:[^"\\]|\\.)*)"', unit, re.MULTILINE)
    return re.sub(r"\\(.)", r"\1", found.group(1)).replace("%%", "%") if found else ""


def _replace(name: str, lines: dict[str, str]) -> str:
    """Return a template with the lines of some directives replaced; an empty line leaves it as it is."""
    text = (Path(memoryd.__file__).parent / "systemd" / name).read_text("utf-8")
    for directive, line in lines.items():
        if line:
            text, times = re.subn(rf"^{directive}=.*$", lambda _, line=line: line, text, flags=re.MULTILINE)  # type: ignore[misc]
            assert times == 1, directive
    return text


def _escape_socket(socket: Path) -> str:
    """Return the socket's path with its specifiers escaped, below `%t` where that is its place."""
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
