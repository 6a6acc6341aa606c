"""What is left on disk of erased texts: the bytes of all files are searched, those of the copies by their rows.

Copies of the database are in the folder of backups and in the folders of former databases (`before-*`). One that holds
what was erased is named, and rewritten when that is asked for: it is erased from a file beside it, which gets its name
once it was checked. So is one that keeps words of rows that are gone (`find_removed`): FTS5 keeps them until it merges
its segments, SQLite until it uses a free page again. One with a log beside it (of a daemon that was killed, or a former
database too damaged to fold it in) is named as well: the log may hold anything. It is folded in first.
"""

import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from unicodedata import normalize

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.client.wording import split_wording
from memoryd.daemon.store import copies, erasing, fulltext, mentions, upkeep
from memoryd.daemon.store.connection import open_writer
from memoryd.daemon.store.mentions import Beside
from memoryd.daemon.store.migrations import migrate
from memoryd.daemon.system.process import sync

_TEXTS = 32  # that are searched for
_PIECE = 40  # bytes of each
_READ_BYTES = 4 * 1024 * 1024
_LEAST = 12  # bytes of a text that could be no chance
_LEAST_WORDS = 6  # bytes of a text that is looked for in any case
_GAP = rb"(?:[\s_-]|\\+[bfnrt]|[\x80-\xff])+"  # as in `client.wording`, in the bytes of UTF-8
_SEVERAL = 1_000  # bytes by which the parts of a file overlap
_PART = 500  # memories that are erased from a copy by one statement


