"""Dreams of workspaces: MEMORY.md is put in order with the daily files, and nobody's words are lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dream_notes import GARDEN, SHIP, TEAM, Story, plant

from each import each
from memoryd.client.errors import Conflict, Invalid, ModelUnavailable, NotFound, StorageFailed
from memoryd.client.protocol import List
from memoryd.client.protocol.dreams import Dream, DreamReport
from memoryd.daemon.core.core import Core
from memoryd.daemon.dreams import job as dream_job
from memoryd.daemon.dreams.dreaming import DreamTerms
from memoryd.daemon.dreams.tables import dreams
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.workspaces import calls, indexing, registry
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace
from memoryd.models import load
from moving import run
from workbench import Clock, ask, no_model, running

DAY_S = 86400.0
OLD, NEW = "# Memory\n\n- The API listens on port 80\n", "- The API listens on port 8443\n"
LATER = "- The API listens on port 9000\n"


@contextmanager
def opened(folder: Path, model_dir: Path, **options: Any) -> Iterator[Core]:
    with running(folder, lambda name, where: load(name, model_dir), **options) as core:
        yield core


@pytest.fixture
def core(folder: Path, model_dir: Path) -> Iterator[Core]:
    with opened(folder, model_dir) as made:
        yield made


@pytest.fixture
def root(folder: Path) -> Path:
    made = folder / "notes"
    (made / "memory").mkdir(parents=True)
    return made


def write(root: Path, memory: str | None, **days: str) -> None:
    """Write MEMORY.md and daily files: `d05="- a note\\n"` is 2027-01-05."""
    if memory is not None:
        (root / "MEMORY.md").write_bytes(memory.encode())
    for day, text in days.items():
        (root / "memory" / f"2027-01-{day[1:]}.md").write_text(text)


def added(core: Core, root: Path) -> StoredWorkspace:
    workspace = registry.add(core, str(root), "notes", ())
    indexing.index(core, workspace)
    return workspace


def dream(core: Core, **options: Any) -> DreamReport:
    """Dream where dreams may write, unless it is a test of that."""
    for workspace in registry.list_all(core):
        indexing.index(core, workspace)
    may_write = None if options.get("dry_run") or options.get("undo") else True
    call = Dream(place="notes", **{"allow": may_write, **options})
    dream_job.check(call)
    [report] = dream_job.dream(core, call, DreamTerms(force=call.force)).dreams
    return report


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def memory(root: Path) -> str:
    return (root / "MEMORY.md").read_text()


# The whole -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("story", "seed"), [(TEAM, 1), (GARDEN, 2), (SHIP, 1)], ids=["team", "garden", "ship"])
def test_of_what_sixty_days_changed_memory_has_what_holds_and_nothing_that_held(
    core: Core, root: Path, story: Story, seed: int
) -> None:
    planted = plant(root, story, seed)
    added(core, root)
    before = files(root)
    report = dream(core)
    lines = [line.removeprefix("- ").partition(" (2026-")[0] for line in memory(root).splitlines()]
    assert report.outcome == "written"
    assert report.chars_after < report.chars_before
    assert [fact for fact in planted.current if fact not in lines] == []
    assert [fact for fact in planted.elsewhere if fact in lines] == []
    assert [fact for fact in planted.superseded if fact in lines] == []
    assert [note for note in planted.chatter if note in lines] == []
    assert "| all | see below |" in memory(root)
    assert "- [ ] read it all" in memory(root)
    assert report.diary is not None
    diary = Path(report.diary).read_text()
    assert all(fact in diary for fact in planted.superseded)
    after = files(root)
    assert dream(core).outcome == "unchanged"
    assert files(root) == after
    assert dream(core, undo=True).outcome == "undone"
    assert {path: data for path, data in files(root).items() if "dreams" not in path} == before


def test_a_dry_run_tells_the_plan_and_changes_nothing(core: Core, root: Path) -> None:
    write(root, "- The standup is at 9:30\n", d05="- We moved the standup to 10:00\n")
    added(core, root)
    before = files(root)
    report = dream(core, dry_run=True)
    assert files(root) == before
    assert report.outcome == "planned"
    [outdated, taken] = report.steps
    assert (outdated.action, outdated.text, outdated.kept) == (
        "outdated",
        "The standup is at 9:30",
        "We moved the standup to 10:00",
    )
    assert (taken.action, taken.source, taken.date) == ("take", "memory/2027-01-05.md", "2027-01-05")
    assert dream(core).outcome == "written"
    assert memory(root) == "- We moved the standup to 10:00 (2027-01-05)\n"


# Once ----------------------------------------------------------------------------------------------------------------


def test_nothing_is_dreamt_twice_across_restarts(folder: Path, root: Path, model_dir: Path) -> None:
    write(root, OLD, d05=NEW)
    with opened(folder, model_dir) as core:
        added(core, root)
        assert dream(core).outcome == "written"
    after = files(root)
    with opened(folder, model_dir) as core:
        assert dream(core).outcome == "unchanged"
    assert files(root) == after


def test_an_undone_dream_does_not_come_again_by_itself(core: Core, root: Path) -> None:
    write(root, OLD, d05=NEW)
    added(core, root)
    dream(core)
    dream(core, undo=True)
    assert dream(core).outcome == "unchanged"
    assert dream(core, force=True).outcome == "written"


def test_a_line_that_was_put_back_by_hand_is_not_replaced_again(core: Core, root: Path) -> None:
    write(root, f"{OLD}- The cache is Valkey\n", d05=NEW)
    added(core, root)
    dream(core)
    assert "8443" in memory(root)
    write(root, f"{OLD}- The cache is Valkey\n", d06="- The cache moved from Valkey to KeyDB\n")
    dream(core)
    assert "8443" not in memory(root)
    assert "KeyDB" in memory(root)


def test_what_was_written_into_memory_since_is_newer_than_former_days(core: Core, root: Path) -> None:
    write(root, "# Memory\n", d05="- The standup is at 9:30\n")
    added(core, root)
    dream(core)
    write(root, "# Memory\n\n- We moved the standup to 10:00\n", d04="- The standup is at 9:15\n")
    dream(core)
    assert "10:00" in memory(root)
    assert "9:15" not in memory(root)


# What is kept safe ---------------------------------------------------------------------------------------------------


def test_undo_restores_odd_bytes(core: Core, root: Path) -> None:
    old = b"\xef\xbb\xbf# M\r\n\r\n- caf\xe9 is open\r\n- The standup is at 9:30\r\n- last, without an end"
    (root / "MEMORY.md").write_bytes(old)
    write(root, None, d05="- We moved the standup to 10:00\n")
    added(core, root)
    assert dream(core).outcome == "written"
    new = (root / "MEMORY.md").read_bytes()
    assert new == old.replace(b"The standup is at 9:30", b"We moved the standup to 10:00 (2027-01-05)")
    dream(core, undo=True)
    assert (root / "MEMORY.md").read_bytes() == old


def test_a_note_with_bytes_that_cannot_be_read_stays_where_it_is(core: Core, root: Path) -> None:
    write(root, f"{OLD}- The standup of the café is at 9:30\n", d05="- The standup of the café is at 9:45\n")
    daily = root / "memory" / "2027-01-06.md"
    daily.write_bytes(b"- The standup of the caf\xe9 is at 10:00\r\n- The API listens on port 8443\r\n")
    added(core, root)
    assert dream(core).outcome == "written"
    assert "8443" in memory(root)
    assert "café is at 9:45" in memory(root)


def test_undo_leaves_a_file_alone_that_was_changed_since(core: Core, root: Path) -> None:
    write(root, OLD, d05=NEW)
    added(core, root)
    dream(core)
    (root / "MEMORY.md").write_text("mine\n")
    with pytest.raises(Conflict, match="changed since"):
        dream(core, undo=True)
    assert memory(root) == "mine\n"


def test_undo_goes_back_dream_by_dream(folder: Path, root: Path, model_dir: Path) -> None:
    clock = Clock()
    with opened(folder, model_dir, clock=clock) as core:
        write(root, OLD, d05=NEW)
        added(core, root)
        dream(core)
        once = memory(root)
        clock.advance(DAY_S)
        write(root, None, d06=LATER)
        dream(core)
        dream(core, undo=True)
        assert memory(root) == once
        dream(core, undo=True)
        assert memory(root) == OLD
        with pytest.raises(NotFound):
            dream(core, undo=True)


def test_a_file_that_is_saved_meanwhile_is_not_overwritten(core: Core, root: Path) -> None:
    write(root, OLD, d05=NEW)
    workspace = added(core, root)
    registry.allow_writing(core, workspace, True)
    saved = f"{OLD}\nsaved meanwhile\n"

    def save(stage: str, done: int, total: int) -> None:
        (root / "MEMORY.md").write_text(saved)

    with pytest.raises(Conflict, match="changed during the dream"):
        dream_job.dream(core, Dream(place="notes"), DreamTerms(report=save))
    assert memory(root) == saved
    assert dream(core).outcome == "written"
    assert "8443" in memory(root)


def test_a_file_does_not_lose_more_than_half_unless_forced(core: Core, root: Path) -> None:
    write(root, "- Always run the migrations first\n" * 10, d05=NEW)
    added(core, root)
    before = files(root)
    report = dream(core)
    assert (report.outcome, files(root)) == ("refused", before)
    assert "--force" in report.problem
    assert dream(core, force=True).outcome == "written"
    assert memory(root).count("migrations") == 1


def test_the_diary_and_the_old_file_are_not_searched(core: Core, root: Path) -> None:
    write(root, "- The standup is at 9:30\n", d05="- We moved the standup to 10:00\n")
    workspace = added(core, root)
    dream(core)
    indexing.index(core, workspace)
    paths = {memory.path for memory in ask(core, List(limit=100)).memories}
    assert paths == {str(root / "MEMORY.md"), str(root / "memory/2027-01-05.md")}


def test_without_a_model_nothing_is_compared_and_nothing_changed(folder: Path, root: Path) -> None:
    write(root, OLD, d05=NEW)
    with running(folder, no_model, ready=False) as core:
        added(core, root)
        with pytest.raises(ModelUnavailable):
            dream(core)
    assert memory(root) == OLD


@each("options", [{"undo": True, "place": None}, {"undo": True, "force": True}])
def test_calls_whose_parts_do_not_go_together_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        dream_job.check(Dream(**{"place": "notes", **options}))


# By itself -----------------------------------------------------------------------------------------------------------


@contextmanager
def runner(core: Core) -> Iterator[Runner]:
    made = Runner(core)
    yield made
    made.close()


def test_a_dream_proposes_until_somebody_has_allowed_it_to_write(core: Core, root: Path) -> None:
    write(root, OLD, d05=NEW)
    workspace = added(core, root)
    before = files(root)
    report = dream(core, allow=None)
    assert (report.outcome, [step.action for step in report.steps]) == ("planned", ["outdated", "take"])
    assert "`memctl dream notes --allow`" in report.problem
    assert files(root) == before
    assert not calls.describe(core, workspace).dreams_write
    assert dream(core, allow=True).outcome == "written"
    write(root, memory(root), d06=LATER)
    assert dream(core, allow=None).outcome == "written", "once is enough"
    write(root, memory(root), d07=LATER.replace("9000", "9001"))
    assert dream(core, allow=False).outcome == "planned"
    for wrong in ({"place": None}, {"undo": True}, {"dry_run": True}):
        with pytest.raises(Invalid, match="permission"):
            dream_job.check(Dream(**{"place": "notes", "allow": True, **wrong}))


def test_the_job_dreams_of_the_days_that_are_over(core: Core, root: Path) -> None:
    write(root, OLD, d05=NEW, d15=LATER)
    added(core, root)
    with runner(core) as jobs:
        assert run(jobs, "dream").counts == {}, "nobody has allowed it"
        registry.allow_writing(core, registry.list_all(core)[0], True)
        planned = run(jobs, "dream", dry_run=True)
        assert [(step.action, step.target) for step in planned.steps] == [("dream", "notes")]
        assert memory(root) == OLD
        assert run(jobs, "dream").counts == {"written": 1}
        assert "8443" in memory(root)
        assert "9000" not in memory(root)
        assert run(jobs, "dream").counts == {}


def test_one_workspace_that_cannot_be_dreamt_of_does_not_keep_the_others_from_it(core: Core, folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name / "memory").mkdir(parents=True)
        write(folder / name, OLD, d05=NEW)
        workspace = registry.add(core, str(folder / name), name, ())
        indexing.index(core, workspace)
        registry.allow_writing(core, workspace, True)
    (folder / "one" / "MEMORY.md").write_bytes("- a\n".encode("utf-16"))
    with runner(core) as jobs:
        assert run(jobs, "dream").counts == {"refused": 1, "written": 1}
    assert "8443" in (folder / "two" / "MEMORY.md").read_text()
    reports = dream_job.dream(core, Dream(dry_run=True), DreamTerms()).dreams
    assert [report.outcome for report in reports] == ["refused", "unchanged"]


def test_a_dream_that_a_crash_cut_off_can_be_undone_and_is_not_written_twice(
    core: Core, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, "- The standup is at 9:30\n", d05="- We moved the standup to 10:00\n")
    added(core, root)

    def crash(*_: Any) -> None:
        raise StorageFailed("the power is gone")

    with monkeypatch.context() as patched:
        patched.setattr(dreams, "end", crash)  # MEMORY.md is written by then
        with pytest.raises(StorageFailed):
            dream(core)
    assert "10:00" in memory(root)
    assert dream(core).outcome == "unchanged"
    dream(core, undo=True)
    assert memory(root) == "- The standup is at 9:30\n"
