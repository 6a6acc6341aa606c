"""Maintenance of the graph: what holds after it, whatever was stored, changed or interrupted."""

import secrets

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphs import carry_out, check, graph, groups, maintain, near, query, remember, steps
from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding import embedder
from memoryd.daemon.topics.tables.graph import strengthen
from workbench import CountingEmbedder, add, delete, insert, running, undo, update, wait_until


def texts(count: int, word: str = "note") -> list[str]:
    return [f"{word} {number}" for number in range(count)]


def co_occur(core: Core, *pairs: tuple[int, int], weight: float = 1.0) -> None:
    core.store.write(lambda transaction: strengthen(transaction.connection, pairs, weight)).result(30)


def node_of(core: Core, row: int) -> int:
    return query(core, "SELECT node FROM members WHERE memory = ?", row)[0][0]


@pytest.mark.parametrize("count", [0, 1, 2, 75])
def test_every_memory_of_l2_gets_a_node(core: Core, count: int) -> None:
    remember(core, texts(count), given=[near(i % 4) for i in range(count)])
    maintain(core)
    check(core)
    assert len(groups(core)) == min(count, 4)


def test_only_l2_is_clustered(core: Core) -> None:
    add(core, "this one is in L1")
    [row] = remember(core, ["this one is in L2"])
    maintain(core)
    assert groups(core) == [[row]]


def test_a_memory_joins_the_nearest_node_or_founds_one(core: Core) -> None:
    first, second = remember(core, ["a", "b"], given=[near(0), near(1)])
    maintain(core)
    near_first, alone = remember(core, ["c", "d"], given=[near(0, 0.75, 2), near(0, 0.6, 3)])
    maintain(core)
    assert groups(core) == [[first, near_first], [second], [alone]]
    check(core)


def test_a_node_is_named_anew_when_it_has_grown_by_some_members(core: Core) -> None:
    remember(core, [f"heron {number}" for number in range(5)], given=[near(0)] * 5)
    maintain(core)
    labels = []
    for number in range(3):
        remember(core, [f"stork {number}"], given=[near(0)])
        maintain(core)
        labels += [label for (label,) in query(core, "SELECT label FROM nodes")]
    assert labels == ["heron", "heron", "stork, heron"]
    assert query(core, "SELECT count(*) FROM nodes WHERE settled = 0") == [(0,)]


def test_clusters_never_cross_namespaces(core: Core) -> None:
    for place in ("", "acme", "acme/api"):
        remember(core, [f"{place} {text}" for text in texts(30)], place, [near(0)] * 30)
    maintain(core)
    check(core)
    assert [len(groups(core, place)) for place in ("", "acme", "acme/api")] == [2, 2, 2]


def test_a_full_node_is_split_and_its_parts_derive_from_it(core: Core) -> None:
    rows = remember(core, texts(20), given=[near(0, 0.9, 1)] * 12 + [near(0, 0.9, 2)] * 8)
    maintain(core)
    [first] = groups(core)
    assert first == rows
    node = node_of(core, rows[0])
    remember(core, ["one more"], given=[near(0, 0.9, 1)])
    maintain(core)
    check(core)
    assert sorted(map(len, groups(core))) == [8, 13]
    [(part, parent, weight)] = query(core, "SELECT origin, target, weight FROM edges WHERE kind = 'derived_from'")
    assert (parent, weight) == (node, 8)
    assert node_of(core, rows[-1]) == part


def test_parts_of_a_split_inherit_what_the_node_co_occurred_with(core: Core) -> None:
    rows = remember(core, texts(20), given=[near(0, 0.9, 1)] * 12 + [near(0, 0.9, 2)] * 8)
    [other] = remember(core, ["other"], given=[near(9)])
    maintain(core)
    co_occur(core, (node_of(core, rows[0]), node_of(core, other)), weight=3.0)
    remember(core, ["one more"], given=[near(0, 0.9, 1)])
    maintain(core)
    found = query(core, "SELECT weight FROM edges WHERE kind = 'co_occurs'")
    assert found == [(3.0,), (3.0,)]
    check(core)


def test_alike_nodes_are_merged_and_their_edges_added(core: Core) -> None:
    a, b = remember(core, ["a", "b"], given=[near(0, 0.8, 1), near(0, 0.8, 2)])  # cosine 0.64
    [other] = remember(core, ["other"], given=[near(9)])
    maintain(core)
    first, second, third = (node_of(core, row) for row in (a, b, other))
    assert len({first, second, third}) == 3
    co_occur(core, (third, first), (second, third), (first, second))
    # Each joins the node on its side and draws its centroid towards the other's.
    more = remember(
        core, texts(12), given=[near(0, 0.95, 1), near(0, 0.95, 2), *[near(0, 0.99, 1), near(0, 0.99, 2)] * 5]
    )
    maintain(core)
    assert node_of(core, a) == node_of(core, b) == node_of(core, more[0]) == node_of(core, more[9])
    assert query(core, "SELECT weight FROM edges WHERE kind = 'co_occurs'") == [(2.0,)]
    check(core)


def test_nodes_that_would_be_too_large_together_are_not_merged(core: Core) -> None:
    remember(core, texts(30), given=[near(0)] * 30)
    maintain(core)
    assert sorted(map(len, groups(core))) == [15, 15]


def test_the_same_text_a_hundred_times_ends_in_nodes_of_twenty(core: Core) -> None:
    remember(core, texts(100), given=[near(0)] * 100)
    maintain(core)
    assert [len(group) for group in groups(core)] == [20] * 5
    assert steps(core) == []


def test_a_second_run_does_nothing(core: Core) -> None:
    remember(core, texts(60), given=[near(i % 7, 0.8, 7 + i % 3) for i in range(60)])
    maintain(core)
    before = graph(core)
    assert steps(core) == []
    assert graph(core) == before


