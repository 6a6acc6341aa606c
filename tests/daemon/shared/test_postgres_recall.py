"""What the server's index finds, beside a scan of all rows: at every share of rows within reach."""

import numpy as np
import psycopg
import pytest
from database import Team

from memoryd.client.transport.postgres import schema
from memoryd.daemon.shared.postgres.tables import statements
from memoryd.daemon.shared.postgres.tables.statements import Wanted
from memoryd.daemon.store.vectors import Vector

# Namespaces with the share of the rows that each holds.
SHARES = {"acme/rare/deep": 0.0001, "acme/few": 0.001, "acme/small": 0.01, "acme/part/one": 0.1, "acme/rest": 0.8889}
REACHED = {
    "subtree of acme/rare": (["acme/rare"], "acme/rare"),
    "visible from acme/few": (["acme/few", "acme"], None),
    "visible from acme/small": (["acme/small", "acme"], None),
    "subtree of acme/part": (["acme/part"], "acme/part"),
    "all": (None, None),
}


def fill(connection: psycopg.Connection, count: int, dimensions: int) -> tuple[list[str], Vector]:
    """Write so many rows in a thousand clusters; return their namespaces and vectors."""
    numbers = np.random.default_rng(7)
    centres = numbers.standard_normal((1000, dimensions))
    vectors = centres[numbers.integers(0, 1000, count)] + 0.7 * numbers.standard_normal((count, dimensions))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    bounds = np.cumsum([max(1, round(share * count)) for share in SHARES.values()])
    names = [list(SHARES)[min(int(np.searchsorted(bounds, at, side="right")), len(SHARES) - 1)] for at in range(count)]
    order = numbers.permutation(count)
    names = [names[at] for at in order]
    columns = "id, namespace, type, content, created_at, updated_at, text_hash, stems, author, version, embedding"
    connection.execute("ALTER TABLE memoryd_acme.memories DISABLE TRIGGER USER")
    connection.execute("DROP INDEX memoryd_acme.memories_embedding")  # built once, it takes a tenth of the time
    with connection.cursor().copy(f"COPY memoryd_acme.memories ({columns}) FROM STDIN") as copy:
        for at, (name, vector) in enumerate(zip(names, vectors, strict=True)):
            shown = f"[{','.join(map(repr, vector.tolist()))}]"
            copy.write_row((f"{at:032x}", name, "fact", str(at), 0, 0, at.to_bytes(32), "{}", "ada", 1, shown))
    connection.execute("ALTER TABLE memoryd_acme.memories ENABLE TRIGGER USER")
    connection.execute("SET maintenance_work_mem = '256MB'")
    sql = "CREATE INDEX memories_embedding ON memoryd_acme.memories USING hnsw (embedding vector_cosine_ops)"
    connection.execute(sql)
    connection.commit()
    connection.execute("ANALYZE memoryd_acme.memories")
    return names, vectors


def measure(connection: psycopg.Connection, names: list[str], vectors: Vector, questions: int) -> dict[str, float]:
    """Return for each reach which share of the ten nearest is among the ten best that the server returns."""
    numbers = np.random.default_rng(11)
    shares = {}
    for label, (places, inner_of) in REACHED.items():
        within = np.array([_is_within(name, places, inner_of) for name in names])
        hits = wanted = 0
        for at in numbers.integers(0, len(vectors), questions):
            asked = vectors[at] + 0.05 * numbers.standard_normal(vectors.shape[1])
            similarities = np.where(within, vectors @ (asked / np.linalg.norm(asked)), -2.0)
            nearest = {int(one) for one in np.argsort(-similarities)[:10] if within[one]}
            shown = f"[{','.join(map(repr, asked.tolist()))}]"
            wanted_rows = Wanted(places, inner_of, 0.0)
            _, matches = statements.search(connection, "acme", shown, [], wanted_rows, 50)
            best = sorted(matches, key=lambda match: -(match.similarity or 0.0))[:10]
            hits += len(nearest & {int(match.fields["id"], 16) for match in best})
            wanted += len(nearest)
        shares[label] = hits / wanted
    return shares


def _is_within(name: str, places: list[str] | None, inner_of: str | None) -> bool:
    return places is None or name in places or (inner_of is not None and name.startswith(f"{inner_of}/"))


@pytest.mark.parametrize("exact", [True, False])
def test_the_nearest_are_found_at_every_share(team: Team, exact: bool) -> None:
    """Few rows are compared one by one; made to use its index, the server finds them all the same."""
    with psycopg.connect(team.server.url()) as connection:
        names, vectors = fill(connection, 4000, 64)
        if not exact:
            sql = "SELECT pg_get_functiondef('memoryd_acme.search'::regproc)"
            definition = connection.execute(sql).fetchone()
            assert definition
            connection.execute(definition[0].replace(f"total <= {schema.EXACT}", "total <= 10"))
        found = measure(connection, names, vectors, 25)
    assert min(found.values()) >= 0.98, found


@pytest.mark.stress
def test_the_nearest_of_a_hundred_thousand_are_found_at_every_share(team: Team) -> None:
    with psycopg.connect(team.server.url()) as connection:
        names, vectors = fill(connection, 100_000, 64)
        found = measure(connection, names, vectors, 50)
    print(found)
    assert min(found.values()) >= 0.98, found
