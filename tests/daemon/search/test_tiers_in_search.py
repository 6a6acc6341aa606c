"""The tiers in a search: the hot buffer, L0; and what a search leaves behind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from each import each
from memoryd.client.protocol import ExportMemories, Get, GetContext, Hit, List, NewTurn, Observe, WhyNot
from memoryd.daemon.context import preparing
from memoryd.daemon.conversations import judging
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.search import postprocess
from memoryd.daemon.store import rows, turns
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L2, TIERS
from memoryd.daemon.store.turns import StoredTurn
from memoryd.daemon.tiers.hot import HotBuffer
from workbench import (
    LIMIT_S,
    CountingEmbedder,
    add,
    add_many,
    ask,
    delete,
    found,
    no_model,
    running,
    search,
    trace,
    update,
)


def row_of(core: Core, id: str) -> Row:
    with core.store.reading() as connection:
        return rows.read_ids(connection, [id])[id]


def notes(core: Core, hits: Any, stage: str) -> dict[str, Any]:
    return next(entry.notes for entry in trace(core, hits.trace).stages if entry.name == stage)


def origins(core: Core, hits: Any) -> dict[str, list[str]]:
    return {candidate.id: candidate.origins for candidate in trace(core, hits.trace).candidates}


# A tier without a stage ----------------------------------------------------------------------------------------------


def test_what_is_in_a_tier_without_a_stage_is_not_searched_and_nothing_is_merged_into_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TIERS, L2, TIERS[L2]._replace(stage=""))
    with running(folder, CountingEmbedder()) as core:
        id = add(core, "the heron stands in the reeds").id
        assert found(core, "heron reeds") == ["the heron stands in the reeds"]
        row = row_of(core, id).row
        core.store.write(lambda transaction: rows.change(transaction.connection, row, {"tier": L2})).result()
        assert found(core, "heron reeds") == []
        why = ask(core, WhyNot(query="heron reeds", id=id))
        assert (why.stage, why.reason) == ("filter", "no search returns it: searches do not look into L2")
        again = add(core, "the heron stands in the reeds")
        assert (again.outcome, again.id == id) == ("created", False)
        assert found(core, "heron reeds") == ["the heron stands in the reeds"]


# The hot buffer ------------------------------------------------------------------------------------------------------


def test_the_hot_buffer_keeps_the_latest_of_each_namespace() -> None:
    buffer = HotBuffer(capacity=3)
    assert buffer.list_rows("a") == []
    buffer.put("a", [1, 2])
    buffer.put("a", [3, 1, 4])
    buffer.put("b", [9])
    assert buffer.list_rows("a") == [4, 1, 3]
    assert buffer.fill() == {"a": 3, "b": 1}


def test_what_a_search_returned_is_hot_for_the_next_one_of_that_namespace_alone(core: Core) -> None:
    id = add(core, "the heron stands in the reeds", "a").id
    assert notes(core, search(core, "heron reeds", namespace="a"), "hot") == {}
    core.effects.flush()
    again = search(core, "heron stands", namespace="a")
    assert notes(core, again, "hot") == {"hits": 1, "held": 1}
    assert "hot" in origins(core, again)[id]
    assert notes(core, search(core, "heron stands", namespace="b", reach="all"), "hot") == {}
    assert notes(core, search(core, "unlike", namespace="a"), "hot") == {"hits": 0, "held": 1}


def test_what_was_deleted_or_changed_is_not_met_in_the_hot_buffer(core: Core) -> None:
    gone, changed = add(core, "the heron stands").id, add(core, "the egret flies").id
    search(core, "heron egret")
    core.effects.flush()
    delete(core, gone)
    update(core, changed, content="an otter swims")
    assert found(core, "heron", min_similarity=0.5) == []
    assert found(core, "the egret flies", min_similarity=0.5) == []
    assert found(core, "an otter swims", min_similarity=0.5) == ["an otter swims"]


# L0 ------------------------------------------------------------------------------------------------------------------


def observe(core: Core, contents: Sequence[str], namespace: str = "") -> None:
    """Put turns into the journal as observing does, without its gate."""

    def job(transaction: Any) -> None:
        place = core.store.namespaces.ensure(transaction, namespace)
        for content in contents:
            turn = StoredTurn(
                key=f"{abs(hash((content, namespace))):032x}"[:32],
                namespace=place,
                session="s",
                role="user",
                created_at=core.clock(),
                content_hash=content.encode(),
                content=content,
            )
            turns.insert(transaction.connection, turn)
        core.active.follow(transaction, [place])

    core.store.write(job).result(LIMIT_S)


def test_the_last_turns_are_found_by_their_words_and_marked_l0(core: Core) -> None:
    add(core, "herons eat fish")
    observe(core, ["yesterday I saw a heron at the weir", "nothing to do with it"])
    hits = search(core, "heron at the weir")
    assert (hits[0].content, hits[0].tier) == ("yesterday I saw a heron at the weir", "L0")
    assert "nothing to do with it" not in [hit.content for hit in hits]
    assert all(0.0 <= hit.score <= 1.0 for hit in hits)


@pytest.fixture
def weir(core: Core) -> Core:
    observe(core, ["a heron at the weir"], "a")
    add(core, "elsewhere", "c")
    return core


@each(
    ("options", "expected"),
    [
        ({}, True),
        ({"tier": ["L0"]}, True),
        ({"tier": ["L1", "L2"]}, False),
        ({"type": ["turn"], "source": ["conversation"]}, True),
        ({"type": ["fact"]}, False),
        ({"where": {"k": "v"}}, False),
        ({"where": {"role": "user"}}, True),
        ({"where": {"role": {"$eq": ["user"]}}}, False),
        ({"where": {"speaker": None}}, False),
        ({"path_prefix": "a"}, False),
        ({"after": 1e9}, True),
        ({"before": 1e9}, False),
        ({"namespace": "a/b"}, True),
        ({"namespace": "c"}, False),
    ],
)
def test_filters_and_reach_hold_for_turns_as_well(weir: Core, options: dict[str, Any], expected: bool) -> None:
    assert ("a heron at the weir" in found(weir, "heron", **options)) == expected


def test_all_of_l0_is_searched_by_words_by_meaning_and_by_what_is_known_of_a_turn(core: Core) -> None:
    said = [f"heron number {number}" for number in range(20)]
    observe(core, said)
    assert set(found(core, "heron", limit=30)) == set(said)
    turn = NewTurn(role="user", content="we saw it again", speaker="Farid", files=["birds.md"])
    [id] = ask(core, Observe(turns=[turn], namespace="b")).ids
    assert found(core, "farid", namespace="b")[0] == "we saw it again"
    for metadata in ({"speaker": "Farid"}, {"files": "birds.md"}):
        assert found(core, "saw", where=metadata) == ["we saw it again"]
    assert [one.id for one in ask(core, ExportMemories(ids=[id[:8]]))] == [id]
    assert found(core, "zebra") == []
    observe(core, [f"{'nothing but reeds and rain. ' * 200}At the end a zebra came."], "long")
    assert found(core, "zebra", namespace="long")[0].endswith("At the end a zebra came.")
    near = [NewTurn(role="user", content=text) for text in said]
    ask(core, Observe(turns=near, namespace="c"))
    while judging.step(core):
        pass
    hits = search(core, "zebra", limit=5, namespace="c").hits
    assert len(hits) == 5
    assert all(hit.similarity is not None for hit in hits)


# What a search leaves behind -----------------------------------------------------------------------------------------


def test_the_texts_that_are_kept_read_are_bounded(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.daemon.tiers.active.MOST_STEMS", 100)
    observe(core, [f"heron number {number}" for number in range(20)])
    assert len(found(core, "heron", limit=30)) == 20
    assert len(core.active._texts) == 4  # of 3 stems and 20 for the vector
    assert len(found(core, "heron", limit=30)) == 20


def test_hits_are_counted_as_accessed_after_the_reply(core: Core, clock: Any) -> None:
    id = add(core, "the heron stands").id
    search(core, "heron")
    clock.advance(5)
    search(core, "heron")
    core.effects.flush()
    row = row_of(core, id)
    assert (row.access_count, row.last_accessed_at) == (2, core.clock())


def accesses(core: Core) -> dict[str, int]:
    core.effects.flush()
    return {memory.content: memory.access_count for memory in ask(core, List(limit=100))}


def test_only_hits_above_the_floor_of_the_model_count_as_accessed(core: Core) -> None:
    near, far = "the grey heron stands", "a stork sleeps on the old chimney of the town hall near the heron pond"
    add(core, near)
    add(core, far)
    hits = list(search(core, "grey heron stands"))
    assert [hit.content for hit in hits] == [near, far]
    assert (hits[0].similarity or 0) >= 0.3 > (hits[1].similarity or 0)
    assert accesses(core) == {near: 1, far: 0}
    assert set(core.hot.list_rows("")) == {row_of(core, hit.id).row for hit in hits}


def test_a_hit_just_below_the_floor_that_has_most_of_the_rare_words_counts(core: Core) -> None:
    add(core, "a stork sleeps on the old chimney of the town hall near the heron pond", id="aa" * 16)
    for number in range(5):
        add(core, f"number {number} says nothing of birds")
    [hit, *_] = search(core, "heron")
    assert 0.15 <= (hit.similarity or 0.0) < 0.3
    core.effects.flush()
    assert row_of(core, "aa" * 16).access_count == 1


def test_without_a_model_the_words_of_the_query_say_what_is_an_access(folder: Path) -> None:
    with running(folder, no_model, ready=False) as core:
        add(core, "the grey heron stands")
        add(core, "a stork sleeps near the heron pond")
        for number in range(5):
            add(core, f"number {number} says nothing of birds")
        assert len(list(search(core, "grey heron stands"))) == 2
        assert {content for content, count in accesses(core).items() if count} == {"the grey heron stands"}


def test_a_context_counts_what_is_relevant_to_its_task_and_not_what_is_in_every_one(core: Core) -> None:
    add(core, "the grey heron stands")
    add(core, "always answer in english", pinned=True)
    text = preparing.context(core, core.sources, GetContext(task="grey heron stands")).result(LIMIT_S).text
    assert "english" in text
    assert accesses(core) == {"the grey heron stands": 1, "always answer in english": 0}


def test_reading_by_id_is_an_access_and_listing_is_none(core: Core, clock: Any) -> None:
    id = add(core, "the heron stands").id
    ask(core, Observe(turns=[NewTurn(role="user", content="The heron is grey.")]))
    clock.advance(5)
    assert ask(core, Get(id=id)).access_count == 0
    ask(core, Get(id=id[:8]))
    for turn in core.active.list_turns(None):
        ask(core, Get(id=turn.key))
    core.effects.flush()
    reading.get(core, Get(id=id))
    ask(core, List())
    core.effects.flush()
    row = row_of(core, id)
    assert (row.access_count, row.last_accessed_at) == (2, clock.now)
    assert core.hot.fill() == {}


def test_marks_are_carried_out_by_themselves_and_at_the_end(core: Core) -> None:
    id = add(core, "the heron stands").id
    search(core, "heron")
    core.effects.close()
    assert row_of(core, id).access_count == 1


# Rank, variety, processors -------------------------------------------------------------------------------------------


def test_variety_puts_the_unlike_before_the_repetition(core: Core) -> None:
    for content in ("grey heron at the weir", "grey heron at the weir again", "heron chicks"):
        add(core, content, dedup=False)
    plain = found(core, "grey heron weir", limit=3)
    varied = found(core, "grey heron weir", limit=3, mmr_lambda=0.5)
    assert plain[2] == "heron chicks"
    assert varied[:2] == [plain[0], "heron chicks"]
    assert sorted(varied) == sorted(plain)
    assert found(core, "grey heron weir", limit=3, mmr_lambda=1.0) == plain


def test_profiles_give_different_scores_and_the_same_memories(core: Core) -> None:
    add_many(core, ["grey heron", "white egret", "heron and egret"])
    scores = {}
    for name in ("default", "memweave", "memori", "swarm", "cache"):
        hits = search(core, "heron egret", profile=name, min_score=0.0, min_similarity=-1.0)
        assert {hit.content for hit in hits} == {"grey heron", "white egret", "heron and egret"}
        assert hits[0].content == "heron and egret"
        scores[name] = round(hits[0].score, 6)
    assert len(set(scores.values())) == 5


def test_the_cache_profile_asks_l2_only_when_l1_has_too_little(core: Core) -> None:
    for number in range(6):
        add(core, f"heron {number}", dedup=False)
    old = row_of(core, add(core, "heron old", dedup=False).id)
    core.store.write(lambda t: rows.change(t.connection, old.row, {"tier": "L2"})).result(LIMIT_S)
    assert "heron old" not in found(core, "heron", profile="cache")
    assert "heron old" in found(core, "heron")
    delete(core, search(core, "heron", tier=["L1"]).hits[0].id)
    assert "heron old" in found(core, "heron", profile="cache")


def test_processors_change_the_hits_and_a_failing_one_is_named(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    add_many(core, ["grey heron", "white heron"])

    def backwards(query: str, hits: list[Hit]) -> list[Hit]:
        return hits[::-1]

    def fails(query: str, hits: list[Hit]) -> list[Hit]:
        raise ValueError(query)

    def returns_nonsense(query: str, hits: list[Hit]) -> Any:
        return None

    plain = found(core, "heron")
    given = (("backwards", backwards), ("fails", fails), ("nonsense", returns_nonsense))
    monkeypatch.setattr(postprocess, "load_processors", lambda: given)
    hits = search(core, "heron")
    assert [hit.content for hit in hits] == plain[::-1]
    assert hits.degraded == ["postprocessor fails", "postprocessor nonsense"]
    assert notes(core, hits, "postprocess") == {"processors": ["backwards", "fails", "nonsense"]}


def test_similarities_by_codes_are_those_of_the_vectors(core: Core) -> None:
    ids = [added.id for added in add_many(core, ["grey heron", "white egret", "otter"])]
    generation = core.embedding.active
    assert generation is not None
    query = generation.embedder.embed_query("grey heron")
    numbers = np.array([row_of(core, id).row for id in ids] + [10**6])
    near = dict(generation.index.compute_similarities(query, numbers))
    exact = generation.embedder.embed_texts(["grey heron", "white egret", "otter"]) @ query
    assert list(near.values()) == pytest.approx(exact.tolist(), abs=0.02)
    assert len(near) == 3
    assert generation.index.compute_similarities(query, np.zeros(0, np.int64)) == []
