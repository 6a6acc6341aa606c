"""Checks of the daemon as a process and as a systemd service: it answers, and there is only one.

A missing service is not a problem: clients start the daemon.
"""

import os
import stat
from pathlib import Path

import memoryd
from memoryd.client import sandboxed
from memoryd.client.errors import MemorydError, Unavailable, Untrusted, VersionMismatch
from memoryd.client.extras import advise
from memoryd.client.programs.doctor.patient import (
    DATABASE,
    Finding,
    Patient,
    check_access,
    examine_file,
    fail,
    quote_path,
    report_ok,
    warn,
)
from memoryd.client.programs.memctl.local import is_installed
from memoryd.client.programs.systemd.installing import read_state
from memoryd.client.programs.systemd.units import current_place, format_units, is_ours
from memoryd.client.protocol import PROTOCOL_VERSION
from memoryd.client.transport import activation, paths, spawn

REPLACE = [["memctl", "down"], ["memctl", "up"]]  # also if the daemon is of another installation or does not answer
INSTALL = "memctl service install"  # never run automatically: the user may have given it options
# Directives that differ between machines.
VARIABLE = ("ExecStart=", "Environment=", "MemoryMax=", "ListenStream=")


def check_daemon(patient: Patient) -> Finding:
    """Ask the daemon for its status."""
    if patient.status:
        return report_ok(f"answers, pid {patient.status.pid}")
    if isinstance(patient.error, Unavailable):
        if not is_installed():
            return fail("the daemon's packages are not here, so none can start", advise("daemon"))
        if not patient.database.exists() and not os.path.lexists(patient.client.socket_path):
            return report_ok("none has run here yet: the first command that needs one starts it, as does `memctl up`")
        return fail(f"no daemon answers at {patient.client.socket_path}", safe=[["memctl", "up"]])
    if isinstance(patient.error, Untrusted):
        return fail(patient.error.message)
    return fail(patient.error.message if patient.error else "unknown", safe=REPLACE)


def check_version(patient: Patient) -> Finding | None:
    """Compare the versions of memctl and the daemon."""
    if isinstance(patient.error, VersionMismatch):
        return fail(patient.error.message, safe=REPLACE)
    status = patient.status
    if not status:
        return None
    if status.protocol != PROTOCOL_VERSION:
        return fail(f"the daemon speaks protocol {status.protocol}, memctl {PROTOCOL_VERSION}", safe=REPLACE)
    if status.version != memoryd.__version__:
        return warn(f"the daemon is memoryd {status.version}, memctl is {memoryd.__version__}", safe=REPLACE)
    return report_ok(f"daemon and memctl are {status.version}, protocol {status.protocol}")


def check_service(patient: Patient) -> Finding | None:
    """Check that the installed service can start, uses the socket of the clients, and is that of this version."""
    state = read_state()
    if not state.installed:
        return None
    socket = str(patient.client.socket_path)
    if state.python and not os.access(state.python, os.X_OK):
        return fail(f"the service starts {state.python}, which no longer exists", INSTALL)
    if not state.enabled:
        return warn("its socket is not enabled, so systemd does not start it for a client", INSTALL)
    if state.socket and state.socket != socket:
        return warn(f"the service listens at {state.socket}, clients ask at {socket}", INSTALL)
    if state.socket_state == "failed":
        return fail("its socket was closed after too many failed starts", f"{activation.LOGS}; {INSTALL}")
    if state.result not in ("", "success"):
        return warn(f"its last run ended badly ({state.result})", activation.LOGS)
    if other := _list_other_units(patient):
        return warn(f"{', '.join(other)} differs from what this version writes", INSTALL)
    if state.manager:
        return warn(f"the service is installed, and {state.manager}", "memctl service status")
    last = "" if state.lingering else "; it ends with your last session unless you `loginctl enable-linger`"
    return report_ok(f"installed, {state.service_state or 'not started'}{last}")


def _list_other_units(patient: Patient) -> list[str]:
    """Return the units that differ from this version's in more than paths; units that the user wrote are skipped."""
    files = {name: activation.unit_folder() / name for name in (activation.SOCKET_UNIT, activation.SERVICE_UNIT)}
    present = {name: path.read_text("utf-8", "replace") for name, path in files.items() if path.is_file()}
    if not all(map(is_ours, present.values())):
        return []
    wanted = format_units(current_place(patient.client.socket_path, None, None, ""))
    given = {name: _parse_directives(present.get(name, "")) for name in wanted}
    return [name for name, text in wanted.items() if given[name] != _parse_directives(text)]


