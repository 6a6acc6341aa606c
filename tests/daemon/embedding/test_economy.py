"""Each text is embedded once, each query once; threads and random changes leave index and disk the same."""

import random
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conversing import observe
from memoryd.client.errors import MemorydError
from memoryd.client.protocol import Consolidate, EndSession, List, NewTurn
from memoryd.daemon.conversations import consolidating, extracting, judging
from memoryd.daemon.embedding.bulk import BulkPool
from memoryd.daemon.embedding.generation import Generation
from workbench import (
    LIMIT_S,
    CountingEmbedder,
    add,
    add_many,
    ask,
    delete,
    disk_and_memory,
    read_codes,
    running,
    search,
    undo,
    update,
    wait_until,
)


def test_a_search_embeds_its_query_once_and_a_repeated_one_not_at_all(folder: Path) -> None:
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        add(core, "Herons fish at dawn")
        for _ in range(3):
            search(core, "herons")
        assert embedder.queries == ["herons"]
        search(core, "storks")
        assert embedder.queries == ["herons", "storks"]


def test_the_cache_of_queries_forgets_the_one_not_used_for_longest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.daemon.embedding.query_vectors.CAPACITY", 2)
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        for query in ("a1", "b1", "a1", "c1", "a1", "b1"):
            search(core, query)
        assert embedder.queries == ["a1", "b1", "c1", "b1"]


def test_a_text_deleted_and_added_again_is_embedded_once(folder: Path) -> None:
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        for _ in range(3):
            added = add(core, "Herons fish at dawn")
            assert added.embedded
            delete(core, added.id)
        add_many(core, ["Herons fish at dawn", "Storks nest"])
        update(core, add(core, "Cranes dance").id, content="Storks nest")
        undo(core)
        assert sorted(embedder.texts) == ["Cranes dance", "Herons fish at dawn", "Storks nest"]


@pytest.mark.slow
@pytest.mark.parametrize("joined", [1, 12])
def test_a_turn_takes_two_embeddings_with_all_that_is_made_of_it(folder: Path, joined: int) -> None:
    """Short turns, and long ones of as many lines each that one speaker says."""
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        count = 0
        sessions = ("server", "festival", "novel")
        for name in sessions:
            said = _read_conversation(name, joined)
            count += len(said)
            for turn in said:  # as they come: each may be embedded before the next is there
                observe(core, turn, session=name)
                while judging.step(core):
                    pass
            ask(core, EndSession(session=name))
            while judging.step(core) or extracting.step(core):
                pass
        consolidating.consolidate(core, lambda progress: None, Consolidate())
        wait_until(lambda: core.embedding.count_pending() == 0)
        made = embedder.texts
        assert len(made) == len(set(made))
        with core.store.reading() as connection:
            kinds = {kind for (kind,) in connection.execute("SELECT DISTINCT source FROM memories")}
        assert kinds == {"conversation", "session_summary"}
        assert count < len(made) <= 2 * count + len(sessions)  # each has a summary


def _read_conversation(name: str, joined: int) -> list[NewTurn]:
    path = Path(__file__).parents[2] / "data" / "conversations" / f"{name}.txt"
    lines = [line.rpartition(" :: ")[2] for line in path.read_text().splitlines() if line[:1] not in "#?"]
    spoken = [line.partition(": ") for line in lines]
    if joined == 1:
        return [NewTurn(role=role, content=text) for role, _, text in spoken]
    by_role = {role: [text for one, _, text in spoken if one == role] for role, _, _ in spoken}
    return [
        NewTurn(role=role, content=" ".join(texts[start : start + joined]))
        for role, texts in by_role.items()
        for start in range(0, len(texts), joined)
    ]


def test_a_text_that_two_ask_for_at_once_is_embedded_once() -> None:
    pool, embedder = BulkPool(), CountingEmbedder()
    embedder.gate.clear()
    made: list[Any] = []
    askers = [
        threading.Thread(target=lambda: made.append(pool.embed(embedder, ["herons", "storks"]))) for _ in range(4)
    ]
    for asker in askers:
        asker.start()
    wait_until(lambda: len(embedder.texts) > 0)
    embedder.gate.set()
    for asker in askers:
        asker.join(LIMIT_S)
    pool.close()
    assert sorted(embedder.texts) == ["herons", "storks"]
    assert len(made) == 4
    assert all(np.array_equal(one, made[0]) for one in made)


def test_a_text_that_failed_is_tried_again() -> None:
    pool, embedder = BulkPool(), CountingEmbedder()
    embedder.broken = True
    assert isinstance(pool.embed(embedder, ["herons"])[0], Exception)
    embedder.broken = False
    assert not isinstance(pool.embed(embedder, ["herons"])[0], Exception)
    pool.close()


