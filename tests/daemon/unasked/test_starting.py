"""What a session starts with, though nobody asked."""

from collections.abc import Callable
from typing import Any

import pytest

from conversing import observe, settle
from memoryd.client.protocol import GetUnasked, NewTurn, Unasked
from memoryd.daemon.core.core import Core
from memoryd.daemon.unasked import unasked
from workbench import LIMIT_S, update
from workbench import add_own as add

PLACE = "acme/api"
DONE = "The import runs at night now and takes four minutes; the table has an index on created_at."
OPEN = "Open: the mail to the partners is not written yet."


def start(core: Core, namespace: str = PLACE, **options: Any) -> Unasked:
    return unasked.get_unasked(core, core.sources, GetUnasked(namespace=namespace, **options)).result(LIMIT_S)


def texts(made: Unasked) -> list[str]:
    return [line.text for line in made.lines]


def say(core: Core, *said: tuple[str, str], session: str = "s1", namespace: str = PLACE) -> None:
    for role, content in said:
        observe(core, NewTurn(role=role, content=content), session=session, namespace=namespace)


def test_a_new_project_starts_with_nothing(core: Core) -> None:
    made = start(core)
    assert (made.text, made.tokens, made.lines) == ("", 0, [])


def test_what_is_pinned_comes_first_then_what_was_saved_on_purpose(core: Core) -> None:
    add(core, "Deploys run on Tuesdays.", PLACE, type="decision")
    add(core, "Never push to main.", PLACE, type="fact", pinned=True)
    add(core, "The tests need a Redis of their own.", PLACE, type="lesson")
    add(core, "The office has a blue door.", PLACE, type="fact")
    made = start(core)
    assert texts(made) == ["Never push to main.", "Deploys run on Tuesdays.", "The tests need a Redis of their own."]
    pinned = made.lines[0]
    assert pinned.why == "it is pinned"
    assert f"Always:\n- [{pinned.id[:8]}] Never push to main.\nDecisions:\n" in made.text


def test_of_the_person_come_what_is_pinned_and_preferences_alone(core: Core) -> None:
    add(core, "Answers are short.", "", type="preference")
    add(core, "No emojis anywhere.", "", type="fact", pinned=True)
    add(core, "The salary is 5,150 EUR.", "", type="fact")
    add(core, "We look for a house.", "", type="decision")
    assert texts(start(core)) == ["No emojis anywhere.", "Answers are short."]
    assert set(texts(start(core, ""))) == {"No emojis anywhere.", "Answers are short.", "We look for a house."}


def test_what_a_team_saved_comes_as_what_the_project_did_and_no_other_projects(core: Core) -> None:
    add(core, "Two reviews before a merge.", "acme", type="rule")
    add(core, "The web client is written in Elm.", "acme/web", type="decision")
    assert texts(start(core)) == ["Two reviews before a merge."]
    assert texts(start(core, "")) == []


@pytest.mark.parametrize("source", ["extraction", "session_summary", "task_completion"])
def test_what_nobody_saved_on_purpose_does_not_come(core: Core, source: str) -> None:
    add(core, "We will use Kafka.", PLACE, type="decision", source=source)
    assert texts(start(core)) == []


def test_what_is_superseded_does_not_come(core: Core) -> None:
    old = add(core, "Sessions are cached in Redis.", PLACE, type="decision")
    add(core, "Valkey holds what Redis held before.", PLACE, type="decision", supersedes=old.id)
    assert texts(start(core)) == ["Valkey holds what Redis held before."]


def test_what_something_newer_contradicts_does_not_come(core: Core) -> None:
    add(core, "The staging port of the api is 8443.", PLACE, type="decision", created_at=1000.0)
    newer = add(core, "The staging port of the api is 9443.", PLACE, type="decision", created_at=2000.0)
    assert newer.contradicts
    assert texts(start(core)) == ["The staging port of the api is 9443."]


def test_each_kind_has_its_turn_where_the_budget_is_short(core: Core, set_hooks: Callable[..., None]) -> None:
    for number in range(20):
        add(core, f"Rule {number} is about swans{number}.", PLACE, type="rule", created_at=1000.0 + number)
    add(core, "We use herons.", PLACE, type="decision", created_at=10.0)
    set_hooks(start_tokens=100)
    made = start(core)
    assert made.tokens <= 100
    assert texts(made)[0] == "Rule 19 is about swans19."
    assert "We use herons." in texts(made)
    assert 2 <= len(made.lines) < 21
    set_hooks(start_tokens=0)
    assert start(core).text == ""


def test_the_latest_session_comes_with_how_it_ended_and_what_it_found(core: Core) -> None:
    say(core, ("user", "why is the import slow?"), ("assistant", "It looks like the disk is full."), session="s0")
    laid_down = (
        "the import has to run at night, between two and four, and it must write no row twice; the partners read"
        " the table in the morning"
    )
    say(
        core,
        ("user", laid_down),
        ("assistant", DONE),
        ("tool", "$ pytest -q\n12 failed"),
        ("user", "nice, commit it please"),
        ("assistant", OPEN),
        ("user", "ok bye"),
    )
    assert sorted(texts(start(core, session="s2"))) == sorted([OPEN, DONE, laid_down])
    assert texts(start(core, session="s1")) == []  # its own session is no news, and s0 only guessed
    settle(core, "stored")
    assert sorted(texts(start(core, session="s3"))) == sorted([OPEN, DONE, laid_down])


