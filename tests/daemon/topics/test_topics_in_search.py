"""Topics in a search: what the graph brings, which topics have met; and what becomes of a memory that moves."""

from typing import Any

import pytest

from memoryd.client.protocol import Share
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import rows
from memoryd.daemon.store.rows import Row
from memoryd.daemon.topics.expand import LEAST_WEIGHT
from memoryd.daemon.topics.tables import graph as stored
from workbench import LIMIT_S, add, add_many, ask, delete, search, trace, update


def row_of(core: Core, id: str) -> Row:
    with core.store.reading() as connection:
        return rows.read_ids(connection, [id])[id]


def origins(core: Core, hits: Any) -> dict[str, list[str]]:
    return {candidate.id: candidate.origins for candidate in trace(core, hits.trace).candidates}


def topic(core: Core, *members: Row) -> int:
    """Make a node of L2 rows; its centroid is not needed here."""

    def job(transaction: Any) -> int:
        connection = transaction.connection
        generation = core.embedding.active
        assert generation is not None
        number = connection.execute(
            "INSERT INTO nodes (namespace, model, kind, label, size, centroid, created_at, updated_at)"
            " VALUES (?, ?, 'cluster', 'l', ?, x'', 0, 0) RETURNING id",
            (members[0].namespace, generation.model, len(members)),
        ).get
        for member in members:
            rows.change(connection, member.row, {"tier": "L2"})
            connection.execute("INSERT INTO members VALUES (?, ?)", (member.row, number))
        return int(number)

    return core.store.write(job).result(LIMIT_S)


def met(core: Core, one: int, other: int, weight: float) -> None:
    core.store.write(lambda t: stored.strengthen(t.connection, [(one, other)], weight)).result(LIMIT_S)


def planted(core: Core, weight: float) -> Row:
    """Sixty memories about herons, one of them a topic's, and a memory about nothing near that met that topic."""
    add_many(core, [f"the grey heron stands in the reeds at place {number}" for number in range(60)])
    anchor = row_of(core, add(core, "grey heron reeds").id)
    other = row_of(core, add(core, "bring the blue thermos").id)
    nodes = topic(core, anchor), topic(core, other)
    met(core, *nodes, weight)
    return other


def brought(core: Core, **options: Any) -> dict[str, list[str]]:
    """Return what a search looked at, hit or not, by id, with what brought it."""
    return origins(core, search(core, "grey heron reeds", **options))


def test_what_was_retrieved_together_becomes_a_candidate_though_neither_arm_finds_it(core: Core) -> None:
    other = planted(core, LEAST_WEIGHT)
    assert other.id not in brought(core, graph=False)
    assert brought(core)[other.id] == ["graph"]


@pytest.mark.parametrize("weight", [LEAST_WEIGHT - 1, LEAST_WEIGHT, 1e9])
def test_the_graph_changes_no_score_and_no_order(core: Core, weight: float) -> None:
    other = planted(core, weight)
    plain = search(core, "grey heron reeds", limit=40, graph=False)
    hits = search(core, "grey heron reeds", limit=40)
    assert [(hit.id, hit.score) for hit in hits] == [(hit.id, hit.score) for hit in plain]
    assert other.id not in {hit.id for hit in hits}


def test_the_graph_brings_nothing_that_a_filter_leaves_out(core: Core) -> None:
    other = planted(core, 9.0)
    assert other.id in brought(core)
    assert other.id not in brought(core, before=core.clock() - 1)
    update(core, other.id, type="note")
    assert other.id not in brought(core, type=["fact"])
    delete(core, other.id)
    assert other.id not in brought(core)


def test_topics_that_a_search_brings_up_together_have_met(core: Core) -> None:
    one = row_of(core, add(core, "heron reeds").id)
    other = row_of(core, add(core, "heron egret").id)
    far = row_of(core, add(core, "otter stream").id)
    first, second, third = topic(core, one), topic(core, other), topic(core, far)
    for _ in range(3):
        search(core, "heron reeds egret")
    core.effects.flush()
    with core.store.reading() as connection:
        assert stored.neighbours(connection, [first, second, third], 9) == {
            first: [(second, 3.0)],
            second: [(first, 3.0)],
        }


def test_a_moved_memory_leaves_its_node(core: Core) -> None:
    id = add(core, "Deploys are on Tuesday", "acme/api/alpha").id

    def put(transaction: Any) -> None:
        run = transaction.connection.execute
        model = run("SELECT id FROM models").get
        node = "INSERT INTO nodes (namespace, model, kind, label, size, centroid, created_at, updated_at)"
        run(f"{node} VALUES (1, ?, 'cluster', 'x', 1, x'00', 0, 0)", (model,))
        run("UPDATE memories SET tier = 'L2' WHERE id = ?", (id,))
        run("INSERT INTO members SELECT row, (SELECT id FROM nodes) FROM memories WHERE id = ?", (id,))

    core.store.write(put).result(LIMIT_S)
    call = Share(ids=[id], to="acme", move=True, namespace="acme/api/alpha")
    ask(core, call)
    with core.store.reading() as connection:
        assert connection.execute("SELECT count(*) FROM members").get == 0
