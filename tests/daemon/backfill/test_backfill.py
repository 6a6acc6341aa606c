"""The call `backfill`: what becomes of the turns of a past session."""

from typing import Any

import msgspec
import pytest

from conversing import observe, problems
from memoryd.client.errors import Conflict, Forbidden, Invalid
from memoryd.client.protocol import Delete, Erase, List, Memory, NewTurn, PauseObserving
from memoryd.client.protocol.backfill import Backfill, Backfilled, PastTurn
from memoryd.daemon.core.core import Core
from memoryd.daemon.language.rating import SMALL_TALK
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.pauses import Pauses, TurnPlace
from workbench import Clock, add, ask, undo

AT = 1_700_000_000.0
ASKED = ("user", "Which database does the billing service use at the moment?")
ANSWERED = ("assistant", "It uses Postgres 15, and the mail service still has its own SQLite file.")


def turns(*said: tuple[str, str], step_s: float = 10.0, first: int = 0) -> list[PastTurn]:
    return [
        PastTurn(role=role, content=content, id=f"{first + number:032x}", created_at=AT + number * step_s)
        for number, (role, content) in enumerate(said)
    ]


def take(core: Core, given: list[PastTurn], **options: Any) -> Backfilled:
    return ask(core, Backfill(turns=given, session="s1", **{"namespace": "api", **options}))


def to_observe(turn: PastTurn) -> NewTurn:
    return NewTurn(role=turn.role, content=turn.content, id=turn.id, created_at=turn.created_at)


def stored(core: Core) -> dict[str, Memory]:
    page = ask(core, List(limit=1000, reach="all"))
    return {memory.content: memory for memory in page.memories}


def test_turns_become_memories_of_l2_at_the_time_at_which_they_were_said(core: Core) -> None:
    done = take(core, turns(ASKED, ANSWERED))
    assert (done.taken, done.known, done.left_out) == (2, 0, {})
    question, answer = stored(core)[ASKED[1]], stored(core)[ANSWERED[1]]
    assert (question.tier, question.type, question.source, question.namespace) == ("L2", "turn", "backfill", "api")
    assert (question.created_at, answer.created_at) == (AT, AT + 10)
    assert question.metadata == {"role": "user", "session": "s1"}
    assert answer.metadata["answers"] == question.id == f"{0:032x}"
    assert core.active.list_turns(None) == []
    assert problems(core) == []


def test_an_answer_to_a_program_counts_little_and_answers_nothing_of_the_users(core: Core) -> None:
    asked, answered = turns(ASKED, ANSWERED)
    take(core, [asked, msgspec.structs.replace(answered, to_program=True)])
    answer = stored(core)[ANSWERED[1]]
    assert answer.importance == SMALL_TALK
    assert "answers" not in answer.metadata


@pytest.mark.parametrize("count", [0, 1, 2, 80])
def test_so_many_turns_are_taken_in_once_and_undone_as_one(count: int, core: Core) -> None:
    said = [("user", f"The limit of queue {number} is {number * 7} jobs an hour") for number in range(count)]
    done = take(core, turns(*said))
    assert done.taken == len(stored(core)) == count
    assert done.operation
    again = take(core, turns(*said), operation=done.operation)
    assert (again.taken, again.known) == (0, count)
    if count:
        assert len(undo(core, done.operation).ids) == count
    assert stored(core) == {}
    assert problems(core) == []


def test_calls_that_name_an_operation_are_part_of_it(core: Core) -> None:
    operation = take(core, []).operation
    for number in range(3):
        given = turns(("user", f"Worker {number} restarts every night"), first=number)
        assert take(core, given, operation=operation).operation == operation
    assert len(stored(core)) == 3
    undo(core, operation)
    assert stored(core) == {}


def test_an_operation_that_was_undone_or_is_another_is_not_gone_on_with(core: Core) -> None:
    done = take(core, turns(ASKED))
    undo(core, done.operation)
    with pytest.raises(Conflict, match="was undone"):
        take(core, turns(ASKED), operation=done.operation)
    with pytest.raises(Invalid, match="not the id of a backfill"):
        take(core, [], operation=add(core, "something else").operation)
    assert take(core, turns(ASKED)).taken == 1


def test_what_the_gate_refuses_and_duplicates_are_left_out_with_the_reason(core: Core) -> None:
    add(core, ANSWERED[1], "api")
    done = take(core, turns(("user", "ok"), ("user", "Downloading 50%"), ANSWERED, ("user", "Deploys are on Tuesdays")))
    assert done.taken == 1
    assert done.left_out == {"too short": 1, "progress output": 1, "duplicate": 1}
    assert problems(core) == []


