"""The stages as functions, with literal candidates, against numbers worked out by hand."""

import re
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conversing import talk
from memoryd.client.protocol import Search
from memoryd.daemon import search as package
from memoryd.daemon.arrays.lexical import TextQuery
from memoryd.daemon.core.core import Core
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.search import pipeline
from memoryd.daemon.search.candidates import candidates
from memoryd.daemon.search.clean import clean
from memoryd.daemon.search.confidence import confidence
from memoryd.daemon.search.cut import cut
from memoryd.daemon.search.embed import embed
from memoryd.daemon.search.fuse import fuse
from memoryd.daemon.search.retrieval import Retrieval
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store import rows
from workbench import add, add_many, ask, options_of, search

NO_STAGE = set(
    "__init__ apart effects hints outcomes pipeline precedence profiles related remotes retrieval traces whynot".split()
)


def test_every_module_of_a_stage_is_listed_in_the_pipeline() -> None:
    modules = {path.stem for path in Path(str(package.__file__)).parent.glob("*.py")} - NO_STAGE
    stages = {stage.__module__ for stage in pipeline.list_stages()}
    listed = {name.rpartition(".")[2] for name in stages if name.startswith("memoryd.daemon.search.")}
    assert listed == modules, "list a stage in the pipeline, another module of the package in NO_STAGE"
    told = str(package.__doc__)
    assert [name for name in listed if f"*{name}*" not in told] == [], "say in daemon/search/__init__.py what it does"


def test_each_stage_of_a_room_is_one_that_it_lists() -> None:
    folder = Path(str(package.__file__)).parents[1]
    pattern = re.compile(r"^def ([a-z]\w*)\(retrieval: Retrieval, sources: Sources\)", re.MULTILINE)
    for path in folder.glob("*/room.py"):
        made = {found for path in path.parent.rglob("*.py") for found in pattern.findall(path.read_text())}
        listed = {one.__name__ for room in list_rooms() for one in room.stages.values()}
        assert made <= listed, f"list each of these in the stages of {path}"


def retrieval(core: Core, *given: Candidate, vector: Any = 1, **options: Any) -> Retrieval:
    state = pipeline.begin(core.sources, Search(query="q", **options_of(options)))
    state.candidates = {candidate.row: candidate for candidate in given}
    state.ranked = list(given)
    state.vector = vector
    return state


def scores(state: Retrieval) -> dict[int, float]:
    return {candidate.row: round(candidate.score, 6) for candidate in state.ranked}


# Fuse ---------------------------------------------------------------------------------------------------------------


def test_fuse_weighs_cosine_and_bm25_over_the_best_and_ranks(core: Core) -> None:
    state = retrieval(
        core,
        Candidate(1, similarity=0.9),
        Candidate(2, similarity=0.5, bm25=10.0, bm25_rank=1),
        Candidate(3, similarity=0.9, bm25=5.0, bm25_rank=2),
    )
    fuse(state, core.sources)
    assert scores(state) == {3: 0.78, 2: 0.65, 1: 0.63}
    assert [candidate.row for candidate in state.ranked] == [3, 2, 1]


@pytest.mark.parametrize(("weight", "best"), [(10.0, 0.65), (20.0, 0.65), (40.0, 0.5)])
def test_words_count_less_where_even_the_best_hit_holds_few_of_them(core: Core, weight: float, best: float) -> None:
    state = retrieval(core, Candidate(1, similarity=0.75), Candidate(2, similarity=0.5, bm25=10.0, bm25_rank=1))
    state.question = TextQuery([], [], 1.0, weight)
    fuse(state, core.sources)
    assert scores(state) == {1: 0.525, 2: best}


def test_of_equal_scores_the_newer_row_is_first_and_no_candidates_are_no_error(core: Core) -> None:
    state = retrieval(core, Candidate(1, similarity=0.5), Candidate(3, similarity=0.5), Candidate(2, similarity=0.5))
    fuse(state, core.sources)
    assert [candidate.row for candidate in state.ranked] == [3, 2, 1]
    state = retrieval(core)
    fuse(state, core.sources)
    assert state.ranked == []


# Cut ----------------------------------------------------------------------------------------------------------------


def test_cut_drops_what_is_below_a_floor_and_says_which(core: Core) -> None:
    state = retrieval(
        core,
        Candidate(1, score=0.5, similarity=0.6),
        Candidate(2, score=0.4999, similarity=0.9),
        Candidate(3, score=0.9, similarity=0.5999),
        Candidate(4, score=0.9),
        min_score=0.5,
        min_similarity=0.6,
    )
    cut(state, core.sources)
    assert [candidate.row for candidate in state.ranked] == [1]
    assert [state.candidates[row].lost for row in (2, 3, 4)] == [
        "score 0.500 is below min_score 0.5",
        "similarity 0.600 is below min_similarity 0.6",
        "similarity unknown is below min_similarity 0.6",
    ]


def rated(core: Core, query: str, **options: Any) -> dict[str, float]:
    return {hit.content: hit.confidence for hit in search(core, query, **options).hits}


def test_hits_of_less_confidence_than_the_floor_of_the_call_are_left_out(core: Core) -> None:
    add_many(core, ["herons fish at dawn", "storks nest"])
    assert list(rated(core, "herons fish at dawn", floor=0.5)) == ["herons fish at dawn"]
    call = Search(query="herons fish at dawn", floor=0.5, explain=True)
    [lost] = [one.lost for one in ask(core, call).explanation.candidates if one.lost]
    assert lost.startswith("confidence: its confidence 0.0")


