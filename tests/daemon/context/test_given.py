"""What agents were given: by session, of those within reach, without what was deleted since."""

from typing import Any

import pytest

from memoryd.client.protocol import GetContext, GetUnasked, GivenList, ListGiven, NewTurn, Observe, ResetSession
from memoryd.daemon.context.tables.given import keep_given
from memoryd.daemon.core.core import Core
from workbench import add, ask, delete


@pytest.fixture
def given(core: Core, clock: Any) -> Core:
    """Two sessions of two agents in two projects."""
    add(core, "Never deploy on Fridays", "acme/api", type="preference", pinned=True)
    add(core, "The page has no framework", "acme/web", type="preference", pinned=True)
    ask(core, GetUnasked(namespace="acme/api", session="one", agent="Claude Code"))
    clock.advance(60.0)
    ask(core, GetContext(namespace="acme/web", session="two", task="change the page"))
    return core


def texts(found: GivenList) -> list[tuple[str, str, str, list[str]]]:
    return [(one.namespace, one.session, one.agent, [line.text for line in one.lines]) for one in found]


def test_what_was_given_is_listed_by_session_the_latest_first(given: Core, clock: Any) -> None:
    assert texts(ask(given, ListGiven())) == [
        ("acme/web", "two", "", ["The page has no framework"]),
        ("acme/api", "one", "Claude Code", ["Never deploy on Fridays"]),
    ]
    assert [one.session for one in ask(given, ListGiven(limit=1))] == ["two"]
    assert [one.session for one in ask(given, ListGiven(since=clock.now - 30.0))] == ["two"]


def test_only_sessions_within_reach_are_listed(given: Core) -> None:
    assert [one.session for one in ask(given, ListGiven(namespace="acme/api"))] == ["one"]
    assert [one.session for one in ask(given, ListGiven(namespace="acme", reach="subtree"))] == ["two", "one"]
    assert len(ask(given, ListGiven(namespace="other"))) == 0


def test_what_was_deleted_or_lost_since_is_not_listed(given: Core) -> None:
    [web, api] = ask(given, ListGiven()).sessions
    delete(given, web.lines[0].id)
    ask(given, ResetSession(namespace=api.namespace, session=api.session))
    assert len(ask(given, ListGiven())) == 0


def test_a_turn_that_was_given_is_listed_while_it_is_in_l0(core: Core) -> None:
    said = NewTurn(role="user", content="The second office opens in March, near the harbour")
    [turn] = ask(core, Observe(namespace="acme", session="before", turns=[said])).ids
    key = "acme\nlater"
    core.store.write(lambda transaction: keep_given(transaction.connection, key, [(turn, b"")], core.clock())).result()
    [session] = ask(core, ListGiven())
    assert [(line.tier, line.type) for line in session.lines] == [("L0", "turn")]
