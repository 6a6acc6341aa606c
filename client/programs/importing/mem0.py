"""mem0: the vector store that it keeps on disk (Qdrant, FAISS or Chroma), its history, or the JSON of `get_all()`.

A memory is stored in the namespace of its user, agent and run, as far as it has them. A vector store has everything
about a memory; the history (`history.db`) has only texts and times, and is read if there is nothing else.
"""

import io
import pickle
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.programs.importing.foreign_database import (
    SqliteConnection,
    columns_of,
    is_database,
    open_database,
    read_rows,
    require_tables,
)
from memoryd.client.programs.importing.records import Account, make_record, parse_time
from memoryd.client.programs.memctl.escapes import decode_json
from memoryd.client.programs.memctl.sending import Item
from memoryd.client.protocol import Record

WHAT = "a store of mem0"
HISTORY = "history.db"
_PATTERNS = ("**/storage.sqlite", "**/chroma.sqlite3", "**/*.faiss")
_PLACES = ("user_id", "agent_id", "run_id")
# Fields that mem0 derives from the text, or that become fields of the record; all others become metadata.
_OWN = frozenset({"data", "memory", "id", "hash", "text_lemmatized", "created_at", "updated_at", "score", *_PLACES})
_CHROMA = (
    "SELECT c.name AS collection, e.embedding_id AS id, m.key,"
    " coalesce(m.string_value, m.int_value, m.float_value, m.bool_value) AS value FROM embeddings e"
    " JOIN segments s ON s.id = e.segment_id JOIN collections c ON c.id = s.collection"
    " JOIN embedding_metadata m ON m.id = e.id ORDER BY e.id"
)
_HISTORY = "SELECT memory_id, new_memory, event, created_at, updated_at, is_deleted, actor_id, role FROM history"

Payloads = Iterator[tuple[str, dict[str, Any]]]


def read(path: Path, account: Account) -> Iterator[Item]:
    """Yield the memories of every store below a folder, or of one file."""
    for file in _list_files(path):
        at = file.stat().st_mtime
        reader = _read_database if is_database(file) else _read_json
        for id, payload in reader(file, account):
            text = payload.get("data", payload.get("memory"))
            if not isinstance(text, str):
                account.skip("entries without a text")
                continue
            record = _convert_record(account, id, text, payload, at)
            yield Item(f"{file}, memory {id}", record, "own" if "created_at" in payload else "file")


def _list_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [_refuse_pickle(path)]
    found = sorted({file for pattern in _PATTERNS for file in path.glob(pattern) if _is_store(file)})
    stores = [_find_payloads(file) if file.suffix == ".faiss" else file for file in found]
    if not stores and not (path / HISTORY).is_file():
        raise Invalid(f"{path} has no store of mem0: no Qdrant, FAISS or Chroma files, no {HISTORY}.")
    return stores or [path / HISTORY]


def _is_store(file: Path) -> bool:
    """Return whether a file has memories; those of mem0's telemetry and of entities have none."""
    names = (file.parent.name, file.stem)
    return not any(name.startswith("mem0migrations") or name.endswith("_entities") for name in names)


def _find_payloads(index: Path) -> Path:
    """Return the file with the payloads of a FAISS index: JSON, in older versions a pickle."""
    pickled, texts = index.with_suffix(".pkl"), index.with_suffix(".json")
    return _refuse_pickle(pickled) if pickled.exists() and not texts.exists() else texts


def _refuse_pickle(file: Path) -> Path:
    if file.suffix == ".pkl":
        raise Invalid(
            f"{file} is a pickle, in which older versions of mem0 keep the texts of FAISS; it is not read. With that"
            " mem0 save what get_all() returns as JSON, and import that file. Nothing was imported."
        )
    return file


def _convert_record(account: Account, id: str, text: str, payload: dict[str, Any], at: float) -> Record | None:
    created_at = parse_time(payload.get("created_at"), at)
    return make_record(
        account,
        id,
        text,
        namespace=account.namespace(*(payload.get(name) for name in _PLACES)),
        type=payload.get("memory_type") or payload.get("category") or "fact",
        created_at=created_at,
        updated_at=parse_time(payload.get("updated_at"), created_at),
        expires_at=parse_time(payload["expiration_date"], at) + 86400.0 if payload.get("expiration_date") else None,
        metadata=_make_metadata(payload),
    )


def _make_metadata(payload: dict[str, Any]) -> dict[str, Any]:
    """Return all fields that have no equivalent in a record; categories become tags."""
    metadata = {name: value for name, value in payload.items() if name not in _OWN}
    tags, categories = metadata.get("tags", []), metadata.get("categories")
    if isinstance(categories, list) and isinstance(tags, list):
        del metadata["categories"]
        metadata["tags"] = [*tags, *categories]
    return metadata


# Stores --------------------------------------------------------------------------------------------------------------


