"""Making a database of a copy: read as a whole, checked, brought to the present schema, checked again."""

from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store import copies, expected
from memoryd.daemon.store.migrations import MIGRATIONS
from memoryd.daemon.store.store import FILE_NAME, Store

_PAGES = 1024


class Restored(NamedTuple):
    """How many memories a copy holds, what of its schema was dropped, and which of its tokens were left out."""

    memories: int
    dropped: list[str]
    tokens: list[str]


def restore(file: Path, folder: Path, former: Path | None = None, keep_tokens: bool = False) -> Restored:
    """Put a checked copy of `file` into `folder`; raise `StorageFailed`.

    Tokens that are not in force in the `former` database are left out, unless they are to be kept: whoever made the
    file may have added them, and some may have been revoked since.
    """
    if not file.is_file():
        raise StorageFailed(f"{file}: there is no such file.")
    try:
        source = copies.open_plain(file, apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        raise StorageFailed(f"{file} cannot be opened: {error}.") from None
    try:
        _check_version(source, file)
        found, dropped = _copy(source, folder / FILE_NAME)
    except apsw.FullError:
        raise StorageFailed(f"There is no room for {file} in {folder.parent}. Nothing was changed.") from None
    except apsw.Error as error:
        raise StorageFailed(f"{file} cannot be read: {error}. Nothing was changed.") from None
    finally:
        source.close()
    if found:
        raise StorageFailed(f"{file} is damaged: {found[0]}. Nothing was changed.")
    known = None if keep_tokens else _read_tokens(former)
    return _open(folder, file, known)._replace(dropped=dropped)


def _read_tokens(path: Path | None) -> list[bytes]:
    """Return the hashes of the tokens that are in force, none where there is no database or it cannot be read."""
    if path is None or not path.is_file():
        return []
    try:
        with closing(copies.open_plain(path)) as connection:
            return [key for (key,) in connection.execute("SELECT hash FROM tokens") if isinstance(key, bytes)]
    except apsw.Error:
        return []


def _drop_tokens(connection: apsw.Connection, known: list[bytes]) -> list[str]:
    """Delete the tokens that are not known; return what they were."""
    found: Any = connection.execute("SELECT id, name, role, namespace, hash FROM tokens").fetchall()
    left_out = [
        (id, f"{name} ({role} of {place or 'the root'})") for id, name, role, place, key in found if key not in known
    ]
    connection.executemany("DELETE FROM tokens WHERE id = ?", [(id,) for id, _ in left_out])
    return [said for _, said in left_out]


def _copy(source: apsw.Connection, target: Path) -> tuple[list[str], list[str]]:
    """Copy all pages; return what is wrong with the copy, and what of its schema was dropped."""
    with closing(apsw.Connection(str(target))) as made:
        with made.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES)
        made.pragma("journal_mode", "delete")
        made.pragma("trusted_schema", False)
        faults = copies.find_faults(made)
        return faults, [] if faults else expected.restore(made)


def _check_version(source: apsw.Connection, file: Path) -> None:
    version = source.pragma("user_version")
    if not isinstance(version, int) or version < 1:
        raise StorageFailed(f"{file} is not a database of memoryd. Nothing was changed.")
    if version > len(MIGRATIONS):
        raise StorageFailed(
            f"{file} was written by a newer memoryd (schema {version}, this one knows {len(MIGRATIONS)});"
            " upgrade memoryd first. Nothing was changed."
        )


def _open(folder: Path, file: Path, known: list[bytes] | None) -> Restored:
    """Open the copy as the daemon will, migrating it; build what is derived again where it does not agree."""
    with closing(Store(folder)) as store:
        if store.find_problems():
            store.rebuild().result()
        if problems := store.find_problems():
            raise StorageFailed(f"{file} is damaged: {problems[0]}. Nothing was changed.")
        with store.reading() as connection:
            memories, _ = copies.read_counts(connection)
        tokens = store.write(lambda one: [] if known is None else _drop_tokens(one.connection, known)).result()
        return Restored(memories, [], tokens)
