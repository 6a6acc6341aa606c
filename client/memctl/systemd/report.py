"""How the service is: what systemd says of the units, and what a person should know of it."""

import os
import sys
from pathlib import Path

import msgspec

from memoryd.client.memctl.systemd.installing import INSTEAD, is_lingering
from memoryd.client.memctl.systemd.units import command_of, is_ours
from memoryd.client.transport import activation
from memoryd.client.transport.activation import SERVICE_UNIT, SOCKET_UNIT, run_systemctl

UNLIMITED = 2**60  # more than any memory: systemd's figure for no limit
_ASKED = "ActiveState SubState Result MainPID NRestarts ExecMainStartTimestamp MemoryCurrent MemoryMax WatchdogUSec"


class ServiceState(msgspec.Struct):
    """The state of the units; figures are 0 and texts empty where systemd does not report them."""

    installed: bool
    ours: bool = False
    enabled: bool = False
    manager: str = ""
    file: str = ""
    python: str = ""
    socket: str = ""
    socket_state: str = ""
    service_state: str = ""
    result: str = ""
    pid: int = 0
    started: str = ""
    restarts: int = 0
    memory_bytes: int = 0
    memory_limit_bytes: int = 0
    watchdog: str = ""
    lingering: bool = False
    notes: list[str] = []


def read_state() -> ServiceState:
    """Return how the service is; `manager` says why systemd cannot be asked."""
    file = activation.unit_folder() / SERVICE_UNIT
    found = ServiceState(installed=file.is_file(), manager=activation.find_obstacle())
    if found.installed:
        text = file.read_text("utf-8", "replace")
        socket = activation.unit_folder() / SOCKET_UNIT
        found.file, found.ours, found.python = str(file), is_ours(text), command_of(text)
        found.socket = activation.read_socket_path(socket.read_text("utf-8", "replace")) if socket.is_file() else ""
        found.enabled = os.path.lexists(activation.unit_folder() / activation.WANTED)
        found.lingering = is_lingering()
    if found.installed and not found.manager:
        _ask(found)
    found.notes = _make_notes(found)
    return found


def _ask(found: ServiceState) -> None:
    known = _read_properties(SERVICE_UNIT)
    found.service_state = f"{known.get('ActiveState', '')} ({known.get('SubState', '')})"
    found.socket_state = _read_properties(SOCKET_UNIT).get("ActiveState", "")
    found.result = known.get("Result", "")
    found.pid, found.restarts = _parse_number(known.get("MainPID", "")), _parse_number(known.get("NRestarts", ""))
    found.started = known.get("ExecMainStartTimestamp", "") if found.pid else ""
    found.memory_bytes, found.memory_limit_bytes = (
        _parse_number(known.get(name, "")) for name in ("MemoryCurrent", "MemoryMax")
    )
    found.watchdog = known.get("WatchdogUSec", "")


def _read_properties(unit: str) -> dict[str, str]:
    shown = run_systemctl("show", f"--property={','.join(_ASKED.split())}", unit).stdout
    return dict(line.partition("=")[::2] for line in shown.splitlines() if "=" in line)


def _parse_number(text: str) -> int:
    return int(text) if text.isdigit() and int(text) < UNLIMITED else 0


def _make_notes(found: ServiceState) -> list[str]:
    """Return what a person should know or do, each one sentence."""
    notes = []
    if found.manager:
        notes.append(f"{found.manager[0].upper()}{found.manager[1:]}: {INSTEAD}.")
    elif not found.installed:
        notes.append(f"Not installed: {INSTEAD}. `memctl service install` makes it a service of systemd.")
    if not found.installed:
        return notes
    if not found.enabled:
        notes.append(f"The socket is not enabled: {INSTEAD}. `memctl service install` enables it.")
    if found.python and not os.access(found.python, os.X_OK):
        notes.append(f"{found.python} no longer exists: install it again with `memctl service install`.")
    elif found.python and Path(found.python) != Path(os.path.abspath(sys.executable)):
        notes.append(
            f"The service runs {found.python}, this is {sys.executable}: `memctl service install` changes that."
        )
    if found.result not in ("", "success"):
        notes.append(f"The last run ended badly ({found.result}): `memctl service logs` shows why.")
    if found.socket_state == "failed":
        notes.append("The socket was closed after too many failed starts: `memctl service install` opens it again.")
    if not found.lingering:
        notes.append("It ends with your last session; `loginctl enable-linger` keeps it running after that.")
    return notes