def choose_pieces(texts: Sequence[str]) -> list[bytes]:
    """Return bytes by which texts are recognised: the middle of each of the longest."""
    pieces = []
    for text in sorted(texts, key=len, reverse=True)[:_TEXTS]:
        data = text.encode()
        at = max(0, (len(data) - _PIECE) // 2)
        if len(data) >= _LEAST:
            pieces.append(data[at : at + _PIECE])
    return pieces


def find_files(folder: Path, pieces: Sequence[bytes]) -> list[str]:
    """Return the files of the data directory that hold any of some pieces, copies of the database aside."""
    aside = set(list_copies(folder))
    paths = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    return [str(path) for path in sorted(paths) if path not in aside and _has_any(path, pieces)]


def _has_any(path: Path, pieces: Sequence[bytes]) -> bool:
    """Return whether a file holds any piece. Closing a database file would release our locks on it (POSIX)."""
    if path.name.endswith("-shm"):  # it holds the log's locks, and no text
        return False
    try:
        if not path.is_file() or not path.stat().st_size:
            return False
        return any(any(piece in part for piece in pieces) for part in _read_parts(path))
    except (OSError, apsw.Error):  # deleted meanwhile
        return False


def _read_parts(path: Path) -> Iterator[bytes]:
    """Yield a file's bytes in parts that overlap; of a database through SQLite, which closes no file that has locks."""
    if path.suffix != ".sqlite":
        with path.open("rb") as plain:
            for at in range(0, path.stat().st_size, _READ_BYTES):
                plain.seek(at)
                yield plain.read(_READ_BYTES + _SEVERAL)
        return
    file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    try:
        size = file.xFileSize()
        for at in range(0, size, _READ_BYTES):
            yield file.xRead(min(_READ_BYTES + _SEVERAL, size - at), at)
    finally:
        file.xClose()


def find_removed(connection: apsw.Connection, path: Path, text: str) -> list[Path]:
    """Return which of a database and its log have a text, or a word of it, that no row has any more."""
    log = path.with_name(f"{path.name}-wal")
    files = [path] if fulltext.keeps_dropped(connection, normalize("NFC", text)) else []
    words = [word.encode() for word in split_wording(text)]
    if sum(map(len, words)) < _LEAST_WORDS:  # chance has it in any file
        return files
    pattern, plain = re.compile(_GAP.join(map(_in_any_case, words)), re.IGNORECASE), _choose_plain(words)
    found = [file for file in (path, log) if file.exists() and _says(_read_parts(file), pattern, plain)]
    return sorted({*files, *found}) if found and not _is_said(connection, pattern) else files


def _in_any_case(word: bytes) -> bytes:
    """Return a pattern of a word in any case and form; bytes ignore the case of plain letters by themselves."""
    return b"".join(
        re.escape(char.encode()) if char.isascii() else b"(?:%b)" % b"|".join(_list_forms(char))
        for char in word.decode()
    )


def _list_forms(char: str) -> list[bytes]:
    """Return a letter in both cases and, for each, in both forms of Unicode."""
    return [normalize(form, one).encode() for one in (char, char.upper()) for form in ("NFC", "NFD")]


def _choose_plain(words: Sequence[bytes]) -> bytes:
    """Return the longest run of plain characters of some words."""
    return max((run for word in words for run in re.findall(rb"[\x00-\x7f]+", word)), key=len, default=b"")


def _says(parts: Iterable[bytes], pattern: re.Pattern[bytes], plain: bytes) -> bool:
    try:
        return any(plain in part.lower() and pattern.search(part) is not None for part in parts)
    except (OSError, apsw.Error):  # deleted meanwhile
        return False


def _is_said(connection: apsw.Connection, pattern: re.Pattern[bytes]) -> bool:
    """Return whether a row of any table has a text."""
    names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'"
    return any(
        isinstance(cell, str) and pattern.search(cell.encode()) is not None
        for (name,) in connection.execute(names).fetchall()
        for row in connection.execute(f'SELECT * FROM "{name}"')
        for cell in row
    )


def list_copies(folder: Path) -> list[Path]:
    """Return the copies of the database, and former databases, that are in the data directory."""
    return copies.list_copies(folder / copies.FOLDER) + copies.list_former(folder)


def find_copies(folder: Path, ids: Iterable[str], beside: Beside, used: Collection[str] | None = None) -> list[Path]:
    """Return those that hold any of what is erased; one that cannot be read, or has a log beside it, may.

    `used` are the names that the database still needs.
    """
    id_set = set(ids)
    return [path for path in list_copies(folder) if _is_held(path, id_set, beside, used) is not False]


def _is_held(path: Path, ids: set[str], beside: Beside, used: Collection[str] | None) -> bool | None:
    """Return whether a copy holds any of what is erased; None if it cannot be read, or not all of it."""
    if _has_log(path):
        return None
    query = (
        "SELECT id FROM memories UNION ALL SELECT key FROM turns"
        " UNION ALL SELECT memory FROM history WHERE before IS NOT NULL"
    )

    def is_held(connection: apsw.Connection) -> bool:
        there = any(str(id) in ids for (id,) in connection.execute(query)) or beside.is_in(connection, used)
        return there or bool(beside.text and find_removed(connection, path, beside.text))

    return upkeep.read_copy(path, is_held)


def find_in_copies(folder: Path, beside: Beside, used: Collection[str]) -> list[str]:
    """Return the ids of what is meant in the copies that can be read, former texts and files included."""
    ids: dict[str, None] = {}
    for path in list_copies(folder):
        found = upkeep.read_copy(path, lambda connection: mentions.find_ids(connection, beside, used))
        ids |= dict.fromkeys(found or ())
    return list(ids)


def list_sessions(folder: Path) -> list[str]:
    """Return the names of the sessions of which the copies that can be read have anything."""
    found = [upkeep.read_copy(path, mentions.list_sessions) or [] for path in list_copies(folder)]
    return sorted({name for names in found for name in names})


def rewrite(
    paths: Iterable[Path], ids: Sequence[str], beside: Beside, now: float, used: Collection[str] | None = None
) -> Iterator[Path]:
    """Erase memories and what is beside them from copies; yield each that is done.

    `used` are the names that the database still needs: no other namespace keeps a name that is meant, even if something
    is in it there. Raise `StorageFailed` for one that cannot be rewritten.
    """
    for path in paths:
        part = path.with_suffix(".part")
        try:
            if _has_log(path):
                _fold_log(path, part)
            _copy(path, part)
            _erase_from(part, ids, beside, now, used)
            _replace(path, part)
        except (OSError, apsw.Error) as error:
            raise StorageFailed(f"The copy {path} cannot be rewritten: {error}.") from None
        finally:
            _remove(part)
        yield path


def _has_log(path: Path) -> bool:
    """Return whether there is anything in the logs beside a file; `-shm` holds their locks, and no text."""
    return any(log.stat().st_size for log in _list_logs(path) if log.exists() and not log.name.endswith("-shm"))


def _list_logs(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{suffix}") for suffix in copies.LOGS]


def _fold_log(path: Path, part: Path) -> None:
    """Fold the log of a copy into it; the file may be linked elsewhere, where the log is not that file's."""
    if path.stat().st_nlink > 1:
        _copy(path, part)
        _replace(path, part)
    copies.fold_log(path)
    for log in _list_logs(path):
        log.unlink(missing_ok=True)


def _copy(path: Path, part: Path) -> None:
    _remove(part)  # of a daemon that was killed: its log would be taken for this one's
    shutil.copyfile(path, part)
    part.chmod(0o600)


def _replace(path: Path, part: Path) -> None:
    """Put a file, once it is on disk, in the place of a copy, and give it the copy's time."""
    sync(part)
    facts = path.stat()
    os.utime(part, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    part.replace(path)
    sync(path.parent)


def _remove(part: Path) -> None:
    for file in (part, *_list_logs(part)):
        file.unlink(missing_ok=True)


def _erase_from(part: Path, ids: Sequence[str], beside: Beside, now: float, used: Collection[str] | None) -> None:
    with closing(open_writer(part)) as connection:
        migrate(connection)
        with connection:
            every = [*ids, *erasing.find_derived(connection, ids)]
            for start in range(0, len(every), _PART):
                erasing.erase(connection, every[start : start + _PART], now)
            beside.erase(connection, used)
            beside.forget_around(connection)
        erasing.erase_from_file(connection)
        connection.pragma("journal_mode", "delete")
        if faults := copies.find_faults(connection):
            raise StorageFailed(f"The copy {part.stem} is damaged: {faults[0]}. It was left as it is.")
