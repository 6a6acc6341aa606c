"""Positions: small numbers for the rows that exist, used again once nobody can mean the former row."""

import random

import numpy as np

from each import each
from memoryd.daemon.arrays.positions import Positions


def test_rows_far_apart_take_as_many_positions_as_there_are_rows() -> None:
    positions = Positions()
    rows = [10_000_000 * number + 7 for number in range(200)]
    places = positions.ensure(rows)[0]
    assert sorted(places.tolist()) == list(range(200))
    assert positions.read_rows(places).tolist() == rows
    assert positions.find([*rows, 8, -1, 10**12]).tolist() == [*places.tolist(), -1, -1, -1]
    assert positions.find_one(rows[5]) == places[5]
    assert [positions.find_one(row) for row in (8, -1, 10**12)] == [-1, -1, -1]


def test_memory_follows_the_rows_that_exist_not_the_numbers_ever_used() -> None:
    positions = Positions()
    for first in range(0, 200_000, 1000):
        positions.ensure(range(first, first + 1000))
        positions.give_up(range(first, first + 1000))
    assert positions.count <= 2000
    assert positions.size_bytes() < 200_000


def test_a_position_is_not_used_again_while_somebody_may_mean_its_former_row() -> None:
    positions = Positions()
    [place] = positions.ensure([1])[0]
    reader = positions.epoch
    positions.give_up([1])
    assert positions.ensure([2])[0].tolist() != [place]
    assert positions.read_rows(np.array([place])).tolist() == [1]
    assert positions.find([1]).tolist() == [place]
    later = positions.epoch  # of one who cannot mean it any more
    del reader
    assert positions.ensure([3])[0].tolist() == [place]
    assert positions.find([1]).tolist() == [-1]
    del later


@each("seed", range(5))
def test_after_any_changes_each_row_has_a_position_of_its_own(seed: int) -> None:
    dice, positions, alive = random.Random(seed), Positions(), set[int]()
    most = 0
    for _ in range(400):
        rows = {dice.randrange(5000) for _ in range(dice.randrange(1, 30))}
        if dice.random() < 0.5:
            places = positions.ensure(rows)[0]
            assert positions.read_rows(places).tolist() == list(rows)
            alive |= rows
        else:
            positions.give_up(rows)
            alive -= rows
        most = max(most, len(alive))
    places = positions.find(alive)
    assert (places >= 0).all()
    assert len(set(places.tolist())) == len(alive)
    assert positions.read_rows(places).tolist() == list(alive)
    assert positions.count <= most + 2 * 30 * 2  # some wait for the change after next
