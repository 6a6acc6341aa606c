"""`python -m memoryd.client.programs.importing.child SYSTEM PATH BASE [--confirmed]`: read another system's memories.

The source may be malicious, so it is read in a separate process with limits of memory, time and bytes written. The
process prints one JSON line per memory, [where, time, record], and then the account. It exits with 2 and a sentence on
stderr if the source cannot be read, and with 3 and a list of folders, one per line, if the source refers to folders
elsewhere and `--confirmed` is not given.
"""

import argparse
import resource
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.programs.importing.records import Account, Unconfirmed, clean_tree
from memoryd.client.programs.importing.systems import SYSTEMS
from memoryd.client.programs.memctl.sending import Item

MEMORY_BYTES = 2 * 1024**3
PROCESSOR_S = 600
SPOOL_BYTES = 4 * 1024**3
FAILED, UNCONFIRMED = 2, 3


def main() -> int:
    """Print the memories of the source; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m memoryd.client.programs.importing.child", description=__doc__)
    parser.add_argument("system", choices=tuple(SYSTEMS))
    parser.add_argument("path", type=Path)
    parser.add_argument("base")
    parser.add_argument("--confirmed", action="store_true")
    parser.add_argument("--to")
    given = parser.parse_args()
    set_limits()
    account = Account(given.system, given.base, confirmed=given.confirmed, place=given.to)
    try:
        write_items(given.path, account)
    except Unconfirmed as error:
        print(error.message, file=sys.stderr)
        return UNCONFIRMED
    except Invalid as error:
        print(error.message, file=sys.stderr)
        return FAILED
    except (MemoryError, RecursionError) as error:
        what = "needs more memory than an import may take" if isinstance(error, MemoryError) else "is nested too deeply"
        print(f"{given.path} {what}. Nothing was imported.", file=sys.stderr)
        return FAILED
    return 0


def set_limits() -> None:
    """Set the resource limits of this process; a lower limit that is in force stays."""
    limits = {
        resource.RLIMIT_AS: MEMORY_BYTES,
        resource.RLIMIT_CPU: PROCESSOR_S,
        resource.RLIMIT_FSIZE: SPOOL_BYTES,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def write_items(path: Path, account: Account) -> None:
    """Print each memory once, then the account."""
    read = import_module(f"memoryd.client.programs.importing.{SYSTEMS[account.system].module}").read
    seen: set[str] = set()
    for where, made, time in _read_items(read(path, account), path):
        if made is None:
            continue
        if made.id in seen:
            account.skip("repetitions")
            continue
        seen.add(made.id)
        try:
            line = _encode([where, time, msgspec.to_builtins(made)])
        except RecursionError:
            account.skip("entries that contain themselves")
            continue
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.write(_encode({"skipped": account.skipped, "notes": account.notes}) + b"\n")
    sys.stdout.buffer.flush()


def _encode(value: Any) -> bytes:
    """Encode as JSON; lone surrogates, which file names and escaped texts may contain, are replaced."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(clean_tree(value))


def _read_items(items: Iterator[Item], path: Path) -> Iterator[Item]:
    """Yield the items; turn errors of the file system into `Invalid`."""
    try:
        yield from items
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Invalid(f"{error.filename or path} does not exist. Nothing was imported.") from None
    except OSError as error:
        raise Invalid(f"{error.filename or path} cannot be read: {error.strerror}. Nothing was imported.") from None


if __name__ == "__main__":
    sys.exit(main())
