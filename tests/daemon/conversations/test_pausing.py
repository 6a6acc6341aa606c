"""Pausing: what is said in a paused place leaves no trace; turns have an age and a number when that is set."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from memoryd.client import Client
from memoryd.client.errors import Invalid
from memoryd.client.protocol import GetObserving, NewTurn, Observe, PauseObserving, ResumeObserving
from memoryd.daemon.store.pauses import Pauses, TurnPlace

if TYPE_CHECKING:
    from conftest import Daemon

Start = Callable[..., "Daemon"]
SAID = "We decided that the vault is behind the painting"


def say(client: Client, number: int, **place: str) -> int:
    return client.call(Observe(turns=[NewTurn(role="user", content=f"{SAID} {number}")], **place)).accepted


def test_nothing_of_a_paused_place_is_kept(start_daemon: Start) -> None:
    daemon = start_daemon(observe={"never": ["/projects/private", "acme/secret"]})
    with daemon.client() as client:
        for kind, name in (("session", "s1"), ("folder", "/projects/shop"), ("namespace", "acme/api")):
            client.call(PauseObserving(kind=kind, name=name))  # type: ignore[arg-type]
        for number, place in enumerate(
            (
                {"session": "s1"},
                {"folder": "/projects/shop/deep/down"},
                {"folder": "/projects/private"},
                {"namespace": "acme/api"},
                {"namespace": "acme/api/inner"},
                {"namespace": "acme/secret"},
            )
        ):
            assert say(client, number, **place) == 0, place
        assert client.list().total == 0
        assert b"painting" not in b"".join(path.read_bytes() for path in daemon.core.folder.glob("memoryd.sqlite*"))
        for number, place in enumerate(
            ({"session": "s2"}, {"folder": "/projects/shopping"}, {"namespace": "acme/apis"}, {"namespace": "acme"})
        ):
            assert say(client, number, **place) == 1, place
        listed = client.call(GetObserving()).pauses
        made = {pause.kind for pause in listed if pause.since}
        assert (made, len(listed)) == ({"session", "folder", "namespace"}, 5)
        client.call(ResumeObserving(kind="session", name="s1"))
        assert say(client, 9, session="s1") == 1
        assert daemon.core.store.find_problems() == []


def test_a_pause_of_everything_survives_a_restart(start_daemon: Start) -> None:
    daemon = start_daemon()
    with daemon.client() as client:
        client.call(PauseObserving(kind="namespace", name=""))
        assert say(client, 1, namespace="acme") == 0
    with daemon.core.store.reading() as connection:
        again = Pauses(connection, [])
    assert again.find(TurnPlace("any/where", "", "")) is not None


@pytest.mark.parametrize(("kind", "name"), [("folder", "relative"), ("session", ""), ("namespace", "a//b")])
def test_what_is_no_place_is_refused(daemon: "Daemon", client: Client, kind: Any, name: str) -> None:
    with pytest.raises(Invalid):
        client.call(PauseObserving(kind=kind, name=name))


def test_turns_have_an_age_and_a_number_where_that_is_set(start_daemon: Start, clock: Any) -> None:
    daemon = start_daemon(tiers={"turn_days": 30.0, "max_turns": 5, "ring": 1})
    with daemon.client() as client:
        for number in range(10):
            say(client, number, namespace="acme")
        added = client.add(f"{SAID}, as was said").id
        client.run_job("caps")
        assert client.count(type=["turn"]).count == 5
        clock.advance(31 * 86400)
        client.run_job("expire")
        assert client.count(type=["turn"]).count == 0
        assert client.get(added).id == added
        assert daemon.core.store.find_problems() == []


def test_a_session_is_paused_by_its_first_characters(daemon: "Daemon", client: Client) -> None:
    session = "44ccf693-1f2d-4c55-9c7d-5f0c6f2ad0be"
    assert say(client, 1, session=session) == 1
    assert [pause.name for pause in client.pause_observing("session", "44ccf693").pauses] == [session]
    assert say(client, 2, session=session) == 0
    assert client.resume_observing("session", "44ccf693").pauses == []
    assert say(client, 3, session=session) == 1
