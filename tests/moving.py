"""A job for tests: moves every memory from L1 to L2, with words that make it fail, wait or hesitate."""

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from memoryd.client.protocol import JobRun, Progress, RunJob
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, Work
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.jobs.table import JobRow
from memoryd.daemon.store import history, rows
from workbench import LIMIT_S


def table(work: Work) -> dict[str, JobRow]:
    return {
        "move": JobRow(300.0, 60.0, "Move memories.", work),
        "other": JobRow(3600.0, 60.0, "Move other memories.", work),
    }


class Mover:
    """The job `move`. A memory with the word `poison` cannot be moved; `gate` holds each slice while it is closed."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.slices: list[int] = []  # their sizes
        self.under_way = threading.Event()
        self.broken = False

    def plan(self, core: Core, now: float) -> Iterable[Step]:
        if self.broken:
            raise RuntimeError("this job cannot even plan")
        with core.store.reading() as connection:
            found = rows.select(connection, "m.tier = 'L1' ORDER BY m.row", ())
        for row in found:
            yield Step("move", row.id, "it is in L1", row.row)

    def apply(self, core: Core, transaction: Any, steps: Sequence[Step], operation: str) -> dict[str, int]:
        self.under_way.set()
        assert self.gate.wait(LIMIT_S)
        self.slices.append(len(steps))
        present = rows.read_ids(transaction.connection, [step.target for step in steps])
        moved = 0
        for step in steps:
            row = present.get(step.target)
            if row is None or row.tier != "L1":
                continue
            if "poison" in row.content:
                raise RuntimeError("this memory cannot be moved")
            history.record(transaction.connection, operation, row.id, core.store.namespaces.name(row.namespace), row)
            rows.change(transaction.connection, row.row, {"tier": "L2"})
            moved += 1
        return {"moved": moved, "skipped": len(steps) - moved}


def runner(core: Core, mover: Mover, **options: Any) -> Runner:
    return Runner(core, table(Work(mover.plan, mover.apply)), **options)


def run(jobs: Runner, name: str = "move", events: list[Progress] | None = None, **fields: Any) -> JobRun:
    heard = events if events is not None else []
    return jobs.run(RunJob(name=name, **fields), heard.append).result(LIMIT_S)


def tiers(core: Core) -> dict[str, str]:
    with core.store.reading() as connection:
        return dict(connection.execute("SELECT id, tier FROM memories").fetchall())


def everything(core: Core) -> list[Any]:
    with core.store.reading() as connection:
        return rows.select(connection, "TRUE ORDER BY m.row", ())
