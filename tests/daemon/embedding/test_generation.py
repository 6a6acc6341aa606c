"""A model with its index: each memory is in the index or waits, at every moment that somebody asks."""

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest

from memoryd.daemon.embedding.generation import Generation
from workbench import WordEmbedder


def test_a_row_between_the_queue_and_the_index_is_counted_as_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    generation, vector = Generation(1, "words", WordEmbedder()), WordEmbedder().embed_texts(["A heron."])[0]
    generation.index_row(1, 0, "fact", None)
    add, counts = generation.index.add, list[int]()

    def count_meanwhile(*given: Any) -> None:
        counting = pool.submit(generation.count_waiting)
        wait([counting], 0.1)
        counts.extend([counting.result()] if counting.done() else [])
        add(*given)

    monkeypatch.setattr(generation.index, "add", count_meanwhile)
    with ThreadPoolExecutor() as pool:
        generation.index_row(1, 0, "fact", vector)
    assert 0 not in counts
    assert (generation.count_waiting(), len(generation.index)) == (0, 1)
