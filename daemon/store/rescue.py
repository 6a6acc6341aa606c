"""What is done to a database while no daemon serves it: restore a copy, read out a damaged one, start again.

`python -m memoryd.daemon.store.rescue restore FILE | recover | reset | take-up | cancel --data-dir DIR` prints one JSON
document; memctl runs it. The new database is made ready beside the present one, checked, and taken up at once when the
lock of the directory is free, else by the daemon at its next start (`store/swap.py`).
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.errors import Conflict, MemorydError, StorageFailed
from memoryd.client.rescue import Report
from memoryd.client.transport import paths
from memoryd.daemon.store import recovering, restoring, swap
from memoryd.daemon.store.store import FILE_NAME, Store
from memoryd.daemon.system import listen, process


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    given = _build_parser().parse_args(arguments)
    os.umask(0o077)
    folder = paths.data_dir(given.data_dir)
    try:
        report = _COMMANDS[given.command](folder, given)
    except MemorydError as error:
        return _give_up(folder, error.message)
    except OSError as error:
        return _give_up(folder, f"{error.filename or folder}: {error.strerror}.")
    print(msgspec.json.encode(report).decode())
    return 0


def _give_up(folder: Path, reason: str) -> int:
    """Say why, and give back the room of what was not made ready: the disk may be full."""
    shutil.rmtree(swap.part_folder(folder), ignore_errors=True)
    print(reason, file=sys.stderr)
    return 1


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memoryd.daemon.store.rescue", description=__doc__)
    parser.add_argument("command", choices=tuple(_COMMANDS))
    parser.add_argument("file", nargs="?", type=Path, help="the copy to restore")
    parser.add_argument("--data-dir", metavar="DIR", help="folder of the database (MEMORYD_DATA_DIR)")
    parser.add_argument("--discard", action="store_true", help="do not keep the former database")
    parser.add_argument("--tokens", action="store_true", help="keep tokens of the copy that are not in force here")
    parser.add_argument("--wait-s", type=float, default=0.0, help="time to wait for the lock of the directory")
    return parser


def _restore(folder: Path, given: argparse.Namespace) -> Report:
    if given.file is None:
        raise StorageFailed("No file is given to restore.")
    place = _begin(folder)
    found = restoring.restore(given.file, place, folder / FILE_NAME, given.tokens)
    swap.mark_ready(folder, "restore", given.discard)
    return _take_up(folder, given, Report(memories=found.memories, dropped=found.dropped, tokens=found.tokens))


def _recover(folder: Path, given: argparse.Namespace) -> Report:
    """Read out the present database; nobody may write to it meanwhile, so this waits for the lock first."""
    file = folder / FILE_NAME
    if not file.is_file():
        raise StorageFailed(f"There is no database in {folder}.")
    lock = listen.lock(folder / "memoryd.lock", f"the data directory {folder}", given.wait_s)
    try:
        place = _begin(folder)
        found = recovering.recover(file, place, lambda table: print(f"reading {table}", file=sys.stderr))
        swap.mark_ready(folder, "recovery", discard=False)
        kept = swap.take_up(folder, time.time())
    finally:
        os.close(lock)
    return Report(found.rows.get("memories", 0), True, str(kept or ""), found.rows, found.damaged)


def _reset(folder: Path, given: argparse.Namespace) -> Report:
    Store(_begin(folder)).close()
    swap.mark_ready(folder, "reset", given.discard)
    return _take_up(folder, given)


def _cancel(folder: Path, given: argparse.Namespace) -> Report:
    swap.cancel(folder)
    return Report()


def _take_up(folder: Path, given: argparse.Namespace, made: Report | None = None) -> Report:
    report = made or Report()
    try:
        lock = listen.lock(folder / "memoryd.lock", f"the data directory {folder}", given.wait_s)
    except Conflict:
        return report
    try:
        kept = swap.take_up(folder, time.time())
    finally:
        os.close(lock)
    report.taken_up, report.kept = True, str(kept or "")
    return report


def _begin(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    process.keep_temporary_files(folder)
    return swap.begin(folder)


_COMMANDS: dict[str, Callable[[Path, Any], Report]] = {
    "restore": _restore,
    "recover": _recover,
    "reset": _reset,
    "take-up": _take_up,
    "cancel": _cancel,
}

if __name__ == "__main__":
    sys.exit(main())
