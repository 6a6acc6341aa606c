"""Pausing: what is said in a paused place leaves no trace; turns have an age and a number when that is set."""

import hashlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client import Client
from memoryd.client.errors import Invalid
from memoryd.client.protocol import (
    GetObserving,
    GetUnasked,
    NewTurn,
    Observe,
    PauseObserving,
    Traces,
)
from memoryd.daemon.store import database_settings
from memoryd.daemon.store.pauses import Pauses, TurnPlace
from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.upkeep import rescue
from workbench import Daemon

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
        client.call(PauseObserving(kind="session", name="s1", resume=True))
        assert say(client, 9, session="s1") == 1
        assert daemon.core.store.find_problems() == []


def test_with_only_nothing_outside_of_its_places_is_kept(start_daemon: Start) -> None:
    daemon = start_daemon(observe={"only": ["/projects/shop", "acme/api"], "never": ["/projects/shop/diary"]})
    with daemon.client() as client:
        kept: list[dict[str, str]] = [
            {"folder": "/projects/shop/deep"},
            {"namespace": "acme/api/inner"},
            {"namespace": "acme/api", "folder": "/elsewhere"},
        ]
        out = [{"folder": "/projects/shopping"}, {"namespace": "acme"}, {"folder": "/projects/shop/diary"}, {}]
        assert [say(client, number, **place) for number, place in enumerate([*kept, *out])] == [1, 1, 1, 0, 0, 0, 0]
        observing = client.call(PauseObserving(kind="session", name="s1"))
        assert (observing.only, len(observing.pauses)) == (["/projects/shop", "acme/api"], 2)
        assert say(client, 8, namespace="acme/api", session="s1") == 0
        assert client.call(GetUnasked(prompt="where is the vault?", namespace="other")).trace == ""


def test_a_pause_of_everything_survives_a_restart(start_daemon: Start) -> None:
    daemon = start_daemon()
    with daemon.client() as client:
        client.call(PauseObserving(kind="namespace", name=""))
        assert say(client, 1, namespace="acme") == 0
    with daemon.core.store.reading() as connection:
        again = Pauses(connection, [])
    assert again.is_paused(TurnPlace("any/where", "", ""))


def test_what_arrives_late_is_judged_by_the_time_at_which_it_was_said(start_daemon: Start, clock: Any) -> None:
    daemon = start_daemon(observe={"never": ["acme/secret"]})

    def say_late(at: float, namespace: str = "acme") -> int:
        turn = NewTurn(role="user", content=f"{SAID} {at}", created_at=at)
        return client.call(Observe(turns=[turn], namespace=namespace)).accepted

    with daemon.client() as client:
        clock.advance(100)
        began = daemon.core.clock()
        client.call(PauseObserving(kind="namespace", name=""))
        assert (say_late(began - 1), say_late(began), say_late(began - 2, "acme/secret")) == (1, 0, 0)
        clock.advance(100)
        ended = daemon.core.clock()
        client.call(PauseObserving(kind="namespace", name="", resume=True))
        assert (say_late(began - 3), say_late(began + 1), say_late(ended)) == (1, 0, 1)


PAUSES = [("namespace", ""), ("namespace", "acme"), ("session", "s1"), ("folder", "/projects")]


@pytest.mark.parametrize(("kind", "name"), PAUSES)
def test_of_a_prompt_said_in_a_pause_no_trace_is_kept(client: Client, kind: Any, name: str) -> None:
    client.add(SAID)

    def prompt() -> str:
        place = {"namespace": "acme/api", "session": "s1", "folder": "/projects/shop"}
        return client.call(GetUnasked(prompt="where did we decide that the vault is?", **place)).trace

    client.call(PauseObserving(kind=kind, name=name))
    assert (prompt(), client.call(Traces()).traces) == ("", [])
    client.call(PauseObserving(kind=kind, name=name, resume=True))
    assert prompt() == client.call(Traces()).traces[0].id


