"""Dreams of a namespace: of its memories the newest of each subject stays; one operation, which undo takes back."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.protocol.dreams import Dream, DreamReport
from memoryd.daemon.core.core import Core
from memoryd.daemon.dreams import job as dream_job
from memoryd.daemon.dreams.dreaming import DreamTerms
from memoryd.daemon.store import rows
from memoryd.daemon.store.rows import Row
from memoryd.models import load
from workbench import add, found, running, undo, update

OLD, NEW = "The standup is at 9:30.", "We moved the standup to 10:00."
SPACE = "acme/api"


@pytest.fixture
def core(folder: Path, model_dir: Path) -> Iterator[Core]:
    ticks = count(1_800_000_000)  # each look is a second later: what is said later is younger
    with running(folder, lambda name, where: load(name, model_dir), clock=lambda: float(next(ticks))) as made:
        yield made


def dream(core: Core, place: str = SPACE, **options: Any) -> DreamReport:
    call = Dream(place=place, **options)
    [report] = dream_job.dream(core, call, DreamTerms(force=call.force)).dreams
    return report


def said(core: Core, *texts: str, **options: Any) -> list[str]:
    """Add memories one after the other; return their ids."""
    return [add(core, text, SPACE, dedup=False, **options).id for text in texts]


def row(core: Core, id: str) -> Row:
    with core.store.reading() as connection:
        return rows.read_ids(connection, [id])[id]


def everything(core: Core) -> list[Row]:
    with core.store.reading() as connection:
        return rows.select(connection, "TRUE ORDER BY m.row", ())


def test_what_is_out_of_date_is_superseded_and_what_is_said_twice_stays_once(core: Core) -> None:
    old, new, twice, again, other = said(
        core, OLD, NEW, "Backups run at 02:00.", "Backups run at 02:00", "Lena maintains billing."
    )
    before = everything(core)
    report = dream(core)
    assert (report.outcome, report.place, report.path) == ("written", SPACE, None)
    assert {(step.action, step.source) for step in report.steps} == {("outdated", old), ("repeat", twice)}
    assert (row(core, old).superseded_by, row(core, twice).superseded_by) == (new, again)
    assert row(core, other).superseded_by is None
    assert OLD not in found(core, "when is the standup", namespace=SPACE)
    undo(core, report.operation)
    assert everything(core) == before


def test_what_stays_takes_over_metadata_and_importance(core: Core) -> None:
    [first] = said(core, "Backups run at 02:00.", metadata={"by": "cron", "x": 1}, importance=0.9)
    [second] = said(core, "Backups run at 02:00", metadata={"x": 2}, importance=0.2)
    dream(core)
    assert row(core, first).superseded_by == second
    assert row(core, second).metadata in ('{"by":"cron","x":2}', '{"x":2,"by":"cron"}')
    assert row(core, second).importance == 0.9


def test_nothing_is_dreamt_of_twice_not_even_after_an_undo(core: Core) -> None:
    said(core, OLD, NEW)
    report = dream(core)
    assert dream(core).outcome == "unchanged"
    undo(core, report.operation)
    assert dream(core).outcome == "unchanged"
    assert dream(core, force=True).outcome == "written"


def test_a_dry_run_changes_nothing(core: Core) -> None:
    said(core, OLD, NEW)
    before = everything(core)
    assert [step.action for step in dream(core, dry_run=True).steps] == ["outdated"]
    assert everything(core) == before


def test_pinned_memories_and_other_namespaces_are_left_alone(core: Core) -> None:
    [old, _] = said(core, OLD, NEW)
    update(core, old, pinned=True)
    add(core, OLD, "acme")
    assert dream(core).steps == []
    assert dream(core, "acme").steps == []


def test_memories_of_unlike_types_do_not_repeat_each_other(core: Core) -> None:
    said(core, "Backups run at 02:00.", type="fact")
    said(core, "Backups run at 02:00", type="decision")
    assert dream(core).steps == []


@pytest.mark.parametrize("texts", [(), (OLD,)])
def test_none_or_one_memory_is_in_order(core: Core, texts: tuple[str, ...]) -> None:
    said(core, *texts)
    assert dream(core).outcome == "unchanged"
