"""doctor and the service of systemd's user manager."""

import sys
from pathlib import Path

import pytest
from findings import Doctor

from memoryd.client.programs.systemd.units import current_place, format_units
from memoryd.client.transport import paths


@pytest.fixture
def config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of units, and nobody who answers as the user manager."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "runtime"))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    return folder / "config" / "systemd" / "user"


@pytest.fixture
def written(config: Path) -> Path:
    """The units as an installation writes them."""
    (config / "sockets.target.wants").mkdir(parents=True)
    for name, text in format_units(current_place(paths.socket_path(), None, None, "2G")).items():
        (config / name).write_text(text)
    (config / "sockets.target.wants" / "memoryd.socket").symlink_to(config / "memoryd.socket")
    return config


def test_a_service_that_nobody_can_start_is_told(doctor: Doctor, written: Path) -> None:
    found = doctor("service")
    assert found["service"]["state"] == "warn"
    assert found["service"]["message"].startswith("the service is installed, and ")


def test_a_service_whose_python_is_gone_is_told(doctor: Doctor, written: Path) -> None:
    unit = written / "memoryd.service"
    unit.write_text(unit.read_text().replace(sys.executable, "/gone/python"))
    found = doctor("service")["service"]
    assert (found["message"], found["fix"]) == (
        "the service starts /gone/python, which no longer exists",
        "memctl service install",
    )


def test_a_service_that_is_not_enabled_or_listens_elsewhere_is_told(
    doctor: Doctor, written: Path, folder: Path
) -> None:
    unit = written / "memoryd.socket"
    unit.write_text(unit.read_text().replace(f"ListenStream={folder}/s", "ListenStream=/elsewhere"))
    assert doctor("service")["service"]["message"] == f"the service listens at /elsewhere, clients ask at {folder}/s"
    (written / "sockets.target.wants" / "memoryd.socket").unlink()
    assert "is not enabled" in doctor("service")["service"]["message"]


def test_units_of_another_version_are_told(doctor: Doctor, written: Path) -> None:
    unit = written / "memoryd.service"
    unit.write_text(unit.read_text().replace("Type=notify", "Type=simple"))
    found = doctor("service")["service"]
    assert (found["state"], found["fix"]) == ("warn", "memctl service install")
    unit.write_text("[Service]\nExecStart=/mine\n")
    assert "differs" not in doctor("service")["service"]["message"], "it is a person's own"
