"""`python -m memoryd.daemon.upkeep.examine FILE [--check]`: facts about a database file, as one JSON document.

It opens the file read-only, so it works on the database of a running daemon or of one that cannot start, and on a copy.
`memctl doctor` runs it in a process of its own. If the file cannot be read at all, the exit code is 1, with one
sentence on stderr.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
import msgspec

from memoryd.daemon.store import upkeep
from memoryd.daemon.store.connection import read_pragma
from memoryd.daemon.store.schema import VERSION
from memoryd.daemon.store.tiers import DOCUMENTS

_BUSY_TIMEOUT_MS = 5_000
_COUNTS = {
    "memories": "SELECT count(*) FROM memories",
    "turns": "SELECT count(*) FROM turns",
    "parts": f"SELECT count(*) FROM memories WHERE tier = '{DOCUMENTS}'",
    "newest_at": (
        "SELECT coalesce(max(created_at), 0)"
        " FROM (SELECT created_at FROM memories UNION ALL SELECT created_at FROM turns)"
    ),
    "model": "SELECT value FROM settings WHERE name = 'model'",
}


class DatabaseFacts(msgspec.Struct, kw_only=True):
    """Facts about a database file.

    `marks` show whether clients have changed anything since a copy was made; `problems` is the result of SQLite's quick
    check, empty without `--check`.
    """

    version: int
    known_version: int
    memories: int = 0
    turns: int = 0
    parts: int = 0
    newest_at: float = 0.0
    model: str | None = None
    marks: list[tuple[str, int]] = []
    problems: list[str] = []


def read_facts(path: Path, check: bool) -> DatabaseFacts:
    """Return the facts about a file; raise `apsw.Error` if it is no database or cannot be read."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(_address(path), flags=flags)) as connection:
        connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
        facts = DatabaseFacts(
            version=read_pragma(connection, "user_version"),
            known_version=VERSION,
        )
        if check:
            facts.problems = [str(line) for (line,) in connection.execute("PRAGMA quick_check(5)") if line != "ok"]
        if 0 < facts.version <= facts.known_version and not facts.problems:
            for name, question in _COUNTS.items():
                setattr(facts, name, connection.execute(question).get)
            facts.marks = upkeep.marks(connection)
        return facts


def _address(path: Path) -> str:
    """Return the URI of a file. For a copy, which has no log, it prevents that reading creates one."""
    option = "" if path.with_name(f"{path.name}-wal").exists() else "?immutable=1"
    return f"{path.resolve().as_uri()}{option}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the facts and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m memoryd.daemon.upkeep.examine", description=read_facts.__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="also run SQLite's quick check")
    options = parser.parse_args(arguments)
    try:
        facts = read_facts(options.file, options.check)
    except (OSError, apsw.Error) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(facts) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
