"""A real user manager of systemd, in namespaces of its own, whatever runs as process 1 outside.

A tmpfs on /run with /run/systemd/system makes systemd believe that the machine runs it. The runtime directory is an
ordinary temporary folder, so clients outside reach the sockets; systemctl is run inside, since the manager asks the
kernel who its peers are. The manager gets a control group of its own, so that managers never meet.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memoryd.client import Client
from waiting import wait_until

SYSTEMD = Path("/lib/systemd/systemd")
GROUPS = Path("/sys/fs/cgroup")
NO_MODEL = '[model]\nname = "none"\nfetch = false\n[jobs]\nenabled = false\n'
BEGIN = """
for group in "$@"; do echo $$ > "$group/cgroup.procs"; done
exec unshare $SPACES --mount --pid --fork --kill-child --mount-proc sh -c '
    mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && "$0" --user & wait $!' "$SYSTEMD"
"""


class UserManager:
    """Its folder holds home and runtime directory; `run` runs a command inside."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mu-"))
        self.home, self.runtime = self.folder / "home", self.folder / "run"
        self.config = self.home / "config"
        self.units = self.config / "systemd" / "user"
        for made in (self.home, self.runtime, self.config / "memoryd"):
            made.mkdir(parents=True, mode=0o700)
        self.runtime.chmod(0o700)
        self.socket = self.runtime / "memoryd" / "memoryd.sock"
        self.data = self.home / "data" / "memoryd"
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "MEMORYD_MODEL_DIR")}
        self.environment = {
            **kept,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_CONFIG_HOME": str(self.config),
            "XDG_DATA_HOME": str(self.home / "data"),
        }
        self._groups = list(_groups())
        self._spaces = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start the manager; return why it cannot run here, empty when it does."""
        if not SYSTEMD.exists() or not shutil.which("unshare") or not shutil.which("nsenter"):
            return "install systemd and util-linux to run this"
        allowed = subprocess.run(
            ["unshare", *self._spaces, "--mount", "--pid", "--fork", "--mount-proc", "true"], capture_output=True
        )
        if allowed.returncode:
            return f"allow namespaces to run this ({allowed.stderr.decode().strip()})"
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", BEGIN, "sh", *map(str, self._groups)],
                env={**self.environment, "SPACES": " ".join(self._spaces), "SYSTEMD": str(SYSTEMD)},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            wait_until(lambda: self._state() in ("running", "degraded"))
        except AssertionError:
            if self._spaces:
                return "run this as root: systemd's user manager does not come up in a user namespace here"
            raise
        return ""

    def _state(self) -> str:
        return self.run("systemctl", "--user", "is-system-running", check=False).stdout.strip() if self.init() else ""

    def init(self) -> str:
        """Return the process id, as seen from here, of the first process inside."""
        assert self._process is not None
        pid = self._process.pid
        try:
            return Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()
        except OSError:
            return ""

    def run(self, *command: str, check: bool = True, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command inside; one that fails fails the test with what it said."""
        spaces = ["--user", "--preserve-credentials"] if self._spaces else []
        done = subprocess.run(
            ["nsenter", "--target", self.init(), *spaces, "--mount", "--pid", *command],
            env={**self.environment, **environment},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert not check or not done.returncode, f"{command}: {done.stderr}{done.stdout}"
        return done

    def systemctl(self, *words: str) -> str:
        return self.run("systemctl", "--user", *words).stdout.strip()

    def memctl(self, *words: str, check: bool = True, **environment: str) -> "subprocess.CompletedProcess[str]":
        return self.run(sys.executable, "-m", "memoryd.client.programs.memctl", *words, check=check, **environment)

    def shows(self, name: str, unit: str = "memoryd.service") -> str:
        """Return a property of a unit."""
        return self.systemctl("show", f"--property={name}", "--value", unit)

    def client(self, namespace: str = "", timeout_s: float = 60.0) -> Client:
        return Client(namespace, socket=self.socket, autostart=False, timeout_s=timeout_s)

    def drop_in(self, text: str) -> None:
        """Change the service as a user does, by a file beside it."""
        folder = self.units / "memoryd.service.d"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "test.conf").write_text(f"[Service]\n{text}\n")

    def settle(self, config: str = NO_MODEL) -> None:
        """Begin anew: no service, no data, a configuration."""
        self.memctl("service", "uninstall")
        shutil.rmtree(self.units / "memoryd.service.d", ignore_errors=True)
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.rmtree(self.runtime / "memoryd", ignore_errors=True)
        (self.config / "memoryd" / "config.toml").write_text(config)

    def close(self) -> None:
        """End everything inside and leave nothing behind."""
        if self._process:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)  # and with it the first process inside, so all of them
            self._process.wait(30)
        wait_until(lambda: all(_removed(group) for group in self._groups))
        shutil.rmtree(self.folder, ignore_errors=True)


def _groups() -> Iterator[Path]:
    """Make a control group in each hierarchy that says where a process belongs; none where that is not allowed."""
    for hierarchy in (GROUPS, GROUPS / "systemd", GROUPS / "unified"):
        if (hierarchy / "cgroup.procs").exists() and os.access(hierarchy / "cgroup.procs", os.W_OK):
            group = hierarchy / f"memoryd-test-{os.getpid()}"
            group.mkdir(exist_ok=True)
            yield group


def _removed(group: Path) -> bool:
    """Remove a control group of this test and the same ones that systemd made for other controllers."""
    for hierarchy in [GROUPS, *(path for path in GROUPS.iterdir() if path.is_dir() and not path.is_symlink())]:
        top = hierarchy / group.name
        for folder, _, _ in os.walk(top, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)
        if top.exists():
            return False
    return True
