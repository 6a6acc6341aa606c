"""What belongs together is one hit: questions with answers, facts with their turns."""

from conversing import FACTS, in_each_place, observe, settle, talk
from memoryd.client.protocol import GetContext, Hit, NewTurn
from memoryd.daemon.context import preparing
from memoryd.daemon.core.core import Core
from workbench import LIMIT_S, Clock, add, delete, search, update

ASKED, TOLD = "On which port does the gateway listen?", "Nine thousand and ninety since the last release of March."


def shown(hit: Hit) -> list[tuple[str, str, str]]:
    return [(one.kind, one.id, one.content) for one in hit.related]


def find_asked(core: Core, asked: str) -> Hit:
    [hit] = [hit for hit in search(core, ASKED) if hit.id == asked]
    return hit


@in_each_place
def test_a_question_is_shown_by_its_answer_whichever_was_found(core: Core, place: str) -> None:
    asked, told = talk(core, ASKED, TOLD, session="s").ids
    add(core, FACTS[0])
    settle(core, place)
    for query in ("gateway listen port", "the last release of March", f"{ASKED} {TOLD}"):
        hits = search(core, query, limit=5)
        assert (hits[0].id, shown(hits[0])) == (told, [("question", asked, ASKED)])
        assert asked not in {hit.id for hit in hits}


@in_each_place
def test_a_request_comes_with_its_reply_and_the_reply_with_its_request(core: Core, place: str) -> None:
    request = "Make the gateway listen on another port."
    asked, told = talk(core, request, TOLD, session="s").ids
    settle(core, place)
    [first] = search(core, "gateway listen port", limit=5)
    assert (first.id, shown(first)) == (asked, [("answer", told, TOLD)])
    [first] = search(core, "the last release of March", limit=5)
    assert (first.id, shown(first)) == (told, [("prompt", asked, request)])


@in_each_place
def test_what_a_person_says_next_is_shown_as_no_answer(core: Core, place: str) -> None:
    cached = "The sessions are cached in Valkey for half an hour. Shall I raise that?"
    said = [
        ("user", "Where are the sessions cached?"),
        ("assistant", cached),
        ("user", "now move the rate limiter out"),
    ]
    turns = [NewTurn(role=role, content=text) for role, text in said]  # type: ignore[arg-type]
    asked, told, then = observe(core, *turns, session="s").ids
    settle(core, place)
    hits = {hit.id: shown(hit) for hit in search(core, "sessions cached in Valkey, rate limiter")}
    assert hits[told] == [("question", asked, said[0][1])]
    assert hits[then] == []
    assert asked not in hits


@in_each_place
def test_a_person_is_shown_with_the_question_of_the_agent(core: Core, place: str) -> None:
    question = "Which class of instances shall the importer run on?"
    turns = [NewTurn(role="assistant", content=question), NewTurn(role="user", content="We stay with class A.")]
    asked, told = observe(core, *turns, session="s").ids
    settle(core, place)
    [hit] = search(core, question)
    assert (hit.id, shown(hit)) == (told, [("question", asked, question)])


@in_each_place
def test_people_with_names_answer_each_other(core: Core, place: str) -> None:
    turns = [
        NewTurn(role="user", content=f"The proxy is in the new rack and nobody answers. {ASKED}", speaker="Ada"),
        NewTurn(role="user", content=TOLD, speaker="Ben"),
    ]
    asked, told = observe(core, *turns, session="s").ids
    settle(core, place)
    [hit] = search(core, f"the proxy in the new rack: {ASKED}", limit=1)
    assert (hit.id, shown(hit)) in [(asked, [("answer", told, TOLD)]), (told, [("question", asked, turns[0].content)])]


def test_the_answer_of_another_namespace_a_deleted_or_an_expired_one_is_not_shown(core: Core, clock: Clock) -> None:
    asked, told = talk(core, ASKED, TOLD, session="s", namespace="acme").ids
    settle(core, "stored")
    forged = {"answers": asked, "role": "assistant"}
    add(core, "Something that somebody else claims about it", "other", metadata=forged)
    [hit] = search(core, ASKED, limit=1)
    assert (hit.id, [one.id for one in hit.related]) == (told, [asked])
    update(core, told, expires_at=clock.now + 10)
    clock.advance(20)
    assert find_asked(core, asked).related == []
    update(core, told, expires_at=None)
    assert search(core, ASKED, limit=1).hits[0].id == told
    delete(core, told)
    assert find_asked(core, asked).related == []


@in_each_place
def test_of_a_fact_and_its_turn_the_better_one_is_shown_and_names_the_other(core: Core, place: str) -> None:
    said = "We talked about the weather at length, and that the ledger will use Postgres 16."
    [turn] = observe(core, said, session="s").ids
    fact = add(core, "The ledger will use Postgres 16.", source="extraction", metadata={"turns": [turn]}).id
    settle(core, place)
    [hit] = search(core, "The ledger will use Postgres 16.")
    assert (hit.id, shown(hit)) == (fact, [("turn", turn, "")])
    [hit] = search(core, said)
    assert (hit.id, shown(hit)) == (turn, [("fact", fact, "")])


def test_two_facts_of_one_turn_are_two_hits(core: Core) -> None:
    [turn] = observe(core, "The ledger uses Postgres, and the ledger is in Porto.", session="s").ids
    ids = {
        add(core, text, source="extraction", metadata={"turns": [turn]}, dedup=False).id
        for text in ("The ledger uses Postgres.", "The ledger is in Porto.")
    }
    settle(core, "L0")
    hits = {hit.id for hit in search(core, "ledger Postgres")}
    assert ids <= hits
    assert turn not in hits


def test_a_context_holds_the_answer_beside_its_question_within_the_budget(core: Core) -> None:
    asked, told = talk(core, ASKED, TOLD, session="s").ids
    settle(core, "stored")
    made = preparing.context(core, core.sources, GetContext(task=ASKED, max_tokens=200)).result(LIMIT_S)
    assert f"user: {ASKED}\nassistant: {TOLD}\n" in made.text
    assert made.ids == [told, asked]
    assert made.tokens <= 200


@in_each_place
def test_in_a_chain_of_questions_and_answers_a_hit_shows_what_is_next_to_it_and_nothing_twice(
    core: Core, place: str
) -> None:
    chain = [
        ("user", "I went to the museum of the harbour on Sunday. Have you been there?"),
        ("assistant", "Not since the museum opened its new wing. What did you see of the harbour?"),
        ("user", "The old tug and a film about the harbour. When were you at the museum?"),
        ("assistant", "In the year of the flood, the museum was half empty. Is the tug still afloat?"),
        ("user", "The tug of the museum is afloat, and you can steer it in the harbour."),
    ]
    ids = [observe(core, text, role=role, session="s").ids[0] for role, text in chain]
    settle(core, place)
    hits = search(core, "museum of the harbour, the tug")
    seen = [id for hit in hits for id in (hit.id, *(one.id for one in hit.related))]
    assert sorted(seen) == sorted(ids)
    assert len(hits) > 1
    for hit in hits:
        at = ids.index(hit.id)
        assert {(one.kind, one.id) for one in hit.related} <= {
            *((("question", ids[at - 1]),) if at else ()),
            *((("answer", ids[at + 1]),) if at + 1 < len(ids) else ()),
        }
