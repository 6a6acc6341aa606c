"""What a session starts with, though nobody asked."""

from collections.abc import Callable
from typing import Any

import pytest

from conversing import observe, settle
from memoryd.client.protocol import Confirm, GetUnasked, NewTurn, Unasked
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import later
from memoryd.daemon.unasked import unasked
from workbench import LIMIT_S, ask, update
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


def test_what_is_pinned_comes_first_then_what_was_saved_on_purpose(core: Core) -> None:
    add(core, "Deploys run on Tuesdays.", PLACE, type="decision")
    add(core, "Never push to main.", PLACE, type="fact", pinned=True)
    add(core, "The tests need a Redis of their own.", PLACE, type="lesson")
    add(core, "The office has a blue door.", PLACE, type="fact")
    made = start(core)
    told = ["The office has a blue door.", "The tests need a Redis of their own.", "Deploys run on Tuesdays."]
    assert texts(made) == ["Never push to main.", *told]
    pinned = made.lines[0]
    assert pinned.why == "it is pinned"
    assert "Always:\n- Never push to main.\nDecisions and facts:\n" in made.text


def test_of_the_person_come_what_is_pinned_and_preferences_alone(core: Core) -> None:
    add(core, "Answers are short.", "", type="preference")
    add(core, "No emojis anywhere.", "", type="fact", pinned=True)
    add(core, "The salary is 5,150 EUR.", "", type="fact")
    add(core, "We look for a house.", "", type="decision")
    assert texts(start(core)) == ["No emojis anywhere.", "Answers are short."]
    others = ["We look for a house.", "The salary is 5,150 EUR."]
    assert texts(start(core, "")) == ["No emojis anywhere.", "Answers are short.", *others]


def test_what_a_team_saved_comes_as_what_the_project_did_and_no_other_projects(core: Core) -> None:
    add(core, "Two reviews before a merge.", "acme", type="rule")
    add(core, "The web client is written in Elm.", "acme/web", type="decision")
    assert texts(start(core)) == ["Two reviews before a merge."]
    assert texts(start(core, "")) == []


@pytest.mark.parametrize("source", ["extraction", "session_summary", "task_completion"])
def test_what_nobody_saved_on_purpose_does_not_come(core: Core, source: str) -> None:
    add(core, "We will use Kafka.", PLACE, type="decision", source=source, origin="heard")
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


def test_of_the_latest_session_come_what_was_asked_the_last_answer_and_what_is_open(core: Core) -> None:
    say(core, ("user", "why is the import slow?"), ("assistant", "It looks like the disk is full."), session="s0")
    asked = (
        "the import has to run at night, between two and four, and it must write no row twice; the partners read"
        " the table in the morning"
    )
    say(
        core,
        ("user", asked),
        ("assistant", DONE),
        ("tool", "$ pytest -q\n12 failed"),
        ("user", "nice, commit it please"),
        ("assistant", OPEN),
        ("user", "ok bye"),
    )
    told = [asked, DONE, OPEN]
    assert texts(start(core, session="s2")) == told
    assert texts(start(core, session="s1")) == []  # its own session is no news, and s0 only guessed
    settle(core, "stored")
    assert texts(start(core, session="s3")) == told


def test_a_session_that_only_asked_gives_way_to_the_one_before(core: Core) -> None:
    say(core, ("user", "why is the import slow?"), ("assistant", DONE), session="s0")
    say(core, ("user", "what did we do about the import?"), ("assistant", "Shall I look it up?"), session="s1")
    told = ["why is the import slow?", DONE]
    assert texts(start(core, session="s2")) == told
    settle(core, "stored")
    assert texts(start(core, session="s3")) == told


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
    assert texts(start(core)) == ["the import fails", OPEN]  # of the answers left the last says too little


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


# Budget and origin ---------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_counted_by_subject_and_after_rules_the_newest_come_first(
    core: Core, set_hooks: Callable[..., None]
) -> None:
    for number in range(7):
        add(core, f"Payment number {number} goes through the ledger{number}.", PLACE, type="fact")
    for number in range(4):
        add(
            core,
            f"Release {number} needs a changelog{number} of its own.",
            PLACE,
            type="decision",
            created_at=4_000_000_000.0 + number,
        )
    add(core, "Swans are counted at noon.", PLACE, type="rule")
    assert len(start(core, touch=False).lines) == 12
    set_hooks(start_tokens=100)
    made = start(core)
    assert made.tokens <= 100
    first = ["Swans are counted at noon.", "Release 3 needs a changelog3 of its own."]
    assert texts(made)[:2] == first
    told = [sum(word in text for text in texts(made)) for word in ("Payment", "Release")]
    counts = {"Payment": 7 - told[0], "Release": 4 - told[1]}
    counted = [f"{name if count > 1 else 'others'} ({count})" for name, count in counts.items() if count]
    assert made.text.endswith(f"\nMore is saved: {', '.join(counted)}. `memory_search` finds it.\n</memories>\n")
    set_hooks(start_tokens=0)
    assert start(core).text == ""