def test_what_was_laid_down_comes_once_and_as_it_is_now(core: Core) -> None:
    say(
        core,
        ("user", "Gaps of up to 3 hours are interpolated linearly. Raw files are kept for ever in the archive."),
        ("assistant", "Gaps of up to 3 hours are interpolated, and raw files stay in the archive for ever."),
        ("user", "Make it 2 hours please."),
        ("assistant", "Updated: gaps of up to 2 hours are interpolated now instead of 3."),
        ("user", "Alarms go out by SMS, not by mail. Put that in."),
        ("assistant", "Alarms go out by SMS and never by mail; the code is in alarm.py."),
        session="s0",
    )
    say(core, ("user", "why is the import slow?"), ("assistant", DONE), session="s1")
    made = start(core, session="s2")
    assert sorted(texts(made)) == sorted(
        [DONE, "Alarms go out by SMS, not by mail.", "Raw files are kept for ever in the archive."]
    )


def test_what_a_session_found_does_not_come_where_it_was_changed_later(core: Core) -> None:
    stays = "The interval is in settings.py and holds for all sensors alike."
    found = f"The sensors are read every 300 seconds. {stays}"
    settled = "READ_INTERVAL is 600 seconds."
    change = "The sensors have to be read every 10 minutes from now on, not every 5."
    say(core, ("user", "how often are the sensors read?"), ("assistant", found), ("user", change))
    assert texts(start(core, session="s2")) == [stays]
    say(core, ("assistant", settled))
    assert texts(start(core, session="s3")) == [settled, stays]


def test_what_was_laid_down_gives_way_where_enough_was_saved_on_purpose(core: Core) -> None:
    laid_down = "Alarms go out by SMS, not by mail."
    reply = "Alarms go out by SMS and never by mail; the code is in alarm.py."
    say(core, ("user", laid_down), ("assistant", reply), session="s0")
    say(core, ("user", "why is the import slow?"), ("assistant", DONE), session="s1")
    for number in range(5):
        assert laid_down in texts(start(core, session=f"a{number}"))
        add(core, f"Rule {number} is about swans{number}.", PLACE, type="rule")
    assert laid_down not in texts(start(core, session="b"))


def test_a_session_that_only_asked_gives_way_to_the_one_before(core: Core) -> None:
    say(core, ("user", "why is the import slow?"), ("assistant", DONE), session="s0")
    say(core, ("user", "what did we do about the import?"), ("assistant", "Shall I look it up?"), session="s1")
    assert texts(start(core, session="s2")) == [DONE]
    settle(core, "stored")
    assert texts(start(core, session="s3")) == [DONE]


def test_what_was_taken_back_is_not_what_a_session_found(core: Core) -> None:
    say(
        core,
        ("user", "the import fails"),
        ("assistant", "The disk of the import server is full, so every write fails there at once."),
        ("user", "it has 200 GB left"),
        ("assistant", "Not the disk: the import waits for a lock."),
        ("user", "ok"),
        ("assistant", OPEN),
    )
    assert sorted(texts(start(core))) == sorted(["Not the disk: the import waits for a lock.", OPEN])


def test_a_session_is_not_given_a_line_twice_unless_it_lost_it(core: Core) -> None:
    id = add(core, "Deploys run on Tuesdays.", PLACE, type="decision").id
    assert start(core, session="s1").ids == [id]
    assert start(core, session="s1").ids == []
    assert start(core, session="s1", fresh=True).ids == [id]
    update(core, id, content="Deploys run on Mondays.")
    assert texts(start(core, session="s1")) == ["Deploys run on Mondays."]


def test_a_sentence_comes_once_though_two_memories_have_it(core: Core) -> None:
    add(core, "Deploys run on Tuesdays and never on Fridays.", PLACE, type="rule", pinned=True)
    add(core, "Deploys run on Tuesdays and never on Fridays. Ask Mara first.", PLACE, type="decision")
    assert texts(start(core)) == ["Deploys run on Tuesdays and never on Fridays."]


def test_a_long_memory_is_shown_by_whole_sentences(core: Core) -> None:
    sentences = [f"Sentence {number} says that herons nest on roof {number} of the old mill." for number in range(12)]
    add(core, " ".join(sentences), PLACE, type="lesson")
    [shown] = texts(start(core))
    assert 100 < len(shown) <= 320
    assert all(f"{part}." in sentences for part in shown.rstrip(".").split(". "))


def test_only_what_the_settings_name_comes(core: Core, set_hooks: Callable[..., None]) -> None:
    add(core, "Deploys run on Tuesdays.", PLACE, type="decision")
    add(core, "The tests need a Redis of their own.", PLACE, type="lesson")
    add(core, "Never push to main.", PLACE, type="fact", pinned=True)
    say(core, ("user", "go"), ("assistant", OPEN))
    set_hooks(only=["pinned", "decision"])
    assert texts(start(core)) == ["Never push to main.", "Deploys run on Tuesdays."]
    set_hooks(only=["turn"])
    assert texts(start(core)) == [OPEN]


def test_what_was_proposed_and_agreed_comes_in_the_words_of_the_agent(core: Core) -> None:
    agreed = "Patients can cancel until 24 hours before the appointment now."
    say(
        core,
        ("user", "How long may a patient cancel before the appointment?"),
        ("assistant", "That is not settled yet. Common are 24 or 48 hours. Shall I use 24 hours?"),
        ("user", "Yes, 24 hours."),
        ("assistant", agreed),
        session="s0",
    )
    say(core, ("user", "why is the import slow?"), ("assistant", DONE), session="s1")
    assert texts(start(core, session="s2")) == [agreed, DONE]
