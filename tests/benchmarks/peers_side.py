"""The other side of bench_peers: runs one system in the peers' virtual environment, with what pip installs there.

peers_side.py PEER FOLDER SECONDS STORE: reads texts.txt, vectors.npy, questions.txt and asked.npy in FOLDER, loads all
texts but the last `_SINGLE` into the folder STORE for at most so many seconds, adds those one at a time, asks each
question and prints one JSON line. No peer embeds: each is given the vector of a text, or asks for it where it calls
an embedder.
"""

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

try:
    import pysqlite3

    sys.modules["sqlite3"] = pysqlite3  # a Python may be built without extensions in its own
except ImportError:
    pass
import sqlite3

_SINGLE = 50
_BATCH = 1000
_FOUND = 10
_WORD = re.compile(r"\w+")

Vectors = dict[str, Any]  # by text


class Memori:
    """py-memori: SQLite in Rust, hybrid search; no check for duplicates, as is its default in Python."""

    def __init__(self, folder: Path, known: Vectors) -> None:
        from memori import PyMemori

        self.store, self.known = PyMemori(str(folder / "memori.db")), known

    def load(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        self.store.insert(text, vector=self.known[text].tolist(), no_embed=True)

    def search(self, text: str) -> list[str]:
        return [hit["content"] for hit in self.store.search(self.known[text].tolist(), text, limit=_FOUND)]


class Mem0:
    """mem0 with its local Qdrant and `infer=False`: no language model."""

    def __init__(self, folder: Path, known: Vectors) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none", "MEM0_DIR": str(folder)}
        from mem0 import Memory

        place = {"path": str(folder / "qdrant"), "embedding_model_dims": 384, "on_disk": True}
        config = {
            "vector_store": {"provider": "qdrant", "config": place},
            "history_db_path": str(folder / "history.db"),
        }
        self.store = Memory.from_config(config)

        class Embedder:
            config = self.store.embedding_model.config

            def embed(self, text: str, memory_action: str = "") -> list[float]:
                found: list[float] = known[text].tolist()
                return found

            def embed_batch(self, texts: list[str], memory_action: str = "") -> list[list[float]]:
                return [self.embed(text) for text in texts]

        self.store.embedding_model = Embedder()

    def load(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        self.store.add(text, user_id="user", infer=False)

    def search(self, text: str) -> list[str]:
        found = self.store.search(text, filters={"user_id": "user"}, top_k=_FOUND)
        return [hit["memory"] for hit in found["results"]]


class LangGraph:
    """LangGraph's store in SQLite, which searches by vectors alone."""

    def __init__(self, folder: Path, known: Vectors) -> None:
        from langgraph.store.sqlite import SqliteStore

        connection = sqlite3.connect(folder / "langgraph.db", check_same_thread=False, isolation_level=None)
        embed = lambda texts: [known[text].tolist() for text in texts]  # noqa: E731
        self.store = SqliteStore(connection, index={"dims": 384, "embed": embed, "text_fields": ["text"]})
        self.store.setup()
        self.number = 0

    def load(self, texts: Sequence[str]) -> None:
        from langgraph.store.base import PutOp

        self.store.batch([PutOp(("memories",), self._key(), {"text": text}) for text in texts])

    def add(self, text: str) -> None:
        self.store.put(("memories",), self._key(), {"text": text})

    def _key(self) -> str:
        self.number += 1
        return str(self.number)

    def search(self, text: str) -> list[str]:
        return [item.value["text"] for item in self.store.search(("memories",), query=text, limit=_FOUND)]


class SqliteVec:
    """sqlite-vec and FTS5 as memweave uses them: both arms with OR-ed words, scores added 0.7 to 0.3."""

    def __init__(self, folder: Path, known: Vectors) -> None:
        import sqlite_vec

        self.known = known
        self.db = sqlite3.connect(folder / "vec.db", isolation_level=None)
        self.db.enable_load_extension(True)
        sqlite_vec.load(self.db)
        self.db.executescript(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = full;"
            "CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT);"
            "CREATE VIRTUAL TABLE words USING fts5 (text, content = 'texts', content_rowid = 'id');"
            "CREATE VIRTUAL TABLE vectors USING vec0 (vector float[384] distance_metric=cosine)"
        )

    def load(self, texts: Sequence[str]) -> None:
        self.db.execute("BEGIN")
        for text in texts:
            self._insert(text)
        self.db.execute("COMMIT")

    def add(self, text: str) -> None:
        self.load([text])

    def _insert(self, text: str) -> None:
        row = self.db.execute("INSERT INTO texts (text) VALUES (?)", (text,)).lastrowid
        self.db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, text))
        self.db.execute("INSERT INTO vectors (rowid, vector) VALUES (?, ?)", (row, self.known[text].tobytes()))

    def search(self, text: str) -> list[str]:
        nearest = self.db.execute(
            "SELECT rowid, distance FROM vectors WHERE vector MATCH ? AND k = ?",
            (self.known[text].tobytes(), 4 * _FOUND),
        )
        scores = {row: 0.7 * (1 - distance) for row, distance in nearest}
        asked = " OR ".join(f'"{word}"' for word in _WORD.findall(text))
        ranked = self.db.execute(
            "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (asked, 4 * _FOUND)
        )
        for row, rank in ranked:
            scores[row] = scores.get(row, 0.0) + 0.3 * -rank / (1 - rank)
        best = sorted(scores, key=lambda row: -scores[row])[:_FOUND]
        return [self.db.execute("SELECT text FROM texts WHERE id = ?", (row,)).fetchone()[0] for row in best]


PEERS = {"memori": Memori, "mem0": Mem0, "langgraph": LangGraph, "sqlite-vec": SqliteVec}


def main() -> None:
    name, folder, limit_s, store = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4])
    texts, questions = ((folder / f"{kind}.txt").read_text().split("\n") for kind in ("texts", "questions"))
    vectors, asked = np.load(folder / "vectors.npy"), np.load(folder / "asked.npy")
    known = dict(zip(texts, vectors, strict=True)) | dict(zip(questions, asked, strict=True))
    peer = PEERS[name](store, known)
    loaded, began = 0, time.perf_counter()
    batch = 50 if name == "mem0" else _BATCH
    while loaded < len(texts) - _SINGLE and time.perf_counter() - began < limit_s:
        part = texts[loaded : min(loaded + batch, len(texts) - _SINGLE)]
        peer.load(part)
        loaded += len(part)
    load_s = time.perf_counter() - began
    facts: dict[str, Any] = {"loaded": loaded, "load_s": load_s}
    if loaded == len(texts) - _SINGLE:
        facts["adds"] = [_timed(peer.add, text)[0] for text in texts[loaded:]]
        found = [_timed(peer.search, question) for question in questions]
        facts |= {"searches": [took for took, _ in found][5:], "hits": sum(len(hits) for _, hits in found)}
    print(json.dumps(facts), flush=True)


def _timed(action: Any, argument: str) -> tuple[float, Any]:
    began = time.perf_counter()
    result = action(argument)
    return (time.perf_counter() - began) * 1000, result


if __name__ == "__main__":
    main()
