"""Observing: what enters L0, what is skipped and why, who leaves when it is full."""

from typing import Any

import pytest

from conversing import FACTS, contents, flows, judge, memories, observe, problems, ring, skips, talk
from each import each
from memoryd.client.errors import Conflict, Forbidden, Invalid
from memoryd.client.protocol import Add, NewMemory, NewTurn, Observe, Turns
from memoryd.daemon.config import Config, TiersConfig
from memoryd.daemon.conversations import observing
from memoryd.daemon.core.core import Core
from memoryd.daemon.store.caller import Caller
from workbench import Clock, CountingEmbedder, add, ask, found, running, search, wait_until


def turn(content: str, role: str = "user", **fields: object) -> NewTurn:
    return NewTurn(role=role, content=content, **fields)  # type: ignore[arg-type]


def test_an_accepted_turn_is_in_l0_with_an_id_and_its_first_importance(core: Core) -> None:
    observed = observe(core, FACTS[0], session="s1")
    assert (observed.accepted, observed.skipped, len(observed.ids)) == (1, 0, 1)
    assert len(observed.ids[0]) == 32
    [kept] = core.active.list_turns(None)
    assert (kept.key, kept.content, kept.session, kept.role) == (observed.ids[0], FACTS[0], "s1", "user")
    assert (kept.importance, kept.source) == (0.5, "conversation")
    assert contents(core) == []
    assert problems(core) == []


def test_no_model_is_asked_while_turns_are_observed(folder: object, clock: Clock) -> None:
    embedder = CountingEmbedder()
    with running(folder, embedder, clock=clock) as core:  # type: ignore[arg-type]
        observe(core, *FACTS[:20])
        assert embedder.texts == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("ok", "too short"),
        ("👍 !", "too short"),
        ("yes please", "only stop words"),
        ("Error: connect ECONNREFUSED 127.0.0.1:5432", "connection error"),
        ("Downloading model.onnx: 45%", "progress output"),
        ('Traceback (most recent call last):\n  File "a.py", line 1, in b\n    c\nKeyError: 1', "stack trace"),
    ],
)
def test_a_turn_that_tells_nothing_is_skipped_and_listed_with_the_reason(core: Core, content: str, reason: str) -> None:
    observed = observe(core, content)
    assert [(one.outcome, one.reason, one.id) for one in observed] == [("skipped", reason, None)]
    assert skips(core) == [(content, reason)]
    assert flows(core) == {"observed": 1, f"skipped: {reason}": 1}
    assert problems(core) == []


@each("bad", ["", "   \n", "a\0b", "x" * (1024 * 1024 + 1)])
def test_one_wrong_turn_refuses_the_whole_call_and_changes_nothing(core: Core, bad: str) -> None:
    with pytest.raises(Invalid, match=r"^Turn 1: "):
        observe(core, FACTS[0], bad)
    assert core.active.list_turns(None) == []
    assert skips(core) == []


@each(
    "call",
    [
        Observe(turns=[]),
        Observe(turns=[turn(FACTS[0], role="")]),
        Observe(turns=[turn(FACTS[0], role="x" * 200)]),
        Observe(turns=[turn(FACTS[0], id="abc")]),
        Observe(turns=[turn(FACTS[0], speaker="x" * 129)]),
        Observe(turns=[turn(FACTS[0], speaker="a\nb")]),
        Observe(turns=[turn(FACTS[0], files=["a.py", ""])]),
        Observe(turns=[turn(FACTS[0], files=["a\u2028b"])]),
        Observe(turns=[turn(FACTS[0], files=["a.py"] * 101)]),
        Observe(turns=[turn(FACTS[0], files=["a" * 1000] * 17)]),
        Observe(turns=[turn(FACTS[0])], session="s" * 300),
        Observe(turns=[turn(FACTS[0])], session="s\0"),
        Observe(turns=[turn(FACTS[0])], namespace="a//b"),
    ],
)
def test_what_cannot_be_a_turn_is_invalid(core: Core, call: Observe) -> None:
    with pytest.raises(Invalid):
        observing.observe(core, call)


def test_a_token_may_not_choose_ids(core: Core) -> None:
    bound = Caller("agent", "acme")
    with pytest.raises(Forbidden):
        observing.observe(core, Observe(turns=[turn(FACTS[0], id="ab" * 16)], namespace="acme"), bound)


def test_an_exact_repetition_of_a_memory_is_skipped_and_bumps_it(core: Core, clock: Clock) -> None:
    known = add(core, "We use Valkey, not Redis", "acme").id
    clock.advance(60)
    [result] = observe(core, "we use  valkey, NOT redis", namespace="acme")
    assert (result.outcome, result.reason, result.same_as) == ("skipped", "duplicate", known)
    [row] = memories(core)
    assert (row.access_count, row.last_accessed_at) == (1, clock.now)
    assert skips(core) == [("we use  valkey, NOT redis", f"duplicate ({known[:8]})")]


