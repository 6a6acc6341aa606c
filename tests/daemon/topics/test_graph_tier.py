"""What the retrieval reads of the graph, the index of centroids, names and topics as functions."""

import numpy as np
import pytest

from graphs import maintain, near, query, remember
from memoryd.daemon.core.core import Core
from memoryd.daemon.topics import nodes
from memoryd.daemon.topics.groups import find_communities, find_similar, renumber, weights
from memoryd.daemon.topics.names import NodeNamer, take_first_words
from memoryd.daemon.topics.nodes import Centroids
from memoryd.daemon.topics.tables import graph


def nodes_by_row(core: Core, rows: list[int]) -> list[int]:
    with core.store.reading() as connection:
        found = graph.find_nodes(connection, rows)
    return [found[row] for row in rows]


def strengthen(core: Core, *pairs: tuple[int, int], weight: float = 1.0) -> None:
    core.store.write(lambda t: graph.strengthen(t.connection, pairs, weight)).result(30)


def test_rows_have_nodes_and_nodes_have_members(core: Core) -> None:
    rows = remember(core, ["a", "b", "c"], given=[near(0), near(0), near(1)])
    maintain(core)
    first, same, other = nodes_by_row(core, rows)
    assert first == same != other
    with core.store.reading() as connection:
        assert graph.read_members(connection, [first, other]) == {first: rows[:2], other: rows[2:]}
        assert graph.read_members(connection, []) == graph.find_nodes(connection, []) == {}
        assert graph.find_nodes(connection, [rows[0], 999]) == {rows[0]: first}
        assert graph.read_members(connection, [999]) == {}


def test_neighbours_are_those_retrieved_together_from_both_sides_strongest_first(core: Core) -> None:
    a, b, c, d = nodes_by_row_of(core, 4)
    strengthen(core, (a, b), (b, a), (c, a), (a, a), (d, 999))
    with core.store.reading() as connection:
        assert graph.neighbours(connection, [a], 8) == {a: [(b, 2.0), (c, 1.0)]}
        assert graph.neighbours(connection, [b, c], 8) == {b: [(a, 2.0)], c: [(a, 1.0)]}
        assert graph.neighbours(connection, [a], 1) == {a: [(b, 2.0)]}
        assert graph.neighbours(connection, [d], 8) == graph.neighbours(connection, [], 8) == {}
    assert query(core, "SELECT count(*) FROM edges WHERE origin >= target") == [(0,)]


def nodes_by_row_of(core: Core, count: int) -> list[int]:
    rows = remember(core, [f"text {number}" for number in range(count)], given=[near(n) for n in range(count)])
    maintain(core)
    return nodes_by_row(core, rows)


def test_similarities_are_exact_cosines_with_the_centroids(core: Core) -> None:
    rows = remember(core, ["a", "b"], given=[near(0), near(0, 0.8, 1)])
    maintain(core)
    [node, _] = nodes_by_row(core, rows)
    with core.store.reading() as connection:
        found = nodes.compute_similarities(connection, [node, 999], near(0))
        assert found == {node: pytest.approx(1.8 / (1.8**2 + 0.6**2) ** 0.5)}
        assert nodes.compute_similarities(connection, [node], np.ones(3, np.float32)) == {}
        assert nodes.compute_similarities(connection, [], near(0)) == {}


def nearest(core: Core, vector, k: int = 3, places: frozenset[int] | None = None) -> list[tuple[int, float]]:
    generation = core.embedding.active
    assert generation is not None
    with core.store.reading() as connection:
        return core.state(Centroids).find_nearest(connection, generation.model, vector, k, places)


def test_the_nearest_nodes_are_found_in_the_namespaces_asked_for(core: Core) -> None:
    [one] = remember(core, ["one"], "a", [near(0, 0.9, 1)])
    [two] = remember(core, ["two"], "b", [near(0, 0.8, 2)])
    maintain(core)
    first, second = nodes_by_row(core, [one, two])
    assert [node for node, _ in nearest(core, near(0))] == [first, second]
    assert nearest(core, near(0), k=1) == [(first, pytest.approx(0.9))]
    place = core.store.namespaces.find_number("b")
    assert place is not None
    assert nearest(core, near(0), places=frozenset([place])) == [(second, pytest.approx(0.8))]
    assert nearest(core, near(0), places=frozenset()) == []


