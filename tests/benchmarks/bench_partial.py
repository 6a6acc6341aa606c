"""Searches of a machine that holds a part of a root: recall of the combined answer, and its time.

A PostgreSQL server of its own holds all memories, this machine the newest of them (`max_rows`). The ten best of an
answer within a deadline are compared with the ten nearest of all, as an exact comparison finds them, in the whole root
and in a namespace of one in a hundred. Vectors are drawn from real ones, questions are embedded by the default model.
The server waits for no disk and shares this machine's processors; rows are put there by COPY.
"""

import statistics
import struct
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import corpus
import msgspec
import numpy as np
from harness import DIMENSIONS, Report, Vectors, drawn, model_dir, percentile, progress

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "daemon" / "shared")]

from machines import Machine  # noqa: E402

from memoryd import models  # noqa: E402
from memoryd.client.protocol import Search  # noqa: E402
from memoryd.daemon.search import pipeline  # noqa: E402
from memoryd.daemon.shared import room, schema, server, vectors  # noqa: E402
from memoryd.daemon.shared.questions import Askers  # noqa: E402
from memoryd.daemon.shared.reader import RootReader  # noqa: E402
from memoryd.daemon.shared.tables import shared  # noqa: E402
from memoryd.daemon.store.vectors import text_hash  # noqa: E402
from memoryd.models.catalog import DEFAULT  # noqa: E402
from postgres import Cable, Postgres  # noqa: E402
from workbench import WordEmbedder, wait_until  # noqa: E402

HELD = 20_000
DEADLINE_MS = 150
_PART = 20_000
_WAY_MS = 30.0
_ALL, _SMALL = "acme/all", "acme/small"
_SIZE = (
    "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'memoryd' AND c.relkind = 'r' AND c.relname LIKE %s"
)
_NEAR_INDEX = (
    "SELECT sum(pg_relation_size(c.oid)) FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
    " WHERE a.amname = 'hnsw' AND c.relkind = 'i'"
)
_OPTIONS = ("shared_buffers=2GB", "maintenance_work_mem=4GB", "max_wal_size=8GB", "autovacuum=off")


class Drawn(WordEmbedder):  # type: ignore[misc, valid-type]
    """Stands for the model whose vectors were drawn: nothing is to be embedded here."""

    name = fingerprint = "drawn"
    dimensions = DIMENSIONS

    def embed_texts(self, texts: Any) -> Vectors:
        return np.full((len(texts), DIMENSIONS), DIMENSIONS**-0.5, np.float32)


def main() -> None:
    """Measure at each size."""
    report = Report(__doc__)
    for count in [size for size in report.sizes() if size > HELD] or [100_000]:
        postgres = Postgres(options=_OPTIONS)
        try:
            postgres.start()
            _measure(report, postgres, count, 60 if report.quick else 200)
        finally:
            postgres.remove()
    report.close()


def _measure(report: Report, postgres: Postgres, count: int, asked: int) -> None:
    owner = server.connect(postgres.address())
    schema.migrate(owner)
    schema.make_root(owner, "acme")
    vectors.make(owner, {})
    characters, loaded_s = _load(owner, count)
    progress(f"making the index of {count:,} vectors")
    began = time.perf_counter()
    vectors.make(owner, {Drawn.fingerprint: DIMENSIONS})
    owner.run("ANALYZE memoryd.vec, memoryd.mem")
    indexed_s = time.perf_counter() - began
    report.table(
        f"{count:,} memories on the server",
        [
            {
                "COPY, s": round(loaded_s),
                "index of vectors, s": round(indexed_s),
                "characters a text": round(characters / count),
                "bytes a memory": round(_measure_size(owner, "mem%") / count),
                "bytes a noted version": round(_measure_size(owner, "log%") / count),
                "bytes a vector with its index": round(_measure_size(owner, "vec%") / count),
                "of that the index of what is near": round(owner.value(_NEAR_INDEX) / count),
            }
        ],
    )
    owner.close()
    cable = Cable(postgres.port, _WAY_MS / 2000)
    way = postgres.address().replace(f"port={postgres.port}", f"port={cable.port}")
    with tempfile.TemporaryDirectory(prefix="mb-") as name:
        machine = Machine(Path(name), "one", way, embedder=Drawn())
        try:
            rows = _search_all(machine, count, asked)
            report.table(
                f"{count:,} on the server, {HELD:,} here, deadline {DEADLINE_MS} ms, {_WAY_MS:.0f} ms there and back",
                rows,
            )
        finally:
            machine.core.state(Askers).by_root.pop("acme").close()  # type: ignore[attr-defined]
            machine.close()
            cable.close()


# The server -----------------------------------------------------------------------------------------------------------


def _id_of(number: int) -> uuid.UUID:
    return uuid.UUID(int=(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128))


def _measure_size(owner: server.ServerConnection, tables: str) -> int:
    """Return the bytes of tables with their indexes."""
    return int(owner.value(_SIZE, (tables,)))


