"""`python -m memoryd.client.programs.importing.child SYSTEM PATH BASE [--confirmed]`: read what another system keeps.

What is read may be made to harm whoever reads it, so this is a process of its own with limits of memory, time and bytes
written. It prints a JSON line for each memory, [where, time, record], and last the account. Exit code 2 with a sentence
on stderr when the source cannot be read, 3 with the folders, one a line, when it names folders elsewhere that nobody
has confirmed.
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
    """Print what is read; return the exit code."""
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
    """Limit what this process may take; where a lower limit holds already, that one does."""
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
    """Print each memory once, and the account."""
    read = import_module(f"memoryd.client.programs.importing.{SYSTEMS[account.system].module}").read
    seen: set[str] = set()
    for where, made, time in _read_items(read(path, account), path):
        if made is None:
            continue
        if made.id in seen:
            account.skip("said twice")
            continue
        seen.add(made.id)
        try:
            line = _encode([where, time, msgspec.to_builtins(made)])
        except RecursionError:
            account.skip("entries that hold themselves")
            continue
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.write(_encode({"skipped": account.skipped, "notes": account.notes}) + b"\n")
    sys.stdout.buffer.flush()


def _encode(value: Any) -> bytes:
    """Return JSON; names of files and texts that JSON escapes may hold halves of characters."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(clean_tree(value))


def _read_items(items: Iterator[Item], path: Path) -> Iterator[Item]:
    """Yield what is read; a file that cannot be opened is one sentence."""
    try:
        yield from items
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Invalid(f"{error.filename or path} is not there. Nothing was imported.") from None
    except OSError as error:
        raise Invalid(f"{error.filename or path} cannot be read: {error.strerror}. Nothing was imported.") from None


if __name__ == "__main__":
    sys.exit(main())
