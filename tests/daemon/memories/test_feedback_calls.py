"""feedback: what a caller says of a memory moves its rank a little, can be undone, and goes where the memory goes."""

from typing import Any

import pytest

from memoryd.client.errors import Conflict, Invalid, NotFound
from memoryd.client.protocol import (
    Changed,
    ExportMemories,
    Feedback,
    Get,
    History,
    ImportMemories,
    NewTurn,
    Observe,
    Search,
    Share,
)
from memoryd.daemon.arrays.columns import FilterColumns
from memoryd.daemon.arrays.positions import Positions
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import feedback, reading
from memoryd.daemon.store.caller import Caller
from workbench import LIMIT_S, add, ask, delete, found, search, undo, update

ALPHA, BETA = (Caller("agent", f"acme/{name}", name, name.encode()) for name in ("alpha", "beta"))
PLUMS, PEARS = "the market has plums on Monday", "the market has plums on Sunday"


def rate(core: Core, id: str, useful: bool = True, note: str = "", caller: Any = None, **place: str) -> Changed:
    call = Feedback(id=id, useful=useful, note=note, **place)
    given = feedback.give(core, call, caller) if caller else feedback.give(core, call)
    return given.result(LIMIT_S)


def get(core: Core, id: str) -> Any:
    return reading.get(core, Get(id=id))


def factors(core: Core) -> dict[int, float]:
    """Return what RAM has, which must be what the disk has."""
    with core.store.reading() as connection:
        assert core.arrays.columns.usefulness == FilterColumns(connection, Positions()).usefulness
    return core.arrays.columns.usefulness


def test_of_two_that_answer_equally_well_the_useful_one_goes_first(core: Core) -> None:
    one, other = add(core, PLUMS).id, add(core, PEARS, dedup=False).id
    before = {hit.id: hit.score for hit in search(core, "market plums")}
    assert list(before) == [other, one], "the newer one first"
    changed = rate(core, one, note="that was it")
    assert (changed.memory.usefulness.useful, changed.memory.usefulness.notes) == (1, ["that was it"])
    hits = search(core, "market plums")
    assert [hit.id for hit in hits] == [one, other]
    assert hits[0].score == pytest.approx(before[one] * 1.05)
    assert hits[1].score == before[other]
    assert hits[0].usefulness is not None
    assert hits[0].usefulness.notes == []
    rate(core, one, useful=False)
    assert [hit.id for hit in search(core, "market plums")] == [other, one]


def test_no_feedback_lifts_a_memory_above_a_clearly_better_answer(core: Core) -> None:
    better, worse = add(core, "the cache is valkey").id, add(core, "the gateway has a limit and no cache").id
    for number in range(30):
        rate(core, worse, caller=Caller("agent", "acme", f"{number}", b""), namespace="")
        rate(core, better, useful=False, caller=Caller("agent", "acme", f"{number}", b""), namespace="")
    assert found(core, "cache valkey")[0] == "the cache is valkey"


def test_explain_and_get_tell_what_feedback_does(core: Core) -> None:
    one, other = add(core, PLUMS).id, add(core, PEARS, dedup=False).id
    rate(core, one, useful=False, note="closed")
    explained = ask(core, Search(query="market plums", explain=True))
    assert {c.id: c.usefulness for c in explained.explanation.candidates} == {one: 0.95, other: 1.0}
    assert next(stage for stage in explained.explanation.stages if stage.name == "rank").notes == {"usefulness": 1}
    assert get(core, one).usefulness.notes == ["closed"]
    assert get(core, other).usefulness is None


def test_feedback_counts_beside_a_half_life(core: Core) -> None:
    one = add(core, PLUMS).id
    [before] = search(core, "market plums", half_life_days=30.0, touch=False)
    rate(core, one)
    [after] = search(core, "market plums", half_life_days=30.0, touch=False)
    assert after.score == pytest.approx(1.05 * before.score)


def test_undo_takes_a_vote_back_and_the_undo_of_the_undo_gives_it_again(core: Core) -> None:
    one = add(core, PLUMS).id
    first, second = rate(core, one), rate(core, one, useful=False)
    undo(core)
    assert get(core, one).usefulness.useful == 1
    undo(core, first.operation)
    assert get(core, one).usefulness is None
    assert factors(core) == {}
    changes = ask(core, History(id=one)).changes
    told = {change.operation: change.changed.get("usefulness") for change in changes}
    assert told[first.operation] == (None, "1 useful, 0 useless, 0 cited")
    assert told[second.operation] == ("1 useful, 0 useless, 0 cited", "0 useful, 1 useless, 0 cited")