def test_the_index_of_centroids_follows_every_change(core: Core) -> None:
    [one] = remember(core, ["one"], given=[near(0)])
    maintain(core)
    assert len(nearest(core, near(0))) == 1
    rows = remember(core, ["two", "three"], given=[near(1), near(0, 0.9, 5)])
    maintain(core)
    found = dict(nearest(core, near(1)))
    assert found[nodes_by_row(core, rows)[0]] == pytest.approx(1.0)
    core.store.write(lambda t: t.connection.execute("DELETE FROM memories")).result(30)
    maintain(core)
    assert nearest(core, near(0)) == []
    del one


def test_a_change_before_the_index_is_built_is_in_it(core: Core) -> None:
    [row] = remember(core, ["one"], given=[near(0)])
    core.state(Centroids).put(1, 77, 1, near(3))  # committed after the snapshot that the index is built from
    maintain(core)
    assert next(node for node, _ in nearest(core, near(0))) == nodes_by_row(core, [row])[0]
    core.state(Centroids).forget()
    assert len(nearest(core, near(0))) == 1


def test_a_label_is_the_most_distinctive_words_as_they_are_written(core: Core) -> None:
    remember(core, [f"the service number {number} has a cache" for number in range(20)])
    texts = ["Deploying billing: the service", "we deployed Billing, a service", "deploys of billing by the service"]
    remember(core, texts)
    with core.store.reading() as connection:
        namer = NodeNamer().build_namer(connection, 1)
        [label, single, nothing] = namer(connection, [texts, texts[:1], []])
    assert label.split(", ")[0] in ("billing", "Billing")
    assert {"deploy", "deploying", "deployed", "deploys"} & {word.casefold() for word in label.split(", ")}
    assert label.split(", ")[-1] == "service"
    assert single == texts[0]
    assert nothing == ""


def test_a_label_of_nothing_but_stop_words_is_the_beginning_of_the_first(core: Core) -> None:
    with core.store.reading() as connection:
        [label] = NodeNamer().build_namer(connection, 1)(connection, [["and or the", "of the and"]])
    assert label == "and or the"


def test_a_label_has_no_stop_words_of_other_languages_either(core: Core) -> None:
    german = ["Die Rechnung wird nicht am Ende geschickt", "Die Rechnung wird nach 30 Tagen gemahnt und nicht bezahlt"]
    spanish = ["La factura que no se paga tiene un recordatorio", "La factura tiene un número que no cambia"]
    with core.store.reading() as connection:
        namer = NodeNamer().build_namer(connection, 1)
        assert namer(connection, [german, spanish]) == ["Rechnung", "factura"]


def test_the_first_words_are_at_most_eighty_characters_on_one_line() -> None:
    assert take_first_words("one\n two\t three") == "one two three"
    assert take_first_words("words " * 100) == " ".join(["words"] * 13), "it ends with a whole word"
    assert take_first_words("w" * 100) == "w" * 80


def test_similar_pairs_are_those_among_the_nearest_above_the_floor() -> None:
    units = np.stack([near(0), near(0, 0.9, 1), near(0, 0.5, 2), near(7)])
    found = find_similar(units, 0.6)
    assert found.keys() == {(0, 1)}
    assert found[0, 1] == pytest.approx(0.9)
    assert find_similar(units, 0.4, nearest=1).keys() == {(0, 1), (0, 2)}
    assert find_similar(units[:1], 0.0) == find_similar(units[:0], 0.0) == {}


def test_use_adds_to_similarity() -> None:
    found = weights({(0, 1): 0.5}, {(0, 1): 1.0, (1, 2): 3.0})
    assert found == {(0, 1): pytest.approx(0.5 + np.log(2)), (1, 2): pytest.approx(np.log(4))}


def test_communities_are_found_alike_every_time_and_single_nodes_are_none() -> None:
    edges = {(a, b): 1.0 for group in (range(5), range(5, 10)) for a in group for b in group if a < b}
    edges[4, 5] = 0.1
    assert find_communities(edges) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert find_communities(edges) == find_communities(dict(reversed(edges.items())))
    assert find_communities({}) == []


def test_groups_keep_the_number_of_the_group_they_share_most_with() -> None:
    former = [(1, 7), (2, 7), (3, 7), (4, 9)]
    assert renumber([[1, 2], [3, 4, 5], [8]], former, iter([20, 21])) == [7, 9, 20]
    assert renumber([[4], [1, 2, 3]], former, iter([20])) == [9, 7]
    assert renumber([], former, iter([])) == []
