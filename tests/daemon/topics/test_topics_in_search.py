"""Topics in a search: what the graph brings, which topics have met; and what becomes of a memory that moves."""

from typing import Any

import pytest

from graphs import make_graph, query
from memoryd.client.protocol import Share
from memoryd.client.protocol.topics import GraphNodes
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import rows
from memoryd.daemon.store.rows import Row
from memoryd.daemon.topics.expand import LEAST_WEIGHT
from memoryd.daemon.topics.tables import graph as stored
from memoryd.daemon.topics.tables.graph import NewNode
from workbench import LIMIT_S, add, add_many, ask, delete, move_to_l2, search, trace, update


def row_of(core: Core, id: str) -> Row:
    with core.store.reading() as connection:
        return rows.read_ids(connection, [id])[id]


def origins(core: Core, hits: Any) -> dict[str, list[str]]:
    return {candidate.id: candidate.origins for candidate in trace(core, hits.trace).candidates}


def node(core: Core, *members: Row) -> int:
    """Make a node of rows, in L2; return its number."""

    def job(transaction: Any) -> int:
        for member in members:
            rows.change(transaction.connection, member.row, {"tier": "L2"})
        new = NewNode(members[0].id, "cluster", tuple(member.row for member in members), b"")
        stored.put_nodes(transaction.connection, members[0].namespace, [new])
        return stored.read_numbers(transaction.connection, members[0].namespace)[new.name]

    return core.store.write(job).result(LIMIT_S)


def met(core: Core, one: int, other: int, weight: float) -> None:
    edge = (min(one, other), max(one, other), stored.CO_OCCURS)
    core.store.write(lambda t: stored.put_edges(t.connection, [(edge, weight)])).result(LIMIT_S)


def planted(core: Core, weight: float) -> Row:
    """Sixty memories about herons, one of them a topic's, and a memory about nothing near that met that topic."""
    add_many(core, [f"the grey heron stands in the reeds at place {number}" for number in range(60)])
    anchor = row_of(core, add(core, "grey heron reeds").id)
    other = row_of(core, add(core, "bring the blue thermos").id)
    nodes = node(core, anchor), node(core, other)
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


def test_memories_that_a_search_returns_together_are_counted_in_any_tier(core: Core) -> None:
    one, other, far = (row_of(core, add(core, text).id) for text in ("heron reeds", "heron egret", "otter stream"))
    for _ in range(3):
        search(core, "heron reeds egret")
    core.effects.flush()
    assert query(core, "SELECT * FROM pairs") == [(one.row, other.row, 3)]
    move_to_l2(core)
    make_graph(core)
    with core.store.reading() as connection:
        nodes = stored.find_nodes(connection, [one.row, other.row, far.row])
        assert stored.neighbours(connection, nodes.values(), 9) == {
            nodes[one.row]: [(nodes[other.row], 3.0)],
            nodes[other.row]: [(nodes[one.row], 3.0)],
        }
    delete(core, other.id)
    assert query(core, "SELECT * FROM pairs") == []


def test_a_moved_memory_is_not_shown_in_its_former_place(core: Core) -> None:
    id = add(core, "Deploys are on Tuesday", "acme/api/alpha").id
    node(core, row_of(core, id))
    ask(core, Share(ids=[id], to="acme", move=True, namespace="acme/api/alpha"))
    [shown] = ask(core, GraphNodes(namespace="acme/api/alpha", reach="exact"))
    assert shown.about == ""
    assert ask(core, GraphNodes(node=shown.id)).members == []
