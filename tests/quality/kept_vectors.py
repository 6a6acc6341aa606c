"""Vectors that daemons share: a text that one of them has embedded is embedded by no other.

`keep` is for the start of a daemon's process, before its model is loaded.
"""

import sqlite3
from collections.abc import Callable
from hashlib import sha256
from threading import Lock
from typing import Any

import numpy as np

from memoryd.models.embedder import Embeddings, OnnxEmbedder, StaticEmbedder

_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"

Embed = Callable[[Any, str], Embeddings]


def keep(path: str) -> None:
    """Have the models of this process take vectors from a file, and put new ones there."""
    database = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA synchronous = OFF")
    database.execute(_TABLE)
    lock = Lock()
    for kind in (OnnxEmbedder, StaticEmbedder):
        kind._embed = _wrap(kind._embed, database, lock)


def _wrap(embed: Embed, database: sqlite3.Connection, lock: Lock) -> Embed:
    def find_or_embed(self: Any, text: str) -> Embeddings:
        key = sha256(f"{self.fingerprint}\n{text}".encode("utf-8", "replace")).digest()
        with lock:
            found = database.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        if found:
            return np.frombuffer(found[0], np.float32).copy()
        vector = embed(self, text)
        with lock:
            database.execute("INSERT OR IGNORE INTO vectors VALUES (?, ?)", (key, vector.tobytes()))
        return vector

    return find_or_embed
