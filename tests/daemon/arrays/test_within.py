"""Full text as if there were nothing but what the caller reaches."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.daemon.arrays import lexical
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.store import Store
from workbench import arrays_of, build_mask, insert


def search(store: Store, text: str, *names: str) -> dict[int, float]:
    numbers = frozenset(number for name in names if (number := store.namespaces.find_number(name)) is not None)
    within = build_mask(store, Filter(numbers), 0.0)
    with store.reading() as connection:
        question = lexical.ask(connection, arrays_of(store).postings, text, reached=within)
        return dict(lexical.rank(arrays_of(store).postings, question, within, 10))


def test_the_score_is_bm25_over_the_reached_memories(store: Store) -> None:
    rows = [insert(store, text, "a").row for text in ("red apple", "red red pear and more words", "a plum")]
    for number in range(20):
        insert(store, f"red thing number {number} of somebody else", "b")
    scores = search(store, "red", "a")
    average = (2 + 6 + 2) / 3
    rarity = math.log((3 - 2 + 0.5) / (2 + 0.5))
    assert rarity < 0
    # FTS5's floor for what stands in more than half of all memories.
    assert scores[rows[0]] == pytest.approx(1e-6 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / average)))
    plum = search(store, "plum", "a")
    expected = math.log((3 - 1 + 0.5) / (1 + 0.5)) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / average))
    assert plum == {rows[2]: pytest.approx(expected)}


def test_nothing_reached_or_no_such_word_gives_nothing(store: Store) -> None:
    assert search(store, "red", "a") == {}
    insert(store, "red apple", "b")
    assert search(store, "red", "a", "c") == {}
    assert search(store, "zebra", "b") == {}


@settings(max_examples=8)
@given(
    own=st.lists(st.text("abc ", min_size=1, max_size=12).filter(str.strip), max_size=5, unique=True),
    others=st.lists(st.text("abc ", min_size=1, max_size=12).filter(str.strip), max_size=5, unique=True),
)
def test_scores_do_not_depend_on_what_is_not_reached(tmp_path_factory: Any, own: list[str], others: list[str]) -> None:
    scores = []
    for hidden in (others, []):
        store = Store(tmp_path_factory.mktemp("store"), derived=Arrays())
        try:
            texts = {insert(store, text, "a", id=f"{number:032x}").row: text for number, text in enumerate(own)}
            for number, text in enumerate(hidden, start=100):
                insert(store, text, "b", id=f"{number:032x}")
            found = search(store, "a b c ab bc", "a") if own else {}
            scores.append({texts[row]: score for row, score in found.items()})
        finally:
            store.close()
    assert scores[0] == scores[1]