def test_a_repetition_within_l0_is_skipped_and_one_of_another_namespace_is_not(core: Core) -> None:
    first = observe(core, FACTS[0], namespace="acme").ids[0]
    [again] = observe(core, FACTS[0].upper(), namespace="acme")
    assert (again.reason, again.same_as) == ("duplicate", first)
    assert observe(core, FACTS[0], namespace="other").accepted == 1
    assert ring(core, "acme") == ring(core, "other") == [FACTS[0]]


def test_a_turn_sent_again_under_its_id_is_skipped_also_after_it_became_a_memory(core: Core) -> None:
    sent = turn(FACTS[0], id="ab" * 16)
    assert observe(core, sent).ids == ["ab" * 16]
    assert [one.reason for one in observe(core, sent)] == ["observed before"]
    observe(core, *FACTS[1:21])
    assert [row.id for row in memories(core)] == ["ab" * 16]
    assert [one.reason for one in observe(core, sent)] == ["observed before"]
    with pytest.raises(Conflict):
        observe(core, turn(FACTS[30], id="ab" * 16))
    assert problems(core) == []


@pytest.mark.parametrize("count", [0, 1, 20, 21, 45])
def test_l0_holds_the_last_twenty_and_the_older_ones_are_memories_in_order(core: Core, count: int) -> None:
    for start in range(0, count, 7):
        observe(core, *FACTS[start : min(start + 7, count)])
    assert ring(core) == list(FACTS[max(0, count - 20) : count])
    assert contents(core, "L1") == list(FACTS[: max(0, count - 20)])
    assert problems(core) == []


def test_a_promoted_turn_keeps_its_id_time_role_and_session(core: Core, clock: Clock) -> None:
    said_at = clock.now
    ids = observe(core, FACTS[0], FACTS[1], session="s1").ids
    clock.advance(100)
    observe(core, *FACTS[2:21], session="s1")
    [row] = memories(core)
    assert (row.id, row.created_at, row.updated_at, row.tier) == (ids[0], said_at, said_at, "L1")
    assert (row.type, row.source, row.turns) == ("turn", "conversation", 1)
    assert row.metadata == '{"role":"user","session":"s1"}'
    assert row.neighbours == f"{FACTS[1]}\n{FACTS[2]}"


def test_a_turn_keeps_who_said_it_and_its_files_in_l0_and_beyond(core: Core) -> None:
    observe(core, turn(FACTS[0], speaker="Farid", files=["src/a b.py", "/etc/hosts"]))
    [listed] = ask(core, Turns())
    assert (listed.speaker, listed.files) == ("Farid", ["src/a b.py", "/etc/hosts"])
    observe(core, *FACTS[1:21])
    [row] = memories(core)
    assert row.metadata == '{"files":["src/a b.py","/etc/hosts"],"role":"user","speaker":"Farid"}'
    wait_until(lambda: core.embedding.count_pending() == 0)
    assert found(core, "anything", where={"speaker": "Farid"}) == [FACTS[0]]
    assert found(core, "anything", where={"files": "/etc/hosts"}) == [FACTS[0]]


def test_neighbours_are_of_the_same_session_before_and_after(core: Core) -> None:
    for number in range(8):
        observe(core, FACTS[number], session="even" if number % 2 == 0 else "odd")
    observe(core, *FACTS[8:28], session="later")
    by_content = {row.content: row.neighbours for row in memories(core)}
    assert by_content[FACTS[2]] == "\n".join([FACTS[0], FACTS[4], FACTS[6]])
    assert by_content[FACTS[0]] == f"{FACTS[2]}\n{FACTS[4]}"
    assert by_content[FACTS[7]] == f"{FACTS[3]}\n{FACTS[5]}"


MINOR = ("What is the weather like today?", "Can you show me the file again?")


def test_what_matters_little_goes_to_l2_and_is_found(core: Core) -> None:
    observe(core, *MINOR, FACTS[0])
    judge(core)
    observe(core, *FACTS[1:21])
    assert (contents(core, "L1"), contents(core, "L2")) == ([FACTS[0]], list(MINOR))
    assert max(row.importance for row in memories(core, "L2")) < 0.5
    wait_until(lambda: core.embedding.count_pending() == 0)
    assert MINOR[0] in found(core, "how is the weather")
    assert skips(core) == []
    assert problems(core) == []


