"""A day of trouble: machines that write, lose the server, crash; a server that loses what it had acknowledged.

Every text is a number that was never used, so what has to be alive at the end is known: each text that no machine has
replaced or deleted while it saw it.
"""

import itertools
import random
import shutil
import threading
import time
from pathlib import Path

import psycopg
from machines import PLACE, Machine, converge

from memoryd.daemon.shared import exchange
from postgres import Postgres
from workbench import Clock, wait_until

_TABLES = ("heads", "log", "mem")
_real_push = exchange.push


class Chaos:
    """The machines, the server and what was written, driven by a seed."""

    def __init__(self, postgres: Postgres, database: str, folder: Path, seed: int, part: int = 0) -> None:
        self.postgres, self.database, self.folder = postgres, database, folder
        self.random = random.Random(seed)
        self.machines = [self._machine(f"m{number}") for number in range(4)]
        self.cut: dict[str, str] = {}  # machine: `before` or `after`, how its next push ends
        self.numbers = itertools.count(1)
        self.expected: set[str] = set()
        self.saved = False
        self.part = part  # how many memories the last machine holds, 0: all
        self.machines[-1].engine.max_rows = part

    def _machine(self, name: str) -> Machine:
        clock = Clock()
        clock.now += self.random.choice([-1, 0, 1]) * self.random.uniform(0, 50_000)  # hours apart
        return Machine(self.folder, name, self.postgres.address(database=self.database), clock=clock)

    # What clients do -------------------------------------------------------------------------------------------------

    def _text(self) -> str:
        text = f"text {next(self.numbers)}"
        self.expected.add(text)
        return text

    def add(self, machine: Machine) -> None:
        machine.add(self._text())

    def edit(self, machine: Machine) -> None:
        if there := machine.texts():
            id = self.random.choice(sorted(there))
            self.expected.discard(there[id])
            machine.update(id, content=self._text())

    def delete(self, machine: Machine) -> None:
        if there := machine.texts():
            id = self.random.choice(sorted(there))
            self.expected.discard(there[id])
            machine.delete(id)

    # What goes wrong -------------------------------------------------------------------------------------------------

    def sync(self, machine: Machine) -> None:
        machine.engine.exchange_all()

    def cut_push(self, machine: Machine) -> None:
        self.cut[machine.name] = self.random.choice(["before", "after"])
        machine.engine.exchange_all()

    def restart(self, machine: Machine) -> None:
        machine.close()
        clock = machine.core.clock
        again = Machine(self.folder, machine.name, machine.address, clock=lambda: clock())
        again.engine.max_rows = machine.engine.max_rows
        self.machines[self.machines.index(machine)] = again

    def copy(self, machine: Machine) -> None:
        """Let a second machine go on from a copy of this one's files."""
        if len(self.machines) > 4 or self.part:
            return
        name = f"{machine.name}copy"
        machine.close()
        shutil.copytree(machine.folder, self.folder / name)
        self.machines[self.machines.index(machine)] = self._machine(machine.name)
        self.machines.append(self._machine(name))

    def save(self, machine: Machine) -> None:
        """Take a copy of the server, as a standby that lags or a dump has it."""
        statements = ["BEGIN ISOLATION LEVEL REPEATABLE READ"]  # one moment, as every dump is of
        for table in _TABLES:
            statements += [f"DROP TABLE IF EXISTS saved_{table}"]
            statements += [f"CREATE TABLE saved_{table} AS TABLE memoryd.{table}"]
        self.postgres.sql("; ".join([*statements, "COMMIT", "CHECKPOINT"]), self.database)
        self.saved = True

    def lose(self, machine: Machine) -> None:
        """Let the server go on from its copy: what it acknowledged since is lost there."""
        if not self.saved:
            return
        statements = ["BEGIN", f"TRUNCATE {', '.join(f'memoryd.{table}' for table in _TABLES)}"]
        statements += [f"INSERT INTO memoryd.{table} TABLE saved_{table}" for table in _TABLES]
        self.postgres.sql("; ".join([*statements, "COMMIT"]), self.database)

    # The day ---------------------------------------------------------------------------------------------------------

    def push(self, server: object, root: object, machine: str, going: object, report: object) -> object:
        """Push, unless this one is to be cut."""
        how = self.cut.pop(machine, "")
        if how == "before":
            raise psycopg.OperationalError("cut before the commit")
        done = _real_push(server, root, machine, going, report)  # type: ignore[arg-type]
        if how == "after":
            raise psycopg.OperationalError("cut after the commit")
        return done

    def run(self, steps: int) -> None:
        """Let things happen."""
        what = {
            self.add: 20, self.edit: 25, self.delete: 4, self.sync: 40, self.cut_push: 8,
            self.restart: 1, self.copy: 1, self.save: 2, self.lose: 2,
        }  # fmt: skip
        for _ in range(steps):
            [act] = self.random.choices(list(what), list(what.values()))
            act(self.random.choice(self.machines))

    def run_at_once(self, seconds: float) -> None:
        """Let things happen on all machines at once, while the server stops, hangs and loses what it had."""
        end = time.monotonic() + seconds
        failures: list[BaseException] = []
        given = end, failures
        threads = [threading.Thread(target=self._live, args=(index, *given)) for index in range(len(self.machines))]
        for thread in threads:
            thread.start()
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.5, 2.0))
            self.random.choice([self._stop_server, self._hang_server, self._save, self._lose])()
        for thread in threads:
            thread.join()
        assert failures == []

    def _live(self, index: int, end: float, failures: list[BaseException]) -> None:
        what = {self.add: 20, self.edit: 25, self.delete: 4, self.sync: 40, self.cut_push: 8, self.restart: 1}
        try:
            while time.monotonic() < end:
                [act] = self.random.choices(list(what), list(what.values()))
                act(self.machines[index])
        except BaseException as error:
            failures.append(error)

    def _stop_server(self) -> None:
        self.postgres.sql("CHECKPOINT")  # the tables stay; of the latest commits some are lost
        self.postgres.stop(at_once=True)
        time.sleep(0.5)
        self.postgres.start()

    def _hang_server(self) -> None:
        self.postgres.hang()
        time.sleep(1.0)
        self.postgres.resume()

    def _save(self) -> None:
        self.save(self.machines[0])

    def _lose(self) -> None:
        self.lose(self.machines[0])

    def settle(self) -> None:
        """Let all converge; check that nothing was lost, and that what is beside its original is named."""
        self.cut.clear()
        for machine in self.machines:
            wait_until(machine.engine.exchange_all)  # whose connection was cut opens another one
        whole = [machine for machine in self.machines if not machine.engine.max_rows]
        for machine in self.machines:
            machine.sync()  # what a part of a root is changed on goes to the others
        converge(*whole)
        first = whole[0]
        alive = first.texts()
        lost = self.expected - set(alive.values())
        assert not lost, f"{len(lost)} live versions are lost: {sorted(lost)[:5]}"
        rows = "SELECT replace(id::text, '-', ''), body->>'content' FROM memoryd.mem"
        there = self.postgres.sql(f"{rows} WHERE ns = '{PLACE}' AND NOT deleted", self.database)
        assert dict(there) == alive  # type: ignore[arg-type]
        for machine in self.machines:
            machine.sync()
            assert machine.waiting() == 0
            assert set(machine.rows()) <= set(first.rows())

    def close(self) -> None:
        for machine in self.machines:
            machine.close()
