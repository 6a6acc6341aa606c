"""Why a memory is not among the hits: each reason there is."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from conversing import observe, settle, talk
from each import each
from memoryd.client.errors import Invalid, NotFound
from memoryd.client.protocol import Feedback, NewMemory, Why, WhyNot
from memoryd.daemon.core.core import Core
from memoryd.daemon.search.outcomes import describe_why, format_figures
from memoryd.daemon.search.whynot import why_not
from memoryd.daemon.store.caller import Caller
from workbench import Clock, CountingEmbedder, add, add_many, ask, delete, no_model, options_of, running, search


def why(core: Core, id: str, query: str = "heron one", **options: Any) -> Why:
    return ask(core, WhyNot(id=id, query=query, **options_of(options)))


def test_a_hit_is_found_with_its_rank_and_scores(core: Core) -> None:
    ids = [add(core, text).id for text in ("heron one", "heron two")]
    hits = search(core, "heron one").hits
    answer = why(core, ids[1][:8])
    assert (answer.id, answer.found, answer.rank, answer.stage, answer.reason) == (ids[1], True, 2, "", "")
    assert (answer.score, answer.similarity, answer.bm25) == (hits[1].score, hits[1].similarity, hits[1].bm25)
    assert (answer.similarity_rank, answer.bm25_rank, answer.last_hit_score) == (2, 2, hits[1].score)


def test_the_ranks_by_meaning_and_by_words_count_the_turns_of_l0(core: Core) -> None:
    observe(core, "heron one", "heron one two")
    stored = add(core, "heron one three four").id
    settle(core, "L0")
    assert [hit.id for hit in search(core, "heron one").hits][2] == stored
    answer = why(core, stored)
    assert (answer.rank, answer.similarity_rank, answer.bm25_rank) == (3, 3, 3)


def test_of_a_memory_out_of_reach_the_owner_is_told_where_it_is(core: Core) -> None:
    id = add(core, "heron one", "her").id
    answer = why(core, id, namespace="me")
    assert (answer.found, answer.stage, answer.namespace) == (False, "reach", "her")
    assert answer.reason == "it is in her, which is not seen from me; the reach `all` sees all there is"
    assert "which is not seen from / with the reach exact;" in why(core, id, reach="exact").reason
    with pytest.raises(
        NotFound, match=r"No memory has an id .* 0000\. It may have been erased, or its file was changed"
    ):
        why(core, "0000")
    bound = core.sources._replace(caller=Caller("agent", "me"))
    with pytest.raises(NotFound, match=f"No memory that is seen from me has an id that begins with {id}"):
        why_not(bound, WhyNot(id=id, query="heron", namespace="me"))
    with pytest.raises(NotFound, match="No memory is like 'heron one'"):
        why_not(bound, WhyNot(id="heron one", query="heron", namespace="me"))
    with pytest.raises(Invalid, match="give its id, or words of it"):
        why(core, " ")


def test_words_mean_what_has_them_all_in_any_state_else_what_is_nearest(core: Core) -> None:
    old = add(core, "the cache of herons is Redis").id
    new = add(core, "the cache of herons is Valkey", supersedes=old, dedup=False).id
    answer = why(core, "cache is Redis", "which cache?")
    assert answer.said[0] == f"{old[:8]} has these words: the cache of herons is Redis"
    assert answer.said[1].startswith(f"{old[:8]} is not among the results: it is superseded by {new}")
    assert [(one.id, one.text) for one in answer.others] == [(new, "the cache of herons is Valkey")]
    nearest = why(core, "the cache of herons is Memcached", "which cache?")
    assert nearest.said[0].startswith(f"{new[:8]} is the nearest; no memory has all of these words: ")
    port = add(core, "staging listens on port 5433").id
    assert why(core, "5433", "staging").id == port
    with pytest.raises(NotFound, match=r"No memory is like 'zinc mines in Peru'\. It was not kept, or it is gone"):
        why(core, "zinc mines in Peru")


def test_words_of_what_was_deleted_lead_to_the_operation_that_did_it(core: Core) -> None:
    id = add(core, "the herons nest on the mast").id
    add(core, "the cranes nest on the roof")
    operation = delete(core, id).operation
    with pytest.raises(NotFound, match=f"{id[:8]} is gone since operation {operation[:8]} .delete."):
        why(core, "herons nest on the mast")


@each(
    ("fields", "said"),
    [
        ({"found": True, "rank": 1}, ["3f9a02c4 is found, at rank 1."]),
        ({"found": True, "rank": 1, "confidence": 0.62}, ["3f9a02c4 is found, at rank 1, likely (62%)."]),
        (
            {"found": True, "rank": 1, "confidence": 0.0191, "reason": "it is far"},
            [
                "3f9a02c4 is found, but not shown: unlikely (1.9%), 2% are needed; `memctl search … --all` shows it.",
                "Perhaps since it is far.",
            ],
        ),
        (
            {"found": False, "stage": "cut", "reason": "below the limit"},
            ["3f9a02c4 is not among the results: below the limit (stage cut)."],
        ),
        (
            {"found": False, "shown_with": "a" * 32, "reason": "it is shown as an answer to aaaaaaaa"},
            ["3f9a02c4 is a part of another result: it is shown as an answer to aaaaaaaa."],
        ),
    ],
)
def test_what_became_of_it_is_said_in_sentences(fields: dict[str, Any], said: list[str]) -> None:
    assert describe_why(Why(id="3f9a02c4" * 4, **fields)) == said


def test_figures_are_written_out(core: Core) -> None:
    parts = {"meaning": 0.61, "words": 0.3, "age": -0.02, "cue": 0.0001}
    known = Why(
        id="a", found=False, similarity=0.2, similarity_rank=40, score=0.89, parts=parts, confidence=0.01,
        confidence_reason="meaning 0.10", last_hit_score=0.9, last_hit_confidence=0.4,
    )  # fmt: skip
    assert format_figures(known) == {
        "similarity": "0.200, rank 40",
        "bm25": "–",
        "score": "0.890 = 0.610 meaning + 0.300 words - 0.020 age",
        "confidence": "unlikely (1%), 2% are needed to be shown: meaning 0.10",
        "last result": "0.900, likely (40%)",
    }


@each(
    ("filters", "reason"),
    [
        ({"type": ["lesson", "rule"]}, "its type is fact, not lesson or rule"),
        ({"where": {"k": 2}}, 'its fields do not meet {"k":2} (where)'),
        ({"where": {"k": {"$gt": 1}}}, 'its fields do not meet {"k":{"$gt":1}} (where)'),
        ({"before": 5.0, "tier": ["L1"]}, "it was created 1970-01-01T00:16:40Z, not before 1970-01-01T00:00:05Z"),
        (
            {"after": 2000.0, "source": ["x"]},
            "its source is manual, not x; it was created 1970-01-01T00:16:40Z, not after 1970-01-01T00:33:20Z",
        ),
        ({"path_prefix": "/notes"}, "it is from no file below /notes"),
    ],
)
def test_only_the_filters_that_exclude_it_are_named(core: Core, filters: dict[str, Any], reason: str) -> None:
    answer = why(core, add(core, "heron one", metadata={"k": 1}, created_at=1000.0).id, **filters)
    assert (answer.found, answer.stage) == (False, "filter")
    assert answer.reason == f"a filter of the query excludes it: {reason}"


def test_superseded_names_the_successor(core: Core) -> None:
    old = add(core, "heron one")
    new = add(core, "stork two", supersedes=old.id)
    answer = why(core, old.id)
    assert (answer.stage, answer.reason) == ("filter", f"it is superseded by {new.id}")


def test_expired(core: Core, clock: Any) -> None:
    id = add(core, "heron one", expires_at=clock() + 1).id
    assert why(core, id).found
    clock.advance(1)
    assert why(core, id).stage == "filter"
    assert why(core, id).reason.startswith("it is expired since 20")


def test_below_the_limit(core: Core) -> None:
    add(core, "heron one")
    answer = why(core, add(core, "heron two").id, limit=1)
    assert (answer.found, answer.stage, answer.reason) == (False, "clean", "at rank 2, below the limit of 1")
    assert answer.score is not None
    assert answer.last_hit_score is not None
    assert answer.score < answer.last_hit_score


def test_below_a_floor(core: Core) -> None:
    id = add(core, "heron two").id
    answer = why(core, id, min_score=0.9)
    assert answer.stage == "cut"
    assert "is below min_score 0.9" in answer.reason
    assert "is below min_similarity 0.95" in why(core, id, min_similarity=0.95).reason
    assert why(core, id, min_score=0.9).last_hit_score is None


def test_the_same_content_ranked_higher(core: Core) -> None:
    ids = [add(core, "heron one", namespace).id for namespace in ("a", "b")]
    assert [why(core, id).reason for id in ids] == [f"the same content is ranked higher in {ids[1][:8]}", ""]


@pytest.fixture
def crowded(core: Core) -> Core:
    """More memories about the query than an arm has candidates."""
    add_many(core, [NewMemory(content=f"heron one {n}") for n in range(600)], dedup=False)
    return core


def test_no_candidate_by_words_nor_by_meaning(crowded: Core) -> None:
    answer = why(crowded, add(crowded, "storks nest under roofs").id)
    assert (answer.found, answer.stage, answer.bm25) == (False, "candidates", None)
    assert (
        answer.reason
        == f"no word of the query is in it, and by meaning it is number {answer.similarity_rank} (candidates: 50)"
    )
    assert answer.similarity_rank is not None
    assert answer.similarity_rank > 50
    assert answer.similarity is not None


def test_among_the_words_but_not_among_the_best_of_them(crowded: Core) -> None:
    answer = why(crowded, add(crowded, "storks nest on many roofs and one chimney, say two long stories in a row").id)
    assert answer.reason.startswith("by words it is not among the best 50, and by meaning it is number ")
    assert answer.bm25 is not None


def test_a_vector_that_still_waits(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        add_many(core, [f"heron one {n}" for n in range(60)], dedup=False)
        answer = why(core, add(core, "poison ivy").id)
        assert answer.reason == "no word of the query is in it, and its vector is still waiting in the queue"


@pytest.fixture
def wordly(folder: Path) -> Iterator[Core]:
    with running(folder, no_model, ready=False, clock=Clock()) as core:
        yield core


def test_without_a_model(wordly: Core) -> None:
    answer = why(wordly, add(wordly, "stork two").id)
    assert (
        answer.reason
        == "no word of the query is in it, and its meaning could not be compared: no model was ready in time"
    )
    assert why(wordly, add(wordly, "heron two").id).found


def test_full_text_that_could_not_be_searched_is_told_instead_of_no_word(core: Core) -> None:
    add_many(core, [f"heron one {n}" for n in range(60)], dedup=False)
    id = add(core, "storks nest under roofs").id
    go, began = threading.Event(), threading.Event()

    def busy(transaction: Any) -> None:  # so that the index is not mended before the answer
        began.set()
        go.wait(30)

    connection = apsw.Connection(str(core.store.path))
    connection.execute("UPDATE memories_fts_data SET block = x'0000' WHERE id > 10")
    connection.close()
    core.store.write(busy)
    began.wait(30)
    assert why(core, id).reason.startswith("full text could not be searched in time, and by meaning it is number ")
    go.set()


def test_a_turn_in_l0_is_asked_about_like_a_memory(core: Core) -> None:
    [hit] = observe(core, "The herons fish at dawn.") and search(core, "herons dawn").hits
    answer = why(core, hit.id[:8], "herons dawn")
    assert (answer.id, answer.found, answer.rank) == (hit.id, True, 1)
    filtered = why(core, hit.id, "herons dawn", type=["fact"])
    assert (filtered.stage, filtered.reason) == (
        "filter",
        "a filter of the query excludes it: its type is turn, not fact",
    )


def test_of_a_turn_that_others_precede_that_is_said(core: Core) -> None:
    observe(core, "Storks nest under roofs.", *(f"Heron number {n} fishes at dawn." for n in range(3)))
    [stork] = search(core, "storks", mode="lexical").hits
    answer = why(core, stork.id, "herons dawn", limit=1)
    assert answer.stage == "active"
    assert answer.reason == "other turns in L0 are nearer to the query, by their words and their meaning"


def test_a_confidence_is_explained_by_what_it_comes_from(core: Core) -> None:
    id = add(core, "Error E4012 means that the card was refused").id
    answer = why(core, id, "error 4012")
    assert answer.confidence_reason.endswith(" of the question's words; not in it: 4012")
    assert answer.confidence_reason.startswith("meaning ")
    assert answer.last_hit_confidence == answer.confidence


def test_how_sure_a_memory_below_the_limit_would_be_is_said(core: Core) -> None:
    add(core, "heron one")
    id = add(core, "zinc mines closed").id
    answer = why(core, id, limit=1)
    assert answer.confidence == pytest.approx(why(core, id).confidence)
    assert answer.confidence_reason == why(core, id).confidence_reason != ""


def test_what_has_nothing_in_common_with_the_question_is_said_to_be_far(core: Core) -> None:
    add(core, "heron one")
    answer = why(core, add(core, "zinc mines closed").id, limit=1)
    assert answer.reason == "neither its words nor its meaning are near; at rank 2, below the limit of 1"


def test_by_words_alone_meanings_are_not_compared_and_that_is_said(core: Core) -> None:
    answer = why(core, add(core, "storks nest").id, mode="lexical")
    assert answer.reason == "no word of the query is in it, and the mode `lexical` does not compare meanings"


def test_what_age_and_feedback_make_of_the_score_is_named(core: Core) -> None:
    old = add(core, "heron one", created_at=core.clock() - 10 * 86_400).id
    add(core, "heron two")
    ask(core, Feedback(id=old, useful=True))
    answer = why(core, old, half_life_days=5.0, limit=1)
    assert answer.parts["age"] < 0 < answer.parts["feedback"]
    assert sum(answer.parts.values()) == pytest.approx(answer.score)
    assert answer.reason.startswith("every 5 days halve the score (half_life_days), which takes 0.")
    assert answer.reason.endswith("; at rank 2, below the limit of 1")
    assert why(core, old, half_life_days=5.0).reason == ""


def test_what_a_contradiction_put_before_it_is_named(core: Core) -> None:
    old = add(core, "The limit is 30 seconds for every request").id
    new = add(core, "The limit is 31 seconds for every request", dedup_threshold=0.5, created_at=core.clock() + 1)
    assert new.contradicts == [old]
    answer = why(core, old, "The limit is 30 seconds", limit=1)
    before = f"{new.id[:8]} disagrees with it, is newer, and stands before it"
    assert answer.reason == f"{before}; at rank 2, below the limit of 1"


def test_a_question_is_said_to_be_shown_with_its_answer(core: Core) -> None:
    talk(core, "Which cache do we use?", "We use Valkey.")
    hits = search(core, "which cache do we use?").hits
    [question] = hits[0].related
    answer = why(core, question.id, "which cache do we use?")
    assert answer.reason == f"it is shown as the question of {hits[0].id[:8]}"
    assert (answer.shown_with, answer.confidence) == (hits[0].id, None)
    head = why(core, hits[0].id, "which cache do we use?")
    assert sum(head.parts.values()) == pytest.approx(head.score)


def test_of_a_query_that_has_no_word_to_look_for_that_is_said(core: Core) -> None:
    answer = why(core, add(core, "heron one").id, "what is the", mode="lexical")
    assert answer.reason.startswith('the query has only words like "the", which are not looked for, and the mode')


def test_that_a_secret_was_taken_out_is_said(core: Core) -> None:
    id = add(core, "The staging key is [secret: API key]").id
    assert why(core, id, "storks", floor=0.9).reason.endswith(
        "; a secret was taken out of its text before it was stored"
    )
