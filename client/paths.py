"""Where memoryd's files lie: the XDG base directories, each overridable by an environment variable."""

import os
import tempfile
from pathlib import Path

from memoryd.client.errors import Invalid

MAX_SOCKET_PATH_BYTES = 107  # sun_path holds 108 bytes with its final NUL


def socket_path(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the socket's path: as given, `MEMORYD_SOCKET`, the runtime directory or a private temporary folder."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    default = Path(runtime, "memoryd") if runtime else Path(tempfile.gettempdir(), f"memoryd-{os.getuid()}")
    path = Path(given or os.environ.get("MEMORYD_SOCKET") or default / "memoryd.sock").expanduser().absolute()
    length = len(os.fsencode(path))
    if length > MAX_SOCKET_PATH_BYTES:
        raise Invalid(
            f"The socket path is {length} bytes long and Unix allows {MAX_SOCKET_PATH_BYTES}; "
            f"choose a shorter one with MEMORYD_SOCKET: {path}"
        )
    return path


def data_dir(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the database and the log."""
    return _located(given, "MEMORYD_DATA_DIR", "XDG_DATA_HOME", "~/.local/share")


def config_path(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of the configuration file, which need not exist."""
    if given or os.environ.get("MEMORYD_CONFIG"):
        return Path(given or os.environ["MEMORYD_CONFIG"]).expanduser().absolute()
    return _located(None, "", "XDG_CONFIG_HOME", "~/.config") / "config.toml"


def _located(given: str | os.PathLike[str] | None, variable: str, xdg: str, fallback: str) -> Path:
    chosen = given or os.environ.get(variable)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get(xdg) or fallback).expanduser().absolute() / "memoryd"
