"""Run the parts of memoryd that need the daemon's packages in processes of their own; memctl imports none of them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.extras import advise

MISSING = f"The daemon is not installed here; {advise('daemon')}"
BACKUPS = "backups"  # in the data directory


class Copy(msgspec.Struct):
    """A copy of a database, or a former database; a field that cannot be read is None.

    `name` is its name for `memctl restore`, `operation` the id of its latest operation.
    """

    name: str
    path: str
    size_bytes: int
    former: bool
    made_at: float | None
    memories: int | None
    operation: str | None


def is_installed() -> bool:
    """Return whether the daemon's packages are installed."""
    return find_spec("apsw") is not None


def require_daemon() -> None:
    """Raise an error that says what to install if the daemon's packages are missing."""
    if not is_installed():
        raise MemorydError(MISSING)


def effective_settings() -> dict[str, Any]:
    """Return the settings by section as a daemon that starts now would read them."""
    return msgspec.json.decode(read_output("memoryd.daemon", ["--print-config"]), type=dict[str, Any])


def read_output(
    module: str, arguments: Sequence[str], *, progress: bool = False, given: bytes = b"", **variables: str
) -> bytes:
    """Return the output of `python -m MODULE ARGUMENTS`; if it fails raise an error with its last sentence.

    With `progress`, and stderr on a terminal, the process writes to that stderr itself; if it fails, memctl exits
    without repeating the sentence. `given` is its standard input; `variables` are added to its environment.
    """
    require_daemon()
    watched = bool(progress and sys.stderr and sys.stderr.isatty())
    process = subprocess.run(
        [sys.executable, "-P", "-m", module, *arguments],
        input=given,
        stdout=subprocess.PIPE,
        stderr=None if watched else subprocess.PIPE,
        env={**os.environ, **variables},
        check=False,
    )
    if process.returncode and watched:
        raise SystemExit(1)  # the terminal shows why
    if process.returncode:
        lines = process.stderr.decode("utf-8", "replace").splitlines()
        sentences = [line for line in lines if line and not line.startswith("{")]
        raise MemorydError(sentences[-1] if sentences else f"{module} failed without a message.")
    return process.stdout


def list_copies(data_dir: Path) -> list[Copy]:
    """Return the copies of the database in the folder of backups, the one with the oldest content first."""
    return [copy for copy in list_with_former(data_dir) if not copy.former]


def list_with_former(data_dir: Path) -> list[Copy]:
    """Return the copies of the database as `list_copies` does, then the former databases."""
    if not data_dir.is_dir():
        return []
    return msgspec.json.decode(read_output("memoryd.daemon.store.copies", [str(data_dir)]), type=list[Copy])


def environment(**changes: str) -> dict[str, str]:
    """Return the environment for a process that must not find this user's daemon or its data, with `changes`."""
    own = ("MEMORYD_SOCKET", "MEMORYD_DATA_DIR", "MEMORYD_CONFIG", "MEMORYD_NAMESPACE")
    return {**{name: value for name, value in os.environ.items() if name not in own}, **changes}
