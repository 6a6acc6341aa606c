"""A restart keeps the socket and fails no call: on request, and by itself once a newer version was installed."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from configs import NO_MODEL
from installation import NEW, OLD, Busy, Installation, check_kept, inode
from memoryd.client import Client
from memoryd.client.protocol import Hello, Shutdown
from waiting import wait_until
from wire import Wire, request
from workbench import Process

Started = Callable[..., Process]


@pytest.fixture
def site(folder: Path) -> Installation:
    return Installation(folder / "site")


@pytest.fixture
def start(folder: Path, site: Installation) -> Iterator[Started]:
    """Start the daemon of the installation with a configuration."""
    started: list[Process] = []

    def begin(config: str = NO_MODEL) -> Process:
        started.append(Process(folder, config, site.environment).start())
        return started[-1]

    yield begin
    for process in started:
        process.stop()


def version(process: Process) -> str:
    with process.client() as client:
        return client.status().version


def ready(process: Process) -> int:
    return (process.folder / "log").read_text().count("ready: socket")


@pytest.mark.slow
def test_a_newer_client_makes_an_upgraded_daemon_restart_on_its_socket_and_no_call_of_eight_clients_fails(
    site: Installation, start: Started
) -> None:
    process = start()
    assert version(process) == OLD
    pid, place = process.child.pid, inode(process.socket)
    with Busy(process.socket) as busy:
        site.upgrade()
        with process.client() as newer:
            added = newer.add("first call of the newer client")  # answered by the new daemon already
            assert newer.status().version == NEW
            newer.delete(added.id)
        busy.go_on()
    assert busy.failures == []
    assert (version(process), ready(process)) == (NEW, 2)
    assert (process.child.pid, inode(process.socket)) == (pid, place)
    check_kept(process.socket, busy)


@pytest.mark.slow
async def test_an_asynchronous_client_with_many_calls_under_way_sees_nothing_of_a_restart(start: Started) -> None:
    import asyncio

    from memoryd.client import AsyncClient

    process = start()
    async with AsyncClient("busy", socket=process.socket, autostart=False) as client:
        for _ in range(3):
            adding = [asyncio.create_task(client.add(f"note {at}", dedup=False)) for at in range(40)]
            await asyncio.sleep(0)
            with process.client() as another:
                another.call(Shutdown(restart=True))
            assert {added.outcome for added in await asyncio.gather(*adding)} == {"created"}
        assert (await client.stats()).memories == 120


@pytest.mark.slow
def test_what_a_call_wrote_before_a_restart_is_there_after_it(start: Started) -> None:
    process = start()
    with Wire(process.socket) as wire:
        adding = request({"method": "add", "memory": {"content": "under way"}}, 7)
        wire.send(adding + request({"method": "shutdown", "restart": True}, 8))
        replies = [wire.receive() for _ in range(3)]
    assert {(reply or [])[1] for reply in replies} == {7, 8, 0}
    assert [(reply or [])[2] for reply in replies if reply and reply[1] == 0] == ["unavailable"]
    with process.client() as client:
        assert [memory.content for memory in client.list()] == ["under way"]


@pytest.mark.slow
def test_an_older_client_never_restarts_a_newer_daemon(site: Installation, start: Started) -> None:
    site.upgrade("99.0.0")
    process = start()
    for client_version in ("0.0.1", NEW, "99.0.0", "100.0"):
        with process.client() as client:
            assert not client.call(Hello(version=client_version)).restarting
    assert ready(process) == 1


@pytest.mark.slow
def test_an_upgrade_that_a_restart_does_not_bring_is_tried_once(site: Installation, start: Started) -> None:
    process = start()
    # As if what lies on disk were not what is loaded: the successor runs the same old version.
    succession = site.folder / "memoryd" / "daemon" / "server" / "succession.py"
    succession.write_text(succession.read_text() + f'\n\ndef read_installed_version() -> str:\n    return "{NEW}"\n')
    with process.client() as client:
        client.call(Shutdown(restart=True))
    wait_until(lambda: ready(process) == 2)
    for _ in range(5):
        with Client(socket=process.socket, autostart=False) as client:
            assert client.status().version == OLD
    assert ready(process) == 3


@pytest.mark.slow
def test_a_new_version_that_cannot_start_says_why_and_the_next_client_may_start_another(
    site: Installation, start: Started
) -> None:
    process = start()
    (site.folder / "memoryd" / "daemon" / "server" / "server.py").write_text("raise RuntimeError('broken release')")
    with process.client() as client:
        client.call(Shutdown(restart=True))
    assert process.child.wait(30) == 1
    assert "broken release" in (process.folder / "log").read_text()
    process.environment.pop("PYTHONPATH")
    process.start()
    assert version(process) == NEW


@pytest.mark.slow
def test_a_signal_after_a_restart_leaves_everything_tidy(start: Started) -> None:
    process = start()
    with process.client() as client:
        client.call(Shutdown(restart=True))
    wait_until(lambda: ready(process) == 2)
    os.kill(process.child.pid, signal.SIGTERM)
    assert process.child.wait(30) == 0
    assert not process.socket.exists()
    assert sorted(path.name for path in process.data.iterdir()) == [
        "memoryd.lock",
        "memoryd.reserve",
        "memoryd.sqlite",
        "projects.former",
        "tmp",
    ]
