"""Nothing is sent to a socket of another user, and no link of another user's leads a client or the daemon elsewhere."""

import asyncio
import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from impostor import NOBODY, impostor, needs_root

from hosting import Agent
from memoryd.client import AsyncClient, Client, Untrusted
from memoryd.client.programs.hooks import spool, wire
from memoryd.client.programs.memctl.running import run
from memoryd.client.transport import paths, spawn, trust
from memoryd.daemon.system import listen

WHOSE = r"belongs to .*, not to you; .*MEMORYD_SOCKET\. .*others use MCP at an address \(docs/server-team\.md\)\."


@pytest.fixture
def shared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of all users; there is no other place for the socket. The data is our own."""
    made = folder / "tmp"
    made.mkdir()
    made.chmod(0o1777)
    folder.chmod(0o711)
    for name in ("XDG_RUNTIME_DIR", "MEMORYD_SOCKET", "MEMORYD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(made))
    monkeypatch.setenv("MEMORYD_TOKEN", "secret-token")
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "data"))
    return made


@pytest.fixture
def usual(shared: Path) -> Path:
    """Where the socket is by default."""
    return shared / f"memoryd-{os.getuid()}" / "memoryd.sock"


def _blocking() -> None:
    with Client() as client:
        client.add("a secret memory")


def _asynchronous() -> None:
    async def add() -> None:
        async with AsyncClient() as client:
            await client.add("a secret memory")

    asyncio.run(add())


def _following() -> None:
    Client(namespace="secret").subscribe()


def _following_asynchronously() -> None:
    async def follow() -> None:
        async with AsyncClient(namespace="secret").subscribe():
            pass

    asyncio.run(follow())


def _starting() -> None:
    spawn.start(Path(os.environ["TMPDIR"]) / f"memoryd-{os.getuid()}" / "memoryd.sock")


CLIENTS = [_blocking, _asynchronous, _following, _following_asynchronously, _starting]


@needs_root
@pytest.mark.parametrize("client", CLIENTS)
def test_a_daemon_of_another_user_in_the_shared_folder_hears_nothing(client: Callable[[], None], usual: Path) -> None:
    with impostor(usual) as another:
        with pytest.raises(Untrusted, match=f"The folder {usual.parent} {WHOSE}"):
            client()
        assert another.heard() == b""


@needs_root
def test_memctl_says_whose_it_is(usual: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with impostor(usual) as another:
        assert run(["add", "a secret memory"]) == 1
        assert another.heard() == b""
    assert ", not to you; " in capsys.readouterr().err


@needs_root
def test_a_folder_of_another_user_is_refused_before_anything_listens(usual: Path) -> None:
    usual.parent.mkdir()
    os.chown(usual.parent, NOBODY, NOBODY)
    with pytest.raises(Untrusted, match=WHOSE):
        _blocking()
    assert list(usual.parent.iterdir()) == []


@needs_root
def test_a_socket_of_another_user_in_a_folder_of_all_is_refused(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_SOCKET", str(shared / "s"))
    with impostor(shared / "s") as another:
        with pytest.raises(Untrusted, match=f"The socket {shared / 's'} {WHOSE}"):
            _blocking()
        with pytest.raises(Untrusted, match=WHOSE):
            listen.listen(shared / "s")  # root could remove it
        assert (shared / "s").is_socket()
        assert another.heard() == b""


@needs_root
def test_what_counts_is_whose_process_listens(usual: Path) -> None:
    with impostor(usual) as another:
        for path in (usual.parent, usual):
            os.chown(path, os.getuid(), os.getgid())
        usual.parent.chmod(0o700)
        with pytest.raises(Untrusted, match=f"The process that listens at {usual} {WHOSE}"):
            _blocking()
        assert another.heard() == b""


def test_a_user_trusts_root_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert [uid for uid in (0, 1, 1000, 1001, NOBODY) if trust.is_trusted(uid)] == [0, 1000]


# Links and rights ----------------------------------------------------------------------------------------------------


def _daemon() -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "memoryd.daemon"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_link_instead_of_the_folder_is_not_followed(folder: Path, usual: Path) -> None:
    precious = folder / "memoryd-precious"
    precious.mkdir(mode=0o755)
    usual.parent.symlink_to(precious)
    with pytest.raises(Untrusted, match="is a symbolic link, where the folder of the socket should be"):
        _blocking()
    done = _daemon()
    assert (done.returncode, "is a symbolic link" in done.stderr, "Traceback" in done.stderr) == (1, True, False)
    assert stat.S_IMODE(precious.stat().st_mode) == 0o755
    assert list(precious.iterdir()) == []


def test_a_link_instead_of_the_socket_is_not_followed(folder: Path, usual: Path) -> None:
    with listen.listen(folder / "run" / "s"):
        usual.parent.mkdir(mode=0o700)
        usual.symlink_to(folder / "run" / "s")
        with pytest.raises(Untrusted, match=f"{usual} is a symbolic link"):
            _blocking()


def test_a_folder_that_others_may_write_in_is_refused_with_the_command_that_helps(folder: Path) -> None:
    run = folder / "run"
    run.mkdir()
    with listen.listen(run / "s"):
        run.chmod(0o770)
        with pytest.raises(Untrusted, match=f"Other users may write in the folder {run}; run `chmod go-w {run}`"):
            Client(socket=run / "s").status()
    with pytest.raises(Untrusted, match="chmod go-w"):
        listen.listen(run / "s")


def test_a_folder_of_ours_that_is_open_is_narrowed(folder: Path) -> None:
    run = folder / "memoryd-run"
    run.mkdir()
    run.chmod(0o777)
    trust.make_private(run)
    assert stat.S_IMODE(run.stat().st_mode) == 0o700


def test_a_lock_is_not_taken_through_a_link(folder: Path) -> None:
    (folder / "s.start").symlink_to(folder / "elsewhere")
    with pytest.raises(Exception, match="Too many levels of symbolic links"):
        spawn.start(folder / "s")
    assert not (folder / "elsewhere").exists()


def test_a_socket_that_a_daemon_removes_at_this_moment_is_no_mistake(folder: Path) -> None:
    with listen.listen(folder / "s"), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(folder / "s"))
        (folder / "s").unlink()
        trust.check_connection(connection, str(folder / "s"))


# Hooks ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def agent(folder: Path, usual: Path) -> Agent:
    made = Agent("claude-code", folder, folder)
    for name in ("XDG_RUNTIME_DIR", "MEMORYD_SOCKET"):
        made.environment.pop(name, None)
    made.environment |= {"TMPDIR": str(usual.parent.parent), "MEMORYD_TOKEN": "secret-token"}
    return made


@needs_root
def test_a_hook_says_nothing_to_another_users_daemon_and_keeps_the_turn(agent: Agent, usual: Path) -> None:
    with impostor(usual) as another:
        for event in ("session-start", "prompt"):
            done = agent.hook(event, prompt="a secret prompt")
            assert (done.code, done.out) == (0, "")
        with pytest.raises(wire.Silent, match="belongs to"):
            wire.DaemonLink(time.monotonic() + 20)
        assert another.heard() == b""
    assert spool.count_waiting() == 1


@needs_root
def test_a_hook_keeps_nothing_in_a_folder_of_another_user(agent: Agent, folder: Path) -> None:
    data = folder / "data"
    os.chown(data, NOBODY, NOBODY)
    before = sorted(data.iterdir())
    done = agent.hook("prompt", prompt="a secret prompt")
    assert (done.code, done.out) == (0, "")
    assert ", not to you; " in done.err
    assert sorted(data.iterdir()) == before


@needs_root
def test_a_spool_of_another_user_is_neither_sent_nor_written(agent: Agent, folder: Path) -> None:
    planted = folder / "data" / "hooks.spool"
    planted.write_text('{"method": "observe"}\n')
    os.chown(planted, NOBODY, NOBODY)
    done = agent.hook("prompt", prompt="a secret prompt")
    assert (done.code, done.out) == (0, "")
    assert planted.read_text() == '{"method": "observe"}\n'
    assert spool.count_waiting() == 0


# Where the socket is -------------------------------------------------------------------------------------------------


def test_what_a_host_starts_without_the_variable_finds_the_users_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_RUNTIME_DIR", "MEMORYD_SOCKET", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(paths, "_RUNTIME_FOLDERS", str(folder))
    assert paths.socket_address() == f"/tmp/memoryd-{os.getuid()}/memoryd.sock"
    (folder / str(os.getuid())).mkdir()
    assert paths.socket_address() == f"{folder}/{os.getuid()}/memoryd/memoryd.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")
    assert paths.socket_address() == "/elsewhere/memoryd/memoryd.sock"


# A folder that is closed to us ---------------------------------------------------------------------------------------

# It runs as root first, so that all is imported: another user may not be able to read this test's packages.
_ASK_AS_NOBODY = f"""
import os, pwd, sys
from memoryd.client.programs.memctl import running
running.run(sys.argv[1:])
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
sys.exit(running.run(sys.argv[1:]))
"""


@needs_root
@pytest.mark.parametrize("words", [["status"], ["down"], ["search", "x"]], ids=lambda w: w[0])
def test_who_may_not_reach_a_daemon_of_another_user_is_told_so(folder: Path, words: list[str]) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    os.chown(closed, NOBODY - 1, NOBODY - 1)
    folder.chmod(0o711)
    environment = {"MEMORYD_SOCKET": str(closed / "s"), "MEMORYD_DATA_DIR": str(folder), "HOME": str(folder)}
    command = [sys.executable, "-c", _ASK_AS_NOBODY, *words, "--no-autostart"]
    done = subprocess.run(command, env={**os.environ, **environment}, cwd="/", capture_output=True, text=True)
    assert re.search(f"The folder {closed} {WHOSE}", done.stderr), done.stderr
    assert done.returncode == 1
