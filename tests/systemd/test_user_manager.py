"""The service under a real user manager of systemd: it is started, watched, stopped, restarted and upgraded by it."""

import os
import shutil
import sys
from pathlib import Path

import msgspec
import pytest
from user_manager import NO_MODEL, UserManager

import memoryd
from installation import NEW, OLD, Busy, Installation, check_kept
from memoryd.client import Unavailable
from memoryd.client.protocol import Shutdown
from waiting import wait_until
from wire import Wire, request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_the_first_client_that_connects_starts_the_daemon_and_is_answered(manager: UserManager) -> None:
    manager.memctl("service", "install")
    manager.memctl("down")
    assert not manager.socket.exists()
    manager.systemctl("start", "memoryd.socket")
    assert (manager.shows("ActiveState"), manager.shows("SubState", "memoryd.socket")) == ("inactive", "listening")
    with manager.client() as client:
        assert client.add("the first call of all").outcome == "created"
    assert manager.shows("SubState") == "running"
    assert (manager.socket.stat().st_mode & 0o777, manager.socket.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert manager.shows("StatusErrno") == "0"


def test_it_runs_from_login_on_before_any_client_comes(manager: UserManager) -> None:
    manager.memctl("service", "install")
    manager.memctl("down")
    manager.systemctl("start", "default.target")
    wait_until(lambda: manager.shows("SubState") == "running")


def test_installing_starts_it_says_so_and_again_changes_nothing(manager: UserManager) -> None:
    done = manager.memctl("service", "install")
    assert done.stdout.startswith(f"Installed; memoryd {memoryd.__version__} runs, pid ")
    texts = {path.name: path.read_text() for path in manager.units.glob("memoryd.*")}
    pid = manager.shows("MainPID")
    again = msgspec.json.decode(manager.memctl("service", "install", "--json").stdout)
    assert (again["changed"], str(again["pid"])) == ([], pid)
    assert {path.name: path.read_text() for path in manager.units.glob("memoryd.*")} == texts
    state = msgspec.json.decode(manager.memctl("service", "status", "--json").stdout)
    assert (state["installed"], state["enabled"], state["socket_state"]) == (True, True, "active")
    assert (state["service_state"], state["python"], str(state["pid"])) == ("active (running)", sys.executable, pid)
    assert state["watchdog"] == "30s"
    removed = msgspec.json.decode(manager.memctl("service", "uninstall", "--json").stdout)
    assert len(removed["removed"]) == 2
    assert list(manager.units.rglob("*")) == []
    assert manager.shows("LoadState") == "not-found"
    assert not manager.socket.exists()
    assert (manager.data / "memoryd.sqlite").exists()


def test_uninstalling_memoryd_stops_the_service_and_leaves_no_unit_no_socket_and_no_data(manager: UserManager) -> None:
    manager.memctl("service", "install")
    with manager.client() as client:
        client.add("gone with the rest")
    away = {"MEMORYD_MODEL_DIR": str(manager.home / "models")}  # those of this checkout stay
    done = msgspec.json.decode(manager.memctl("uninstall", "--yes", "--json", **away).stdout)
    removed = [part["what"] for part in done["parts"]]
    assert removed == ["service", "service", "daemon", "socket", "data", "settings"]
    assert list(manager.units.rglob("*")) == []
    assert manager.shows("LoadState") == "not-found"
    assert not manager.socket.parent.exists()
    assert not manager.data.exists()
    assert not (manager.config / "memoryd").exists()
    (manager.config / "memoryd").mkdir(mode=0o700)


def test_the_watchdog_ends_a_daemon_that_hangs_and_starts_another(manager: UserManager) -> None:
    manager.drop_in("WatchdogSec=2\nTimeoutAbortSec=2\nTimeoutStopSec=5")
    manager.memctl("service", "install")
    with manager.client() as client:
        id = client.add("kept through the hang").id
        before = client.status().pid
        manager.systemctl("kill", "--kill-who=main", "--signal=STOP", "memoryd.service")
        found = client.get(id)  # waits in the socket's queue, or for the one that hangs, until another one answers
    with manager.client() as client:
        assert client.status().pid != before
    assert found.content == "kept through the hang"
    assert manager.shows("NRestarts") == "1"


def test_a_healthy_daemon_outlives_many_watchdog_periods(manager: UserManager) -> None:
    manager.drop_in("WatchdogSec=1")
    manager.memctl("service", "install")
    told: set[str] = set()
    wait_until(lambda: told.add(manager.shows("WatchdogTimestampMonotonic")) or len(told) >= 8)
    assert manager.shows("NRestarts") == "0"


def test_a_daemon_that_crashes_is_started_again_and_keeps_what_it_acknowledged(manager: UserManager) -> None:
    manager.memctl("service", "install")
    with manager.client() as client:
        ids = [client.add(f"note {number}", dedup=False).id for number in range(20)]
        manager.systemctl("kill", "--kill-who=main", "--signal=KILL", "memoryd.service")
        assert {client.get(id).id for id in ids} == set(ids)
    wait_until(lambda: manager.shows("NRestarts") == "1")


def test_a_stop_answers_the_write_under_way_and_keeps_it(manager: UserManager) -> None:
    import apsw

    manager.memctl("service", "install")
    with manager.client() as client:
        client.add("there before")
    holder = apsw.Connection(str(manager.data / "memoryd.sqlite"))
    holder.set_busy_timeout(60_000)  # the daemon may be writing
    holder.execute("BEGIN IMMEDIATE")  # the daemon's write has to wait for this one
    with Wire(manager.socket) as wire:
        wire.send(request({"method": "add", "memory": {"content": "under way"}}, 7))
        assert wire.ask({"method": "get", "id": "ffffffff"}, 8)[1] == 8  # so the one before it has begun
        manager.systemctl("stop", "--no-block", "memoryd.service", "memoryd.socket")
        wait_until(lambda: manager.shows("SubState") == "stop-sigterm")
        holder.execute("ROLLBACK")
        holder.close()
        reply = wire.receive()
    assert (reply or [])[:2] == [0, 7]
    wait_until(lambda: manager.shows("ActiveState") == "inactive")
    assert manager.shows("Result") == "success"
    assert sorted(path.name for path in manager.data.iterdir()) == [
        "memoryd.lock",
        "memoryd.reserve",
        "memoryd.sqlite",
        "projects.former",
        "tmp",
    ]
    manager.memctl("up")
    with manager.client() as client:
        assert {memory.content for memory in client.list()} == {"there before", "under way"}


def test_an_upgrade_restarts_the_service_while_eight_clients_call_and_no_call_fails(manager: UserManager) -> None:
    site = Installation(manager.folder / "site")
    manager.drop_in(f"Environment=PYTHONPATH={site.folder} PYTHONDONTWRITEBYTECODE=1")
    manager.memctl("service", "install")
    with manager.client() as client:
        assert client.status().version == OLD
    with Busy(manager.socket) as busy:
        site.upgrade()
        with manager.client() as newer:
            newer.delete(newer.add("first call of the newer client").id)
            assert newer.status().version == NEW
        busy.go_on()
    assert busy.failures == []
    check_kept(manager.socket, busy)
    assert (manager.shows("NRestarts"), manager.shows("Result")) == ("1", "success")
    shutil.rmtree(site.folder)


def test_a_restart_on_request_and_a_reinstallation_fail_no_call_of_eight_clients(manager: UserManager) -> None:
    manager.memctl("service", "install")
    with Busy(manager.socket) as busy:
        for words in (["up", "--restart"], ["up", "--restart"], ["service", "install", "--memory-max", "3G"]):
            before = manager.shows("MainPID")
            manager.memctl(*words)
            busy.go_on()
            assert manager.shows("MainPID") not in (before, "0")
    assert busy.failures == []
    check_kept(manager.socket, busy)
    assert "MemoryMax=3G\n" in (manager.units / "memoryd.service").read_text()


def test_the_service_takes_over_from_a_daemon_that_a_client_started_and_no_call_fails(manager: UserManager) -> None:
    assert manager.memctl("up").stdout.startswith(f"memoryd {memoryd.__version__} runs")
    with Busy(manager.socket) as busy:
        done = msgspec.json.decode(manager.memctl("service", "install", "--json").stdout)
        busy.go_on()
        assert str(done["pid"]) == manager.shows("MainPID")
    assert busy.failures == []
    check_kept(manager.socket, busy)
    assert (manager.data / "memoryd.log").read_text().count("ready: socket") == 1


def test_autostart_goes_through_the_service_and_never_beside_it(manager: UserManager) -> None:
    manager.memctl("service", "install")
    assert "has stopped" in manager.memctl("down").stdout
    assert manager.shows("ActiveState", "memoryd.socket") == "inactive"
    assert not manager.socket.exists()
    with pytest.raises(Unavailable), manager.client() as client:
        client.status()
    manager.memctl("add", "started by a client")
    assert manager.shows("SubState") == "running"
    assert not (manager.data / "memoryd.log").exists()  # the one that clients start writes it
    with manager.client() as client:
        pid = client.status().pid
        client.call(Shutdown())
        assert client.status().pid != pid  # the socket is still held, so the next call starts it again


def test_a_service_that_cannot_start_is_given_up_and_says_where_to_look(manager: UserManager) -> None:
    manager.memctl("service", "install")
    manager.memctl("down")
    (manager.config / "memoryd" / "config.toml").write_text("[tiers]\nring = 'many'\n")
    failed = manager.memctl("add", "never", check=False)
    assert failed.returncode == 3
    assert failed.stderr.startswith(
        "memctl: The service memoryd does not start: `journalctl --user -u memoryd` shows why"
    )
    wait_until(lambda: manager.shows("Result") in ("start-limit-hit", "exit-code") and manager.shows("MainPID") == "0")
    wait_until(lambda: manager.shows("ActiveState") == "failed")
    assert int(manager.shows("NRestarts")) <= 5
    (manager.config / "memoryd" / "config.toml").write_text(NO_MODEL)
    assert f"memoryd {memoryd.__version__} runs" in manager.memctl("service", "install").stdout


def test_systemd_finds_nothing_wrong_with_the_units_and_their_hardening_holds(manager: UserManager) -> None:
    manager.memctl("service", "install")
    names = [str(manager.units / name) for name in ("memoryd.socket", "memoryd.service")]
    verified = manager.run("systemd-analyze", "--user", "verify", *names)
    assert (verified.stdout, verified.stderr) == ("", "")
    score = manager.run("systemd-analyze", "--user", "security", "--no-pager", "memoryd.service").stdout.splitlines()[
        -1
    ]
    print(score)  # seen with pytest -rP
    assert float(score.split(":")[1].split()[0]) <= 6.6  # of 10; most of the rest needs the system manager
    found = Path(f"/proc/{_outer_pid(manager)}/status").read_text()
    told = dict(line.split(":\t", 1) for line in found.splitlines())
    assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")
    assert manager.shows("MemoryMax") == str(4 * 1024**3)


def test_nothing_slows_the_daemon_down(manager: UserManager) -> None:
    manager.memctl("service", "install")
    usual = str(os.getpriority(os.PRIO_PROCESS, 0))  # the manager's own, whatever the tests run at
    wanted = {"Nice": usual, "CPUSchedulingPolicy": "0", "IOSchedulingClass": "2", "MemoryHigh": "infinity"}
    assert {name: manager.shows(name) for name in wanted} == wanted
    assert manager.shows("CPUQuotaPerSecUSec") == "infinity"
    assert manager.shows("Slice") == "app.slice"


def test_an_interpreter_data_and_settings_in_places_with_odd_names(manager: UserManager) -> None:
    odd, data = manager.folder / "o dd %t $HOME é", manager.folder / "data \"of\" 'mine' \\x %h ${HOME}"
    import venv

    venv.create(odd / "env", symlinks=True)
    site = next((odd / "env" / "lib").glob("python3*/site-packages"))
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "all.pth").write_text("\n".join([*ours, str(Path(__file__).parents[2] / "src")]))
    (odd / "settings.toml").write_text(NO_MODEL)
    python = str(odd / "env" / "bin" / "python")
    words = ["service", "install", "--data-dir", str(data), "--config", str(odd / "settings.toml"), "--json"]
    models = str(odd / "models")
    done = manager.run(python, "-m", "memoryd.client.programs.memctl", *words, MEMORYD_MODEL_DIR=models)
    assert msgspec.json.decode(done.stdout)["data_dir"] == str(data)
    with manager.client() as client:
        assert client.status().data_dir == str(data)
    outer = _outer_pid(manager)
    assert Path(f"/proc/{outer}/cmdline").read_bytes().split(b"\0")[0].decode() == python
    assert f"MEMORYD_MODEL_DIR={models}".encode() in Path(f"/proc/{outer}/environ").read_bytes().split(b"\0")
    state = msgspec.json.decode(manager.memctl("service", "status", "--json").stdout)
    assert state["python"] == python