def test_the_same_memories_in_the_same_order_give_the_same_graph(folder) -> None:
    made = []
    for name in ("one", "two"):
        with running(folder / name, CountingEmbedder()) as core:
            remember(core, texts(80, "deploy on friday"), given=None)
            maintain(core)
            made.append(graph(core))
    assert made[0] == made[1]


def test_a_dry_run_changes_nothing_and_is_what_is_then_done(core: Core) -> None:
    remember(core, texts(50), given=[near(i % 3, 0.9, 10 + i % 5) for i in range(50)])
    before = graph(core)
    planned = steps(core)
    assert graph(core) == before
    assert [step[:3] for step in planned] == [step[:3] for step in steps(core)]
    counts = carry_out(core, planned)
    assert "skipped" not in counts
    check(core)
    assert steps(core) == []


def test_a_deleted_memory_leaves_its_node_and_an_empty_node_goes(core: Core) -> None:
    rows = remember(core, ["a", "b", "c"], given=[near(0), near(0, 0.9, 1), near(5)])
    maintain(core)
    ids = dict(query(core, "SELECT row, id FROM memories"))
    delete(core, ids[rows[0]], ids[rows[2]])
    maintain(core)
    assert groups(core) == [[rows[1]]]
    check(core)
    assert steps(core) == []


def test_undo_of_a_delete_puts_the_memory_back_into_the_graph(core: Core) -> None:
    rows = remember(core, ["a", "b"], given=[near(0), near(0, 0.9, 1)])
    maintain(core)
    ids = dict(query(core, "SELECT row, id FROM memories"))
    delete(core, ids[rows[0]])
    undo(core)
    assert query(core, "SELECT memory FROM backlog") == [(rows[0],)]
    maintain(core)
    assert groups(core) == [rows]
    check(core)


def test_a_memory_whose_text_changes_is_clustered_again(core: Core) -> None:
    a, b, c = remember(core, ["red apples", "red apples ripe", "blue whales swim"])
    maintain(core)
    assert groups(core) == [[a, b], [c]]
    [(id,)] = query(core, "SELECT id FROM memories WHERE row = ?", b)
    update(core, id, content="blue whales swim deep")
    maintain(core)
    assert groups(core) == [[a], [b, c]]
    check(core)


def test_a_memory_that_leaves_l2_leaves_the_graph(core: Core) -> None:
    a, b = remember(core, ["a", "b"], given=[near(0), near(0)])
    maintain(core)
    core.store.write(lambda t: t.connection.execute("UPDATE memories SET tier = 'L1' WHERE row = ?", (a,))).result(30)
    assert query(core, "SELECT count(*) FROM backlog") == [(0,)]
    maintain(core)
    assert groups(core) == [[b]]
    check(core)


def test_a_memory_without_a_vector_waits(core: Core) -> None:
    insert(core.store, "no vector of it yet", tier="L2")
    assert steps(core) == []
    assert query(core, "SELECT count(*) FROM backlog") == [(1,)]


def test_a_plan_that_is_out_of_date_is_left_out_where_it_does_not_hold(core: Core) -> None:
    rows = remember(core, texts(6), given=[near(i % 2, 0.9, 8 + i % 3) for i in range(6)])
    planned = steps(core)
    ids = dict(query(core, "SELECT row, id FROM memories"))
    delete(core, ids[rows[0]])
    carry_out(core, planned)
    assert rows[0] not in [row for group in groups(core) for row in group]
    maintain(core)
    check(core)
    assert carry_out(core, planned)["skipped"] >= 2  # its nodes are there, with other members
    check(core)


def test_an_interrupted_run_is_completed_by_the_next(core: Core) -> None:
    remember(core, texts(90), given=[near(i % 2, 0.9, 8 + i % 9) for i in range(90)])
    planned = steps(core)
    for part in (planned[:1], planned[:4]):
        carry_out(core, part, 1)
    maintain(core)
    check(core)
    assert steps(core) == []


def test_a_split_that_was_interrupted_is_completed(core: Core) -> None:
    remember(core, texts(20), given=[near(0, 0.9, 1)] * 12 + [near(0, 0.9, 2)] * 8)
    maintain(core)
    remember(core, ["one more"], given=[near(0, 0.9, 1)])
    planned = steps(core)
    assert planned[0].action == "split"
    carry_out(core, planned[:1])
    maintain(core)
    check(core)
    assert steps(core) == []


def test_another_model_builds_the_graph_anew(folder, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Config().model.name
    monkeypatch.setattr(embedder, "installed", lambda folder: [first, "other"])
    models = {first: CountingEmbedder(first), "other": CountingEmbedder("other", "other-1", turn=3)}
    with running(folder, lambda name, where: models[name]) as core:
        remember(core, ["red apples", "red apples ripe"])
        maintain(core)
        former = core.embedding.active
        core.embedding.use("other")
        wait_until(lambda: core.embedding.active is not former)
        assert groups(core) == []
        maintain(core)
        assert len(groups(core)) == 1
        check(core)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.floats(0.5, 1), st.booleans()), max_size=70))
def test_whatever_comes_and_goes_maintenance_keeps_its_promises(folder, found) -> None:
    with running(folder / secrets.token_hex(4), CountingEmbedder()) as core:
        for number, (place, direction, cosine, run) in enumerate(found):
            given = [near(direction, cosine, 10 + number % 20)]
            [row] = remember(core, [f"text {number}"], ("", "a", "a/b")[place], given)
            if run and number % 9 == 8:
                maintain(core)
            if run and number % 7 == 6:
                [(id,)] = query(core, "SELECT id FROM memories WHERE row = ?", row - 2)
                delete(core, id)
        maintain(core)
        check(core)
        assert steps(core) == []
