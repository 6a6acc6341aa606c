"""A day of trouble: machines that write, lose the server, crash; a server that loses what it had acknowledged.

Every text is a number that was never used, so what has to be alive at the end is known: each text that no machine has
replaced, deleted or purged while it saw it. What a machine keeps in a namespace that it did not choose begins with
`private`. A stranger, who has a role but no grant, asks for all of it again and again.
"""

import itertools
import random
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from machines import PLACE, Machine, converge

from memoryd.client.errors import Forbidden, MemorydError, NotFound
from memoryd.daemon.shared import exchange, schema, server
from postgres import Cable, Postgres
from workbench import Clock, wait_until

OWN, MORE = "acme/own", "acme/more"  # chosen by nobody, by one machine alone
_TABLES = ("heads", "lives", "log", "mem")
_KEYS = ("port", "host")
_real_offer = exchange.offer


class Chaos:
    """The machines, the server and what was written, driven by a seed."""

    def __init__(self, postgres: Postgres, database: str, folder: Path, seed: int, part: int = 0) -> None:
        self.postgres, self.database, self.folder = postgres, database, folder
        self.random = random.Random(seed)
        self.owner = server.connect(postgres.address(database=database))
        self.roles = {"m2": f"r2_{database}", "m3": f"r3_{database}"}
        self.stranger = f"stranger_{database}"
        for role in (*self.roles.values(), self.stranger):
            postgres.sql(f"CREATE ROLE {role} LOGIN")
        for role in self.roles.values():
            schema.grant(self.owner, "acme", role, True)
        schema.grant(self.owner, "other", self.stranger, True)
        self.cable = Cable(postgres.port, 0.002)
        self.machines = [self._machine(f"m{number}") for number in range(4)]
        self.cut: dict[str, str] = {}  # machine: `before` or `after`, how its next push ends
        self.numbers = itertools.count(1)
        self.expected: set[str] = set()
        self.family: dict[str, str] = {}  # text: the memory that it was written into
        self.purged: set[str] = set()  # memories
        self.seen_by_stranger = 0
        self.saved = False
        self.part = part  # how many memories the last machine holds, 0: all
        self.machines[-1].engine.max_rows = part

    def _address(self, name: str) -> str:
        name = name.removesuffix("copy")
        address = self.postgres.address(self.roles.get(name, "postgres"), self.database)
        return address.replace(f"port={self.postgres.port}", f"port={self.cable.port}") if name == "m1" else address

    def _machine(self, name: str, clock: Any = None) -> Machine:
        if clock is None:
            clock = Clock()
            clock.now += self.random.choice([-1, 0, 1]) * self.random.uniform(0, 50_000)  # hours apart
        places = (PLACE, MORE) if name.startswith("m0") else (PLACE,)
        return Machine(self.folder, name, self._address(name), clock=clock, places=places)

    # What clients do -------------------------------------------------------------------------------------------------

    def _note(self, machine: Machine, id: str, text: str, before: str = "") -> None:
        """Note what has to be alive from now on, and what need not be any more."""
        self.expected.discard(before)
        self.expected.add(text)
        self.family[text] = machine.id_there(id)

    def _text(self) -> str:
        return f"text {next(self.numbers)}"

    def add(self, machine: Machine) -> None:
        text = self._text()
        self._note(machine, machine.add(text), text)

    def keep(self, machine: Machine) -> None:
        """Add what is of this machine alone, under a key that others use as well; one machine shares `MORE`."""
        number = next(self.numbers)
        is_first = machine.name.startswith("m0")
        text = f"more {number}" if is_first else f"private {number}"
        place = MORE if is_first else self.random.choice([OWN, MORE])
        if (key := self.random.choice(_KEYS)) not in machine.keys(place):
            machine.give_key(machine.add(text, place), key)

    def put(self, machine: Machine) -> None:
        key, text = self.random.choice(_KEYS), self._text()
        id = machine.keys().get(key)
        if id is not None:
            self._replace(machine, id)
        else:
            id = machine.add(text)
            self._note(machine, id, text)
            machine.give_key(id, key)

    def edit(self, machine: Machine) -> None:
        if there := machine.texts():
            self._replace(machine, self.random.choice(sorted(there)))

    def _replace(self, machine: Machine, id: str) -> None:
        before, text = machine.texts()[id], self._text()
        machine.update(id, content=text)
        self._note(machine, id, text, before)

    def delete(self, machine: Machine) -> None:
        if there := machine.texts():
            id = self.random.choice(sorted(there))
            machine.delete(id)
            self.expected.discard(there[id])

    def purge(self, machine: Machine) -> None:
        """Erase a memory for good, everywhere, whatever others make of it meanwhile."""
        if there := machine.texts():
            id = self.random.choice(sorted(there))
            self.purged.add(machine.id_there(id))
            machine.erase(id)
            self.expected.discard(there[id])

    # What goes wrong -------------------------------------------------------------------------------------------------

    def sync(self, machine: Machine) -> None:
        machine.engine.exchange_all()

    def cut_push(self, machine: Machine) -> None:
        self.cut[machine.name] = self.random.choice(["before", "after"])
        machine.engine.exchange_all()

    def restart(self, machine: Machine) -> None:
        machine.close()
        clock = machine.core.clock
        again = self._machine(machine.name, lambda: clock())
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
            statements += [f"DROP TABLE IF EXISTS public.saved_{table}"]
            statements += [f"CREATE TABLE public.saved_{table} AS TABLE memoryd.{table}"]
        self.postgres.sql("; ".join([*statements, "COMMIT", "CHECKPOINT"]), self.database)
        self.saved = True

    def lose(self, machine: Machine) -> None:
        """Let the server go on from its copy: what it acknowledged since is lost there."""
        if not self.saved:
            return
        statements = ["BEGIN", f"TRUNCATE {', '.join(f'memoryd.{table}' for table in _TABLES)}"]
        statements += [f"INSERT INTO memoryd.{table} TABLE public.saved_{table}" for table in _TABLES]
        self.postgres.sql("; ".join([*statements, "COMMIT"]), self.database)

    def make_again(self, machine: Machine) -> None:
        """Let the server be made again, empty."""
        statements = [f"DELETE FROM memoryd.{table} WHERE root = 'acme'" for table in _TABLES]
        self.postgres.sql("; ".join(["BEGIN", *statements, "COMMIT"]), self.database)
        schema.make_root(self.owner, "acme")

    def revoke(self, machine: Machine) -> None:
        role = self.random.choice(list(self.roles.values()))
        schema.revoke(self.owner, "acme", role)

    def grant(self, machine: Machine) -> None:
        for role in self.roles.values():
            schema.grant(self.owner, "acme", role, self.random.random() < 0.8)

    def spy(self, machine: Machine) -> None:
        """Ask as somebody who has no grant, by every way."""
        with psycopg.connect(self.postgres.address(self.stranger, self.database), autocommit=True) as connection:
            opened = server.ServerConnection(connection)
            asked: list[Callable[[], Any]] = [
                lambda: exchange.look(opened, "acme", "")[:1],
                lambda: connection.execute("SELECT * FROM memoryd.feed('acme', 0, 10, 1000000)").fetchall(),
                lambda: connection.execute("SELECT * FROM memoryd.mem").fetchall(),
                lambda: connection.execute("EXPLAIN SELECT * FROM memoryd.mem").fetchall(),
            ]
            for ask in asked:
                with suppress(Forbidden, psycopg.errors.InsufficientPrivilege):
                    self.seen_by_stranger += len(ask())

    # The day ---------------------------------------------------------------------------------------------------------

    def offer(self, opened: Any, root: Any, machine: str, *given: Any) -> Any:
        """Offer, unless this push is to be cut."""
        how = self.cut.pop(machine, "")
        if how == "before":
            raise psycopg.OperationalError("cut before the commit")
        done = _real_offer(opened, root, machine, *given)
        if how == "after":
            raise psycopg.OperationalError("cut after the commit")
        return done

    def run(self, steps: int) -> None:
        """Let things happen."""
        what = {
            self.add: 20, self.edit: 25, self.put: 10, self.keep: 3, self.delete: 4, self.purge: 1, self.sync: 40,
            self.cut_push: 8, self.restart: 1, self.copy: 1, self.save: 2, self.lose: 2, self.make_again: 0.5,
            self.revoke: 2, self.grant: 3, self.spy: 1,
        }  # fmt: skip
        for _ in range(steps):
            [act] = self.random.choices(list(what), list(what.values()))
            self._do(act, self.random.choice(self.machines))

    def _do(self, act: Callable[[Machine], None], machine: Machine) -> None:
        with suppress(Forbidden, NotFound):  # a machine that may only read refuses; what was there is gone
            act(machine)

    def run_at_once(self, seconds: float) -> None:
        """Let things happen on all machines at once, while the server stops, hangs and loses what it had."""
        end = time.monotonic() + seconds
        failures: list[BaseException] = []
        given = end, failures
        threads = [threading.Thread(target=self._live, args=(index, *given)) for index in range(len(self.machines))]
        for thread in threads:
            thread.start()
        trouble = [
            self._stop_server, self._hang_server, self.save, self.lose, self.lose, self.revoke, self.grant,
            self.grant, self.spy, self.make_again, self._cut_line,
        ]  # fmt: skip
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.5, 2.0))
            with suppress(MemorydError, psycopg.OperationalError):
                self.random.choice(trouble)(self.machines[0])
            self._connect_owner()
        for thread in threads:
            thread.join()
        assert not failures, failures

    def _connect_owner(self) -> None:
        """Connect again: the server may have been stopped."""
        self.owner.close()
        self.owner = server.connect(self.postgres.address(database=self.database))

    def _live(self, index: int, end: float, failures: list[BaseException]) -> None:
        what = {
            self.add: 20, self.edit: 25, self.put: 10, self.keep: 2, self.delete: 4, self.purge: 1, self.sync: 40,
            self.cut_push: 8, self.restart: 1,
        }  # fmt: skip
        try:
            while time.monotonic() < end:
                [act] = self.random.choices(list(what), list(what.values()))
                self._do(act, self.machines[index])
        except BaseException as error:
            failures.append(error)

    def _stop_server(self, machine: Machine) -> None:
        self.postgres.sql("CHECKPOINT")  # the tables stay; of the latest commits some are lost
        self.postgres.stop(at_once=True)
        time.sleep(0.5)
        self.postgres.start()

    def _hang_server(self, machine: Machine) -> None:
        self.postgres.hang()
        time.sleep(1.0)
        self.postgres.resume()

    def _cut_line(self, machine: Machine) -> None:
        self.cable.cut()
        time.sleep(0.3)
        self.cable.plug()

    def settle(self) -> None:
        """Let all converge; check that nothing was lost or seen, and that what is beside its original is named."""
        self.cut.clear()
        self._connect_owner()
        for role in self.roles.values():
            schema.grant(self.owner, "acme", role, True)
        for machine in self.machines:
            wait_until(machine.engine.exchange_all)  # whose connection was cut opens another one
        whole = [machine for machine in self.machines if not machine.engine.max_rows]
        for machine in self.machines:
            machine.sync()  # what a part of a root is changed on goes to the others
        converge(*whole)
        first = whole[0]
        there = self.postgres.sql(
            "SELECT replace(id::text, '-', ''), ns, body->>'content', purged, conflict_of FROM memoryd.mem",
            self.database,
        )
        alive = {text for _, place, text, *_ in there if place == PLACE and text}
        assert alive == set(first.texts().values())
        lost = {text for text in self.expected - alive if not self._is_purged(text, there)}
        assert not lost, f"{len(lost)} live versions are lost: {sorted(lost)[:5]}"
        leaked = [text for _, place, text, *_ in there if place == OWN or (text or "").startswith("private")]
        assert leaked == []
        assert self.seen_by_stranger == 0
        for machine in self.machines:
            machine.sync()
            assert machine.waiting() == 0
            assert set(machine.rows()) <= set(first.rows())

    def _is_purged(self, text: str, there: list[Any]) -> bool:
        """Return whether the memory that a text was written into was purged, itself or as another version."""
        purged = {id for id, _, _, is_purged, _ in there if is_purged}
        return self.family[text] in purged | self.purged

    def close(self) -> None:
        for machine in self.machines:
            machine.close()
        self.owner.close()
        self.cable.close()
        for role in (*self.roles.values(), self.stranger):
            self.postgres.sql(f"DROP OWNED BY {role}", self.database)
            self.postgres.sql(f"DROP ROLE {role}")