def test_a_deleted_memory_takes_its_feedback_along_and_brings_it_back(core: Core) -> None:
    one = add(core, PLUMS).id
    rate(core, one)
    gone = delete(core, one)
    assert factors(core) == {}
    undo(core, gone.operation)
    assert list(factors(core).values()) == [1.05]


def test_a_change_of_the_text_keeps_the_feedback_and_its_times_stay(core: Core, clock: Any) -> None:
    one = add(core, PLUMS).id
    clock.advance(100)
    rate(core, one)
    memory = get(core, one)
    assert memory.updated_at == memory.created_at
    update(core, one, content="the market has plums on Friday")
    assert get(core, one).usefulness.useful == 1


def test_an_agent_counts_once_whatever_place_it_names(core: Core) -> None:
    one = add(core, PLUMS, "acme").id
    for place in ("acme/alpha", "acme/alpha/inner", "acme/alpha"):
        rate(core, one, caller=ALPHA, namespace=place)
    rate(core, one, useful=False, caller=BETA, namespace="acme/beta")
    rate(core, one, namespace="acme")
    told = get(core, one).usefulness
    assert (told.useful, told.useless) == (2, 1)


def test_what_is_out_of_reach_cannot_be_rated(core: Core) -> None:
    one = add(core, PLUMS, "acme/beta").id
    with pytest.raises(NotFound):
        rate(core, one, caller=ALPHA, namespace="acme/alpha")


def test_a_turn_in_l0_is_refused_with_the_reason(core: Core) -> None:
    turn = NewTurn(role="user", content="We decided that the port of the gateway is 8080.")
    [id] = ask(core, Observe(turns=[turn])).ids
    with pytest.raises(Conflict, match="still in L0"):
        rate(core, id)
    with pytest.raises(NotFound):
        rate(core, "abcd")
    with pytest.raises(Invalid, match="NUL"):
        rate(core, add(core, PLUMS).id, note="a\0b")


def test_a_part_of_a_file_is_refused(core: Core) -> None:
    one = add(core, PLUMS).id
    core.store.write(
        lambda transaction: transaction.connection.execute("UPDATE memories SET tier = 'documents', path = '/a.md'")
    ).result(LIMIT_S)
    with pytest.raises(Conflict, match="part of the file"):
        rate(core, one)


def test_an_export_carries_every_vote_and_an_import_puts_them_back(core: Core) -> None:
    one = add(core, PLUMS, "acme").id
    rate(core, one, note="yes", caller=ALPHA, namespace="acme/alpha")
    rate(core, one, useful=False, note="no")
    [record] = ask(core, ExportMemories()).records
    assert [(vote.by, vote.useful, vote.note) for vote in record.votes] == [
        ("", False, "no"),
        ("token alpha", True, "yes"),
    ]
    [mine] = ask(core, ExportMemories(namespace="acme/alpha"), caller=ALPHA).records
    assert [vote.by for vote in mine.votes] == ["token alpha"]
    before = factors(core).copy()
    delete(core, one)
    ask(core, ImportMemories(records=[record]))
    assert list(factors(core).values()) == list(before.values())
    [again] = ask(core, ExportMemories()).records
    assert again.votes == record.votes
    assert ask(core, ImportMemories(records=[record])).unchanged == 1


def test_votes_that_cannot_be_are_refused(core: Core) -> None:
    one = add(core, PLUMS).id
    rate(core, one)
    [record] = ask(core, ExportMemories()).records
    record.votes *= 2
    with pytest.raises(Invalid, match="two by one caller"):
        ask(core, ImportMemories(records=[record]))


def test_a_shared_copy_starts_without_feedback_and_a_moved_memory_keeps_it(core: Core) -> None:
    one, other = (add(core, text, "acme/api").id for text in (PLUMS, "the gateway has a limit"))
    rate(core, one)
    rate(core, other)
    [copy] = ask(core, Share(ids=[one], to="acme")).memories
    [moved] = ask(core, Share(ids=[other], to="acme", move=True)).memories
    assert get(core, copy.id).usefulness is None
    assert get(core, moved.id).usefulness.useful == 1


def test_a_memory_that_is_moved_onto_an_equal_one_brings_its_feedback_along(core: Core) -> None:
    there, moved = add(core, PLUMS, "acme").id, add(core, PLUMS, "acme/api").id
    rate(core, moved, caller=ALPHA, namespace="acme/api")
    rate(core, there, useful=False)
    shared = ask(core, Share(ids=[moved], to="acme", move=True))
    assert shared.memories[0].outcome == "merged"
    told = get(core, there).usefulness
    assert (told.useful, told.useless) == (1, 1)
    undo(core, shared.operation)
    assert get(core, there).usefulness.useful == 0