def _load(owner: server.ServerConnection, count: int) -> tuple[int, float]:
    """Put all memories and their vectors there; return the characters of all texts, and how long that took."""
    told = [corpus.memory(number) for number in range(10_000)]
    characters, began = 0, time.perf_counter()
    for start in range(0, count, _PART):
        numbers = range(start, min(count, start + _PART))
        texts = [f"{told[number % len(told)]} ({number})" for number in numbers]
        characters += sum(map(len, texts))
        with owner.begin(), owner.connection.cursor() as cursor:
            with cursor.copy(
                "COPY memoryd.mem (root, id, seq, tag, ns, body, size, deleted, purged, was_changed, device, author,"
                " at) FROM STDIN"
            ) as copy:
                for number, text in zip(numbers, texts, strict=True):
                    place, id, body = _SMALL if number % 100 == 7 else _ALL, _id_of(number), _body(number, text)
                    row = ("acme", id, number + 1, id, place, body, len(body.encode()), False, False, False)
                    copy.write_row((*row, "far", "postgres", datetime.now(UTC)))
            with cursor.copy(
                "COPY memoryd.vec (root, model, id, ns, text_hash, emb) FROM STDIN (FORMAT binary)"
            ) as copy:
                copy.write(b"".join(_pack(numbers, texts, drawn(start, len(numbers)))))
        progress(f"{numbers.stop:,} of {count:,}")
    owner.run("INSERT INTO memoryd.log SELECT root, tag, seq, at FROM memoryd.mem")
    owner.run("UPDATE memoryd.heads SET seq = %s, xid = pg_current_xact_id()::xid", (count,))
    owner.run("INSERT INTO memoryd.models (root, model, dimensions, seq) VALUES ('acme', 'drawn', 384, %s)", (count,))
    return characters, time.perf_counter() - began


def _body(number: int, text: str) -> str:
    at = 1.7e9 + number
    given = {"type": "fact", "source": "manual", "importance": 0.5, "created_at": at, "updated_at": at, "content": text}
    return msgspec.json.encode(given).decode()


def _pack(numbers: range, texts: list[str], made: Vectors) -> Iterator[bytes]:
    """Yield rows in the binary format of COPY."""
    yield b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
    halves = made.astype(">f2")
    for number, text, half in zip(numbers, texts, halves, strict=True):
        place = (_SMALL if number % 100 == 7 else _ALL).encode()
        vector = struct.pack(">hh", DIMENSIONS, 0) + half.tobytes()
        fields = (b"acme", b"drawn", _id_of(number).bytes, place, text_hash(text), vector)
        yield struct.pack(">h", len(fields)) + b"".join(struct.pack(">i", len(field)) + field for field in fields)
    yield struct.pack(">h", -1)


# This machine ---------------------------------------------------------------------------------------------------------


def _search_all(machine: Machine, count: int, asked: int) -> list[dict[str, Any]]:
    core, engine = machine.core, machine.engine
    core.start()
    wait_until(lambda: core.embedding.active is not None)
    core.store.write(
        lambda t: shared.share_namespaces(
            t.connection, engine.root.id, [core.store.namespaces.ensure(t, place) for place in (_ALL, _SMALL)]
        )
    ).result()
    engine.max_rows = HELD
    began = time.perf_counter()
    machine.sync()
    progress(f"first copy of {HELD:,}: {HELD / (time.perf_counter() - began):.0f} rows/s")
    wait_until(lambda: not core.embedding.count_pending(), 300)
    assert not room.fit(core, engine.root, HELD)
    core.state(Askers).by_root["acme"] = RootReader(core, engine.root, lambda: server.connect(machine.address))
    model = models.load(DEFAULT, model_dir())
    questions = np.stack([model.embed_query(text) for text in corpus.questions(asked, 10_000)])
    rows = []
    for name, place, reach in (("the whole root", "acme", "subtree"), ("1 % of it", _SMALL, "exact")):
        truth = _find_exact(questions, count, place == _SMALL)
        for deadline_ms in (None, DEADLINE_MS):
            rows.append({"in": name} | _ask_all(machine, questions, truth, deadline_ms, namespace=place, reach=reach))
    return rows


def _find_exact(questions: Vectors, count: int, small: bool) -> list[set[str]]:
    """Return the ids of the ten nearest of all, comparing each."""
    best = np.full((len(questions), 0), -2.0, np.float32)
    numbers = np.zeros((len(questions), 0), np.int64)
    for start in range(0, count, _PART):
        made = drawn(start, min(_PART, count - start))
        chosen = np.arange(start, start + len(made))
        kept = chosen % 100 == 7 if small else np.ones(len(made), bool)
        scores = questions @ made[kept].T
        best = np.concatenate([best, scores], axis=1)
        numbers = np.concatenate([numbers, np.broadcast_to(chosen[kept], scores.shape)], axis=1)
        order = np.argsort(-best, axis=1)[:, :10]
        best, numbers = np.take_along_axis(best, order, 1), np.take_along_axis(numbers, order, 1)
    return [{_id_of(number).hex for number in row} for row in numbers.tolist()]


def _ask_all(
    machine: Machine, questions: Vectors, truth: list[set[str]], deadline_ms: int | None, **where: Any
) -> dict[str, Any]:
    found, taken, outcomes = [], [], []
    for vector, wanted in zip(questions, truth, strict=True):
        call = Search(vector=vector.tolist(), mode="dense", deadline_ms=deadline_ms, touch=False, **where)
        began = time.perf_counter()
        hits = pipeline.search(machine.core.sources, call)
        taken.append(1000 * (time.perf_counter() - began))
        outcomes.append(hits.shared)
        found.append(len(wanted & {hit.id for hit in hits}) / 10)
    in_time = [share for share, outcome in zip(found, outcomes, strict=True) if outcome in ("asked", "unasked")]
    return {
        "answer": "of this machine" if deadline_ms is None else "combined",
        "recall@10": round(statistics.mean(found), 3),
        "of those in time": round(statistics.mean(in_time), 3) if in_time else "none",
        "median ms": round(statistics.median(taken), 1),
        "p95 ms": round(percentile(taken, 95), 1),
        "late": outcomes.count("late"),
    }


if __name__ == "__main__":
    main()