def test_a_short_answer_is_kept_with_its_question(core: Core) -> None:
    asked = ("assistant", "Shall I drop the old index before the migration?")
    assert take(core, turns(asked, ("user", "No."))).taken == 2
    assert stored(core)["No."].metadata["answers"] == f"{0:032x}"


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_an_answer_that_came_much_later_answers_nothing(role: str, core: Core) -> None:
    take(core, turns(ASKED, (role, ANSWERED[1]), step_s=1000.0))
    assert "answers" not in stored(core)[ANSWERED[1]].metadata


def test_what_was_observed_in_the_session_is_known_wherever_it_is_by_now(core: Core) -> None:
    observe(core, ASKED[1], session="s1", namespace="api")
    done = take(core, turns(ASKED, ANSWERED))
    assert (done.taken, done.known) == (1, 1)
    [question] = core.active.list_turns(None)
    assert stored(core)[ANSWERED[1]].metadata["answers"] == question.key


def test_a_dry_run_says_the_same_and_changes_nothing(core: Core) -> None:
    given = turns(ASKED, ANSWERED, ("user", "ok"))
    planned = take(core, given, dry_run=True)
    assert (planned.taken, planned.left_out, planned.operation) == (2, {"too short": 1}, None)
    assert stored(core) == {}
    done = take(core, given)
    assert (done.taken, done.left_out) == (planned.taken, planned.left_out)
    assert take(core, given, dry_run=True).known == 2


def test_turns_around_those_of_a_call_are_only_looked_at(core: Core) -> None:
    said = turns(ASKED, ANSWERED, ("user", "Then move it to kestrel-9 by Friday"))
    assert take(core, said[:2], after=1).taken == 1
    done = take(core, said, before=1, after=1)
    assert (done.taken, done.known) == (1, 0)
    assert set(stored(core)) == {ASKED[1], ANSWERED[1]}
    assert stored(core)[ANSWERED[1]].metadata["answers"] == said[0].id
    with core.store.reading() as connection:
        near = dict(connection.execute("SELECT content, neighbours FROM memories"))
    assert near == {ASKED[1]: ANSWERED[1], ANSWERED[1]: f"{ASKED[1]}\n{said[2].content}"}
    assert problems(core) == []


OTHER = ("assistant", "The nightly report of the mail service was moved to the old cluster")
SAID = [
    ("a question and its answer", [ASKED, ANSWERED]),
    ("what the agent asked", [("assistant", "Which of the two clusters shall I deploy to?"), ("user", "The old one.")]),
    ("a request", [("user", "Move the nightly report to the old cluster"), OTHER]),
    ("two requests", [("user", "Move the nightly report"), ("user", "And then stop the queue"), OTHER]),
    ("two answers to a request", [("user", "Move the nightly report"), OTHER, ("assistant", "The queue stands still")]),
    ("two answers to a question", [ASKED, ANSWERED, ("assistant", "Postgres 16 comes with the next release")]),
    ("what is not kept between", [("user", "Move the nightly report"), ("user", "ok"), OTHER]),
    ("a question not kept", [ASKED, ("user", "ok?"), ANSWERED]),
    ("a question back", [("user", "Move the nightly report"), ("assistant", "Which cluster does it move to?")]),
    ("a request after a question", [ASKED, ANSWERED, ("user", "Move the report"), ("assistant", f"Done: {OTHER[1]}")]),
    ("only a reply", [OTHER, ("user", "super good!")]),
]


@pytest.mark.parametrize(("what", "said"), SAID, ids=[what for what, _ in SAID])
def test_what_answers_what_is_as_it_is_when_turns_are_observed(
    what: str, said: list[tuple[str, str]], core: Core
) -> None:
    for turn in turns(*said, first=100):
        observe(core, to_observe(turn), session="s0", namespace="observed")
    with core.store.reading() as connection:
        sql = "SELECT a.content, q.content FROM turns a LEFT JOIN turns q ON q.key = a.answers"
        observed = dict(connection.execute(sql))
    take(core, turns(*said))
    made = {memory.id: memory for memory in stored(core).values()}
    answered = {one.content: made.get(one.metadata.get("answers", "")) for one in made.values()}
    assert {content: asked and asked.content for content, asked in answered.items()} == observed


@pytest.mark.parametrize("pause", [("namespace", ""), ("session", "s1"), ("folder", "/home/me/code")])
def test_what_was_said_during_a_pause_that_is_over_is_left_out(core: Core, clock: Clock, pause: Any) -> None:
    (kind, name), started = pause, clock()
    ask(core, PauseObserving(kind=kind, name=name))
    clock.advance(100)
    ask(core, PauseObserving(kind=kind, name=name, resume=True))
    times = {started - 1: "before the", started + 50: "during the", started + 100: "after the"}
    given = turns(*(("user", f"The vault was opened {when} pause") for when in times.values()))
    given = [
        msgspec.structs.replace(turn, created_at=at, folder="/home/me/code/api")
        for turn, at in zip(given, times, strict=True)
    ]
    done = take(core, given)
    assert (done.taken, done.left_out) == (2, {"observing is paused": 1})
    assert not any("during" in content for content in stored(core))
    with core.store.reading() as connection:  # as after a restart
        assert Pauses(connection, []).hides(TurnPlace("api", "s1", "/home/me/code"), started + 50)


