"""Ways to search: by one arm, by a vector, like a memory, page by page, equal texts each by itself, with vectors."""

from typing import Any

import numpy as np
import pytest

from each import each
from memoryd.client.errors import Conflict, Invalid, ModelUnavailable, NotFound
from memoryd.client.protocol import Get, Hits, List, NewMemory, NewTurn, Observe, Search
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from workbench import CountingEmbedder, add, add_many, ask, options_of, running


def search(core: Core, query: str = "", **fields: Any) -> Hits:
    return ask(core, Search(query=query, **options_of(fields)))


@pytest.fixture
def filled(core: Core) -> Core:
    add_many(core, [NewMemory(content=f"herons fish at dawn number {n}") for n in range(30)], dedup=False)
    add(core, "storks nest on roofs")
    return core


def test_by_words_alone_the_query_is_not_embedded(tmp_path: Any) -> None:
    embedder = CountingEmbedder()
    with running(tmp_path, embedder) as core:
        add(core, "herons fish at dawn")
        hits = search(core, "herons", mode="lexical")
        assert [hit.similarity for hit in hits] == [None]
        assert (embedder.queries, hits.degraded) == ([], [])


def test_by_meaning_alone_the_score_is_the_cosine(filled: Core) -> None:
    hits = search(filled, "storks nest on roofs", mode="dense", limit=40)
    assert hits[0].content == "storks nest on roofs"
    assert all(hit.bm25 is None and hit.score == pytest.approx(max(0.0, hit.similarity or 0.0)) for hit in hits)


def test_by_meaning_alone_nothing_is_found_without_a_model(tmp_path: Any) -> None:
    with running(tmp_path, lambda name, where: (_ for _ in ()).throw(OSError("no model")), ready=False) as core:
        add(core, "herons fish at dawn")
        hits = search(core, "herons", mode="dense")
        assert (hits.hits, hits.degraded) == ([], ["vector"])
        with pytest.raises(ModelUnavailable):
            search(core, vector=[1.0, 0.0])


@pytest.fixture
def stopping(core: Core) -> Core:
    """A memory and a turn of L0 that hold the stop words of a question."""
    add(core, "the cat and the hat of whom it was")
    turn = NewTurn(role="user", content="what is the colour of the door of the barn")
    ask(core, Observe(turns=[turn], session="s"))
    return core


@pytest.mark.parametrize("words_alone", [{"mode": "lexical"}, {"vector_weight": 0.0}], ids=["mode", "weight"])
def test_by_words_alone_a_question_of_stop_words_finds_nothing(stopping: Core, words_alone: dict[str, Any]) -> None:
    assert search(stopping, "What is the, of it?", **words_alone).hits == []
    assert [hit.tier for hit in search(stopping, "what is the barn of it", **words_alone)] == ["L0"]


def test_without_a_model_a_question_of_stop_words_finds_nothing(tmp_path: Any) -> None:
    with running(tmp_path, lambda name, where: (_ for _ in ()).throw(OSError("no model")), ready=False) as core:
        add(core, "what is the matter")
        found = search(core, "what is the")
        assert (found.hits, found.degraded) == ([], ["vector"])


def test_a_vector_is_searched_whatever_its_length(filled: Core) -> None:
    [stork] = search(filled, "storks nest on roofs", limit=1, include_vectors=True)
    assert stork.vector is not None
    longer = [7.0 * value for value in stork.vector]
    found = search(filled, vector=longer, limit=3, include_vectors=True)
    assert found[0].id == stork.id
    assert found[0].score == pytest.approx(1.0, abs=1e-5)
    assert found[0].vector == pytest.approx(stork.vector)
    assert len(search(filled, "herons", vector=longer, limit=3)) == 3


@each(
    ("fields", "says"),
    [
        ({}, "query is empty"),
        ({"vector": [1.0]}, "has 1 dimensions"),
        ({"vector": "zeros"}, "zero"),
        ({"vector": "nans"}, "not a finite number"),
        ({"vector": "ones", "like": "abcd"}, "not both"),
        ({"like": "x"}, "not an id"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(filled: Core, fields: dict[str, Any], says: str) -> None:
    assert filled.embedding.active is not None
    size = filled.embedding.active.index.dimensions
    vectors = {"zeros": [0.0] * size, "nans": [float("nan")] * size, "ones": [1.0] * size}
    given = {name: vectors.get(value, value) if isinstance(value, str) else value for name, value in fields.items()}
    with pytest.raises(Invalid, match=says):
        search(filled, **given)


def test_memories_like_one_are_found_without_it(filled: Core) -> None:
    first = search(filled, "herons at dawn", limit=1)[0]
    found = search(filled, like=first.id[:8], limit=40)
    assert len(found) == 30
    assert first.id not in {hit.id for hit in found}
    assert found[0].content.startswith("herons fish")
    assert found[-1].content == "storks nest on roofs"
    with pytest.raises(NotFound):
        search(filled, like="ffffffff")


def test_memories_like_a_turn_in_l0_are_found_without_it(filled: Core) -> None:
    text = "pelicans fish at noon"
    [id] = ask(filled, Observe(turns=[NewTurn(role="user", content=text)], session="s")).ids
    add(filled, text, dedup=False)  # a text has one vector, whoever says it
    found = search(filled, like=id, limit=40)
    assert found[0].content == text
    assert id not in {hit.id for hit in found}


def test_like_a_memory_without_a_vector_nothing_can_be_found(tmp_path: Any) -> None:
    with running(tmp_path, CountingEmbedder()) as core:
        id = add(core, "poison ivy").id
        with pytest.raises(Conflict, match="no vector yet"):
            search(core, like=id)


def test_equal_texts_are_one_hit_the_newest_unless_each_is_asked_for(core: Core) -> None:
    times = (30.0, 50.0, 40.0)
    made = [
        add(core, "herons fish", dedup=False, created_at=at, metadata={"n": "herons " * 3 if at == 30 else ""})
        for at in times
    ]
    assert [hit.id for hit in search(core, "herons")] == [made[1].id]
    assert {hit.id for hit in search(core, "herons", distinct=False)} == {one.id for one in made}


def test_get_shows_the_vector_when_asked(filled: Core) -> None:
    [stork] = search(filled, "storks nest on roofs", limit=1)
    assert stork.vector is None
    vector = reading.get(filled, Get(id=stork.id, include_vectors=True)).vector
    assert np.linalg.norm(vector or []) == pytest.approx(1.0, abs=1e-5)
    assert all(memory.vector is None for memory in ask(filled, List()))
