"""What gives way to what: questions to answers, tool output to people, the former state to the present one."""

from typing import Any

import pytest

from conversing import FACTS, in_each_place, observe, settle, talk
from each import each
from memoryd.client.protocol import Hit, NewTurn
from memoryd.daemon.core.core import Core
from workbench import add, search, trace

ASKED, TOLD = "On which port does the gateway listen?", "Nine thousand and ninety since March."
AGAIN = "On which port does the gateway listen, then?"


def named(hit: Hit) -> list[tuple[str, str, bool]]:
    return [(one.kind, one.id, bool(one.content)) for one in hit.related]


@in_each_place
def test_a_question_without_an_answer_comes_after_what_is_stated(core: Core, place: str) -> None:
    [asked] = observe(core, ASKED, session="s").ids
    stated = add(core, "The gateway listens on port 9090.").id
    settle(core, place)
    hits = search(core, ASKED)
    assert [hit.id for hit in hits] == [stated, asked]
    assert hits[0].score > hits[1].score
    assert [one.cues for one in trace(core, hits.trace).candidates if one.id == asked] == [["asks"]]
    assert hits[1].confidence < hits[0].confidence


@in_each_place
def test_a_question_that_is_asked_again_is_shown_with_the_first_by_its_answer(core: Core, place: str) -> None:
    asked, told = talk(core, ASKED, TOLD, session="s").ids
    [again] = observe(core, AGAIN, session="t").ids
    settle(core, place)
    for query in (ASKED, AGAIN):
        [hit] = search(core, query)
        assert hit.id == told
        assert named(hit) == [("question", asked, True), ("question", again, False)]


@in_each_place
def test_a_question_that_nobody_answered_is_shown_once(core: Core, place: str) -> None:
    ids = [observe(core, text, session=session).ids[0] for session, text in (("s", ASKED), ("t", AGAIN))]
    settle(core, place)
    [hit] = search(core, ASKED)
    assert (hit.id, named(hit)) == (ids[0], [("question", ids[1], False)])
    assert {hit.id for hit in search(core, ASKED, distinct=False)} == set(ids)
    stated = add(core, "The gateway listens on port 9090.").id
    assert [hit.id for hit in search(core, ASKED)] == [stated, ids[0]]


@in_each_place
def test_a_question_is_named_also_where_its_answer_is_shown_with_something_else(core: Core, place: str) -> None:
    asked, told = talk(core, ASKED, TOLD, session="s").ids
    [again] = observe(core, AGAIN, session="t").ids
    fact = add(core, "The gateway listens on port 9090.", metadata={"turns": [told]}).id
    settle(core, place)
    hits = search(core, "The gateway listens on port 9090.")
    shown = [{hit.id, *(one.id for one in hit.related)} for hit in hits]
    assert {asked, told, again, fact} == set().union(*shown)


def test_what_another_person_asks_or_of_another_thing_is_not_the_same_question(core: Core) -> None:
    said = [
        NewTurn(role="user", content="On which port does gateway 1 listen?", speaker="Ada"),
        NewTurn(role="user", content="On which port does gateway 2 listen?", speaker="Ada"),
        NewTurn(role="user", content="On which port does gateway 1 listen, then?", speaker="Ben"),
    ]
    ids = [observe(core, turn, session=str(number)).ids[0] for number, turn in enumerate(said)]
    settle(core, "L0")
    assert {hit.id for hit in search(core, "On which port does gateway 1 listen?")} == set(ids)


def test_a_question_in_reply_is_no_answer(core: Core) -> None:
    asked, back = talk(core, ASKED, "Anything else?", session="s").ids
    settle(core, "L0")
    stated = add(core, "The gateway listens on port 9090.").id
    hits = search(core, ASKED)
    assert [hit.id for hit in hits][:2] == [stated, asked]
    assert back not in {one.id for hit in hits for one in hit.related}


def test_where_filters_leave_out_the_answer_the_question_is_a_hit_and_names_it(core: Core) -> None:
    asked, told = talk(core, ASKED, TOLD, session="s").ids
    for place in ("L0", "stored"):
        settle(core, place)
        [hit] = search(core, ASKED, where={"role": "user"})
        assert (hit.id, named(hit)) == (asked, [("answer", told, True)])
        [hit] = search(core, ASKED, where={"role": "assistant"})
        assert (hit.id, named(hit)) == (told, [("question", asked, True)])


def test_what_a_tool_printed_comes_after_what_people_said_and_is_found(core: Core) -> None:
    output = "pytest printed: 1 failed, the gateway listens on nothing"
    [printed] = observe(core, output, role="tool").ids
    [said] = observe(core, "The gateway listens on port 9090, pytest says nothing of that").ids
    settle(core, "L0")
    assert [hit.id for hit in search(core, output)] == [
        said,
        printed,
    ]


@in_each_place
def test_what_says_that_it_does_not_know_answers_nothing_and_comes_last(core: Core, place: str) -> None:
    asked, unknown = talk(core, ASKED, "I do not know that; nothing about the gateway port says it.", session="s").ids
    stated = add(core, "The gateway listens on port 9090.").id
    settle(core, place)
    found = search(core, ASKED)
    hits = found.hits
    assert hits[0].id == stated
    assert {hit.id: named(hit) for hit in hits[1:]} == {asked: [], unknown: []}
    cues = {one.id: one.cues for one in trace(core, found.trace).candidates}
    assert (cues[asked], cues[unknown]) == (["asks"], ["unknown"])


