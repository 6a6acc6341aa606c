"""Hashes of the rows, by which duplicates and vectors are found. They are computed from the text."""

import hashlib
import unicodedata
from typing import Any

import apsw
import msgspec

from memoryd.daemon.store import rows, vectors
from memoryd.daemon.store.tiers import DOCUMENTS


def content_hash(content: str) -> bytes:
    """Return the hash by which equal contents are found, ignoring case and white space."""
    normal = " ".join(unicodedata.normalize("NFC", content).casefold().split())
    return hashlib.sha256(normal.encode()).digest()


def find_wrong(connection: apsw.Connection) -> list[int]:
    """Return the numbers of the rows whose hashes are not those of their text."""
    sql = "SELECT row, tier, turns, metadata, content, content_hash, text_hash FROM memories ORDER BY row"
    return [row for row, *fields in connection.execute(sql) if compute_hashes(fields[:4]) != tuple(fields[4:])]


def compute_hashes(fields: list[Any]) -> tuple[bytes, bytes]:
    """Return the two hashes of (tier, turns, metadata, content)."""
    tier, turns, metadata, content = fields
    heading = ""
    if tier == DOCUMENTS:
        value = msgspec.json.decode(metadata).get("heading", "")
        heading = value if isinstance(value, str) else ""
    return content_hash(content), vectors.text_hash(rows.build_embedded_text(content, heading, turns))


def fix(connection: apsw.Connection, numbers: list[int]) -> None:
    """Set the hashes of rows to those of their text."""
    for row in numbers:
        sql = "SELECT tier, turns, metadata, content FROM memories WHERE row = ?"
        fields: Any = connection.execute(sql, (row,)).fetchone()
        if fields is not None:
            connection.execute(
                "UPDATE memories SET content_hash = ?, text_hash = ? WHERE row = ?",
                (*compute_hashes(list(fields)), row),
            )
