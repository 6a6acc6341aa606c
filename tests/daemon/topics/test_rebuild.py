"""Making the graph anew: what holds afterwards, whatever was stored, changed or interrupted."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphs import check, graph, groups, make_graph, near, query, remember, search_together
from memoryd.client.errors import ModelUnavailable
from memoryd.client.protocol import Rebuilt
from memoryd.client.protocol.topics import GraphRebuild
from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding import embedder
from memoryd.daemon.topics import rebuild
from workbench import CountingEmbedder, add, ask, delete, insert, no_model, running, update, wait_until


def texts(count: int, word: str = "note") -> list[str]:
    return [f"{word} {number}" for number in range(count)]


def node_of(core: Core, row: int) -> str:
    return query(core, "SELECT name FROM members JOIN nodes ON id = node WHERE memory = ?", row)[0][0]


def id_of(core: Core, row: int) -> str:
    return query(core, "SELECT id FROM memories WHERE row = ?", row)[0][0]


def edges(core: Core) -> list[tuple[str, str, float]]:
    return query(
        core,
        "SELECT a.name, b.name, weight FROM edges e JOIN nodes a ON a.id = origin JOIN nodes b ON b.id = target"
        " WHERE e.kind = 'co_occurs' ORDER BY 3",
    )


def test_only_l2_is_clustered_and_what_comes_later_has_no_node_until_then(core: Core) -> None:
    add(core, "this one is in L1")
    [row] = remember(core, ["this one is in L2"])
    make_graph(core)
    [later] = remember(core, ["this one is in L2 as well"])
    insert(core.store, "no vector of it yet", tier="L2")
    assert groups(core) == [[row]]
    make_graph(core)
    assert groups(core) == [[row, later]]


def test_the_closest_memories_are_joined_and_the_one_in_the_middle_names_them(core: Core) -> None:
    rows = remember(core, texts(4), given=[near(0, 0.9, 1), near(0), near(0, 0.9, 2), near(0, 0.5, 3)])
    make_graph(core)
    assert groups(core) == [rows[:3], [rows[3]]]
    assert node_of(core, rows[0]) == id_of(core, rows[1])
    check(core)


def test_a_node_keeps_its_name_while_its_middle_stays(core: Core) -> None:
    rows = remember(core, texts(3), given=[near(0, 0.9, 1), near(0), near(0, 0.9, 2)])
    make_graph(core)
    [more] = remember(core, ["one more"], given=[near(0, 0.9, 3)])
    assert make_graph(core) == {"nodes": 1, "changed": 1}
    assert node_of(core, rows[0]) == node_of(core, more) == id_of(core, rows[1])


def test_clusters_never_cross_namespaces(core: Core) -> None:
    for place in ("", "acme", "acme/api"):
        remember(core, [f"{place} {text}" for text in texts(30)], place, [near(0)] * 30)
    make_graph(core)
    check(core)
    assert [len(groups(core, place)) for place in ("", "acme", "acme/api")] == [2, 2, 2]


def test_nodes_that_are_alike_become_one_where_they_fit(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(core, texts(12), given=[near(0)] * 12)
    with monkeypatch.context() as patch:
        patch.setattr(rebuild, "_NEAREST", 0)  # nothing joins, so that merging has to bring all together
        patch.setattr(rebuild, "_NEAREST_NODES", 12)
        make_graph(core)
    assert len(groups(core)) == 1
    check(core)


def test_clusters_that_are_alike_get_a_concept(core: Core) -> None:
    said = [f"the river floods field {number}" for number in range(3)]
    remember(core, said, given=[near(0, 0.8, turn) for turn in (1, 2, 3)])  # cosine 0.64: related, not of one node
    remember(core, ["something else"], given=[near(9)])
    make_graph(core)
    [(name, label, size)] = query(core, "SELECT name, label, size FROM nodes WHERE kind = 'concept'")
    assert name.startswith("concept-")
    assert (set(label.split(", ")), size) == ({"river", "floods", "field"}, 3)
    assert query(core, "SELECT count(*) FROM edges WHERE kind = 'abstracted_from'") == [(3,)]
    check(core)
    delete(core, name.removeprefix("concept-"))
    make_graph(core)
    assert query(core, "SELECT count(*) FROM nodes WHERE kind = 'concept'") == [(0,)]


def test_what_searches_returned_together_is_an_edge_also_of_nodes_that_are_made_later(core: Core) -> None:
    a, b, c = remember(core, ["a", "b", "c"], given=[near(0), near(1), near(0, 0.9, 2)])
    search_together(core, a, b, times=2)
    search_together(core, b, c)
    search_together(core, a, c)
    make_graph(core)
    assert [weight for *_, weight in edges(core)] == [3.0]
    search_together(core, a, b)
    make_graph(core)
    assert [weight for *_, weight in edges(core)] == [4.0]
    delete(core, id_of(core, a))
    make_graph(core)
    assert edges(core) == [(*sorted((id_of(core, b), id_of(core, c)), key=[id_of(core, b), id_of(core, c)].index), 1.0)]
    check(core)


def test_memories_of_two_namespaces_that_met_are_an_edge_of_their_nodes(core: Core) -> None:
    [outer] = remember(core, ["a"], "acme", [near(0)])
    [inner] = remember(core, ["b"], "acme/api", [near(1)])
    search_together(core, inner, outer)
    make_graph(core)
    assert edges(core) == [(id_of(core, outer), id_of(core, inner), 1.0)]
    assert make_graph(core) == {"nodes": 2}
    assert len(edges(core)) == 1


def test_topics_are_communities_of_what_searches_returned_together(core: Core) -> None:
    rows = remember(core, texts(12), given=[near(number) for number in range(12)])
    assert make_graph(core) == {"nodes": 12, "added": 12}
    for group in (rows[:4], rows[4:8]):
        search_together(core, *group)
    assert make_graph(core) == {"nodes": 12, "topics": 2}
    found = query(core, "SELECT t.name, count(*), min(n.name) FROM nodes n JOIN topics t ON t.id = topic GROUP BY 1")
    assert [count for _, count, _ in found] == [4, 4]
    search_together(core, rows[8], *rows[4:8])
    make_graph(core)
    assert sorted(count for (count,) in query(core, "SELECT count(*) FROM nodes GROUP BY topic")) == [3, 4, 5]
    check(core)


def test_the_same_memories_give_the_same_graph(folder: Path) -> None:
    made = []
    for name in ("one", "two"):
        with running(folder / name, CountingEmbedder()) as core:
            rows = remember(core, texts(80, "deploy on friday"))
            make_graph(core)
            names = {id_of(core, row): str(row) for row in rows}
            made.append([sorted(groups(core)), sorted(names[node_of(core, row)] for row in rows)])
    assert made[0] == made[1]


def test_deleted_changed_and_moved_memories_leave_their_nodes(core: Core) -> None:
    a, b, c, d = remember(core, ["red apples", "red apples ripe", "blue whales swim", "green frogs"])
    make_graph(core)
    assert groups(core) == [[a, b], [c], [d]]
    update(core, id_of(core, b), content="blue whales swim deep")
    delete(core, id_of(core, d))
    make_graph(core)
    assert groups(core) == [[a], [b, c]]
    core.store.write(lambda t: t.connection.execute("UPDATE memories SET tier = 'L1' WHERE row = ?", (a,))).result(30)
    make_graph(core)
    assert groups(core) == [[b, c]]
    check(core)


class Stop(Exception):
    """A run has to end."""


def test_an_interrupted_run_is_completed_by_the_next(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "_WRITTEN", 2)
    rows = remember(core, texts(90), given=[near(i % 9, 0.9, 10 + i % 9) for i in range(90)])
    search_together(core, *rows[:5])
    [step] = rebuild.plan(core, core.clock())
    interrupted = 0
    for portions in range(0, 1000, 3):
        left = iter(range(portions))

        def check_left(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise Stop

        try:
            rebuild.run(core, step, check_left)
            break
        except Stop:
            interrupted += 1
    assert interrupted > 5
    make_graph(core)
    check(core)
    before = graph(core)
    make_graph(core)
    assert graph(core) == before


def test_a_dry_run_counts_what_a_run_then_does_within_reach(core: Core) -> None:
    for place in ("a", "b"):
        remember(core, texts(3, place), place, [near(number) for number in range(3)])
    planned = ask(core, GraphRebuild(namespace="a", reach="exact", dry_run=True))
    assert planned == Rebuilt(dry_run=True, nodes=3, added=3)
    assert groups(core) == []
    assert ask(core, GraphRebuild(namespace="a", reach="exact")) == Rebuilt(dry_run=False, nodes=3, added=3, topics=0)
    assert (len(groups(core, "a")), len(groups(core, "b"))) == (3, 0)


def test_without_a_model_there_is_nothing_to_make_it_of(folder: Path) -> None:
    with running(folder, no_model, ready=False) as core:
        assert list(rebuild.plan(core, 0.0)) == []
        with pytest.raises(ModelUnavailable, match="no embedding model is ready"):
            ask(core, GraphRebuild())


def test_another_model_makes_another_graph(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Config().model.name
    monkeypatch.setattr(embedder, "installed", lambda folder: [first, "other"])
    models = {first: CountingEmbedder(first), "other": CountingEmbedder("other", "other-1", turn=3)}
    with running(folder, lambda name, where: models[name]) as core:
        remember(core, ["red apples", "red apples ripe"])
        make_graph(core)
        former = core.embedding.active
        core.embedding.use("other")
        wait_until(lambda: core.embedding.active is not former)
        make_graph(core)
        assert len(groups(core)) == 1
        check(core)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.floats(0.5, 1), st.booleans()), max_size=70))
def test_whatever_comes_and_goes_the_graph_keeps_its_promises(folder: Path, found: list) -> None:
    with running(folder / secrets.token_hex(4), CountingEmbedder()) as core:
        for number, (place, direction, cosine, run) in enumerate(found):
            given = [near(direction, cosine, 10 + number % 20)]
            [row] = remember(core, [f"text {number}"], ("", "a", "a/b")[place], given)
            if run and number % 9 == 8:
                search_together(core, row, row - 1, row - 3)
                make_graph(core)
            if run and number % 7 == 6:
                delete(core, id_of(core, row - 2))
        make_graph(core)
        check(core)
        before = graph(core)
        make_graph(core)
        assert graph(core) == before