def test_what_agents_saved_comes_below_and_takes_a_third_at_most(core: Core, set_hooks: Callable[..., None]) -> None:
    add(core, "Deploys run on Tuesdays.", PLACE, type="fact", created_at=10.0)
    for number in range(40):
        add(core, f"Rule {number} is about swans{number}.", PLACE, type="rule", origin="agent", pinned=number == 7)
    set_hooks(start_tokens=240)
    made = start(core, touch=False)
    before, after = made.text.split("Saved by agents, unconfirmed:\n")
    assert "Decisions and facts:\n- Deploys run on Tuesdays.\n" in before
    assert "Rule 7 is about swans7." in after.splitlines()[0]
    assert 5 < len(made.lines[1:]) <= 13  # of 6 tokens each
    confirmed = made.lines[1].id
    ask(core, Confirm(ids=[confirmed], namespace=PLACE))
    assert "Always:\n- Rule 7 is about swans7.\n" in start(core).text.split("Saved by agents")[0]


@pytest.mark.parametrize(
    ("kinds", "origins", "told"),
    [
        (("decision", "decision"), ("person", "person"), "{old} (later, 1970-01-01 [{id}], saved: {new})"),
        (("rule", "fact"), ("person", "person"), "{old} (later, 1970-01-01 [{id}], saved: {new})"),
        (("rule", "fact"), ("person", "agent"), "{old} (later, 1970-01-01 [{id}], saved (agent, unconfirmed): {new})"),
        (("rule", "fact"), ("agent", "person"), "{new}"),
    ],
)
def test_a_saved_memory_and_the_later_one_that_changes_it_are_one_line(
    core: Core, kinds: tuple[str, str], origins: tuple[str, str], told: str
) -> None:
    texts_of = ("Payments run through Stripe.", "Mollie takes the cards. Ask Mara for its key.")
    old, new = (
        add(core, text, PLACE, type=kind, origin=origin, created_at=1000.0 + number).id
        for number, (text, kind, origin) in enumerate(zip(texts_of, kinds, origins, strict=True))
    )
    pair = later.Pair(old, new, 0, len("Mollie takes the cards."), 1.0)
    core.store.write(lambda transaction: later.add(transaction.connection, [pair])).result(LIMIT_S)
    made = start(core, session="s1")
    assert texts(made) == [told.format(old=texts_of[0], new=texts_of[1], id=new[:8])]
    assert (f"- [{old[:8]}] " in made.text) == ("later" in told)
    assert "later" not in told or start(core, session="s1").text == ""


@pytest.mark.parametrize(
    ("sure", "told"), [(0.9, "said by the user: We deploy on"), (0.6, "said by an agent: Deploys are")]
)
def test_of_a_prompt_that_changes_a_memory_and_its_answer_the_prompt_is_told(
    core: Core, sure: float, told: str
) -> None:
    old = add(core, "We deploy on Tuesdays.", PLACE, type="decision").id
    texts = {"user": "We deploy on Thursdays.", "assistant": "Deploys are on Thursdays."}
    turns = [NewTurn(role=role, content=text, created_at=at) for at, (role, text) in enumerate(texts.items(), 10)]
    said = observe(core, *turns, namespace=PLACE, session="s1").turns
    pairs = [later.Pair(old, turn.id or "", 0, 13, each) for turn, each in zip(said, (sure, 0.8), strict=True)]
    core.store.write(lambda transaction: later.add(transaction.connection, pairs)).result(LIMIT_S)
    assert told in start(core, session="s2").text


def test_what_changes_several_memories_is_told_once(core: Core) -> None:
    olds = [add(core, text, PLACE, type="rule").id for text in ("Swans pay by card.", "Herons pay at noon.")]
    new = add(core, "All birds pay by Mollie at night.", PLACE, type="fact").id
    pairs = [later.Pair(old, new, 0, 33, 1.0) for old in olds]
    core.store.write(lambda transaction: later.add(transaction.connection, pairs)).result(LIMIT_S)
    told = [text.partition(f"[{new[:8]}], saved: ")[2] for text in texts(start(core))]
    assert told == ["All birds pay by Mollie at night.)", "as above)"]


def test_an_import_comes_where_it_is_pinned_and_says_so(core: Core) -> None:
    add(core, "We look for herons.", PLACE, type="rule", origin="import")
    add(core, "Never push to main.", PLACE, type="rule", origin="import", pinned=True)
    made = start(core)
    assert "Saved by agents, unconfirmed:\n- Never push to main. (import, unconfirmed)\n" in made.text
    assert texts(made) == ["Never push to main."]


def test_a_new_project_is_told_the_persons_own_alone(core: Core) -> None:
    add(core, "Answers are short.", "", type="preference")
    for origin in ("agent", "import", "heard"):
        add(core, f"The {origin} wants long answers.", "", type="preference", origin=origin, pinned=origin != "agent")
    assert texts(start(core, "new/project")) == ["Answers are short."]
