"""The commands of the service where no user manager runs: what they say, and that autostart stays what it was."""

import os
from pathlib import Path

import pytest
from fake_daemon import Memctl

from configs import NO_JOBS, NO_MODEL
from memoryd.client.programs.systemd.units import MARK
from memoryd.client.transport import activation, paths

NO_DAEMON = 3


@pytest.fixture(autouse=True)
def config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder of its own, and nobody who answers as the user manager."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "runtime"))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    return folder / "config" / "systemd" / "user"


def write_units(config: Path, socket: str = "/run/x/s", mark: str = MARK) -> None:
    (config / "sockets.target.wants").mkdir(parents=True)
    (config / "memoryd.socket").write_text(f"{mark}[Socket]\nListenStream={socket}\n")
    (config / "memoryd.service").write_text(f'{mark}[Service]\nExecStart=:"/gone/python" -P -m memoryd.daemon\n')
    (config / "sockets.target.wants" / "memoryd.socket").symlink_to(config / "memoryd.socket")


def test_print_shows_both_units_and_writes_nothing(memctl: Memctl, config: Path, folder: Path) -> None:
    shown = memctl("service", "install", "--print")
    assert f"# {config}/memoryd.socket\n{MARK}" in shown.out
    assert f"ListenStream={folder}/s\n" in shown.out
    assert f'--data-dir "{folder}/data"' in shown.out
    assert set(memctl("service", "install", "--print", "--json").json) == {"memoryd.socket", "memoryd.service"}
    assert not config.exists()


@pytest.mark.parametrize("trouble", ["nobody answers", "no runtime directory", "no systemctl"])
def test_without_a_user_manager_one_sentence_says_what_happens_instead(
    memctl: Memctl, config: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    if trouble == "no runtime directory":
        monkeypatch.delenv("XDG_RUNTIME_DIR")
    if trouble == "no systemctl":
        monkeypatch.setenv("PATH", "/nonexistent")
    failed = memctl("service", "install")
    assert failed.code == 1
    assert failed.err.endswith("so there is no service; clients start the daemon themselves when they need it.\n")
    assert failed.err.count("\n") == 1
    assert not config.exists()
    state = memctl("service", "status")
    assert (state.code, "clients start the daemon themselves" in state.out) == (0, True)


def test_a_service_that_an_earlier_version_left_waiting_for_a_client_says_so(memctl: Memctl, config: Path) -> None:
    write_units(config)
    waiting = memctl("service")
    assert "with the first client" in waiting.out
    assert "After a start of the machine it waits for a client; `memctl service install` changes that." in waiting.out
    (config / "default.target.wants").mkdir()
    (config / "default.target.wants" / "memoryd.service").symlink_to(config / "memoryd.service")
    assert "waits for a client" not in memctl("service").out
    assert memctl("service", "status", "--json").json["starts_itself"] is True
    memctl("service", "uninstall")
    assert not config.parent.exists()


def test_uninstall_removes_what_memctl_wrote_and_nothing_else(memctl: Memctl, config: Path) -> None:
    assert memctl("service", "uninstall").out.startswith("No service of memctl is installed")
    write_units(config)
    (config / "other.service").write_text("[Service]\n")
    (config / "sockets.target.wants" / "other.socket").write_text("")
    assert len(memctl("service", "uninstall", "--json").json["removed"]) == 2
    left = sorted(str(path.relative_to(config)) for path in config.rglob("*"))
    assert left == ["other.service", "sockets.target.wants", "sockets.target.wants/other.socket"]


def test_uninstall_leaves_units_that_somebody_else_wrote(memctl: Memctl, config: Path) -> None:
    write_units(config, mark="")
    (config / "memoryd.service").write_bytes(b"# not UTF-8: \xe4\n")
    before = sorted(config.rglob("*"))
    done = memctl("service", "uninstall")
    assert done.err.count("left alone") == 2
    assert sorted(config.rglob("*")) == before


def test_a_socket_is_held_where_its_unit_is_enabled(config: Path, folder: Path) -> None:
    socket = paths.socket_path()
    assert not activation.is_enabled(socket)
    write_units(config, str(socket))
    assert activation.is_enabled(socket)
    assert not activation.is_enabled(folder / "another")
    (config / "sockets.target.wants" / "memoryd.socket").unlink()
    assert not activation.is_enabled(socket)


@pytest.mark.usefixtures("_no_model")
def test_units_that_no_manager_serves_do_not_keep_a_client_from_starting_the_daemon(
    memctl: Memctl, config: Path, folder: Path
) -> None:
    write_units(config, str(folder / "s"))
    assert memctl("up").out.startswith("memoryd ")
    with_options = memctl("up", "--config", "other.toml")
    assert "options are in its unit" in with_options.err
    restarted = memctl("up", "--restart", "--json")
    assert restarted.json["uptime_s"] < 30
    assert "has stopped" in memctl("down").out
    assert memctl("status").code == NO_DAEMON


@pytest.fixture
def _no_model(folder: Path) -> None:
    Path(os.environ["MEMORYD_CONFIG"]).write_text(NO_MODEL + NO_JOBS)