@pytest.mark.parametrize(("kind", "name"), PAUSES)
def test_an_answer_to_what_was_said_in_a_pause_stays_out(client: Client, kind: Any, name: str) -> None:
    def observe(*roles: str, session: str = "s1") -> list[str]:
        turns = [NewTurn(role=role, content=f"{SAID}, says the {role} of {session}") for role in roles]
        place = {"namespace": "acme/api", "session": session, "folder": "/projects/shop"}
        return [one.outcome for one in client.call(Observe(turns=turns, **place)).turns]

    client.call(PauseObserving(kind=kind, name=name))
    assert observe("user") == ["skipped"]
    client.call(PauseObserving(kind=kind, name=name, resume=True))
    assert observe("assistant") == ["skipped"]
    assert observe("assistant", session="s2") == ["accepted"], "another session, which said nothing in the pause"
    assert observe("assistant", "user", "assistant") == ["skipped", "accepted", "accepted"]
    assert [turn.session for turn in client.turns().turns] == ["s1", "s1", "s2"]
    assert client.turns(skipped=True).skipped == []


@pytest.mark.parametrize(("kind", "name"), [("folder", "relative"), ("session", ""), ("namespace", "a//b")])
def test_what_is_no_place_is_refused(daemon: "Daemon", client: Client, kind: Any, name: str) -> None:
    with pytest.raises(Invalid):
        client.call(PauseObserving(kind=kind, name=name))


def test_turns_have_an_age_where_that_is_set(start_daemon: Start, clock: Any) -> None:
    daemon = start_daemon(tiers={"turn_days": 30.0, "ring": 1})
    with daemon.client() as client:
        for number in range(10):
            say(client, number, namespace="acme")
        added = client.add(f"{SAID}, as was said").id
        clock.advance(31 * 86400)
        client.run_job("expire")
        assert client.list(type=["turn"]).total == 0
        assert client.get(added).id == added
        assert daemon.core.store.find_problems() == []


def test_an_ended_pause_of_which_a_version_before_kept_a_digest_still_holds(daemon: "Daemon") -> None:
    name = hashlib.sha256(b"/home/ada/quagmire").hexdigest()[:32]
    ended = f'[{{"kind": "folder", "name": "{name}", "since": 5.0, "until": 9.0, "is_hidden": true}}]'

    def put(transaction: Transaction) -> None:
        database_settings.put(transaction.connection, "ended_pauses", ended)
        daemon.core.pauses.follow(transaction)

    daemon.core.store.write(put).result()
    assert daemon.core.pauses.hides(TurnPlace("", "", "/home/ada/quagmire/fen"), 6.0)
    assert not daemon.core.pauses.hides(TurnPlace("", "", "/home/ada/quag"), 6.0)


def test_a_session_is_paused_by_its_first_characters(daemon: "Daemon", client: Client) -> None:
    session = "44ccf693-1f2d-4c55-9c7d-5f0c6f2ad0be"
    assert say(client, 1, session=session) == 1
    assert [pause.name for pause in client.pause_observing("session", "44ccf693").pauses] == [session]
    assert say(client, 2, session=session) == 0
    assert client.pause_observing("session", "44ccf693", resume=True).pauses == []
    assert say(client, 3, session=session) == 1


def test_a_restore_keeps_the_pauses_of_here_and_those_that_were_resumed_here(
    start_daemon: Start, tmp_path: Path, clock: Any
) -> None:
    daemon = start_daemon()
    with daemon.client() as client:
        for name in ("/projects/shop", "/projects/bank"):
            client.call(PauseObserving(kind="folder", name=name))
        copy = tmp_path / "copy.sqlite"
        client.backup(str(copy))
        paused_at = client.call(PauseObserving(kind="folder", name="/projects/diary")).pauses[-1].since
        client.call(PauseObserving(kind="session", name="s1"))
        clock.advance(60)
        client.call(PauseObserving(kind="folder", name="/projects/shop", resume=True))
        client.call(PauseObserving(kind="session", name="s1", resume=True))
        former = tmp_path / "former.sqlite"
        client.backup(str(former))
    (tmp_path / "restored").mkdir()
    report = rescue.restore(copy, tmp_path / "restored", former)
    assert report.left_out["kept_pauses"] == ["/projects/diary"]
    with closing(apsw.Connection(str(tmp_path / "restored" / FILE_NAME))) as connection:
        pauses = Pauses(connection, [])
    assert sorted(pause.name for pause in pauses.list_all()) == ["/projects/bank", "/projects/diary"]
    assert pauses.hides(TurnPlace("", "", "/projects/shop"), paused_at or 0.0)
    assert pauses.hides(TurnPlace("", "s1", ""), paused_at or 0.0)
    (tmp_path / "new").mkdir()
    assert rescue.restore(former, tmp_path / "new").left_out["kept_pauses"] == []