def test_a_slow_model_is_not_waited_for_past_the_deadline(folder: Path) -> None:
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        add(core, "Herons fish at dawn")
        embedder.gate.clear()
        hits = search(core, "herons", deadline_ms=30)
        assert ([hit.content for hit in hits], hits.degraded) == (["Herons fish at dawn"], ["vector"])
        assert hits[0].bm25 is not None
        embedder.gate.set()


def test_searches_that_gave_up_waiting_do_not_pile_up_before_the_model(folder: Path) -> None:
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        embedder.gate.clear()
        for number in range(20):
            search(core, f"herons {number}", deadline_ms=2)
        embedder.gate.set()
        search(core, "the last")
        assert len(embedder.queries) <= 4 + 1  # those under way in the four threads, and the last


def test_many_threads_that_add_the_same_text_make_one_memory(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        ids: set[str] = set()
        together = threading.Barrier(16)

        def work(number: int) -> None:
            together.wait()
            for text in ("Herons fish at dawn", "herons  fish at dawn", "Storks nest"):
                ids.add(add(core, text, metadata={f"k{number}": number}).id)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        page = ask(core, List())
        assert page.total == len(ids) == 2
        assert all(len(memory.metadata) == 16 for memory in page)


def test_a_generation_takes_in_a_snapshot_unless_a_row_was_written_or_removed_since() -> None:
    embedder = CountingEmbedder()
    one, other = embedder._vector("one"), embedder._vector("other")
    generation = Generation(1, "words", embedder)
    generation.index_row(1, 0, "fact", other)
    generation.remove_rows([2])
    generation.index_row(3, 0, "fact", None)
    snapshot = [(row, 0, "fact", 70 + row, one.tobytes(), None, 0) for row in (1, 2, 3, 4)] + [
        (5, 0, "fact", None, None, None, 0),
        (6, 0, "fact", 76, b"short", None, 0),
    ]
    generation.fill(snapshot)
    assert sorted(read_codes(generation.index)) == [1, 4]
    assert generation.index.find_nearest(other, 1).rows.tolist() == [1]
    assert generation.index.find_vector_ids([1, 4, 6]) == [0, 74, 0]
    assert sorted(generation.pending) == [3, 5, 6]
    assert generation.count_waiting() == 3


def test_rows_set_aside_wait_until_they_are_tried_again_or_written_anew() -> None:
    generation = Generation(1, "words", CountingEmbedder())
    generation.fill([(row, 0, "fact", None, None, None, 0) for row in (1, 2, 3)])
    generation.set_aside([1, 3, 9])
    assert (generation.list_pending(9), generation.count_waiting()) == ([2], 3)
    generation.index_row(3, 0, "fact", None)
    assert generation.list_pending(9) == [2, 3]
    generation.retry()
    assert generation.list_pending(9) == [2, 3, 1]
    generation.remove_rows([1])
    assert generation.count_waiting() == 2


@pytest.mark.parametrize("threads", [1, 4])
def test_after_random_changes_the_index_holds_exactly_what_is_on_disk(folder: Path, threads: int) -> None:
    birds = ["heron", "egret", "stork", "crane", "ibis", "bittern", "poison"]
    with running(folder, CountingEmbedder()) as core:

        def work(seed: int) -> None:
            dice = random.Random(seed)
            for _ in range(40):
                known = [memory.id for memory in ask(core, List(limit=1000))] or ["0" * 32]
                text = " ".join(dice.choices(birds, k=3))
                action: Any = dice.choice(
                    [
                        lambda: add(core, text, dice.choice(["", "a"])),  # noqa: B023
                        lambda: add_many(core, [text, text + " again"]),  # noqa: B023
                        lambda: add_many(core, [text + " twice", "\0"]),  # noqa: B023
                        lambda: add(core, text + " lost", supersedes="0" * 32),  # noqa: B023
                        lambda: update(core, dice.choice(known), content=text),  # noqa: B023
                        lambda: update(core, dice.choice(known), type=dice.choice(["fact", "lesson"])),  # noqa: B023
                        lambda: delete(core, dice.choice(known)),  # noqa: B023
                        lambda: undo(core),
                    ]
                )
                with suppress(MemorydError):  # deleted by another thread, changed since, nothing to undo
                    action()

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        core.store.write(lambda transaction: None).result()
        generation = core.embedding.active
        assert generation is not None
        wait_until(lambda: not generation.pending or len(generation.failing) > 0)
        stored, held = disk_and_memory(core)
        assert stored == held
        with core.store.reading() as connection:
            rows = {row for (row,) in connection.execute("SELECT row FROM memories")}
            poisoned = {row for (row,) in connection.execute("SELECT row FROM memories WHERE content LIKE '%poison%'")}
        waiting = set(generation.pending) | set(generation.failing)
        assert waiting == poisoned
        assert set(held) == rows - poisoned
        assert core.store.find_problems() == []
        query = np.ones(64, np.float32) / 8
        assert set(generation.index.find_nearest(query, 10_000).rows.tolist()) == set(held)