def _read_database(file: Path, account: Account) -> Payloads:
    with open_database(file, WHAT) as connection:
        if columns_of(connection, "points"):
            yield from _read_qdrant(connection, file, account)
        elif columns_of(connection, "embedding_metadata"):
            yield from _read_chroma(connection, file)
        elif columns_of(connection, "history"):
            yield from _read_history(connection, file, account)
        else:
            raise Invalid(f"{file} is not {WHAT} that this memctl knows. Nothing was imported.")


def _read_qdrant(connection: SqliteConnection, file: Path, account: Account) -> Payloads:
    """Read the points of Qdrant's local mode: pickles, of which only plain values are used."""
    require_tables(connection, file, WHAT, {"points": {"id", "point"}})
    for row in read_rows(connection, "SELECT id, point FROM points ORDER BY rowid"):
        try:
            point = load_plain(row["point"])
        except ValueError as error:
            account.skip("points that cannot be read")
            account.notes.append(f"{file}: a point was left out: {error}.")
            continue
        payload = getattr(point, "payload", None)
        if isinstance(payload, dict):
            yield str(getattr(point, "id", row["id"])), payload
        else:
            account.skip("entries without a text")


def _read_chroma(connection: SqliteConnection, file: Path) -> Payloads:
    require_tables(connection, file, WHAT, {"collections": {"id", "name"}, "segments": {"id", "collection"}})
    payloads: dict[str, dict[str, Any]] = {}
    for row in read_rows(connection, _CHROMA):
        if not row["collection"].endswith("_entities"):
            payloads.setdefault(row["id"], {})[row["key"]] = row["value"]
    yield from payloads.items()


def _read_history(connection: SqliteConnection, file: Path, account: Account) -> Payloads:
    """Read the latest event of each memory in the history that was not deleted."""
    require_tables(connection, file, WHAT, {"history": {"memory_id", "new_memory", "event", "created_at"}})
    latest: dict[str, dict[str, Any]] = {}
    for row in read_rows(connection, f"{_HISTORY} ORDER BY rowid"):
        created_at = latest.get(row["memory_id"], row)["created_at"]
        latest[row["memory_id"]] = {**row, "created_at": row["created_at"] or created_at}
    account.notes.append(f"{file.name} has no users, agents or metadata; the vector store has them.")
    for id, row in latest.items():
        if row["event"] == "DELETE" or row["is_deleted"]:
            account.skip("deleted memories of the history")
            continue
        kept = ("created_at", "updated_at", "actor_id", "role")
        yield id, {"data": row["new_memory"], **{name: row[name] for name in kept if row[name]}}


def _read_json(file: Path, account: Account) -> Payloads:
    """Read the payloads of a FAISS index, or the saved result of `get_all()`."""
    try:
        found = decode_json(file.read_bytes().removeprefix(BOM_UTF8), object)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{file} is not {WHAT}, nor JSON: {error}. Nothing was imported.") from None
    if isinstance(found, dict) and isinstance(found.get("docstore"), dict):
        found = [{**payload, "id": id} for id, payload in found["docstore"].items() if isinstance(payload, dict)]
    listed = found.get("results") if isinstance(found, dict) else found
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise Invalid(f"{file} is not what mem0's get_all() returns. Nothing was imported.")
    for entry in listed:
        details = entry.pop("metadata", None)
        yield str(entry.get("id") or entry.get("memory")), {**(details if isinstance(details, dict) else {}), **entry}


# Pickles -------------------------------------------------------------------------------------------------------------


class Inert:
    """Stand-in for every class in a pickle: state becomes attributes; constructor arguments and items are ignored.

    So no code that a pickle refers to is run; plain values (numbers, texts, lists, dictionaries) are read as usual.
    """

    def __new__(cls, *given: Any, **named: Any) -> "Inert":
        """Accept any constructor arguments."""
        return super().__new__(cls)

    def __init__(self, *given: Any, **named: Any) -> None:
        """Ignore the arguments."""

    def __setstate__(self, state: Any) -> None:
        """Set the attributes of the pickled object."""
        fields = state[0] if isinstance(state, tuple) and state and isinstance(state[0], dict) else state
        if isinstance(fields, dict):
            inner = fields.get("__dict__", fields)  # pydantic keeps the fields one level down
            self.__dict__.update({str(name): value for name, value in dict(inner or {}).items()})

    def append(self, value: Any) -> None:
        """Ignore an item."""

    def extend(self, values: Any) -> None:
        """Ignore items."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Ignore an entry."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for any class or function."""
        return Inert

    def persistent_load(self, key: Any) -> Any:
        """Return None for objects stored outside the pickle."""
        return None


def load_plain(data: bytes) -> Any:
    """Unpickle plain values; raise `ValueError` if the data is not a readable pickle."""
    try:
        return _Plain(io.BytesIO(data)).load()
    except Exception as error:  # a broken pickle may raise anything
        raise ValueError(f"it is not a readable pickle ({type(error).__name__})") from None
