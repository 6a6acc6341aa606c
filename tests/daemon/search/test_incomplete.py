"""A search says of what it may return what it could not compare yet, and loses nothing that moves meanwhile."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.protocol import NewTurn, Observe
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.config import Config
from memoryd.daemon.conversations import judging, promoting
from memoryd.daemon.conversations.worker import Worker
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding import embedder as embedding
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.rooms import Room
from memoryd.daemon.search import candidates, pipeline
from memoryd.daemon.server.server import Server
from memoryd.daemon.store import turns
from memoryd.daemon.system.listen import listen
from workbench import LIMIT_S, CountingEmbedder, add, ask, found, running, search, wait_until

PENDING = ["pending_embeddings"]


def observe(core: Core, *texts: str, namespace: str = "") -> list[str]:
    said = [NewTurn(role="user", content=text) for text in texts]
    ids: list[str] = ask(core, Observe(turns=said, namespace=namespace)).ids
    return ids


def embed_turns(core: Core) -> None:
    while judging.step(core):
        pass


# Vectors that are not there yet --------------------------------------------------------------------------------------


def test_turns_of_l0_without_a_vector_are_named_until_they_have_one(core: Core) -> None:
    observe(core, "herons fish at dawn", "storks nest on roofs")
    assert search(core, "egrets").degraded == PENDING
    assert search(core, "egrets", mode="lexical").degraded == []
    assert search(core, "egrets", tier=["L1"]).degraded == [], "a turn of L0 is not asked for"
    assert search(core, "egrets", namespace="b", reach="exact").degraded == [], "they are out of reach"
    embed_turns(core)
    hits = search(core, "egrets")
    assert ([hit.tier for hit in hits], hits.degraded) == (["L0", "L0"], [])


def test_a_turn_without_a_vector_that_others_stand_above_is_named(core: Core) -> None:
    observe(core, *[f"herons fish at dawn number {number}" for number in range(9)])
    embed_turns(core)
    observe(core, "herons fish at dawn number nine")
    hits = search(core, "herons fish at dawn number nine", limit=8)
    assert "herons fish at dawn number nine" not in [hit.content for hit in hits]
    assert hits.degraded == PENDING
    embed_turns(core)
    assert found(core, "herons fish at dawn number nine", limit=8)[0] == "herons fish at dawn number nine"


def test_a_text_that_gets_its_vector_after_the_index_was_asked_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, real = CountingEmbedder(), candidates.find_nearest
    with running(folder, model) as core:
        add(core, "storks nest on roofs")
        search(core, "egrets", touch=False)  # the vector of the query is known then
        generation = core.embedding.active
        assert generation is not None
        model.gate.clear()
        core.embedding.index_rows([(1, 1, "fact")], [None])

        def embed_afterwards(*given: Any) -> Any:
            near = real(*given)
            model.gate.set()
            wait_until(lambda: not generation.pending)
            return near

        monkeypatch.setattr(candidates, "find_nearest", embed_afterwards)
        hits = search(core, "egrets")
        assert (hits.hits, hits.degraded) == ([], PENDING)
        hits = search(core, "egrets")
        assert (len(hits), hits.degraded) == (1, [])


def test_a_long_text_whose_parts_have_no_vectors_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = embedding.long_texts.embed_parts
    monkeypatch.setattr(embedding.long_texts, "embed_parts", lambda *given: False)
    with running(folder, CountingEmbedder()) as core:
        add(core, "herons fish at dawn")
        assert search(core, "egrets").degraded == []
        add(core, "herons fish at dawn. " * 60, namespace="long")
        assert search(core, "egrets", namespace="long").degraded == PENDING
        assert search(core, "egrets", reach="exact").degraded == [], "that text is out of reach"
        monkeypatch.setattr(embedding.long_texts, "embed_parts", real)
        core.embedding.refresh([1])
        wait_until(lambda: search(core, "egrets", namespace="long").degraded == [])


def test_turns_of_l0_get_vectors_of_another_model_as_soon_as_it_is_in_use(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Config().model.name
    models = {old: CountingEmbedder(old, "f-old"), "new": CountingEmbedder("new", "f-new", turn=7)}
    monkeypatch.setattr(embedding, "installed", lambda where: list(models))
    with running(folder, lambda name, where: models[name]) as core:
        worker = Worker(core, extracts=False)
        worker.start()
        observe(core, "herons fish at dawn")
        wait_until(lambda: search(core, "egrets").degraded == [])
        core.embedding.use("new")
        wait_until(lambda: core.embedding.active is not None and core.embedding.active.name == "new")
        wait_until(lambda: search(core, "egrets").degraded == [])
        [hit] = search(core, "herons fish at dawn")
        assert hit.similarity == pytest.approx(1.0, abs=1e-3)
        worker.close()


# What moves meanwhile ------------------------------------------------------------------------------------------------


def leave(core: Core) -> None:
    """Have all turns leave L0."""

    def job(transaction: Any) -> None:
        promoting.leave(core, transaction, turns.read_all(transaction.connection))

    core.store.write(job).result(LIMIT_S)


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
@pytest.mark.parametrize("after", ["embed", "candidates"])
def test_a_turn_that_leaves_l0_amid_a_search_is_found(
    core: Core, monkeypatch: pytest.MonkeyPatch, after: str, mode: str
) -> None:
    observe(core, "herons fish at dawn")
    embed_turns(core)

    def move(retrieval: Any, sources: Any) -> None:
        leave(core)

    stages = list(pipeline.list_stages())
    stages.insert([stage.__name__ for stage in stages].index(after) + 1, move)
    monkeypatch.setattr(pipeline, "list_stages", lambda: stages)
    assert found(core, "herons", mode=mode) == ["herons fish at dawn"]


def test_a_turn_that_leaves_l0_as_a_search_begins_is_one_hit(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    observe(core, "herons fish at dawn")
    embed_turns(core)
    build = Arrays.build_mask

    def leave_before(arrays: Arrays, *given: Any) -> Any:
        leave(core)
        return build(arrays, *given)

    monkeypatch.setattr(Arrays, "build_mask", leave_before)
    assert [hit.tier for hit in search(core, "herons", distinct=False)] == ["L1"]


def test_a_turn_that_is_deleted_amid_a_search_is_not_returned(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    observe(core, "herons fish at dawn")

    def remove(retrieval: Any, sources: Any) -> None:
        def job(transaction: Any) -> None:
            gone = turns.read_all(transaction.connection)
            turns.remove(transaction.connection, gone)
            core.active.follow(transaction, {turn.namespace for turn in gone})

        core.store.write(job).result(LIMIT_S)

    stages = (remove, *pipeline.list_stages())
    monkeypatch.setattr(pipeline, "list_stages", lambda: stages)
    assert found(core, "herons") == []


# The start -----------------------------------------------------------------------------------------------------------


def test_nobody_is_served_before_rooms_have_started(core: Core, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[bool] = []

    async def run(serve: Callable[[], Server]) -> None:
        server = serve()
        starting = Room(start=lambda core: served.append(server._asyncio_server is not None))
        monkeypatch.setattr("memoryd.daemon.server.server.list_rooms", lambda: (starting,))
        await server.start()
        await server.stop()

    with listen(folder / "s") as listener:
        asyncio.run(run(lambda: Server(core, listener, lambda: None, Runner(core))))
    assert served == [False]
