"""A search as a whole: both arms, every filter, limits, floors, what is never shown, what is left out."""

from typing import Any

import pytest

from each import each
from memoryd.client.errors import Invalid
from memoryd.client.protocol import NewMemory
from memoryd.daemon.core.core import Core
from memoryd.daemon.search import candidates
from waiting import wait_until
from workbench import LIMIT_S, add, add_many, delete, found, search, update


@pytest.fixture
def shelf(core: Core) -> Core:
    """Memories about herons that differ in every field that can be filtered."""
    add(core, "heron one", "a", type="lesson", created_at=10.0, metadata={"k": "x", "n": 1})
    add(core, "heron two", "a/b", source="import", created_at=20.0, metadata={"k": ["x", "y"]})
    add(core, "heron three", "c", created_at=30.0, id="ab" * 16)
    core.store.write(
        lambda transaction: transaction.connection.execute(
            "UPDATE memories SET tier = 'L2', path = 'notes/birds.md' WHERE content = 'heron three'"
        )
    ).result()
    return core


@each(
    ("filters", "left"),
    [
        ({}, {"one", "two", "three"}),
        ({"type": ["lesson"]}, {"one"}),
        ({"source": ["import", "other"]}, {"two"}),
        ({"tier": ["L2"]}, {"three"}),
        ({"where": {"k": "x"}}, {"one", "two"}),
        ({"where": {"k": "x", "n": 1}}, {"one"}),
        ({"after": 10.0}, {"two", "three"}),
        ({"before": 30.0}, {"one", "two"}),
        ({"path_prefix": "notes/"}, {"three"}),
        ({"namespace": "a"}, {"one"}),
        ({"namespace": "a/b"}, {"one", "two"}),
        ({"namespace": "a", "reach": "subtree"}, {"one", "two"}),
        ({"namespace": "a/b", "reach": "exact"}, {"two"}),
        ({"namespace": "c/d"}, {"three"}),
        ({"namespace": "ab"}, set()),
        ({"namespace": "new", "reach": "exact"}, set()),
        ({"namespace": "new", "reach": "all"}, {"one", "two", "three"}),
        ({"namespace": "a/b", "type": ["fact"]}, {"two"}),
    ],
)
@each("query", ["heron", "absent"])
def test_every_filter_holds_for_words_and_for_meaning(
    shelf: Core, query: str, filters: dict[str, Any], left: set[str]
) -> None:
    """The word that no memory holds is answered by the vectors alone."""
    assert {content.split()[1] for content in found(shelf, query, **filters)} == left


@pytest.mark.parametrize("count", [0, 1, 2, 30])
@pytest.mark.parametrize("limit", [1, 2, 10, 1000])
def test_any_number_of_memories_gives_up_to_the_limit_best_first(core: Core, count: int, limit: int) -> None:
    add_many(core, [f"heron {n} {'bird ' * n}" for n in range(count)], dedup=False)
    hits = search(core, "heron bird", limit=limit)
    assert len(hits) == min(count, limit)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 <= hit.score <= 1 and hit.similarity is not None for hit in hits)


def test_what_was_just_written_is_found_and_what_was_just_deleted_is_not(core: Core) -> None:
    for number in range(20):
        added = add(core, f"heron {number} came")
        assert found(core, f"heron {number} came")[0] == f"heron {number} came"
        update(core, added.id, content=f"stork {number} went")
        assert found(core, f"stork {number} went")[0] == f"stork {number} went"
        delete(core, added.id)
        assert found(core, f"stork {number} went") == []


def test_superseded_and_expired_are_never_shown_however_well_they_match(core: Core, clock: Any) -> None:
    """So many that the best of the vectors are all dead: those alive are found behind them."""
    dead = [NewMemory(content=f"heron {n}", expires_at=clock() + 5) for n in range(400)]
    add_many(core, dead, dedup=False)
    old = add(core, "heron at the mill")
    add(core, "an entirely other bird", supersedes=old.id)
    add(core, "heron pinned", expires_at=clock() + 5, pinned=True)
    clock.advance(10)
    assert set(found(core, "heron")) == {"heron pinned", "an entirely other bird"}
    assert set(found(core, "heron", reach="all", type=["fact"])) == {"heron pinned", "an entirely other bird"}


def test_floors_cut_by_score_and_by_similarity(core: Core) -> None:
    add_many(core, ["heron stork", "heron ibis", "crane egret"])
    hits = search(core, "heron stork")
    assert len(hits) == 3  # a plain search is never emptied
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert found(core, "heron stork", min_score=0.99) == ["heron stork"]
    assert found(core, "heron stork", min_similarity=0.99) == ["heron stork"]
    assert len(search(core, "heron stork", min_similarity=-1.0)) == 3
    assert found(core, "heron stork", min_score=1.0, min_similarity=1.0) in ([], ["heron stork"])


@pytest.mark.parametrize("query", ["", "  \n", "x" * 100_001])
def test_a_query_that_cannot_be_asked_is_refused(core: Core, query: str) -> None:
    with pytest.raises(Invalid):
        search(core, query)


def test_a_deadline_already_past_still_gives_an_answer_that_says_what_is_missing(core: Core) -> None:
    add_many(core, [f"heron {n}" for n in range(50)])
    state = search(core, "heron", deadline_ms=1)
    assert set(state.degraded) <= {"vector", "fulltext"}
    search(core, "heron")
    assert search(core, "heron", deadline_ms=60_000).degraded == []


def test_exact_vectors_are_found_again_after_they_were_changed_and_made_anew(core: Core) -> None:
    ids = [added.id for added in add_many(core, ["grey heron", "white egret", "brown otter"])]
    generation = core.embedding.active
    assert generation is not None

    def exact(query: str) -> float | None:
        return search(core, query, limit=1).hits[0].similarity

    for _ in range(2):  # the second time by their places
        assert exact("grey heron") == pytest.approx(1.0)
    update(core, ids[0], content="blue heron")
    for _ in range(2):
        assert exact("blue heron") == pytest.approx(1.0)
        assert (exact("grey heron") or 0.0) < 0.9
    core.store.write(lambda transaction: transaction.connection.execute("DELETE FROM vec_embeddings")).result(LIMIT_S)
    core.embedding.refresh(range(1, 4))
    wait_until(lambda: generation.count_waiting() == 0)
    assert exact("white egret") == pytest.approx(1.0)


def test_a_known_vector_among_many_is_searched_for_beside_the_words_with_the_same_result(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_many(core, [f"{bird} by the {place}" for bird in ("heron", "ibis") for place in "abcdef"])
    for query in ("heron c", "the ibis"):
        one_by_one = [search(core, query, touch=False) for _ in range(2)][1]
        with monkeypatch.context() as patch:
            patch.setattr(candidates, "_LARGE", 1)
            beside = search(core, query, touch=False)
        assert beside.hits == one_by_one.hits
        assert len(beside.hits) > 1