@pytest.mark.parametrize("with_model", [True, False])
def test_confidence_grows_with_cosine_and_with_words_and_is_a_probability(core: Core, with_model: bool) -> None:
    add_many(core, ["herons fish at dawn", "herons sleep at noon", "cranes dance", "storks nest"])
    state, _ = pipeline.retrieve(core.sources, Search(query="heron dawn"))
    state.generation = core.embedding.active if with_model else None

    def rate(similarity: float) -> list[float]:
        for candidate in state.ranked:
            candidate.similarity = similarity if with_model else None
        confidence(state, core.sources)
        return [candidate.confidence for candidate in sorted(state.ranked, key=lambda one: one.bm25 or 0.0)]

    none, *_, one, both = rate(0.3)
    assert 0.0 < none < one < both < 1.0
    by_meaning = [rate(similarity)[0] for similarity in (-1.0, 0.0, 0.5, 1.0)]
    assert by_meaning == sorted(by_meaning)
    assert (by_meaning[-1] > by_meaning[0]) is with_model


def test_a_hit_without_what_the_question_names_is_less_likely_to_be_to_the_point(core: Core) -> None:
    add_many(core, ["PR #421 fixes the paging bug.", "Alder pays by invoice, as Birch does.", "Storks nest on roofs."])
    assert rated(core, "What does PR #421 fix?")["PR #421 fixes the paging bug."] > 0.25
    assert rated(core, "What does PR #414 fix?")["PR #421 fixes the paging bug."] < 0.1
    pays = "Alder pays by invoice, as Birch does."
    assert rated(core, "How does Fir pay?")[pays] < rated(core, "How does Alder pay?")[pays]


def test_the_words_of_a_question_count_for_the_answer_that_is_shown_with_it(core: Core) -> None:
    add_many(core, ["Storks nest on roofs."])
    talk(core, "Does the importer keep blank lines?", "No, it drops them at once.", session="s")
    [hit] = search(core, "importer blank lines", limit=1).hits
    assert hit.related
    assert hit.confidence > 0.25
    assert hit.confidence_word == "likely"


# Clean --------------------------------------------------------------------------------------------------------------


def row_of(core: Core, id: str) -> int:
    with core.store.reading() as connection:
        return rows.read_ids(connection, [id])[id].row


def cleaned(core: Core, *numbers: int, **options: Any) -> tuple[list[int], Retrieval]:
    state = retrieval(core, *(Candidate(row, score=1 - n / 100) for n, row in enumerate(numbers)), **options)
    clean(state, core.sources)
    return [candidate.row for candidate in state.ranked], state


def contradicting(core: Core, *created_at: float) -> list[int]:
    """Add memories that contradict each other, one per time."""
    made = [
        add(core, f"The limit is {30 + n} seconds for every request", created_at=at, dedup_threshold=0.5)
        for n, at in enumerate(created_at)
    ]
    assert len(made[-1].contradicts) == len(made) - 1
    return [row_of(core, one.id) for one in made]


def test_clean_leaves_out_what_was_deleted_meanwhile_and_fills_up_to_the_limit(core: Core) -> None:
    present = [row_of(core, add(core, f"Note {n}").id) for n in range(5)]
    gone = range(900, 940)
    ranked, state = cleaned(core, *gone, *present, limit=3)
    assert ranked == present[:3]
    assert {state.candidates[row].lost for row in gone} == {"deleted meanwhile"}
    assert [state.candidates[row].lost for row in present[3:]] == [
        "at rank 4, below the limit of 3",
        "at rank 5, below the limit of 3",
    ]


def test_the_newer_is_there_although_nothing_found_it_unless_filters_leave_it_out(core: Core) -> None:
    old, new = contradicting(core, 10.0, 20.0)
    other = row_of(core, add(core, "Storks nest").id)
    ranked, state = cleaned(core, other, old)
    assert ranked == [other, new, old]
    assert [candidate.score for candidate in state.ranked] == [1.0, 0.99, 0.99]
    assert cleaned(core, other, old, before=15.0)[0] == [other, old]


def test_files_of_one_score_are_in_the_order_of_their_paths(core: Core) -> None:
    """A difference that is no more than the rounding of float32 is none, and the scores say so."""
    made = [row_of(core, add(core, f"Note {name}").id) for name in ("b", "a")]
    for row, path in zip(made, ("b.md", "a.md"), strict=True):
        core.store.write(lambda t, row=row, path=path: _as_file(t, row, path)).result(5)
    near = [Candidate(row, score=0.5 - n * 1e-7) for n, row in enumerate(made)]
    state = retrieval(core, *near)
    clean(state, core.sources)
    assert [candidate.row for candidate in state.ranked] == made[::-1]
    assert [candidate.score for candidate in state.ranked] == [0.5, 0.5]


def _as_file(transaction: Any, row: int, path: str) -> None:
    rows.change(transaction.connection, row, {"tier": "documents", "path": path})


# Embed --------------------------------------------------------------------------------------------------------------


def test_embed_begins_in_another_thread_what_may_be_too_slow_for_a_deadline(core: Core) -> None:
    state = retrieval(core, vector=None, deadline_ms=60_000)
    embed(state, core.sources)
    assert isinstance(state.embedding, Future)
    candidates(state, core.sources)
    assert isinstance(state.vector, np.ndarray)
    assert state.degraded == []
