"""The job that looks at the files of workspaces: it finds what nobody heard of."""

from pathlib import Path

from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.workspaces import registry
from moving import run
from workbench import found


def some_notes(folder: Path, name: str, text: str) -> Path:
    root = folder / name
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "a.md").write_text(text)
    return root


def test_it_indexes_what_changed_unheard(core: Core, jobs: Runner, folder: Path) -> None:
    root = some_notes(folder, "notes", "A walrus.\n")
    registry.add(core, str(root), None, ())
    assert run(jobs, "workspaces").counts == {"indexed": 1, "removed": 0, "unchanged": 0}
    assert found(core, "walrus") == ["A walrus."]
    (root / "memory" / "a.md").unlink()
    assert run(jobs, "workspaces").counts["removed"] == 1
    assert found(core, "walrus") == []


def test_a_folder_that_is_gone_does_not_keep_it_from_the_others(core: Core, jobs: Runner, folder: Path) -> None:
    lost, there = (some_notes(folder, name, f"A walrus in {name}.\n") for name in ("lost", "there"))
    for root in (lost, there):
        registry.add(core, str(root), None, ())
    run(jobs, "workspaces")
    lost.rename(folder / "elsewhere")
    (there / "memory" / "a.md").write_text("An okapi.\n")
    done = run(jobs, "workspaces")
    assert (done.outcome, done.counts["gone"], done.counts["indexed"]) == ("done", 1, 1)
    assert found(core, "okapi")[0] == "An okapi."
    assert "A walrus in lost." in found(core, "walrus")