def test_a_pasted_log_comes_after_what_people_said_and_is_found(core: Core) -> None:
    log = "\n".join(f"2026-05-29T20:27:{n:02} INFO gateway: listens on port {9000 + n}" for n in range(60))
    [pasted] = observe(core, f"it fails:\n{log}").ids
    [said] = observe(core, "The gateway listens on port 9090, says the plan.").ids
    settle(core, "L0")
    assert [hit.id for hit in search(core, "INFO gateway listens on port")] == [said, pasted]


def test_a_summary_comes_after_the_turn_that_it_quotes(core: Core) -> None:
    said = "The gateway listens on port 9090 since the move to Leipzig."
    [turn] = observe(core, said, session="s").ids
    quote, about = f"Session s, 2026-05-29:\nAnswer: {said}", {"session": "s", "turns": 5}
    quoted = add(core, quote, source="session_summary", metadata={**about, "by": "rules"}).id
    settle(core, "stored")
    for question in (quote, said):
        assert [hit.id for hit in search(core, question)] == [turn, quoted]
    written = add(core, f"{quote} It is fast.", source="session_summary", metadata={**about, "by": "some-model"}).id
    assert search(core, f"{quote} It is fast.")[0].id == written


def test_published_profiles_set_nothing_back(core: Core) -> None:
    [asked] = observe(core, ASKED, session="s").ids
    add(core, "The gateway listens on port 9090.")
    settle(core, "stored")
    assert search(core, ASKED, profile="memweave", min_score=0.0)[0].id == asked


def test_what_gives_way_is_on_one_page_alone(core: Core) -> None:
    asked = [observe(core, f"{ASKED} {fact}?", session=fact).ids[0] for fact in ("one", "two", "three")]
    told = [add(core, fact).id for fact in FACTS[:6]]
    settle(core, "L0")
    whole = [hit.id for hit in search(core, f"{ASKED} the port of the gateway", limit=9)]
    pages = [
        hit.id
        for offset in range(0, 9, 3)
        for hit in search(core, f"{ASKED} the port of the gateway", limit=3, offset=offset)
    ]
    assert sorted(whole) == sorted([*asked, *told])
    assert pages == whole


# Versions -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def versions(core: Core) -> tuple[str, str, str]:
    """Three versions of one thing, the oldest first."""
    made = [
        add(core, f"The retry limit of the importer is {limit}", created_at=1_000.0 + limit, dedup_threshold=0.5)
        for limit in (3, 5, 7)
    ]
    assert [len(one.contradicts) for one in made] == [0, 1, 2]
    return made[0].id, made[1].id, made[2].id


@each(
    ("question", "places"),
    [
        ("What is the retry limit of the importer? Is it 3", (2, 1, 0)),
        ("retry limit of the importer: 3 today?", (2, 1, 0)),
        ("What did the retry limit of the importer use to be before, 7", (0, 1, 2)),
        ("Originally the retry limit of the importer was 7?", (0, 1, 2)),
    ],
)
def test_the_newer_stands_before_the_older_unless_what_was_before_is_asked_for(
    core: Core, versions: tuple[str, str, str], question: str, places: tuple[int, int, int]
) -> None:
    hits = search(core, question)
    assert [hit.id for hit in hits] == [versions[place] for place in places]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


SENTRY, GLITCHTIP = (
    "Crash reports of the app go to Sentry.",
    "GlitchTip gets the crash reports of the app, Sentry is given up.",
)


@pytest.mark.parametrize(
    ("question", "newer", "age_s", "fields", "is_first"),
    [
        ("Where do crash reports of the app go?", GLITCHTIP, 60, {}, True),
        ("Where did crash reports of the app go before?", GLITCHTIP, 60, {}, False),
        ("Where do crash reports of the app go?", GLITCHTIP, -60, {}, False),  # told before
        ("Where do crash reports of the app go?", GLITCHTIP, 60, {"metadata": {"speaker": "Ada"}}, False),
        ("Where do crash reports of the app go?", "Sentry shows crash reports of the app by day.", 60, {}, False),
        ("Do crash reports of the app go to Sentry?", "Crash reports of the app go up again.", 60, {}, False),  # whose?
        ("Where do crash reports of the app go?", GLITCHTIP, 60, {"namespace": "acme/api"}, False),
    ],
)
def test_what_tells_that_an_answer_has_changed_stands_before_it(
    core: Core, question: str, newer: str, age_s: float, fields: dict[str, Any], is_first: bool
) -> None:
    old = add(core, SENTRY, "acme", created_at=1_000.0).id
    new = add(core, newer, **{"namespace": "acme", "created_at": 1_000.0 + age_s, **fields})
    assert new.contradicts == []
    hits = search(core, question, namespace="acme/api")
    assert [hit.id for hit in hits] == ([new.id, old] if is_first else [old, new.id])
    assert hits[0].score >= hits[1].score


def test_what_stands_before_an_older_one_is_as_sure_and_says_which_it_is_newer_than(
    core: Core, versions: tuple[str, str, str]
) -> None:
    hits = search(core, "What is the retry limit of the importer? Is it 3").hits
    assert len({hit.confidence for hit in hits}) == 1
    assert hits[0].newer_than in versions[:2]
    assert [hit.newer_than for hit in hits[1:]] == [versions[0], ""]
    old = add(core, SENTRY, "acme", created_at=1_000.0).id
    add(core, GLITCHTIP, "acme", created_at=1_060.0)
    newer, older = search(core, "Where do crash reports of the app go?", namespace="acme").hits[:2]
    assert newer.confidence >= older.confidence
    assert (newer.newer_than, older.newer_than) == (old, "")
