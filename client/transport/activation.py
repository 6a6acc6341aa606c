"""Start the daemon through systemd: find and start the units that `memctl service install` writes.

Autostart uses systemd if the socket unit is enabled for the client's socket, so that systemd and a client never both
start a daemon. Imported by memctl, and by clients if no daemon answers.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from memoryd.client.errors import Unavailable
from memoryd.client.transport import paths

SOCKET_UNIT, SERVICE_UNIT = "memoryd.socket", "memoryd.service"
WANTED = Path("sockets.target.wants") / SOCKET_UNIT  # the link that `systemctl enable` creates
STARTED = Path("default.target.wants") / SERVICE_UNIT  # the same kind of link, which starts the daemon at login
LOGS = "journalctl --user -u memoryd"
START_LIMIT_S = 320.0  # a little more than TimeoutStartSec of the unit
FAILED = f"The service memoryd does not start: `{LOGS}` shows why; after fixing it: `memctl service install`."


def unit_folder() -> Path:
    """Return the folder of the user's units."""
    return Path(paths.base_folder("XDG_CONFIG_HOME", ".config")) / "systemd" / "user"


def is_enabled(socket_path: Path) -> bool:
    """Return whether the socket unit is enabled for this socket."""
    unit = unit_folder() / SOCKET_UNIT
    try:
        return os.path.lexists(unit_folder() / WANTED) and read_socket_path(unit.read_text("utf-8")) == str(socket_path)
    except (OSError, UnicodeDecodeError):
        return False


def read_socket_path(unit: str) -> str:
    """Return the path in a socket unit, with specifiers replaced as systemd does; empty if there is none."""
    addresses = [line.partition("=")[2].strip() for line in unit.splitlines() if line.startswith("ListenStream=")]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    known = {"%%": "%", "%t": runtime, "%h": os.path.expanduser("~")}
    return re.sub("%[%th]", lambda specifier: known[specifier[0]], addresses[-1]) if addresses else ""


def run_systemctl(*words: str, limit_s: float = 30.0) -> "subprocess.CompletedProcess[str]":
    """Run systemctl for the user manager; a timeout or a missing program is returned as a failed process."""
    command = ["systemctl", "--user", "--no-pager", *words]
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", "systemctl is not installed")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"systemctl {words[0]} took more than {limit_s:g} s")


def find_obstacle() -> str:
    """Return why the user manager cannot be used, empty if it can."""
    if not shutil.which("systemctl"):
        return "systemd is not installed"
    if not os.environ.get("XDG_RUNTIME_DIR"):
        return "XDG_RUNTIME_DIR is not set (log in as this user rather than by su or sudo)"
    asked = run_systemctl("show", "--property=Version", "--value")
    if asked.returncode:
        reason = (asked.stderr.strip() or "no reason given").splitlines()[0]
        return f"the user manager of systemd does not answer ({reason})"
    return ""


def start() -> bool:
    """Start the units; return False if no user manager runs, raise `Unavailable` if the service does not start."""
    if find_obstacle():
        return False
    if run_systemctl("start", SOCKET_UNIT, SERVICE_UNIT, limit_s=START_LIMIT_S).returncode:
        raise Unavailable(FAILED)
    return True
