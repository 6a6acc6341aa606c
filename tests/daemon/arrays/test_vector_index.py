"""The vector index: as good as comparing with everything, in step with a plain dict, filtered, small."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each import each
from memoryd.daemon.arrays import scan
from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.arrays.scan import AlikeQuery
from memoryd.daemon.arrays.vector_index import RESCORE, VectorIndex
from memoryd.daemon.store.vectors import Vector
from workbench import read_codes

DIMENSIONS = 384


def unit(matrix: Any) -> Vector:
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


def gaussian(dice: np.random.Generator, count: int) -> Vector:
    return unit(dice.standard_normal((count, DIMENSIONS)))


def clustered(dice: np.random.Generator, count: int) -> Vector:
    centres = dice.standard_normal((40, DIMENSIONS))
    return unit(centres[dice.integers(0, 40, count)] + 0.3 * dice.standard_normal((count, DIMENSIONS)))


def near_identical(dice: np.random.Generator, count: int, noise: float = 0.23) -> Vector:
    """Every two have a cosine of about 1 / (1 + noise squared): 0.95, which makes texts duplicates."""
    base = np.random.default_rng(0).standard_normal(DIMENSIONS)
    return unit(base + noise * dice.standard_normal((count, DIMENSIONS)))


def filled(vectors: Vector) -> VectorIndex:
    index = VectorIndex(vectors.shape[1])
    index.extend([(row, row % 3, "even" if row % 2 == 0 else "odd") for row in range(len(vectors))], vectors)
    return index


def like(index: VectorIndex, query: Vector, k: int, namespace: int, kind: str, after: int = 0) -> list[int]:
    return index.find_alike(query[None, :], AlikeQuery(namespace, kind, -2.0, k, after))[0]


@each("shape", [gaussian, clustered, near_identical])
def test_with_exact_rescoring_the_best_ten_are_the_true_best_ten(shape: Any) -> None:
    dice = np.random.default_rng(7)
    vectors = shape(dice, 5000)
    index = filled(vectors)
    right = 0
    for query in shape(dice, 50):
        right += len(set(best_ten(index, vectors, query)) & set(np.argsort(-(vectors @ query))[:10].tolist()))
    assert right / 500 >= 0.99


def best_ten(index: VectorIndex, vectors: Vector, query: Vector) -> list[int]:
    found = index.find_nearest(query, RESCORE).rows
    best: list[int] = found[np.argsort(-(vectors[found] @ query))][:10].tolist()
    return best


def test_among_vectors_closer_than_the_codes_tell_apart_what_is_found_is_as_similar_as_the_best() -> None:
    dice = np.random.default_rng(7)
    vectors = near_identical(dice, 5000, noise=0.05)
    index = filled(vectors)
    for query in near_identical(dice, 20, noise=0.05):
        exact = vectors @ query
        assert exact[best_ten(index, vectors, query)].min() > np.sort(exact)[-10] - 0.001


def test_similarities_are_the_cosine_to_about_a_thousandth() -> None:
    dice = np.random.default_rng(1)
    vectors = gaussian(dice, 500)
    found = filled(vectors).find_nearest(vectors[3], 500)
    assert found.rows[0] == 3
    assert np.abs(found.similarities - vectors[found.rows] @ vectors[3]).max() < 0.003
    assert (np.diff(found.similarities) <= 0).all()


@each("count", [2, 5000])
def test_filters_leave_only_what_they_allow_and_the_best_of_it(count: int) -> None:
    vectors = gaussian(np.random.default_rng(4), count)
    index = filled(vectors)

    def allowed(rows: set[int], known: int = count) -> Mask:
        mask = np.zeros(known + 1, np.bool_)
        mask[index._positions.find(rows)] = True
        return Mask(mask, index._positions, index._positions.epoch)

    def found(k: int, rows: set[int]) -> list[int]:
        return index.find_nearest(vectors[0], k, allowed(rows)).rows.tolist()

    every = set(range(count))
    for wanted in (every, every - {0}, {row for row in every if row % 2}, {1}, set()):
        assert set(found(count, wanted)) == wanted
    few = np.arange(1, count, 50)
    best = few[np.argsort(-(vectors[few] @ vectors[0]))][:5]
    assert set(found(5, set(few.tolist()))) == set(best.tolist())
    known = allowed(set(range(count // 2)), count // 2)  # rows past its end are not allowed
    assert set(index.find_nearest(vectors[0], count, known).rows.tolist()) == set(range(count // 2))
    assert set(like(index, vectors[0], count, 0, "odd")) == {row for row in every if row % 6 == 3}
    assert like(index, vectors[0], count, 0, "absent") == []


@each("shape", [gaussian, clustered, near_identical])
@each("queries", [1, 40])
@each("floor", [0.9, -2.0])
def test_what_is_alike_is_found_for_many_queries_as_for_one(shape: Any, queries: int, floor: float) -> None:
    dice = np.random.default_rng(8)
    vectors = shape(dice, 5000)
    index = filled(vectors)
    asked = unit(vectors[:queries] + 0.001 * dice.standard_normal((queries, DIMENSIONS)))
    found = index.find_alike(asked, AlikeQuery(0, "odd", floor, 8))
    odd = np.arange(3, 5000, 6)
    for query, rows in zip(asked, found, strict=True):
        exact = vectors[odd] @ query
        best = np.sort(exact[exact > floor])[::-1][:8]
        assert vectors[rows] @ query == pytest.approx(best, abs=0.003)
        assert set(rows) <= set(odd.tolist())


def test_what_was_added_or_changed_since_a_stamp_is_found_by_it() -> None:
    vectors = gaussian(np.random.default_rng(9), 1000)
    index = filled(vectors)
    stamp = index.stamp
    assert [like(index, vector, 1000, 0, "odd", stamp) for vector in vectors[:2]] == [[], []]
    index.remove([3])
    index.add(5000, 0, "odd", vectors[3])
    index.add(9, 0, "odd", vectors[10])
    index.add(10, 0, "even", vectors[9])
    assert set(like(index, vectors[0], 1000, 0, "odd", stamp)) == {9, 5000}
    assert index.find_alike(vectors[:20], AlikeQuery(0, "odd", 0.9, 8, stamp))[3] == [5000]
    assert like(index, vectors[0], 1000, 0, "odd", index.stamp) == []


def test_a_zero_vector_harms_nobody() -> None:
    vectors = gaussian(np.random.default_rng(8), 10)
    index = filled(vectors)
    index.add(99, 0, "zero", np.zeros(DIMENSIONS, np.float32))
    assert index.find_nearest(vectors[1], 1).rows.tolist() == [1]
    assert len(index.find_nearest(np.zeros(DIMENSIONS, np.float32), 11).rows) == 11


def test_the_place_of_a_vector_is_known_until_the_vector_changes() -> None:
    vectors = gaussian(np.random.default_rng(12), 4)
    index = filled(vectors[:3])
    assert index.find_vector_ids([0, 1, 99]) == [0, 0, 0]
    index.note_vector_ids([0, 1, 2, 99], [70, 71, 72, 73], np.stack([vectors[0], vectors[1], vectors[3], vectors[3]]))
    assert index.find_vector_ids([0, 1, 2, 99]) == [70, 71, 0, 0]  # row 2 has another vector by now
    index.add(1, 0, "x", vectors[3])
    index.remove([0])
    assert index.find_vector_ids([0, 1, 2]) == [0, 0, 0]


def test_a_full_index_takes_at_most_450_bytes_for_a_vector() -> None:
    index = filled(gaussian(np.random.default_rng(9), 4096))
    assert index.size_bytes() / len(index) <= 450


def like_a_model(dice: np.random.Generator, count: int) -> Vector:
    """Vectors that vary little in most directions, around a mean, in neighbourhoods of twenty: as those of texts do."""
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal((DIMENSIONS, DIMENSIONS)))[0]
    widths = 1 / (1 + np.arange(DIMENSIONS) / 25)
    centres = dice.standard_normal((count // 20 + 1, DIMENSIONS))
    spread = centres[np.arange(count) // 20] + 0.5 * dice.standard_normal((count, DIMENSIONS))
    return unit((spread * widths + 0.5) @ directions)


@pytest.fixture(scope="module")
def many() -> tuple[VectorIndex, Vector]:
    """An index so large that it has learned its basis, and its vectors."""
    vectors = like_a_model(np.random.default_rng(11), 20_500)
    return filled(vectors), vectors


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 1.0])
@pytest.mark.slow
def test_with_heads_scanned_first_the_best_ten_are_the_true_best_ten(
    many: tuple[VectorIndex, Vector], share: float
) -> None:
    index, vectors = many
    dice = np.random.default_rng(12)
    chosen = np.sort(dice.permutation(len(vectors))[: int(share * len(vectors))])
    allowed = np.zeros(len(vectors) + 1, np.bool_)
    allowed[chosen] = True
    mask = Mask(allowed, index._positions, index._positions.epoch)
    for query in unit(vectors[dice.integers(0, len(vectors), 40)] + 0.02 * dice.standard_normal((40, DIMENSIONS))):
        found = index.find_nearest(query, RESCORE, mask)
        exact = vectors[found.rows] @ query
        assert np.abs(found.similarities - exact).max() < 0.004
        best = found.rows[np.argsort(-exact)][:10].tolist()
        assert best == chosen[np.argsort(-(vectors[chosen] @ query))[:10]].tolist()


@pytest.mark.slow
def test_among_thousands_that_are_nearly_the_same_the_best_are_found() -> None:
    dice = np.random.default_rng(13)
    vectors = np.concatenate([near_identical(dice, 11_000), like_a_model(dice, 10_000)])
    index = filled(vectors)
    right = 0
    for query in near_identical(dice, 20):
        found = index.find_nearest(query, RESCORE).rows
        best = found[np.argsort(-(vectors[found] @ query))][:10]
        right += len(set(best.tolist()) & set(np.argsort(-(vectors @ query))[:10].tolist()))
    assert right >= 198


@pytest.mark.slow
def test_a_search_in_a_large_index_looks_at_few_tails(
    many: tuple[VectorIndex, Vector], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, vectors = many
    scored: list[int] = []
    score = scan.compute_scores
    monkeypatch.setattr(
        scan, "compute_scores", lambda view, asked, places: scored.append(len(places)) or score(view, asked, places)
    )
    for query in vectors[::1000]:
        index.find_nearest(query, RESCORE)
    assert 0 < sum(scored) < 0.1 * len(vectors) * len(vectors[::1000])


def test_an_index_that_has_learned_its_basis_takes_changes_as_before(many: tuple[VectorIndex, Vector]) -> None:
    index, vectors = many
    stamp, numbers = index.stamp, list(range(0, 20_000, 4000))
    index.note_vector_ids(numbers, numbers, vectors[numbers])
    assert index.find_vector_ids(numbers) == numbers
    index.add(30_000, 0, "odd", vectors[17])
    assert like(index, vectors[17], 9, 0, "odd", stamp) == [30_000]
    assert set(index.find_alike(vectors[17:18], AlikeQuery(17 % 3, "odd", 0.99, 8))[0]) >= {17}
    assert set(index.find_nearest(vectors[17], 2).rows.tolist()) == {17, 30_000}
    index.remove([30_000])
    assert index.find_nearest(vectors[17], 1).rows.tolist() == [17]


def test_a_restored_index_finds_what_the_dumped_one_found(many: tuple[VectorIndex, Vector]) -> None:
    index, vectors = many
    gone = {5, 17, 19_999}
    for row in gone:
        index.remove([row])
    arrays = index.dump()
    assert not any(arrays[name][5].any() for name in ("heads0", "rest0"))  # nothing is left of what was removed
    again = VectorIndex(DIMENSIONS)
    again.restore(arrays.__getitem__)
    assert read_codes(again) == read_codes(index)
    assert len(again) == len(index) == len(vectors) - len(gone)
    for query in vectors[:40:4]:
        one, other = index.find_nearest(query, 20), again.find_nearest(query, 20)
        assert one.rows.tolist() == other.rows.tolist()
        assert one.similarities.tolist() == other.similarities.tolist()
        assert like(index, query, 5, 1, "odd") == like(again, query, 5, 1, "odd")
    index.extend([(row, row % 3, "even" if row % 2 == 0 else "odd") for row in gone], vectors[list(gone)])
    empty = VectorIndex(DIMENSIONS)
    empty.restore(VectorIndex(DIMENSIONS).dump().__getitem__)
    assert len(empty) == 0


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove"]), st.integers(1, 12), st.integers(0, 2), st.sampled_from("ab")),
    max_size=60,
)


@settings(max_examples=80)
@given(CHANGES)
def test_after_any_changes_the_index_holds_what_a_dict_holds(changes: list[tuple[str, int, int, str]]) -> None:
    index = VectorIndex(8)
    model: dict[int, tuple[int, str, Vector]] = {}
    stamps: dict[int, int] = {}
    middle = 0
    for number, (action, row, namespace, kind) in enumerate(changes):
        if number == len(changes) // 2:
            middle = index.stamp
        if action == "add":
            vector = unit(np.random.default_rng(number).standard_normal((1, 8)))[0]
            index.add(row, namespace, kind, vector)
            model[row] = (namespace, kind, vector)
            stamps[row] = index.stamp
        else:
            index.remove([row])
            model.pop(row, None)
    assert len(index) == len(model)
    assert all((row in index) == (row in model) for row in range(14))
    query = np.ones(8, np.float32) / np.sqrt(8)
    for namespace in range(3):
        for kind in "ab":
            expected = {row: float(v @ query) for row, (n, k, v) in model.items() if (n, k) == (namespace, kind)}
            found = like(index, query, 20, namespace, kind)
            assert set(found) == set(expected)
            assert [expected[row] for row in found] == pytest.approx(sorted(expected.values(), reverse=True), abs=0.02)
            changed = {row for row, since in stamps.items() if row in expected and since > middle}
            assert set(expected) >= set(like(index, query, 20, namespace, kind, middle)) >= changed


def test_cosines_are_computed_while_rows_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = near_identical(np.random.default_rng(3), 40)
    index = filled(vectors[:20])
    find = index._positions.find

    def find_late(rows: Any) -> Any:
        monkeypatch.undo()
        index.extend([(row, 0, "new") for row in range(20, 40)], vectors[20:])
        return find(rows)

    monkeypatch.setattr(index._positions, "find", find_late)
    found = dict(index.compute_similarities(vectors[30], np.arange(40)))
    assert found[30] == pytest.approx(1.0, abs=0.01)