def test_an_answer_to_what_was_said_in_a_pause_that_is_over_is_left_out(core: Core, clock: Clock) -> None:
    started = clock()
    ask(core, PauseObserving(kind="namespace", name=""))
    clock.advance(100)
    ask(core, PauseObserving(kind="namespace", name="", resume=True))
    later = ("user", "Then let us move the mail service to Postgres 15 as well.")
    given = [
        msgspec.structs.replace(turn, created_at=started + at)
        for turn, at in zip(turns(ASKED, ANSWERED, later), (50, 150, 200), strict=True)
    ]
    done = take(core, given)
    assert (done.taken, done.left_out) == (1, {"observing is paused": 2})
    assert list(stored(core)) == [later[1]]


def test_what_was_said_in_a_folder_that_is_paused_is_left_out(core: Core) -> None:
    said = turns(ASKED, ANSWERED)
    ask(core, PauseObserving(kind="folder", name="/code/secret"))
    given = [msgspec.structs.replace(said[0], folder="/code"), msgspec.structs.replace(said[1], folder="/code/secret")]
    done = take(core, given)
    assert (done.taken, done.left_out) == (1, {"observing is paused": 1})
    with core.store.reading() as connection:
        assert dict(connection.execute("SELECT content, neighbours FROM memories")) == {ASKED[1]: ""}


@pytest.mark.parametrize("busy", [0, 3, 1_000_000])
def test_calls_that_somebody_waits_for_go_first_but_not_for_ever(busy: int, core: Core) -> None:
    looks = 0

    def is_awaited() -> bool:
        nonlocal looks
        looks += 1
        return looks <= busy

    core.awaited = is_awaited
    said = turns(ASKED, ANSWERED, ("user", "Then move it to kestrel-9 by Friday"))
    assert take(core, said).taken == 3
    assert looks >= len(said)


@pytest.mark.parametrize("lacking", ["id", "created_at"])
def test_a_turn_without_its_time_or_its_id_is_refused(lacking: str, core: Core) -> None:
    fields = {"id": "0" * 32, "created_at": AT, lacking: None}
    with pytest.raises(Invalid, match=f"Turn 0 has no {lacking}"):
        take(core, [PastTurn(role="user", content="Something that was said", **fields)])  # type: ignore[arg-type]
    assert stored(core) == {}


def test_who_is_bound_to_a_namespace_cannot_choose_ids(core: Core) -> None:
    with pytest.raises(Forbidden):
        ask(core, Backfill(turns=turns(ASKED), namespace="api"), caller=Caller("agent", "api", "worker", b"k"))


def test_a_session_of_which_something_was_erased_is_left_out(core: Core) -> None:
    """What was not erased is there; its transcript does not bring the rest back."""
    observe(core, ASKED[1], session="s1", namespace="api")
    take(core, turns(ANSWERED, first=7))
    assert ask(core, Erase(ids=[stored(core)[ANSWERED[1]].id])).count == 1
    for dry_run in (True, False):
        done = take(core, turns(ASKED, ANSWERED), dry_run=dry_run)
        assert (done.taken, done.known, done.left_out) == (0, 1, {"something of its session was erased": 1})
    assert ask(core, Backfill(turns=turns(ANSWERED, first=9), session="s2")).taken == 1


@pytest.mark.parametrize("by", ["id", "text", "session"])
def test_a_session_of_which_a_skipped_turn_was_erased_is_left_out(by: str, core: Core) -> None:
    """A text that was kept elsewhere before is skipped: no turn of the session is stored."""
    rule = add(core, ANSWERED[1], namespace="api")
    observe(core, ANSWERED[1], session="s1", namespace="api")
    given: dict[str, Any] = {"id": {"ids": [rule.id]}, "text": {"matching": "postgres"}, "session": {"session": "s1"}}
    asked = ask(core, Erase(dry_run=True, **given[by]))
    assert (asked.skipped, ask(core, Erase(**given[by])).skipped) == (1, 1)
    done = take(core, turns(ASKED, ("assistant", "That is a rule")))
    assert (done.taken, done.left_out) == (0, {"something of its session was erased": 2})
    assert ask(core, Backfill(turns=turns(ASKED), session="s2")).taken == 1


def test_a_turn_that_was_deleted_is_left_out_until_that_is_undone(core: Core) -> None:
    take(core, turns(ASKED, ANSWERED))
    deleted = ask(core, Delete(ids=[stored(core)[ANSWERED[1]].id]))
    again = take(core, turns(ASKED, ANSWERED))
    assert (again.taken, again.known, again.left_out) == (0, 1, {"it was deleted": 1})
    undo(core, deleted.operation)
    assert ANSWERED[1] in stored(core)
