"""The arithmetic of clusters by hand and by properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import near
from memoryd.daemon.topics.clusters import (
    MAX_MEMBERS,
    Clusters,
    cut_equal_parts,
    find_mergeable,
    gather,
    group_by_cosines,
    group_to_size,
    group_vectors,
    split,
    unit,
)


def clusters(*means, sizes=None):
    made = Clusters(len(means[0]) if means else 2)
    for mean, size in zip(means, sizes or [1] * len(means), strict=True):
        made.add(np.array(mean, np.float32) * size, size)
    return made


def axes(*vectors):
    return np.array(vectors, np.float32)


def random_vectors(seed: int, count: int, centres: int, noise: float) -> np.ndarray:
    dice = np.random.default_rng(seed)
    middle = dice.standard_normal((centres, 16)).astype(np.float32)
    made = middle[dice.integers(0, centres, count)] + noise * dice.standard_normal((count, 16)).astype(np.float32)
    return unit(made)


def test_a_vector_at_the_threshold_joins_and_one_below_founds() -> None:
    there = clusters([1.0, 0.0])
    assert list(there.join(axes([0.6, 0.8]), 0.6)) == [0]
    there = clusters([1.0, 0.0])
    assert list(there.join(axes([0.6, 0.8]), 0.61)) == [1]


def test_the_centroid_is_the_mean_of_unit_vectors_and_is_compared_at_unit_length() -> None:
    there = clusters([1.0, 0.0])
    list(there.join(axes([0.6, 0.8]), 0.5))
    assert there.mean(0).tolist() == pytest.approx([0.8, 0.4])
    assert there.units[0].tolist() == pytest.approx([0.8 / 0.8**0.5, 0.4 / 0.8**0.5])
    list(there.join(axes([0.0, 1.0]), 0.4))  # cosine 0.447
    assert there.mean(0).tolist() == pytest.approx([1.6 / 3, 1.8 / 3])
    assert there.sizes[0] == 3


def test_the_mean_of_a_stored_cluster_weighs_as_many_as_its_members() -> None:
    there = clusters([0.8, 0.4], sizes=[9])
    list(there.join(axes([0.0, 1.0]), 0.1))
    assert there.mean(0).tolist() == pytest.approx([0.72, 0.46])


def test_the_nearest_cluster_is_joined_also_when_it_was_founded_or_moved_just_before() -> None:
    there = Clusters(2)
    order = axes([1, 0], [0, 1], [0.9, 0.436], [0.6, 0.8], [0.7, 0.714])
    # By hand: the fourth has 0.76 to the first, which moved, and 0.80 to the second; the last 0.84 and, as the second
    # moved as well, 0.90.
    assert list(there.join(order, 0.75)) == [0, 1, 0, 1, 1]


def test_blocks_give_what_one_by_one_gives() -> None:
    vectors = random_vectors(1, 900, 40, 0.5)
    at_once = list(Clusters(16).join(vectors, 0.7))
    single = Clusters(16)
    assert at_once == [place for vector in vectors for place in single.join(vector[None, :], 0.7)]


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_any_number_of_vectors_joins(count: int) -> None:
    vectors = random_vectors(2, count, 5, 0.1)
    there = Clusters(16)
    places = list(there.join(vectors, 0.6))
    assert len(places) == count
    assert there.sizes.sum() == count
    assert set(places) == set(range(there.count))


def test_alike_clusters_merge_the_larger_takes_in_the_smaller() -> None:
    there = clusters([1.0, 0.0], [0.999, 0.04], [0.0, 1.0], sizes=[2, 3, 4])
    assert find_mergeable(there, [0], 0.93) == [(1, 0)]
    there.merge(1, 0)
    assert there.sizes[:3].tolist() == [0, 5, 4]
    assert there.mean(1).tolist() == pytest.approx([(2 * 1.0 + 3 * 0.999) / 5, 3 * 0.04 / 5])


def test_clusters_that_would_be_too_large_together_stay_apart() -> None:
    assert find_mergeable(clusters([1.0, 0.0], [1.0, 0.0], sizes=[10, 10]), [0, 1], 0.9) == [(0, 1)]
    assert find_mergeable(clusters([1.0, 0.0], [1.0, 0.0], sizes=[10, 11]), [0, 1], 0.9) == []


def test_only_what_changed_is_compared_and_each_pair_once() -> None:
    there = clusters([1.0, 0.0], [1.0, 0.0], [1.0, 0.0])
    assert [pair[1:] for pair in there.find_similar([1], 0.9)] == [(1, 0), (1, 2)]
    assert [pair[1:] for pair in there.find_similar([1, 2], 0.9)] == [(1, 0), (1, 2), (2, 0)]


def test_an_emptied_cluster_is_never_found() -> None:
    there = clusters([1.0, 0.0], [0.0, 1.0])
    there.merge(1, 0)
    assert list(there.join(axes([1.0, 0.0]), 0.9)) == [2]


@pytest.mark.parametrize(("count", "sizes"), [(21, [10, 11]), (40, [20, 20]), (41, [13, 14, 14])])
def test_identical_vectors_are_cut_into_equal_parts(count: int, sizes: list[int]) -> None:
    parts = split(np.tile(near(0), (count, 1)), 0.7)
    assert sorted(map(len, parts)) == sizes
    assert sorted(i for part in parts for i in part) == list(range(count))


def test_no_two_equal_parts_fit_into_one_node() -> None:
    for count in range(MAX_MEMBERS + 1, 200):
        smallest = sorted(map(len, cut_equal_parts(range(count), MAX_MEMBERS)))[:2]
        assert sum(smallest) > MAX_MEMBERS


def test_two_subjects_in_one_node_come_apart() -> None:
    vectors = np.stack([near(0, 0.95, 1 + i % 2) for i in range(30)])
    assert split(vectors, 0.8) == [list(range(0, 30, 2)), list(range(1, 30, 2))]


def test_what_a_split_leaves_over_is_put_together_again() -> None:
    tight, loose = [near(0)] * 20, [near(0, 0.9, turn) for turn in range(2, 7)]
    parts = split(np.stack([*tight, *loose]), 0.7)
    assert sorted(map(len, parts)) == [5, 20]
    vectors = np.stack([*tight, *loose])
    assert sorted(map(len, group_to_size(vectors @ vectors.T, 0.85, 20))) == [1] * 5 + [20]


def test_gathering_stops_at_the_floor() -> None:
    vectors = np.stack([near(0), near(0, 0.9, 1), near(5)])
    cosines = vectors @ vectors.T
    assert gather(cosines, [[0], [1], [2]], 0.8, 20) == [[0, 1], [2]]
    assert gather(cosines, [[0], [1], [2]], 0.95, 20) == [[0], [1], [2]]
    assert gather(cosines, [[0], [1], [2]], 0.8, 1) == [[0], [1], [2]]


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9])
def test_clustering_by_cosines_alone_gives_what_clustering_by_vectors_does(threshold: float) -> None:
    vectors = random_vectors(5, 300, 12, 0.6)
    assert group_by_cosines(vectors @ vectors.T, threshold) == group_vectors(vectors, threshold)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 120), st.integers(1, 6), st.floats(0, 2), st.floats(0.2, 0.95))
def test_a_split_keeps_every_vector_once_and_no_part_is_too_large(seed, count, centres, noise, threshold) -> None:
    vectors = random_vectors(seed, count, centres, noise)
    parts = split(vectors, threshold)
    assert sorted(i for part in parts for i in part) == list(range(count))
    assert max(map(len, parts)) <= MAX_MEMBERS
    assert parts == split(vectors, threshold)