def test_a_file_that_somebody_else_wrote_is_left_alone(manager: UserManager) -> None:
    manager.units.mkdir(parents=True, exist_ok=True)
    foreign = manager.units / "memoryd.service"
    foreign.write_text("[Service]\nExecStart=/bin/true\n")
    failed = manager.memctl("service", "install", check=False)
    assert (failed.returncode, "was not written by memctl" in failed.stderr) == (1, True)
    left = manager.memctl("service", "uninstall")
    assert "left alone" in left.stderr
    assert [path.name for path in manager.units.iterdir()] == ["memoryd.service"]
    assert foreign.read_text() == "[Service]\nExecStart=/bin/true\n"
    foreign.unlink()


def test_a_user_manager_that_looks_elsewhere_is_noticed(manager: UserManager) -> None:
    failed = manager.memctl("service", "install", check=False, XDG_CONFIG_HOME=str(manager.home / "other"))
    assert failed.returncode == 1
    assert "does not read" in failed.stderr
    assert list((manager.home / "other").iterdir()) == []


def _outer_pid(manager: UserManager) -> int:
    """Return the daemon's process id as this process sees it."""
    inner = manager.shows("MainPID")
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            spaces = next(line for line in status.read_text().splitlines() if line.startswith("NSpid:")).split()[1:]
        except (OSError, StopIteration):
            continue
        if spaces[-1] == inner and len(spaces) > 1 and _belongs(int(spaces[0]), manager):
            return int(spaces[0])
    raise AssertionError("the daemon is not among the processes")


def _belongs(pid: int, manager: UserManager) -> bool:
    return str(manager.folder).encode() in Path(f"/proc/{pid}/environ").read_bytes()
