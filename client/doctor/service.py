"""Checks of the daemon as a process and as a service of systemd: does it answer, is it one, has it room.

Without a service, clients start the daemon: nothing is amiss.
"""

import os
import re
import stat
from pathlib import Path

import memoryd
from memoryd.client.doctor.patient import Finding, Patient, check_access, fail, quote_path, report_ok, warn
from memoryd.client.errors import Unavailable, Untrusted, VersionMismatch
from memoryd.client.extras import advise
from memoryd.client.memctl.local import is_installed
from memoryd.client.memctl.service import threads_text
from memoryd.client.memctl.table import count_text, shorten, size_text, to_one_line
from memoryd.client.protocol import PROTOCOL_VERSION
from memoryd.client.protocol.base import MAX_QUEUED
from memoryd.client.systemd.installing import read_state
from memoryd.client.systemd.units import current_place, format_units, is_ours
from memoryd.client.times import iso
from memoryd.client.transport import activation, paths, spawn

REPLACE = [["memctl", "down"], ["memctl", "up"]]  # by the daemon of this installation, or one that does not answer
GROUPS = Path("/sys/fs/cgroup")
LOG_TAIL_BYTES = 65536
LOG_LINE = 120
LOG_MARKS = ("level=error", "level=critical", "Traceback")
FULL = 0.8
SWAPPED_BYTES = 50_000_000
SPARE_BYTES = 200_000_000
SPARE_FILES = 128  # beside those of connections: the database, the model, watches
INSTALL = "memctl service install"  # never run by itself: it was perhaps given options
# Directives that say where things lie on this machine.
OWN = ("ExecStart=", "Environment=", "MemoryMax=", "ListenStream=")


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
    """See whether the service that is installed can start and listens where clients ask."""
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
    if state.manager:
        return warn(f"the service is installed, and {state.manager}", "memctl service status")
    if state.socket_state == "failed":
        return fail("its socket was closed after too many failed starts", f"memctl service logs; {INSTALL}")
    if state.result not in ("", "success"):
        return warn(f"its last run ended badly ({state.result})", "memctl service logs")
    last = "" if state.lingering else "; it ends with your last session unless you `loginctl enable-linger`"
    return report_ok(f"installed, {state.service_state or 'not started'}{last}")


def check_service_units(patient: Patient) -> Finding | None:
    """Compare the units with those that this version would write, but for the places in them."""
    folder = activation.unit_folder()
    texts = {name: (folder / name) for name in (activation.SOCKET_UNIT, activation.SERVICE_UNIT)}
    present = {name: path.read_text("utf-8", "replace") for name, path in texts.items() if path.is_file()}
    if not present:
        return None
    foreign = [name for name, text in present.items() if not is_ours(text)]
    if foreign:
        return report_ok(f"{', '.join(foreign)} was not written by memctl and is left alone")
    wanted = format_units(current_place(patient.client.socket_path, None, None, ""))
    other = [
        name for name, text in wanted.items() if _parse_directives(present.get(name, "")) != _parse_directives(text)
    ]
    if other:
        return warn(f"{', '.join(other)} differs from what this version writes", INSTALL)
    return report_ok("as this version writes them")


def _parse_directives(text: str) -> list[str]:
    """Return what a unit says, without comments and what belongs to this machine."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", *OWN))]


def check_instance(patient: Patient) -> Finding | None:
    """Compare who holds the lock of the data directory with who answers."""
    lock = patient.data_dir / "memoryd.lock"
    holder = _find_holder(lock)
    if holder is None:
        return None
    if patient.status and patient.status.pid == holder:
        return report_ok(f"one daemon, pid {holder}, holds {patient.data_dir}")
    here, there = str(patient.client.socket_path), lock.read_text(errors="replace")
    if there not in ("", here):
        message = f"process {holder} serves {patient.data_dir} at {there}; this environment asks at {here}"
        return fail(message, f"export MEMORYD_SOCKET={quote_path(Path(there))}")
    message = f"process {holder} holds {patient.data_dir} and does not answer at {here}: it just starts or hangs"
    return fail(message, f"ps -fp {holder}  # then: kill {holder}")


def _find_holder(lock: Path) -> int | None:
    """Return the process that holds a lock, None when nobody does or the system does not report it."""
    if not lock.exists():
        return None
    inode = lock.stat().st_ino
    lines = [line.split() for line in Patient.read_system_file("locks").splitlines()]
    held = [int(line[4]) for line in lines if line[1] == "FLOCK" and line[5].rpartition(":")[2] == str(inode)]
    return next((pid for pid in held if pid > 0), None)


def check_data_folder(patient: Patient) -> Finding | None:
    """Compare the daemon's data directory with the one that this environment names."""
    if not patient.status:
        return None
    usual = paths.data_dir()
    if patient.data_dir.resolve() == usual.resolve():
        return report_ok(f"{usual}, as this environment says")
    message = f"the daemon keeps its data in {patient.data_dir}; this environment says {usual}"
    return warn(message, f"export MEMORYD_DATA_DIR={quote_path(patient.data_dir)}")


def check_socket(patient: Patient) -> Finding | None:
    """See that the socket and its folder are private."""
    path = patient.client.socket_path
    if not path.exists():
        return None
    folder = path.parent.stat()
    if finding := check_access(path, 0o600):
        return finding
    if folder.st_uid != os.getuid() or stat.S_IMODE(folder.st_mode) & 0o077:
        message = f"others may enter {path.parent}; only the socket itself is private"
        return warn(message, "choose a socket in a folder of its own with MEMORYD_SOCKET")
    return report_ok(f"{path}, private to you")


