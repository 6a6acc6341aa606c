"""The thread of a root hears from the server what others changed: here it polls once in ten minutes."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from machines import PLACE, Machine, machines

from memoryd.daemon.config import SharedConfig
from memoryd.daemon.shared.engine import Engine
from memoryd.daemon.shared.line import EngineThread
from postgres import Postgres
from waiting import wait_until

POLL_S = 600.0  # far longer than a test may take


@pytest.fixture
def pair(postgres: Postgres, database: str, folder: Path) -> Iterator[list[Machine]]:
    """A machine whose thread is to be started, and another one that is stepped by hand."""
    postgres.sql(f"ALTER DATABASE {database} SET log_statement = 'all'")
    with machines(folder, postgres.address(database=database), "one", "other") as made:
        made[1].sync()
        yield made


@pytest.fixture
def start(pair: list[Machine]) -> Iterator[Callable[[bool], EngineThread]]:
    """Start the thread."""
    machine, lines = pair[0], []

    def open_line(listen: bool) -> EngineThread:
        settings = SharedConfig(poll_s=POLL_S, listen=listen)
        lines.append(EngineThread(machine.core, machine.engine.root, machine.name, settings))
        machine.core.store.on_change = lines[0].wake
        return lines[0]

    yield open_line
    machine.core.store.on_change = None
    for line in lines:
        line.close()


def push(machine: Machine, text: str) -> None:
    machine.add(text)
    machine.sync()


def has(machine: Machine, text: str) -> bool:
    return text in machine.texts().values()


def has_listened(postgres: Postgres, other: Machine) -> bool:
    return f'LISTEN "{other.engine.channel}"' in (postgres.folder / "log").read_text()


def test_what_others_change_comes_by_a_notice_also_what_follows_within_its_second(
    postgres: Postgres, pair: list[Machine], start: Callable[[bool], EngineThread]
) -> None:
    machine, other = pair
    start(True)
    wait_until(lambda: has_listened(postgres, other))
    for text in ("the build runs on Fridays", "the cache is Valkey"):
        push(other, text)
        wait_until(lambda: has(machine, text))  # noqa: B023


def test_what_others_change_just_before_it_listens_comes_too(
    pair: list[Machine], start: Callable[[bool], EngineThread], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, other = pair
    real, coming = EngineThread._listen, iter(["the build runs on Fridays"])

    def listen(line: EngineThread) -> bool:
        for text in coming:
            push(other, text)
        return real(line)

    monkeypatch.setattr(EngineThread, "_listen", listen)
    start(True)
    wait_until(lambda: has(machine, "the build runs on Fridays"))
    push(other, "the cache is Valkey")  # within the second in which the server reports no more
    wait_until(lambda: has(machine, "the cache is Valkey"))


def test_a_notice_that_comes_during_an_exchange_is_heard(
    pair: list[Machine], start: Callable[[bool], EngineThread], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, other = pair
    real, numbers = Engine.exchange_all, count(1)

    def exchange(engine: Engine, pull: bool = True) -> bool:
        answered = real(engine, pull)
        if engine.machine == machine.name and next(numbers) == 3:  # the last one before it waits for the poll
            push(other, "the build runs on Fridays")
            assert engine.server is not None
            assert engine.server.value("SELECT 1") == 1  # the notice comes before the answer
        return answered

    monkeypatch.setattr(Engine, "exchange_all", exchange)
    start(True)
    wait_until(lambda: has(machine, "the build runs on Fridays"))


def test_who_is_not_to_listen_polls_alone(
    postgres: Postgres, pair: list[Machine], start: Callable[[bool], EngineThread]
) -> None:
    machine, other = pair
    line = start(False)
    wait_until(lambda: line.engine.figures.state == "ready")
    machine.add("of this machine", PLACE)

    def is_there() -> bool:
        other.sync()
        return has(other, "of this machine")

    wait_until(is_there)  # by its second exchange: it would listen by now
    assert not has_listened(postgres, other)
