"""Paths of memoryd's files: in the XDG base directories, each of which an environment variable can override.

`pathlib` is imported on use: a client that only connects does not need it, and it takes a tenth of the import time.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from memoryd.client import linux
from memoryd.client.errors import Invalid

if TYPE_CHECKING:
    from pathlib import Path

_RUNTIME_FOLDERS = "/run/user"  # created by systemd at login
_DATA = ".local/share"
MAX_SOCKET_PATH_BYTES = 107  # sun_path has 108 bytes including a final NUL


def socket_address(address: str | os.PathLike[str] | None = None) -> str:
    """Return the socket's path: as given, `MEMORYD_SOCKET`, in the runtime directory or a private temporary folder.

    Raise `Unavailable` on a system without Unix sockets; everything that connects to a daemon calls this first.
    """
    linux.check()
    path = _check_path(address) if address else os.environ.get("MEMORYD_SOCKET") or _default_socket()
    path = os.path.abspath(os.path.expanduser(path))
    if "\0" in path:
        raise Invalid("The socket path has a NUL byte.")
    length = len(os.fsencode(path))
    if length > MAX_SOCKET_PATH_BYTES:
        raise Invalid(
            f"The socket path is {length} bytes long and Unix allows {MAX_SOCKET_PATH_BYTES}; "
            f"choose a shorter one with MEMORYD_SOCKET: {path}"
        )
    return path


def socket_path(path: str | os.PathLike[str] | None = None) -> "Path":
    """Return `socket_address` as a path."""
    from pathlib import Path

    return Path(socket_address(path))


def data_dir(path: str | os.PathLike[str] | None = None) -> "Path":
    """Return the folder of the database and the log."""
    return _locate(path, "MEMORYD_DATA_DIR", "XDG_DATA_HOME", _DATA)


def default_data_dir() -> "Path":
    """Return the default of `data_dir`, without regard to memoryd's environment variables."""
    return _locate(None, "", "XDG_DATA_HOME", _DATA)


def data_folder() -> str:
    """Return `data_dir` as text, without importing `pathlib`: every command of memctl and every hook calls this."""
    folder = os.environ.get("MEMORYD_DATA_DIR") or f"{base_folder('XDG_DATA_HOME', _DATA)}/memoryd"
    return os.path.abspath(os.path.expanduser(folder))


def base_folder(variable: str, usual: str) -> str:
    """Return an XDG base directory: that of the environment variable, else `usual` in the home folder.

    Editors that are snaps or flatpaks set these variables to folders of their own in their terminals. Such values are
    ignored, so that these terminals use the same memory as all other shells.
    """
    home = home_folder()
    named = os.path.abspath(os.path.expanduser(os.environ.get(variable) or f"{home}/{usual}"))
    return f"{home}/{usual}" if named.startswith((f"{home}/snap/", f"{home}/.var/app/")) else named


def home_folder() -> str:
    """Return the user's home folder, even if a snap has set HOME to a folder of its own."""
    home = os.path.expanduser("~")
    if "/snap/" not in home:
        return home
    import pwd

    with suppress(KeyError):
        users = pwd.getpwuid(os.getuid()).pw_dir
        home = users if home.startswith(f"{users}/snap/") else home
    return home


def removed_mark() -> str:
    """Return the file that marks a kept data folder after memoryd was uninstalled, so that hooks do nothing."""
    return os.path.join(data_folder(), "hooks.removed")


def list_overrides() -> list[str]:
    """Return the variables set here that select the memory; programs started without them use another one."""
    return [name for name in ("MEMORYD_DATA_DIR", "MEMORYD_SOCKET") if os.environ.get(name)]


def environment_token() -> str:
    """Return the token in `MEMORYD_TOKEN`, empty if it is not set.

    Raise `Invalid` if it is set but empty: the command that should have printed the token failed, and without a token a
    client has all rights of its user.
    """
    token = os.environ.get("MEMORYD_TOKEN")
    if token == "":
        raise Invalid("MEMORYD_TOKEN is set but empty; give it a token, or unset it to be the user of this machine.")
    return token or ""


def owner_token() -> str:
    """Return the owner's token, which a daemon that requires tokens stores beside its database; empty for none."""
    return read_token(os.path.join(data_folder(), "owner.token"))


def read_token(path: str) -> str:
    """Return the token in a file, empty if it cannot be read."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read(256).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def config_path(path: str | os.PathLike[str] | None = None) -> "Path":
    """Return the path of the configuration file, which need not exist."""
    if path or os.environ.get("MEMORYD_CONFIG"):
        return _normalise(path or os.environ["MEMORYD_CONFIG"])
    return _locate(None, "", "XDG_CONFIG_HOME", ".config") / "config.toml"


def config_file() -> str:
    """Return `config_path` as text, without importing `pathlib`: every hook calls this."""
    file = os.environ.get("MEMORYD_CONFIG") or f"{base_folder('XDG_CONFIG_HOME', '.config')}/memoryd/config.toml"
    return os.path.abspath(os.path.expanduser(file))


def models_dir(path: str | os.PathLike[str] | None = None) -> "Path":
    """Return the folder of the embedding models, the same as in `memoryd.models`."""
    chosen = path or os.environ.get("MEMORYD_MODEL_DIR")
    return _normalise(chosen) if chosen else _locate(None, "", "XDG_CACHE_HOME", ".cache") / "models"


def make_absolute(path: str | os.PathLike[str]) -> str:
    """Return an absolute path, relative to the current directory, with `~` expanded."""
    return os.path.abspath(os.path.expanduser(_check_path(path)))


def _check_path(path: str | os.PathLike[str]) -> str:
    """Return a path as text; raise `Invalid` if it is not a path."""
    text = path if isinstance(path, str) else os.fspath(path) if isinstance(path, os.PathLike) else None
    if not isinstance(text, str):
        raise Invalid(f"A path must be text, not {path!r}.")
    return text


def resolve_workspace(workspace: str) -> str:
    """Return the name of a workspace: a namespace, or the absolute path if it begins with `/`, `~` or `.`."""
    is_namespace = isinstance(workspace, str) and not workspace.startswith(("/", "~", "."))
    return workspace if is_namespace else make_absolute(workspace)


def _default_socket() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR") or _find_runtime_folder()
    folder = f"{runtime}/memoryd" if runtime else f"{os.environ.get('TMPDIR') or '/tmp'}/memoryd-{os.getuid()}"
    return f"{folder}/memoryd.sock"


def _find_runtime_folder() -> str:
    """Return the user's runtime folder, since hosts often do not pass XDG_RUNTIME_DIR on; empty for none."""
    folder = f"{_RUNTIME_FOLDERS}/{os.getuid()}"
    return folder if not os.environ.get("TMPDIR") and os.access(folder, os.W_OK) else ""


def _locate(path: str | os.PathLike[str] | None, variable: str, xdg: str, usual: str) -> "Path":
    chosen = path or os.environ.get(variable)
    return _normalise(chosen) if chosen else _normalise(base_folder(xdg, usual)) / "memoryd"


def _normalise(path: str | os.PathLike[str]) -> "Path":
    """Return an absolute path, resolved if it contains `..`."""
    from pathlib import Path

    made = Path(path).expanduser().absolute()
    return made.resolve() if ".." in made.parts else made
