"""Each observed turn is somewhere at every moment: random walks through observing, jobs, changes, undo, restarts."""

import shutil
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from conversing import DAY_S, FACTS, HOUR_S, judge, memories, observe, problems, run
from memoryd.client.errors import Conflict, MemorydError, NotFound
from memoryd.client.protocol import Consolidate, NewTurn, Share
from memoryd.daemon.config import Config, LifetimeConfig, TiersConfig
from memoryd.daemon.conversations import consolidating
from memoryd.daemon.conversations.promoting import PROMOTE
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.caps import CAPS
from memoryd.daemon.jobs.expiring import EXPIRE
from memoryd.daemon.jobs.sweeping import SWEEP
from memoryd.daemon.store import turns
from places import make_folder
from workbench import Clock, WordEmbedder, add, ask, delete, undo, update, wait_until

JOBS = {"promote": PROMOTE, "sweep": SWEEP, "caps": CAPS, "expire": EXPIRE}
SAID = (*FACTS[:40], "ok", "yes please", "What is the weather like today?", "Can you show me the file?")
NAMESPACES = ("", "acme", "acme/api")
CONFIG = Config(
    tiers=TiersConfig(ring=4, max_recent=6, max_facts=9, recent_half_life_days=1.0),
    lifetime=LifetimeConfig(days={"conversation": 15.0}),
)


class Walk(RuleBasedStateMachine):
    """A core that anything may happen to."""

    @initialize()
    def begin(self) -> None:
        self.folder, self.clock = make_folder(), Clock()
        self.observed: dict[str, str] = {}  # id → namespace
        self.operations: list[str] = []
        self.open()

    def open(self) -> None:
        embedder = WordEmbedder()
        self.core = Core(self.folder / "data", CONFIG, self.folder, lambda name, where: embedder, clock=self.clock)
        self.core.start()
        wait_until(lambda: self.core.embedding.active is not None)

    def teardown(self) -> None:
        if hasattr(self, "core"):
            self.core.close()
            shutil.rmtree(self.folder)

    @rule(
        said=st.lists(st.tuples(st.sampled_from(SAID), st.sampled_from(["user", "assistant"])), min_size=1, max_size=7),
        namespace=st.sampled_from(NAMESPACES),
        session=st.sampled_from(["a", "b"]),
    )
    def observe(self, said: list[tuple[str, str]], namespace: str, session: str) -> None:
        given = [NewTurn(role=role, content=content) for content, role in said]
        result = observe(self.core, *given, namespace=namespace, session=session)
        assert result.accepted + result.skipped == len(said)
        self.observed.update(dict.fromkeys(result.ids, namespace))
        self.clock.advance(1)

    @rule()
    def judge(self) -> None:
        judge(self.core)

    @rule(hours=st.sampled_from([1, 30, 24 * 3, 24 * 20]))
    def wait(self, hours: int) -> None:
        self.clock.advance(hours * HOUR_S)

    @rule(name=st.sampled_from(sorted(JOBS)))
    def job(self, name: str) -> None:
        operation, _ = run(self.core, JOBS[name], kind=name)
        self.operations.append(operation)

    @rule(content=st.sampled_from(FACTS[:20]), namespace=st.sampled_from(NAMESPACES))
    def add(self, content: str, namespace: str) -> None:
        self.operations.append(add(self.core, content, namespace).operation)

    @rule(pick=st.integers(0, 1000), what=st.sampled_from(["delete", "pin", "edit", "move", "copy"]))
    def change(self, pick: int, what: str) -> None:
        present = memories(self.core)
        if not present:
            return
        id = present[pick % len(present)].id
        with suppress(MemorydError):  # it lies there already, or is superseded
            self.operations.append(self._changed(id, what, pick))

    def _changed(self, id: str, what: str, pick: int) -> str:
        if what == "delete":
            return delete(self.core, id).operation
        if what == "pin":
            return update(self.core, id, pinned=bool(pick % 2)).operation
        if what == "edit":
            return update(self.core, id, content=f"We decided on number {pick}.").operation
        call = Share(ids=[id], to=NAMESPACES[pick % 3], move=what == "move")
        return ask(self.core, call).operation

    @rule(pick=st.integers(0, 1000))
    def undo(self, pick: int) -> None:
        if self.operations:
            with suppress(Conflict, NotFound):  # it was changed since, or did nothing
                undone: Any = undo(self.core, self.operations[-1 - pick % min(4, len(self.operations))])
                self.operations.append(undone.operation)

    @rule(namespace=st.sampled_from(NAMESPACES), dry_run=st.booleans())
    def consolidate(self, namespace: str, dry_run: bool) -> None:
        call = Consolidate(namespace=namespace, reach="exact", dry_run=dry_run)
        judge(self.core)
        wait_until(lambda: self.core.embedding.count_pending() == 0)
        foreseen = consolidating.consolidate(self.core, print, msgspec.structs.replace(call, dry_run=True))
        done = consolidating.consolidate(self.core, print, call)
        for name in ("promoted", "dropped", "moved"):
            assert getattr(done, name) == getattr(foreseen, name), name

    @rule()
    def restart(self) -> None:
        self.core.close()
        self.open()

    @invariant()
    def every_turn_is_accounted_for(self) -> None:
        if hasattr(self, "core"):
            assert problems(self.core) == []

    @invariant()
    def ram_holds_l0_as_the_disk_does(self) -> None:
        if hasattr(self, "core"):
            with self.core.store.reading() as connection:
                stored = turns.read_all(connection)
            assert sorted(self.core.active.list_turns(None), key=lambda turn: turn.id) == stored

    @invariant()
    def no_turn_is_in_two_places(self) -> None:
        if hasattr(self, "core"):
            with self.core.store.reading() as connection:
                active = [turn.key for turn in turns.read_all(connection)]
            kept = [row.id for row in memories(self.core)]
            assert len(set(active + kept)) == len(active) + len(kept)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_random_walk_never_loses_a_turn() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Walk,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_days_of_conversation_in_two_namespaces_are_accounted_for_at_every_step(core: Core, clock: Clock) -> None:
    for day in range(40):
        for namespace in ("acme", "other"):
            observe(
                core,
                NewTurn(role="user", content=f"We decided that item {day} of {namespace} is number {day * 7}."),
                NewTurn(role="assistant", content=f"Noted: item {day} of {namespace} has the number {day * 7}."),
                NewTurn(role="user", content=f"thanks {'!' * (day % 5)}"),
                namespace=namespace,
                session=str(day),
            )
            assert problems(core) == []
        judge(core)
        clock.advance(DAY_S)
        for name, work in JOBS.items():
            run(core, work, kind=name)
            assert problems(core) == []
    assert len(memories(core, "L2")) > 60
    assert {row.turns for row in memories(core)} == {1}