def check_stale_socket(patient: Patient) -> Finding | None:
    """Look for a socket that a killed daemon left."""
    path = patient.client.socket_path
    if not os.path.lexists(path) or isinstance(patient.error, Untrusted):  # which `daemon` reports
        return None
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return fail(f"{path} is there and is not a socket: no daemon can start", f"rm {quote_path(path)}")
    if spawn.is_answering(path):
        return report_ok("somebody listens at it")
    return warn(f"{path} was left by a daemon that no longer runs", safe=[["memctl", "up"]])  # it replaces it


def check_load(patient: Patient) -> Finding | None:
    """Compare connections and queues with their limits."""
    if not patient.status or not patient.settings:
        return None
    status, limits = patient.status, patient.settings["server"]
    most = max(status.queued.values(), default=0)
    if status.connections > FULL * limits["max_connections"]:
        message = f"{status.connections} of {limits['max_connections']} connections are open"
        return warn(message, "raise max_connections in [server], or find who leaves them open: memctl status")
    if most > FULL * MAX_QUEUED:
        message = f"{most} of {MAX_QUEUED} calls wait: clients get the error busy"
        return warn(message, "ask less at once: memctl stats")
    return report_ok(f"{count_text(status.connections, 'connection')}, {count_text(most, 'call')} waiting")


def check_memory(patient: Patient) -> Finding | None:
    """Compare the daemon's memory with the limit of its group and with what the machine has left."""
    if not patient.status or not patient.status.rss_bytes:
        return None
    used, limit = patient.status.rss_bytes, _limit_bytes(patient)
    spare = _parse_bytes(patient.read_system_file("meminfo"), "MemAvailable")
    if limit and used > FULL * limit:
        message = f"it uses {size_text(used)} of the {size_text(limit)} that its control group may"
        return warn(message, "raise MemoryMax of its service, or choose a smaller model: memctl model list")
    if spare is not None and spare < SPARE_BYTES:
        return warn(f"the machine has {size_text(spare)} of memory left", "ps aux --sort=-rss | head")
    return report_ok(f"{size_text(used)} in use")


def _limit_bytes(patient: Patient) -> int:
    """Return the limit of the control group, 0 for none."""
    group = next((line[3:] for line in patient.read_process_file("cgroup").splitlines() if line.startswith("0::")), "")
    own = GROUPS / group.lstrip("/")
    for folder in (own, *own.parents) if group else ():
        try:
            return int((folder / "memory.max").read_text())
        except (OSError, ValueError):
            continue
    return 0


def _parse_bytes(text: str, field: str) -> int | None:
    """Return a field that is given in kB."""
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(f"{field}:")), None)


def check_swap(patient: Patient) -> Finding | None:
    """See whether the daemon's memory was moved to disk: what is in tiers in RAM is meant to be there."""
    swapped = _parse_bytes(patient.read_process_file("status"), "VmSwap")
    if swapped is None:
        return None
    if swapped > SWAPPED_BYTES:
        return warn(f"{size_text(swapped)} of it are swapped out: calls wait for the disk", "swapon --show; free -h")
    return report_ok("nothing of it is swapped out" if not swapped else f"{size_text(swapped)} swapped out")


def check_open_files(patient: Patient) -> Finding | None:
    """Compare the limit of open files with what as many clients as are allowed would need."""
    found = re.search(r"^Max open files +(\S+)", patient.read_process_file("limits"), re.MULTILINE)
    if not patient.status or not patient.settings or not found:
        return None
    limit = found[1]
    needed = patient.settings["server"]["max_connections"] + SPARE_FILES
    if limit != "unlimited" and int(limit) < needed:
        message = f"the daemon may open {limit} files; {needed} are needed where all connections are in use"
        return warn(message, f"ulimit -n {max(4096, needed)}; memctl down; memctl up")
    return report_ok(f"{limit} may be open")


def check_threads(patient: Patient) -> Finding | None:
    """Look for threads of the daemon that fail, and are tried again and again."""
    if not patient.status or not patient.status.threads:
        return None
    failing = [thread for thread in patient.status.threads if thread.is_failing()]
    if failing:
        return warn(f"{threads_text(failing)}: it is tried again", "memctl doctor log open-files disk")
    message = threads_text(patient.status.threads)
    return report_ok(message or f"{count_text(len(patient.status.threads), 'thread')} at work")


def check_log(patient: Patient) -> Finding | None:
    """Look for errors at the end of the log, of the daemon that runs now if one does."""
    path = patient.data_dir / "memoryd.log"
    if not path.is_file():
        return None
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    since = (iso(patient.answered_at - patient.status.uptime_s) or "") if patient.status else ""
    at, errors = "", list[str]()
    for line in lines:
        at = line.removeprefix("time=") if line.startswith("time=") else at  # a traceback has none
        if at >= since and any(mark in line for mark in LOG_MARKS):
            errors.append(line)
    if errors:
        return warn(f"last error: {shorten(to_one_line(errors[-1]), LOG_LINE)}", f"less +G {quote_path(path)}")
    return report_ok(f"no errors lately in {path}")