def test_what_matters_little_is_dropped_where_that_is_set(folder: object, clock: Clock) -> None:
    config = Config(tiers=TiersConfig(drop_unimportant=True))
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:  # type: ignore[arg-type]
        observe(core, *MINOR, FACTS[0])
        judge(core)
        observe(core, *FACTS[1:21])
        assert contents(core) == [FACTS[0]]
        assert skips(core)[0][1].startswith("left L0 with importance 0.")
        assert flows(core)["dropped: unimportant"] == 2
        assert problems(core) == []


def test_a_turn_whose_id_an_import_took_is_kept_under_another(core: Core) -> None:
    observe(core, turn(FACTS[0], id="ab" * 16))
    memory = NewMemory(content="Something else from a file", id="ab" * 16)
    ask(core, Add(memory=memory))
    observe(core, *FACTS[1:21])
    assert contents(core) == ["Something else from a file", FACTS[0]]
    assert problems(core) == []


def test_an_answer_knows_its_question(core: Core, clock: Clock) -> None:
    question, answer = talk(core, FACTS[0], FACTS[1], session="s").ids
    [told, asked] = core.active.list_turns(None)
    assert (asked.key, asked.answers, told.key, told.answers) == (question, None, answer, question)
    observe(core, FACTS[2], role="assistant", session="s")  # a second answer to the same question
    assert core.active.list_turns(None)[0].answers is None
    observe(core, FACTS[3], session="s")
    clock.advance(901)
    observe(core, FACTS[4], role="assistant", session="s")
    assert core.active.list_turns(None)[0].answers is None, "too late to be an answer"


def test_an_answer_to_a_skipped_question_belongs_to_no_older_one(core: Core) -> None:
    observe(core, FACTS[0], session="s")
    talk(core, "yes please", FACTS[1], session="s")
    assert core.active.list_turns(None)[0].answers is None
    observe(core, FACTS[2], session="s")
    observe(core, "ok", session="s")
    observe(core, FACTS[3], role="assistant", session="s")
    assert core.active.list_turns(None)[0].answers is None


@pytest.mark.parametrize("said", ["No.", "ok", "👍", "yes, port 9090", "About twelve."])
@pytest.mark.parametrize(("role", "speaker"), [("user", "Ben"), ("assistant", "")])
def test_a_short_answer_to_a_question_is_kept_with_it(core: Core, said: str, role: Any, speaker: str) -> None:
    answer = NewTurn(role=role, content=said, speaker=speaker)
    asked = [observe(core, question, session="s", role="user").ids[0] for question in ("Is it done?", "Is it ready?\n")]
    [told] = observe(core, answer, session="s").ids
    assert core.active.list_turns(None)[0].answers == asked[1]
    observe(core, "Is the other one done?", session="s")
    assert observe(core, answer, session="s").accepted == 1, "an answer to another question is no duplicate"
    [hit] = search(core, "ready?", limit=1)
    assert (hit.id, [(one.kind, one.id) for one in hit.related]) == (told, [("question", asked[1])])
    assert problems(core) == []


def test_a_question_that_is_asked_again_has_an_answer_of_its_own(core: Core) -> None:
    for session, answer in (("monday", "No."), ("tuesday", "Yes.")):
        assert talk(core, "Is the build of the portal green?", answer, session=session).accepted == 2
    assert [turn.answers is not None for turn in core.active.list_turns(None)] == [True, False, True, False]
    hits = search(core, "Is the build of the portal green?")
    assert [[one.kind for one in hit.related] for hit in hits] == [["question"], ["question"]]
    assert {hit.content for hit in hits} == {"No.", "Yes."}


def test_words_of_silence_that_answer_nothing_are_skipped(core: Core, clock: Clock) -> None:
    observe(core, "Is it done?", session="s")
    assert observe(core, "No.", session="s").accepted == 0, "nobody answers their own question"
    assert observe(core, "No.", session="another", role="assistant").accepted == 0
    clock.advance(901)
    assert observe(core, "No.", session="s", role="assistant").accepted == 0
    observe(core, FACTS[0], session="s", role="assistant")
    assert observe(core, "No.", session="s").accepted == 0


def test_l0_is_back_after_a_restart(folder: object, clock: Clock) -> None:
    with running(folder, CountingEmbedder(), clock=clock) as core:  # type: ignore[arg-type]
        observe(core, *FACTS[:25], namespace="acme", session="s")
        talk(core, FACTS[30], FACTS[31])
        before = core.active.list_turns(None)
    with running(folder, CountingEmbedder(), clock=clock) as core:  # type: ignore[arg-type]
        assert core.active.list_turns(None) == before
        assert problems(core) == []


