"""Implicit feedback: an agent's turn that names or says what its session was told counts as a citation."""

from typing import Any

from conversing import judge, observe
from memoryd.client.protocol import Changed, Feedback, Get, Memory, NewTurn, Observe, Search
from memoryd.daemon.conversations import observing
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.tiers.recalls import Recalls
from workbench import LIMIT_S, add, ask, undo

PORT = "The gateway listens on port 8080."
CACHE = "We use Valkey as the cache. It runs in the office."


def get(core: Core, id: str) -> Any:
    return reading.get(core, Get(id=id))


def rate(core: Core, id: str, useful: bool, caller: Caller, namespace: str = "") -> Changed:
    return ask(core, Feedback(id=id, useful=useful, namespace=namespace), caller=caller)


def tell(core: Core, query: str, session: str = "s", namespace: str = "") -> None:
    """Search, and wait until it is known what the session was told."""
    ask(core, Search(query=query, session=session, namespace=namespace))
    core.effects.flush()


def say(core: Core, text: str, session: str = "s", role: str = "assistant", namespace: str = "") -> None:
    observe(core, text, session=session, role=role, namespace=namespace)
    judge(core)


def test_an_id_of_eight_digits_or_the_whole_text_is_a_citation() -> None:
    told = Recalls()
    told.note(
        "", "s", [recalled(id, text) for id, text in (("ab" * 16, PORT), ("cd" * 16, CACHE), ("ef" * 16, "Yes."))]
    )
    assert told.find_cited("", "s", "As abababab says, it is open.") == ["ab" * 16]
    assert told.find_cited("", "s", f"[{'CD' * 16}] holds") == ["cd" * 16]
    assert told.find_cited("", "s", f"I see. {CACHE} So I take it.") == ["cd" * 16]
    assert told.find_cited("", "s", "- the gateway  listens on port 8080\n- more") == ["ab" * 16]
    for nothing in ("", "Yes.", "abab", "abababac", "xabababab", "We use Valkey as the cache.", PORT.replace("8", "9")):
        assert told.find_cited("", "s", nothing) == [], nothing
    assert told.find_cited("", "t", "abababab") == told.find_cited("acme", "s", "abababab") == []


def recalled(id: str, content: str) -> Memory:
    return Memory(id=id, namespace="", type="fact", content=content, created_at=0.0, updated_at=0.0)


def test_a_cited_memory_ranks_a_little_higher_once_for_each_session(core: Core) -> None:
    one = add(core, PORT).id
    tell(core, "gateway port")
    for _ in range(3):
        say(core, f"According to {one[:8]} the port of the gateway is open to everybody.")
    say(core, f"And so, again, as {one} has it, everybody may use the gateway.")
    assert get(core, one).usefulness.cited == 1
    assert get(core, one).usefulness.factor == 1.03
    tell(core, "gateway port", session="t")
    say(core, f"What {one[:8]} says is decisive for the crawler too.", session="t")
    assert get(core, one).usefulness.factor == 1.05
    assert core.arrays.columns.usefulness == {1: 1.05}


def test_a_text_that_merely_repeats_what_was_told_is_skipped_and_still_a_citation(core: Core) -> None:
    one = add(core, PORT).id
    tell(core, "gateway port")
    observed = observe(core, PORT, session="s", role="assistant")
    assert [turn.reason for turn in observed] == [observing.REPEATED]
    judge(core)
    assert get(core, one).usefulness.cited == 1


def test_users_other_sessions_and_turns_without_one_cite_nothing(core: Core) -> None:
    one = add(core, PORT).id
    tell(core, "gateway port")
    text = f"The gateway is described by {one[:8]} in our memory."
    say(core, text, role="user")
    say(core, text.replace("our", "your"), session="other")
    say(core, text.replace("our", "their"), session="")
    assert get(core, one).usefulness is None


def test_a_memory_that_is_gone_or_out_of_reach_by_now_is_left_alone(core: Core) -> None:
    one = add(core, PORT, "acme/alpha").id
    tell(core, "gateway port", namespace="acme/alpha")
    move = "UPDATE memories SET namespace = (SELECT id FROM namespaces WHERE name = 'acme/beta')"
    add(core, CACHE, "acme/beta")
    core.store.write(lambda transaction: transaction.connection.execute(move)).result(LIMIT_S)
    say(core, f"It is {one[:8]} that decides about the gateway.", namespace="acme/alpha")
    assert get(core, one).usefulness is None


def test_a_citation_is_no_operation_and_counts_beside_what_others_say(core: Core) -> None:
    one = add(core, PORT).id
    rated = rate(core, one, useful=False, caller=Caller("agent", "acme", "a", b""), namespace="")
    tell(core, "gateway port")
    say(core, f"It is {one[:8]} that decides about the gateway.")
    told = get(core, one).usefulness
    assert (told.useless, told.cited) == (1, 1)
    undo(core, rated.operation)


def test_an_agent_with_a_token_counts_as_one_for_what_it_says_and_cites(core: Core) -> None:
    agent = Caller("agent", "acme", "anna", b"")
    one = add(core, PORT, "acme").id
    tell(core, "gateway port", namespace="acme")
    turn = NewTurn(role="assistant", content=f"It is {one[:8]} that decides about the gateway.")
    ask(core, Observe(turns=[turn], session="s", namespace="acme"), caller=agent)
    judge(core)
    rate(core, one, useful=False, caller=agent, namespace="acme")
    assert reading.get(core, Get(id=one)).usefulness is not None
    assert get(core, one).usefulness.factor == 0.95
