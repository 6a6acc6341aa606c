"""What is said beside a prompt, though nobody asked: only what is surely about it."""

from collections.abc import Callable
from typing import Any

import pytest

from conversing import observe, settle
from memoryd.client.protocol import GetTrace, GetUnasked, NewTurn, Trace, Unasked
from memoryd.daemon.context.unasked_lines import MAX_CHARS, choose_sentences
from memoryd.daemon.core.core import Core
from memoryd.daemon.unasked import prompting, sureness, unasked
from workbench import LIMIT_S, Clock, add_many, ask
from workbench import add_own as add

PLACE = "acme/api"
PORT = "The staging database listens on port 5433 behind the proxy."
PROMPT = "which port has the staging database behind the proxy"
STATED = "The nightly import waits for a lock that the billing worker holds until noon."
ASKED = "the nightly import waits for a lock again, what does the billing worker do until noon"


def at_prompt(core: Core, prompt: str = PROMPT, namespace: str = PLACE, **options: Any) -> Unasked:
    call = GetUnasked(prompt=prompt, namespace=namespace, **options)
    return unasked.get_unasked(core, core.sources, call).result(LIMIT_S)


def texts(made: Unasked) -> list[str]:
    return [line.text for line in made.lines]


def fill(core: Core, namespace: str = PLACE) -> None:
    """Store what has nothing to do with any prompt here."""
    birds = ("storks", "herons", "swans", "cranes", "geese", "terns", "ducks", "rooks")
    add_many(core, [f"The {bird} nest near pond {number}." for number, bird in enumerate(birds)], namespace)


def say(core: Core, *said: tuple[str, str], session: str = "s1") -> None:
    for role, content in said:
        observe(core, NewTurn(role=role, content=content), session=session, namespace=PLACE)
    settle(core, "stored")


def test_nothing_is_said_where_nothing_is_known_or_about_the_prompt(core: Core) -> None:
    assert (at_prompt(core).text, at_prompt(core).tokens) == ("", 0)
    fill(core)
    made = at_prompt(core)
    assert (made.text, made.lines) == ("", [])
    assert made.trace


@pytest.mark.parametrize("others", [False, True])
def test_what_is_surely_about_the_prompt_is_said_whole_and_alone(core: Core, others: bool) -> None:
    made = add(core, PORT, PLACE, type="fact")
    if others:
        fill(core)
    said = at_prompt(core)
    assert texts(said) == [PORT]
    assert f"- [{made.id[:8]}] {PORT}\n" in said.text
    assert said.lines[0].why.startswith("a fact that was saved here, ")
    assert 0 < said.tokens <= 250


def test_one_true_reason_is_given_where_nothing_is_said(core: Core) -> None:
    assert at_prompt(core, touch=False).refused is None
    say(core, ("user", STATED))
    nearest = at_prompt(core, ASKED, touch=False).refused
    assert nearest is not None
    assert (nearest.text, nearest.why.startswith("only memories that were saved on purpose")) == (STATED, True)
    assert texts(at_prompt(core, ASKED, session="s2")) == []


def test_what_comes_up_never_is_named_too_if_it_is_the_nearest(core: Core) -> None:
    fill(core)
    add(core, "The staging database is drawn in blue.", PLACE, type="fact")
    of_the_person = add(core, PORT, "", type="fact")
    nearest = at_prompt(core, touch=False).refused
    assert nearest is not None
    assert (nearest.id, nearest.why.startswith("from / only your own preferences")) == (of_the_person.id, True)


@pytest.mark.parametrize(("above", "others", "counts"), [(1.0, 1.5, False), (4.0, 1.5, True), (1.0, 5.0, True)])
def test_among_few_what_the_search_is_sure_of_counts_if_it_stands_out(
    above: float, others: float, counts: bool
) -> None:
    measured = sureness.Measured(above, words=0.0, others=others, asked=1.0)
    assert prompting._rate(measured, 0.9) == (0.9 if counts else measured.sure)


def test_what_may_be_out_of_date_is_not_said(core: Core) -> None:
    fill(core)
    add(core, PORT, PLACE, type="fact", created_at=1000.0)
    newer = "The staging database listens on port 5444 behind the proxy."
    add(core, newer, PLACE, type="fact", created_at=2000.0, dedup=False)
    assert texts(at_prompt(core, session="s")) == [newer]
    made = at_prompt(core, session="s")
    assert (made.lines, "something newer is about the same" in read_trace(core, made).left_out.values()) == ([], True)