def test_the_list_of_skipped_turns_is_bounded_by_namespace(
    folder: object, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.daemon.store.turns.KEEP_SKIPPED", 5)
    with running(folder, CountingEmbedder(), clock=clock) as core:  # type: ignore[arg-type]
        for number in range(12):
            observe(core, f"ok {'.' * number}", namespace="a")
        observe(core, "yes", namespace="b")
        assert [content for content, _ in skips(core)] == ["yes", *(f"ok {'.' * n}" for n in range(11, 6, -1))]
        assert flows(core, "a")["skipped: too short"] == 12


# Questions and answers of any two speakers ---------------------------------------------------------------------------


def said(core: Core, *turns: tuple[str, str]) -> list[int | None]:
    """Observe (role, content) turns; return for each which one it answers, by its place."""
    ids = [observe(core, turn(content, role=role), session="s").ids[0] for role, content in turns]
    linked = {one.key: one.answers for one in core.active.list_turns(None)}
    return [ids.index(answers) if (answers := linked[id]) else None for id in ids]


LONG = f"It was closed for repairs, so we took the train to the coast and walked back. {FACTS[5]}"  # no short answer


def test_words_before_a_colon_are_no_speaker_where_others_have_none(core: Core) -> None:
    assert said(
        core,
        ("user", "We're starting harvestbox: a service for boxes of vegetables. Can you set up the skeleton?"),
        ("assistant", "I've set up the skeleton: a start page and one test."),
        ("user", "How should we identify deliveries? The drivers read the number out over the phone sometimes."),
        ("assistant", "A UUIDv7 as primary key and a short code to read out. Shall I go on like this?"),
        ("user", "Yes, do that: a short code on top of a UUIDv7."),
        ("assistant", "Done. Deliveries have both now."),
        ("user", "Now payments. We decided with the farm to use Mollie, because half of the subscribers pay by iDEAL."),
    ) == [None, 0, None, 2, 3, 4, None]


@pytest.mark.parametrize(
    ("turns", "links"),
    [
        pytest.param([("assistant", "Which port?"), ("user", LONG)], [None, 0], id="the assistant asks"),
        pytest.param([("user", "Which port?"), ("assistant", LONG)], [None, 0], id="the user asks"),
        pytest.param(
            [("user", "Ada: How was the museum?"), ("user", f"Ben: {LONG}")], [None, 0], id="two people by their labels"
        ),
        pytest.param([("user", "How was the museum?"), ("user", LONG)], [None, None], id="one person goes on"),
        pytest.param([("user", "Which port?"), ("user", "We moved it")], [None, None], id="in few words, too"),
        pytest.param(
            [("user", "Which port?"), ("assistant", "I do not know that; nothing here says it."), ("assistant", LONG)],
            [None, None, 0],
            id="who does not know answers nothing",
        ),
        pytest.param(
            [("assistant", "How was the museum?"), ("assistant", FACTS[0]), ("user", LONG)],
            [None, None, 0],
            id="the question is not the last that was said",
        ),
        pytest.param(
            [("user", "How was the museum?"), ("assistant", "I am looking."), ("assistant", LONG)],
            [None, 0, 0],
            id="the answer comes after another turn",
        ),
        pytest.param(
            [("user", "How was the museum?"), ("assistant", "Which museum?"), ("user", "The one in the old harbour")],
            [None, None, 1],
            id="a question in reply is no answer",
        ),
        pytest.param([("assistant", FACTS[0]), ("user", LONG)], [None, None], id="a statement has no answer"),
        pytest.param([("user", f"Ada: {FACTS[0]}"), ("user", "Ben: the small one")], [None, 0], id="a few words"),
        pytest.param([("assistant", FACTS[0]), ("user", "run the tests")], [None, None], id="the next prompt"),
        pytest.param(
            [("user", "How was the museum?"), ("tool", "GET /museum: closed"), ("assistant", LONG)],
            [None, None, 0],
            id="what a tool printed is no answer",
        ),
        pytest.param(
            [("user", "Which port?"), ("assistant", LONG), ("user", FACTS[0]), ("assistant", f"Done: {FACTS[1]}")],
            [None, 0, None, 2],
            id="a word before a colon does not make the assistant another speaker",
        ),
    ],
)
def test_an_answer_belongs_to_the_question_of_the_other_speaker(
    core: Core, turns: list[tuple[str, str]], links: list[int | None]
) -> None:
    assert said(core, *turns) == links


def test_a_question_of_the_assistant_is_answered_in_time_or_not_at_all(core: Core, clock: Clock) -> None:
    observe(core, "Which port?", session="s", role="assistant")
    clock.advance(901)
    observe(core, LONG, session="s")
    assert core.active.list_turns(None)[0].answers is None
