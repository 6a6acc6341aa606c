"""What becomes of notes, by rules: chains, repeats, and that nothing goes without one that is kept for it."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.dreams.fates import (
    DreamNote,
    Likeness,
    NoteFate,
    find_distinct,
    find_fates,
    group_notes,
    simplify,
    spread,
)

TEXTS = [
    "The cache is Redis.",
    "Decided: we use Valkey instead of Redis for the cache.",
    "The cache moved from Valkey to KeyDB.",
    "The cache is redis",
    "Had lunch with Anna.",
    "Lena maintains the billing service.",
    "The API timeout is 30 s.",
    "The API timeout is 60 s.",
]


def judged(*notes: tuple[str, bool], cosine: float = 0.7) -> list[NoteFate]:
    """Return what becomes of notes (text, stands), oldest first, all equally alike."""
    made = [DreamNote(text, f"2026-01-{day:02}", stands) for day, (text, stands) in enumerate(notes, 1)]
    cosines = np.full((len(made), len(made)), cosine, np.float32)
    return find_fates(made, Likeness(cosines, 0.5, 0.9))


def test_of_a_chain_of_changes_the_last_stays_for_all_of_them() -> None:
    first, second, third = judged((TEXTS[0], True), (TEXTS[1], False), (TEXTS[2], False))
    assert (first.judgement, second.judgement, third.judgement) == ("outdated", "outdated", "keep")
    assert (first.by, second.by) == (2, 2)


def test_what_holds_again_stays_where_it_stands() -> None:
    found = judged((TEXTS[6], True), (TEXTS[7], False), ("The API timeout is 30 s", False))
    assert [fate.judgement for fate in found] == ["keep", "outdated", "repeats"]
    assert (found[1].by, found[2].by) == (0, 0)


def test_what_no_item_says_differently_stays_in_the_daily_files_with_its_own_changes() -> None:
    found = judged((TEXTS[5], True), (TEXTS[6], False), (TEXTS[7], False), (TEXTS[7], False))
    assert found == [NoteFate("keep"), *[NoteFate("passing")] * 3]
    assert judged((TEXTS[6], False), (TEXTS[7], False)) == [NoteFate("passing")] * 2


def sound(notes: Sequence[DreamNote], found: Sequence[NoteFate]) -> bool:
    """Tell whether each note is kept, of a day, or has a kept one for it."""
    return all(
        (fate.by is None and (fate.judgement == "keep" or not note.stands))
        if fate.judgement in ("keep", "passing")
        else fate.by is not None and found[fate.by].judgement == "keep"
        for note, fate in zip(notes, found, strict=True)
    )


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(TEXTS), st.booleans()), max_size=10), st.floats(0.0, 1.0))
def test_nothing_goes_without_one_that_is_kept_for_it(chosen: list[tuple[str, bool]], cosine: float) -> None:
    notes = [DreamNote(text, "", stands) for text, stands in chosen]
    assert sound(notes, judged(*chosen, cosine=cosine))
    newest = find_distinct(notes)
    standing = {simplify(note.text) for note in notes if note.stands}
    asked = [notes[number]._replace(stands=simplify(notes[number].text) in standing) for number in newest]
    cosines = np.full((len(asked), len(asked)), cosine, np.float32)
    made = find_fates(asked, Likeness(cosines, 0.5, 0.9))
    found = {
        number: fate if fate.by is None else fate._replace(by=newest[fate.by])
        for number, fate in zip(newest, made, strict=True)
    }
    assert sound(notes, spread(notes, found))


@given(st.integers(0, 12), st.integers(0, 1000))
def test_groups_hold_every_note_once(count: int, seed: int) -> None:
    cosines = np.random.default_rng(seed).uniform(0, 1, (count, count)).astype(np.float32)
    cosines = np.maximum(cosines, cosines.T)
    found = list(group_notes(cosines, 0.8))
    assert sorted(number for group in found for number in group) == list(range(count))
    for one in found:
        others = [number for group in found if group is not one for number in group]
        assert not others or not one or cosines[np.ix_(one, others)].max() < 0.8