def _parse_directives(text: str) -> list[str]:
    """Return the lines of a unit, without comments and without directives that differ between machines."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", *VARIABLE))]


def _find_holder(lock: Path) -> int | None:
    """Return the process that holds a lock, None if there is none or the system does not report it."""
    if not lock.exists():
        return None
    inode = lock.stat().st_ino
    lines = [line.split() for line in Patient.read_system_file("locks").splitlines()]
    held = [int(line[4]) for line in lines if line[1] == "FLOCK" and line[5].rpartition(":")[2] == str(inode)]
    return next((pid for pid in held if pid > 0), None)


def check_data_folder(patient: Patient) -> Finding | None:
    """Compare the daemon's data directory with the one that this environment names."""
    usual, others = paths.data_dir(), sandboxed.list_folders()
    if patient.data_dir.resolve() != usual.resolve():
        message = f"the daemon keeps its data in {patient.data_dir}; this environment says {usual}"
        if patient.data_dir.resolve() in others:
            return warn(message, "memctl export > memories.jsonl && memctl down && memctl import memories.jsonl")
        return warn(message, f"export MEMORYD_DATA_DIR={quote_path(patient.data_dir)}")
    if newer := [folder for folder in others if _is_newer(folder, patient)]:
        message = f"{', '.join(map(str, newer))} has memories that are not in {usual}, which every shell uses now"
        return warn(message, " && ".join(map(_format_move, newer)))
    return report_ok(f"{usual}, as this environment says") if patient.status else None


def _is_newer(folder: Path, patient: Patient) -> bool:
    """Return whether the newest memory in a folder is newer than the newest one in the usual folder."""
    try:
        newest_at: float = examine_file(folder / DATABASE, check=False)["newest_at"]
    except MemorydError:  # the database is damaged, or the daemon's packages are not installed
        return False
    return newest_at > (patient.facts["newest_at"] if patient.facts else 0.0)


def _format_move(folder: Path) -> str:
    """Return the commands that move the memories of another data folder here, with a temporary daemon for it."""
    there = f"MEMORYD_DATA_DIR={quote_path(folder)} MEMORYD_SOCKET={quote_path(folder / 's')} memctl"
    return f"{there} export | memctl import - --mine && {there} down"


def check_socket(patient: Patient) -> Finding | None:
    """Check that the daemon of the data directory answers at the socket, and that socket and folder are private."""
    path = patient.client.socket_path
    if finding := _check_holder(patient):
        return finding
    if not os.path.lexists(path) or isinstance(patient.error, Untrusted):  # the check `daemon` reports these
        return None
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return fail(f"{path} is there and is not a socket: no daemon can start", f"rm {quote_path(path)}")
    if not spawn.is_answering(path):
        if patient.status:  # the daemon answers at another socket, so this one is unused
            return None
        return warn(f"{path} was left by a daemon that no longer runs", safe=[["memctl", "up"]])  # replaces it
    if finding := check_access(path, 0o600):
        return finding
    folder = path.parent.stat()
    if folder.st_uid != os.getuid() or stat.S_IMODE(folder.st_mode) & 0o077:
        message = f"others may enter {path.parent}; only the socket itself is private"
        return warn(message, "choose a socket in a folder of its own with MEMORYD_SOCKET")
    return report_ok(f"{path}, private to you")


def _check_holder(patient: Patient) -> Finding | None:
    """Return a finding if the process that holds the lock of the data directory is not the one that answers."""
    lock = patient.data_dir / "memoryd.lock"
    holder = _find_holder(lock)
    if holder is None or (patient.status and patient.status.pid == holder):
        return None
    here, there = str(patient.client.socket_path), lock.read_text(errors="replace")
    if there not in ("", here):
        message = f"process {holder} serves {patient.data_dir} at {there}; this environment asks at {here}"
        return fail(message, f"export MEMORYD_SOCKET={quote_path(Path(there))}")
    message = f"process {holder} holds {patient.data_dir} and does not answer at {here}: it just starts or hangs"
    return fail(message, f"ps -fp {holder}  # then: kill {holder}")
