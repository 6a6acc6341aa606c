"""Chunks of files beside memories: neither is taken for the other, and no job moves, merges or deletes a chunk."""

from pathlib import Path
from typing import Any

import pytest
from notes import sections, write

from memoryd.client.errors import Conflict
from memoryd.client.protocol import List, Memory, NewTurn, Observe, RunJob, Tiers
from memoryd.daemon.config import Config, TiersConfig
from memoryd.daemon.conversations import judging
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs import table
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.workspaces import indexing, registry
from memoryd.daemon.workspaces.tables.workspaces import StoredWorkspace
from memoryd.models import ModelMissing
from workbench import Clock, CountingEmbedder, add, ask, disk_and_memory, found, running, search, wait_until

TEXT = "Herons stand still in shallow water for hours."
DAY_S = 86400.0


def added(core: Core, root: Path) -> StoredWorkspace:
    workspace = registry.add(core, str(root), None, ())
    indexing.index(core, workspace)
    wait_until(lambda: core.embedding.count_pending() == 0)
    return workspace


def documents(core: Core) -> list[Memory]:
    return ask(core, List(tier=["documents"], limit=1000)).memories


def without_accesses(core: Core) -> list[tuple[object, ...]]:
    return [(m.id, m.content, m.path, m.start_line, m.tier, m.namespace, m.updated_at) for m in documents(core)]


def test_a_turn_that_says_what_a_file_says_is_kept(core: Core, root: Path) -> None:
    write(root, "memory/a.md", TEXT)
    added(core, root)
    said = Observe(namespace="notes", turns=[NewTurn(role="user", content=TEXT)])
    assert [turn.outcome for turn in ask(core, said).turns] == ["accepted"]
    while judging.step(core):
        pass
    flows = ask(core, Tiers()).flows
    assert not [name for name in flows if name.startswith(("skipped", "dropped"))]


def test_a_memory_cannot_replace_a_part_of_a_file(core: Core, root: Path) -> None:
    write(root, "memory/a.md", TEXT)
    added(core, root)
    [document] = documents(core)
    with pytest.raises(Conflict, match=r"part of the file .*a\.md"):
        add(core, "Herons walk.", "notes", supersedes=document.id)
    with pytest.raises(Conflict, match="belongs to another memory"):
        add(core, TEXT, "notes", type="note", id=document.id)
    assert len(found(core, "herons")) == 1


def test_no_job_touches_chunks_however_old_they_are(folder: Path, root: Path) -> None:
    write(root, "memory/2020-01-01.md", sections(30))
    write(root, "memory/short.md", "---\nexpires: 2021-01-01\n---\nOver.\n")
    clock = Clock()
    config = Config(tiers=TiersConfig(max_recent=1, max_facts=1))
    with running(folder, CountingEmbedder(), clock=clock, config=config) as core:
        added(core, root)
        before = without_accesses(core)
        runner = Runner(core)
        clock.advance(400 * DAY_S)
        for name in table.list_jobs():
            assert runner.run(RunJob(name=name), lambda event: None).result().outcome == "done"
        assert without_accesses(core) == before
        assert ask(core, List(tier=["documents"], all_states=True, limit=1000)).total == 31
        disk, memory = disk_and_memory(core)
        assert disk == memory
        runner.close()


def test_accesses_of_chunks_are_counted_and_stay_when_the_file_grows(core: Core, root: Path) -> None:
    path = write(root, "memory/a.md", f"# Birds\n\n{TEXT}\n")
    workspace = added(core, root)
    search(core, "herons")
    core.effects.flush()
    assert documents(core)[0].access_count == 1
    path.write_text(f"# Fish\n\nThey swim.\n\n{path.read_text()}")
    indexing.index(core, workspace)
    assert {m.access_count for m in documents(core)} == {0, 1}


def test_the_same_content_in_two_files_is_shown_once_and_it_is_the_first_path(core: Core, root: Path) -> None:
    for name in ("c", "a", "b"):
        write(root, f"memory/{name}.md", TEXT)
        if name == "c":
            workspace = added(core, root)
        else:
            indexing.index(core, workspace)
    wait_until(lambda: core.embedding.count_pending() == 0)
    assert [hit.path for hit in search(core, "herons")] == [str(root / "memory/a.md")]


@pytest.mark.parametrize("options", [{"half_life_days": 30.0}, {"profile": "memweave"}, {"profile": "swarm"}])
def test_of_old_daily_files_the_relevant_one_is_first_however_small_its_score(
    core: Core, root: Path, options: dict[str, Any]
) -> None:
    for day in range(1, 13):
        text = "The herons nest in the reeds by the lake" if day == 12 else f"The herons ate {day} frogs"
        write(root, f"memory/2024-07-{day:02}.md", f"{text}.\n")
    added(core, root)
    wait_until(lambda: core.embedding.count_pending() == 0)
    hits = list(search(core, "Where do herons nest in the reeds?", limit=5, touch=False, **options))
    assert 0.0 < hits[0].score < 1e-6
    assert hits[0].path == str(root / "memory/2024-07-12.md")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_another_model_embeds_chunks_with_their_headings(folder: Path, root: Path) -> None:
    write(root, "memory/a.md", f"# Birds\n\n{TEXT}\n")
    one, two = CountingEmbedder(), CountingEmbedder("other", "other-1", turn=3)

    def load(name: str, where: Path) -> CountingEmbedder:
        if name not in ("all-MiniLM-L6-v2", "other"):
            raise ModelMissing(name)
        return two if name == "other" else one

    with running(folder, load) as core:
        added(core, root)
        core.embedding._wanted = "other"  # as `use` does for a model that is installed
        core.embedding._retry_now()
        wait_until(lambda: core.embedding.active is not None and core.embedding.active.name == "other")
        assert two.texts == one.texts == [f"Birds\n# Birds\n\n{TEXT}"]
