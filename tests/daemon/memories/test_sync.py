"""`memctl sync` between two daemons: which state wins, what is gone, and random changes with lines that are cut."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.errors import Conflict, NotFound, Unavailable
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.sync import Outcome, Report, sync
from memoryd.client.protocol import (
    Add,
    Call,
    Confirm,
    Delete,
    Erase,
    ExportMemories,
    Gone,
    History,
    ImportMemories,
    KeyedEntry,
    ListVersions,
    NewMemory,
    Operations,
    Put,
    Record,
    Share,
    Undo,
    Update,
)
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.changing import remove
from memoryd.daemon.store import history, rows
from memoryd.daemon.store.writer import Transaction
from workbench import Clock, ask, no_model, running


class Machine:
    """A daemon and the way to it, which breaks after so many calls."""

    namespace = ""

    def __init__(self, core: Core, clock: Any) -> None:
        self.core, self._clock = core, clock
        self.left = -1

    def call(self, call: Call[Any]) -> Any:
        if self.left == 0:
            raise Unavailable("The line was cut.")
        self.left -= 1
        return ask(self.core, call)

    def do(self, call: Call[Any]) -> Any:
        """Make a call, a second after the last one."""
        self._clock.advance(1.0)
        return ask(self.core, call)

    def add(self, content: str, **fields: Any) -> str:
        memory = NewMemory(content=content, **{"origin": "person", **fields})
        return self.do(Add(memory=memory, dedup=False, namespace="shop")).id

    def update(self, id: str, **fields: Any) -> Any:
        return self.do(Update(id=id, origin="person", **fields))

    def export(self) -> dict[str, Record]:
        return {record.id: record for record in ask(self.core, ExportMemories(limit=1000, reach="all"))}

    def texts(self) -> list[str]:
        return sorted(record.content for record in self.export().values())


Machines = tuple[Machine, Machine]


@pytest.fixture
def machines(folder: Path) -> Iterator[Machines]:
    clock = Clock()
    for name in ("here", "there"):
        (folder / name).mkdir()
    with (
        running(folder / "here", no_model, clock=clock, ready=False) as here,
        running(folder / "there", no_model, clock=clock, ready=False) as there,
    ):
        yield Machine(here, clock), Machine(there, clock)


def run(machines: Machines, dry_run: bool = False) -> Report:
    here, there = machines
    here._clock.advance(1.0)
    return sync(here, there, ProgressBar("sync"), dry_run)  # type: ignore[arg-type]


def settle(machines: Machines) -> Report:
    """Sync, and check that both are the same then and that a second run finds nothing to do."""
    foreseen, report = run(machines, dry_run=True), run(machines)
    for one, other in ((foreseen.here, report.here), (foreseen.there, report.there)):
        assert [one.added, *map(sorted, (one.changed, one.deleted, one.erased))] == [
            *(other.added, sorted(other.changed), sorted(other.deleted), sorted(other.erased))
        ]
    check_same(machines)
    return report


def check_same(machines: Machines) -> None:
    again = run(machines)
    assert again.here == again.there == Outcome()
    one, other = (machine.export() for machine in machines)
    for record in (*one.values(), *other.values()):
        # An undo is not seen in the time; how often a memory was found, and its votes, are of each machine.
        record.updated_at = record.access_count = 0
    assert one == other


def test_the_later_change_wins_and_the_other_text_stays_in_its_history(machines: Machines) -> None:
    here, there = machines
    one, other = here.add("One"), here.add("Other")
    settle(machines)
    here.update(one, content="One, here")
    there.update(one, content="One, there")
    there.update(other, content="Other, there")
    here.update(other, content="Other, here")
    report = settle(machines)
    assert (report.here.changed, report.there.changed) == ([one], [other])
    assert here.texts() == ["One, there", "Other, here"]
    assert "One, here" in texts_in_history(here, one)
    assert "Other, there" in texts_in_history(there, other)
    here.do(Undo(operation=report.here.operation))
    settle(machines)
    assert there.texts() == ["One, here", "Other, here"]


def texts_in_history(machine: Machine, id: str) -> set[str]:
    try:
        changes = ask(machine.core, History(id=id, reach="all")).changes
    except NotFound:  # it never came here
        return set()
    return {text for change in changes for text in change.changed.get("content", ()) if text}


def test_a_deletion_goes_over_unless_the_other_side_changed_the_memory_after_it(machines: Machines) -> None:
    here, there = machines
    gone, edited, back, unadded = (here.add(text) for text in ("Gone", "Edited", "Back", "Unadded"))
    settle(machines)
    for id in (gone, edited, back):
        deleted = here.do(Delete(ids=[id]))
    there.update(edited, content="Edited after it was deleted")
    report = settle(machines)
    assert sorted(report.there.deleted) == sorted([gone, back])
    assert report.here.added == 1
    here.do(Undo(operation=deleted.operation))
    assert settle(machines).there.added == 1
    assert there.texts() == ["Back", "Edited after it was deleted", "Unadded"]
    [added] = ask(here.core, History(id=unadded, namespace="", reach="all")).changes
    here.do(Undo(operation=added.operation))
    assert settle(machines).there.deleted == [unadded]


def test_what_was_erased_never_comes_back_and_is_erased_there_with_its_history(machines: Machines) -> None:
    here, there = machines
    first, second, third = here.add("Secret one"), here.add("Secret two"), here.add("Kept")
    settle(machines)
    there.update(first, content="Secret one, changed")
    there.do(Delete(ids=[second]))
    here.do(Erase(ids=[first, second]))
    there.update(first, content="Secret one, changed once more")
    report = settle(machines)
    assert sorted(report.there.erased) == sorted([first, second])
    assert here.texts() == there.texts() == ["Kept"]
    for id in (first, second):
        assert texts_in_history(there, id) == set()
    record = Record(id=first, namespace="shop", type="fact", content="Taken back", created_at=5.0, updated_at=5.0)
    here.do(ImportMemories(records=[record], overwrite=True))
    assert run(machines).here == Outcome()
    assert (here.texts(), there.texts()) == (["Kept", "Taken back"], ["Kept"])
    assert third in there.export()


def test_an_undo_or_a_confirmation_is_the_later_change_although_its_time_is_old(machines: Machines) -> None:
    here, there = machines
    one, other = here.add("One"), here.add("Other", origin="agent")
    settle(machines)
    changed = there.update(one, content="One, changed")
    settle(machines)
    there.do(Undo(operation=changed.operation))
    here.do(Confirm(ids=[other]))
    report = settle(machines)
    assert (report.here.changed, report.there.changed) == ([one], [other])
    assert here.texts() == ["One", "Other"]
    assert there.export()[other].confirmed_at


def test_the_undo_of_what_a_run_brought_is_neither_taken_back_nor_a_deletion(machines: Machines) -> None:
    here, there = machines
    id = here.add("One")
    report = settle(machines)
    there.do(Undo(operation=report.there.operation))
    for _ in range(2):
        report = run(machines)
        assert report.here == report.there == Outcome()
    here.update(id, content="One, changed")
    settle(machines)
    assert there.texts() == ["One, changed"]


def test_what_a_job_took_out_stays_out_there_and_stays_here(machines: Machines) -> None:
    here, there = machines
    id = here.add("Beyond the cap")
    settle(machines)

    def drop(transaction: Transaction) -> None:
        operation = history.begin(transaction.connection, "job:caps", "", here.core.clock())
        remove(here.core, transaction, list(rows.read_ids(transaction.connection, [id]).values()), operation)

    here.core.store.write(drop).result()
    for _ in range(2):
        report = run(machines)
        assert report.here == report.there == Outcome()
    assert (here.texts(), there.texts()) == ([], ["Beyond the cap"])
    there.update(id, content="Changed after that")
    settle(machines)
    assert here.texts() == ["Changed after that"]


def test_of_two_memories_under_one_key_the_later_one_stays(machines: Machines) -> None:
    here, there = machines
    for machine, text in ((here, "Put here"), (there, "Put there")):
        entry = KeyedEntry(key="k", memory=NewMemory(content=text))
        machine.do(Put(entries=[entry], namespace="shop"))
    report = settle(machines)
    assert (report.here.added, len(report.here.deleted)) == (1, 1)
    assert here.texts() == there.texts() == ["Put there"]


def test_turns_and_what_waits_for_a_shared_root_stay_where_they_are(machines: Machines) -> None:
    here, there = machines
    here.add("Saved")
    turn = Record(
        id="a" * 32, namespace="shop", type="turn", content="Said", created_at=5.0, updated_at=5.0, turns=1,
        source="conversation",
    )  # fmt: skip
    drawn = Record(
        id="b" * 32, namespace="shop", type="fact", content="Drawn", created_at=5.0, updated_at=5.0,
        source="extraction",
    )  # fmt: skip
    here.do(ImportMemories(records=[turn, drawn]))
    run(machines)
    assert there.texts() == ["Saved"]
    here.do(Delete(ids=[turn.id]))
    assert [one.gone for one in ask(here.core, ListVersions())] == [""]


def test_a_memory_that_moved_to_another_namespace_moves_there(machines: Machines) -> None:
    here, there = machines
    id = here.add("Moves")
    settle(machines)
    here.do(Share(ids=[id], to="", move=True))
    settle(machines)
    assert there.export()[id].namespace == ""


def test_successors_in_a_circle_come_to_one_state(machines: Machines) -> None:
    here, there = machines
    one, other = here.add("One"), here.add("Other")
    settle(machines)
    for machine, old, new in ((here, one, other), (there, other, one)):
        record = machine.export()[old]
        record.superseded_by, record.updated_at = new, machine._clock.now + 1
        machine.do(ImportMemories(records=[record], mine=True))
    run(machines)
    check_same(machines)


def test_of_two_that_were_changed_at_one_time_the_persons_stays(machines: Machines) -> None:
    here, there = machines
    records = [
        Record(id=f"{n:032x}", namespace="shop", type="fact", content=f"Number {n}", created_at=5.0, updated_at=5.0,
               origin="person")
        for n in range(9)
    ]  # fmt: skip
    here.do(ImportMemories(records=records, mine=True))
    there.do(ImportMemories(records=records))
    assert len(settle(machines).there.changed) == 9
    assert {record.origin for record in there.export().values()} == {"person"}


def test_a_change_made_after_the_lists_is_kept(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = machines
    edited, deleted = here.add("Edited"), here.add("Deleted")
    settle(machines)
    here.update(edited, content="Edited here")
    here.do(Delete(ids=[deleted]))
    before = there.call

    def call(call: Call[Any]) -> Any:
        if isinstance(call, ImportMemories):
            monkeypatch.setattr(there, "call", before)
            for id in (edited, deleted):
                there.update(id, content=f"{id[:4]} changed there meanwhile")
        return before(call)

    monkeypatch.setattr(there, "call", call)
    report = run(machines)
    assert report.there.kept == [edited]
    settle(machines)
    assert here.texts() == sorted(f"{id[:4]} changed there meanwhile" for id in (edited, deleted))


def test_more_than_a_page_is_synced(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.daemon.store.versions._PAGE", 3)
    monkeypatch.setattr("memoryd.client.programs.memctl.sync._PART", 2)
    here, there = machines
    ids = [here.add(f"Number {number}") for number in range(8)]
    there.add("Said there")
    settle(machines)
    for id in ids[:5]:
        there.do(Delete(ids=[id]))
    there.do(Erase(ids=ids[5:7]))
    report = settle(machines)
    assert len(report.here.deleted) == 5
    assert sorted(report.here.erased) == sorted(ids[5:7])
    assert here.texts() == ["Number 7", "Said there"]


def test_an_import_deletes_what_was_not_changed_since_and_undo_brings_it_back(machines: Machines) -> None:
    here, _ = machines
    one, other = here.add("One"), here.add("Other")
    gone = [Gone(id=one, at=here._clock.now), Gone(id=other, at=5.0), Gone(id="c" * 32, at=9e9)]
    assert here.do(ImportMemories(records=[], gone=gone, dry_run=True)).removed == [one]
    imported = here.do(ImportMemories(records=[], gone=gone))
    assert imported.removed == [one]
    assert here.texts() == ["Other"]
    here.do(Undo(operation=imported.operation))
    assert here.texts() == ["One", "Other"]
    assert here.do(ImportMemories(records=[], gone=gone, overwrite=True)).removed == sorted([one, other])


# Random --------------------------------------------------------------------------------------------------------------


class World:
    """What was acknowledged on both machines, and what must come of it: of each memory the last write."""

    def __init__(self, machines: Machines, seed: int) -> None:
        self.machines, self.random = machines, random.Random(seed)
        self.last: dict[str, str | None] = {}  # by id the text of the last write; None: deleted
        self.written: dict[str, set[str]] = {}
        self.erased: set[str] = set()
        self.number = 0

    def step(self) -> None:
        machine = self.random.choice(self.machines)
        present = machine.export()
        ids = sorted(present)
        acts = [self.add, self.add, self.edit, self.edit, self.pin, self.delete, self.undo, self.erase, self.replace]
        self.random.choice(acts if ids else [self.add])(machine, self.random.choice(ids) if ids else "")

    def name(self) -> str:
        self.number += 1
        return f"Text {self.number}"

    def note(self, id: str, text: str | None) -> None:
        self.last[id] = text
        if text is not None:
            self.written.setdefault(id, set()).add(text)

    def add(self, machine: Machine, _: str) -> None:
        text = self.name()
        self.note(machine.add(text), text)

    def edit(self, machine: Machine, id: str) -> None:
        text = self.name()
        machine.update(id, content=text)
        self.note(id, text)

    def pin(self, machine: Machine, id: str) -> None:
        machine.update(id, pinned=self.random.random() < 0.5)
        self.note(id, machine.export()[id].content)

    def delete(self, machine: Machine, id: str) -> None:
        machine.do(Delete(ids=[id]))
        self.note(id, None)

    def replace(self, machine: Machine, id: str) -> None:
        text, old = self.name(), machine.export()[id].content
        self.note(machine.add(text, supersedes=[id]), text)
        self.note(id, old)

    def undo(self, machine: Machine, _: str) -> None:
        """Take back the last thing that was done here by hand, unless something came over since."""
        try:
            [latest] = ask(machine.core, Operations(kind=["add", "update", "delete"], limit=1)).operations
            undone = machine.do(Undo(operation=latest.id))
        except (Conflict, NotFound, ValueError):
            return
        after = machine.export()
        for id in undone.ids:
            self.note(id, after[id].content if id in after else None)

    def erase(self, machine: Machine, id: str) -> None:
        machine.do(Erase(ids=[id]))
        self.erased.add(id)

    def cut(self) -> None:
        """Sync over a line that breaks."""
        machine = self.random.choice(self.machines)
        machine.left = self.random.randrange(9)
        try:
            run(self.machines)
        except Unavailable:
            pass
        finally:
            machine.left = -1

    def check(self) -> None:
        run(self.machines if self.random.random() < 0.5 else self.machines[::-1])
        check_same(self.machines)
        for machine in self.machines:
            texts = {id: record.content for id, record in machine.export().items()}
            assert texts == {id: text for id, text in self.last.items() if text is not None and id not in self.erased}
        for id, written in self.written.items():
            known = set().union(*(texts_in_history(machine, id) for machine in self.machines))
            assert known == set() if id in self.erased else written <= known


def play(machines: Machines, seed: int, steps: int) -> None:
    world = World(machines, seed)
    for _ in range(steps):
        world.step()
        if world.random.random() < 0.05:
            world.check()
        elif world.random.random() < 0.05:
            world.cut()
    world.check()


@pytest.mark.parametrize("seed", range(2))
def test_random_changes_on_both_come_to_the_last_write_of_each(machines: Machines, seed: int) -> None:
    play(machines, seed, 120)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_random_changes_with_lines_that_are_cut(machines: Machines, seed: int) -> None:
    play(machines, seed, 600)
