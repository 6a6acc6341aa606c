"""import --from: what another system remembers, read once, checked, and sent as records of ours in one operation."""

from argparse import Namespace
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.memctl.importing import SYSTEMS
from memoryd.client.memctl.importing.records import Account
from memoryd.client.memctl.importing.sending import SHOWN, Item, open_spool, report_text, send
from memoryd.client.memctl.link import namespace_of
from memoryd.client.memctl.output import print_note, say, say_json, to_plain
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.protocol import Imported

_TELL_EVERY = 200


def import_from(args: Namespace) -> None:
    """Run `memctl import --from SYSTEM PATH`."""
    path = Path(args.source).expanduser()
    if args.source == "-" or not path.exists():
        raise Invalid(f"{args.source}: there is no such file or folder. --from {args.system} takes {_path_kind(args)}.")
    account = Account(args.system, namespace_of(args))
    with open_spool() as spool:
        total = _spool(args, path, account, spool)
        if not total and not account.skipped:
            raise Invalid(f"{path} holds nothing to import.")
        done = send(args, lambda: _read_spool(spool), total)
    for said in account.notes[:SHOWN]:
        print_note(said)
    if len(account.notes) > SHOWN:
        print_note(f"… and {len(account.notes) - SHOWN:,} more.")
    _show(args, done, account)


def _path_kind(args: Namespace) -> str:
    return SYSTEMS[args.system].path


def _spool(args: Namespace, path: Path, account: Account, spool: IO[bytes]) -> int:
    """Read everything once, so that what is sent is what was checked; return how many memories there are."""
    read = import_module(f"memoryd.client.memctl.importing.{SYSTEMS[args.system].module}").read
    seen: set[str] = set()
    with ProgressBar(f"reading {args.system}") as bar:
        for where, made, time in _read_items(read(path, account), path):
            if made is None:
                continue
            if made.id in seen:
                account.skip("said twice")
                continue
            seen.add(made.id)
            spool.write(msgspec.json.encode([where, time, msgspec.to_builtins(made)]) + b"\n")
            if len(seen) % _TELL_EVERY == 0:
                bar.update(0, len(seen), f"reading {len(seen):,}")
    return len(seen)


def _read_items(items: Iterator[Item], path: Path) -> Iterator[Item]:
    """Yield what is read; a file that cannot be opened is one sentence."""
    try:
        yield from items
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Invalid(f"{error.filename or path} is not there. Nothing was imported.") from None
    except OSError as error:
        raise Invalid(f"{error.filename or path} cannot be read: {error.strerror}. Nothing was imported.") from None


def _read_spool(spool: IO[bytes]) -> Iterator[Item]:
    from memoryd.client.protocol import Record

    spool.seek(0)
    for line in spool:
        where, time, fields = msgspec.json.decode(line)
        yield Item(where, msgspec.convert(fields, Record), time)


def _show(args: Namespace, done: Imported, account: Account) -> None:
    if args.json:
        result: dict[str, Any] = to_plain(done)
        say_json({**result, "left_out": dict(account.skipped), "notes": account.notes})
        return
    say(report_text(done))
    for reason, number in account.skipped.most_common():
        say(f"{number:,} left out: {reason}.")
