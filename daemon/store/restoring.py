"""Making a database of a copy: read as a whole, checked, brought to the present schema, checked again."""

from pathlib import Path

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store import copies
from memoryd.daemon.store.migrations import MIGRATIONS
from memoryd.daemon.store.store import FILE_NAME, Store

_PAGES = 1024


def restore(file: Path, folder: Path) -> int:
    """Put a checked copy of `file` into `folder`; return how many memories it holds. Raise `StorageFailed`."""
    if not file.is_file():
        raise StorageFailed(f"{file}: there is no such file.")
    try:
        source = copies.open_plain(file, apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        raise StorageFailed(f"{file} cannot be opened: {error}.") from None
    try:
        _check_version(source, file)
        found = _copy(source, folder / FILE_NAME)
    except apsw.FullError:
        raise StorageFailed(f"There is no room for {file} in {folder.parent}. Nothing was changed.") from None
    except apsw.Error as error:
        raise StorageFailed(f"{file} cannot be read: {error}. Nothing was changed.") from None
    finally:
        source.close()
    if found:
        raise StorageFailed(f"{file} is damaged: {found[0]}. Nothing was changed.")
    return _open(folder, file)


def _copy(source: apsw.Connection, target: Path) -> list[str]:
    """Copy all pages; return what is wrong with the copy."""
    made = apsw.Connection(str(target))
    try:
        with made.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(_PAGES)
        made.pragma("journal_mode", "delete")
        return copies.find_faults(made)
    finally:
        made.close()


def _check_version(source: apsw.Connection, file: Path) -> None:
    version = source.pragma("user_version")
    if not isinstance(version, int) or version < 1:
        raise StorageFailed(f"{file} is not a database of memoryd. Nothing was changed.")
    if version > len(MIGRATIONS):
        raise StorageFailed(
            f"{file} was written by a newer memoryd (schema {version}, this one knows {len(MIGRATIONS)});"
            " upgrade memoryd first. Nothing was changed."
        )


def _open(folder: Path, file: Path) -> int:
    """Open the copy as the daemon will, migrating it; build what is derived again where it does not agree."""
    store = Store(folder)
    try:
        if store.find_problems().result():
            store.rebuild().result()
        if problems := store.find_problems().result():
            raise StorageFailed(f"{file} is damaged: {problems[0]}. Nothing was changed.")
        with store.reading() as connection:
            memories, _ = copies.read_counts(connection)
        return memories
    finally:
        store.close()
