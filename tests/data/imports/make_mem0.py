"""Make what mem0 leaves on disk: `pip install mem0ai faiss-cpu chromadb`, then `python make_mem0.py FOLDER`.

With `infer=False` mem0 keeps what it is told without asking a language model; the vectors come from a stand-in, as the
import reads none. Everything that is written is written by mem0 and its stores.
"""

import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

os.environ.update(MEM0_TELEMETRY="False", OPENAI_API_KEY="none")
FOLDER = Path(sys.argv[1]).resolve()
os.environ["MEM0_DIR"] = str(FOLDER / "home")

from mem0 import Memory  # noqa: E402

SAID = [
    ("Prefers answers in German", {"user_id": "reader"}, {"category": "preference", "tags": ["language"]}),
    ("The staging database is PostgreSQL 15", {"user_id": "reader", "agent_id": "coder"}, {"confirmed": True}),
    ("Deploys need a green build", {"agent_id": "coder", "run_id": "run-7"}, {}),
    ("Größe: 3 µm — 画像", {"user_id": "reader"}, {}),
    ("This one is forgotten again", {"user_id": "reader"}, {}),
]


class Embedder:
    """Three numbers for any text."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return [len(text) / 100, 0.5, 1.0]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


def fill(store: str, config: dict[str, object], history: Path) -> None:
    vector_store = {"provider": store, "config": {"collection_name": "mem0", **config}}
    memory = Memory.from_config({"vector_store": vector_store, "history_db_path": str(history)})
    memory.embedding_model = Embedder()
    ids = []
    for text, scope, metadata in SAID:
        added = memory.add([{"role": "user", "content": text}], infer=False, metadata=metadata, **scope)
        ids.append(added["results"][0]["id"])
    memory.update(ids[1], "The staging database is PostgreSQL 16")
    memory.delete(ids[-1])
    if store == "qdrant":
        found = memory.get_all(filters={"user_id": "reader"})
        (FOLDER / "get_all.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        memory.vector_store.client.close()
    memory.close()


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    dims = {"embedding_model_dims": 3}
    fill("qdrant", {"path": str(FOLDER / "qdrant"), "on_disk": True, **dims}, FOLDER / "history.db")
    fill("faiss", {"path": str(FOLDER / "faiss"), **dims}, FOLDER / "other.db")
    fill("chroma", {"path": str(FOLDER / "chroma")}, FOLDER / "other.db")
    (FOLDER / "other.db").unlink()
    shutil.rmtree(FOLDER / "home", ignore_errors=True)
    for path in FOLDER.glob("chroma/*/"):
        shutil.rmtree(path)  # the index of vectors, which is not read
    for path in [*FOLDER.rglob("*.sqlite*"), *FOLDER.glob("*.db")]:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")


main()