def test_as_many_lines_at_most_as_are_set(core: Core, set_hooks: Callable[..., None]) -> None:
    fill(core)
    for number in range(5):
        add(core, f"The staging database listens on port 543{number} behind proxy {number}.", PLACE, dedup=False)
    set_hooks(prompt_floor=0.0)
    assert len(at_prompt(core).lines) == 1
    set_hooks(prompt_floor=0.0, prompt_lines=3)
    assert len(at_prompt(core).lines) == 3
    set_hooks(prompt_floor=0.0, prompt_lines=0)
    assert at_prompt(core).text == ""
    set_hooks(prompt_floor=1.0)
    assert at_prompt(core).text == ""


def test_of_the_person_only_what_is_pinned_or_a_preference_is_said(core: Core) -> None:
    fill(core)
    add(core, PORT, "", type="fact")
    assert texts(at_prompt(core)) == []
    assert texts(at_prompt(core, namespace="")) == [PORT]
    add(core, "Behind the proxy I prefer port 5433 for the staging database.", "", type="preference")
    assert texts(at_prompt(core)) == ["Behind the proxy I prefer port 5433 for the staging database."]


def test_a_session_is_said_nothing_twice_and_no_sentence_of_it(core: Core) -> None:
    fill(core)
    add(core, PORT, PLACE, type="decision")
    assert texts(at_prompt(core, session="s")) == [PORT]
    assert texts(at_prompt(core, session="s")) == []
    assert texts(at_prompt(core, session="s", fresh=True)) == [PORT]
    add(core, f"{PORT} Ask Mara for the password.", PLACE, dedup=False)
    assert texts(at_prompt(core, session="s")) == []


def test_what_the_start_gave_is_not_said_at_a_prompt(core: Core) -> None:
    fill(core)
    add(core, PORT, PLACE, type="decision")
    start = unasked.get_unasked(core, core.sources, GetUnasked(namespace=PLACE, session="s")).result(LIMIT_S)
    assert PORT in texts(start)
    assert texts(at_prompt(core, session="s")) == []


@pytest.mark.parametrize(("origin", "comes_up"), [("agent", False), ("person", True), ("import", True)])
def test_of_what_is_saved_while_a_session_runs_only_its_own_is_no_news_to_it(
    core: Core, clock: Clock, origin: str, comes_up: bool
) -> None:
    fill(core)
    observe(core, NewTurn(role="user", content="good morning to the birds"), session="s", namespace=PLACE)
    clock.now += 60
    add(core, PORT, PLACE, type="fact", origin=origin)
    assert texts(at_prompt(core, session="s")) == ([PORT] if comes_up else [])
    assert texts(at_prompt(core, session="another")) == [PORT]


def test_the_trace_says_how_sure_it_was_of_what_and_why(core: Core) -> None:
    made = add(core, PORT, PLACE, type="fact")
    fill(core)
    known = explain(core, PROMPT)
    assert len(known) > 1
    assert known[made.id]["sure"] == max(one["sure"] for one in known.values())
    assert known[made.id]["words"] > 0.0
    assert set(sureness.Measured._fields) < set(known[made.id])


def test_the_trace_says_of_each_that_was_found_that_it_was_given_or_why_not(
    core: Core, set_hooks: Callable[..., None]
) -> None:
    fill(core)
    given = add(core, PORT, PLACE, type="fact").id
    other = add(core, "The proxy of the staging database restarts at noon.", PLACE, dedup=False).id
    set_hooks(prompt_floor=0.0)
    trace = read_trace(core, at_prompt(core, session="s"))
    [first] = trace.given
    found = {one.id for one in trace.candidates if not one.lost}
    assert found == {first, *trace.left_out}
    assert trace.left_out[({given, other} - {first}).pop()] == "others come first, and `prompt_lines` is 1"
    assert read_trace(core, at_prompt(core, session="s")).left_out[first] == "the session already received it"


def read_trace(core: Core, made: Unasked) -> Trace:
    return ask(core, GetTrace(id=made.trace))


def explain(core: Core, prompt: str) -> dict[str, dict[str, float]]:
    """Return what the trace says of each memory that may come up, by id."""
    trace = ask(core, GetTrace(id=at_prompt(core, prompt).trace))
    [stage] = [stage for stage in trace.stages if stage.name == "sureness"]
    return stage.notes


def test_of_a_long_answer_comes_what_the_prompt_is_about_in_whatever_form_its_words_are() -> None:
    points = [
        "The client creates a payment for each weekly box, with iDEAL as the preselected method at the checkout",
        "The payment is marked in the ledger, and the key for it comes from the environment of the process",
        "The checkout shows the payment of the box and goes back to the page on which the box was chosen",
        "Failed ones are retried after 1, 3 and 7 days, then the subscription is paused",
    ]
    text = choose_sentences(points, prompt="What if a retry fails?")
    assert points[3] in text
    assert len(text) <= MAX_CHARS
    assert f"{points[0]}; " in text
