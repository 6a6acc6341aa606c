"""Context vectors: searches use them once they are there, duplicates never do."""

from typing import Any

import numpy as np
import pytest

from memoryd.client.errors import Conflict
from memoryd.client.protocol import WhyNot
from memoryd.daemon.arrays.scan import AlikeQuery
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.erasing.tables import trimming
from memoryd.daemon.store import contexts, rows, vectors
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.vectors import Vector
from workbench import CountingEmbedder, add, ask, delete, insert, search, undo, update, wait_until


def write(store: Store, job: Any) -> Any:
    return store.write(lambda transaction: job(transaction.connection)).result()


def vector(text: str) -> Vector:
    made: Vector = CountingEmbedder().embed_texts([text])[0]
    return made


def give_context(core: Core, id: str, text: str, made: Vector) -> int:
    """Give a memory a context and its vector; return the memory's row number."""
    generation = core.embedding.active
    assert generation is not None
    with core.store.reading() as connection:
        row = rows.read_ids(connection, [id])[id]
    write(core.store, lambda connection: contexts.put(connection, [(row.row, text)]))
    with core.store.reading() as connection:
        kept = contexts.read(connection, [row.row])[row.row]
    assert (kept.row, kept.text_hash, kept.content) == (row.row, row.text_hash, text)
    write(core.store, lambda connection: vectors.put(connection, generation.model, kept.search_hash, made))
    core.embedding.refresh([row.row])
    return row.row


def alike(generation: Generation, query: Vector, after: tuple[int, int] = (0, 0)) -> list[int]:
    return generation.find_alike(query[None, :], AlikeQuery(1, "fact", 0.9, 8), after)[0]


def test_searches_use_the_vector_of_the_context_and_duplicates_their_own(core: Core) -> None:
    added, other = add(core, "yes, that one"), add(core, "storks nest on roofs")
    generation = core.embedding.active
    assert generation is not None
    before, within = generation.take_stamp(), vector("which port does the daemon use")
    row = give_context(core, added.id, "which port does the daemon use\nyes, that one", within)
    assert generation.index.find_nearest(within, 1).rows.tolist() == [row]
    assert row in alike(generation, vector("yes, that one"))
    assert row in alike(generation, vector("yes, that one"), before)
    assert alike(generation, vector("yes, that one"), generation.take_stamp()) == []
    with core.store.reading() as connection:
        numbers, exact = generation.read_exact(connection, [row])
        assert (numbers, exact.tobytes()) == ([row], within.tobytes())
        assert vectors.read_exact(connection, generation.model, [row])[1].tobytes() == vector("yes, that one").tobytes()
        again = Generation(generation.model, "words", CountingEmbedder())
        again.fill(vectors.read_all(connection, generation.model))
    assert not again.alone
    assert again.index.find_nearest(within, 1).rows.tolist() == [row]
    assert row in alike(again, vector("yes, that one"))
    assert add(core, "Yes, THAT one", dedup_threshold=0.99).id == added.id
    assert add(core, "storks nest on roofs").id == other.id


def test_a_hit_counts_by_its_own_text_where_that_is_nearer_than_its_context(core: Core) -> None:
    added = add(core, "retry limit five")
    row = give_context(core, added.id, "storks nest on roofs\nretry limit five", vector("storks nest on roofs"))
    for query in ("retry limit five", "storks nest on roofs"):
        [hit] = search(core, query).hits
        assert hit.similarity == pytest.approx(1.0)
    why = ask(core, WhyNot(id=added.id, query="retry limit five"))
    assert why.similarity == pytest.approx(1.0)
    assert row in alike(core.embedding.active, vector("retry limit five"))  # type: ignore[arg-type]


def test_a_context_ends_with_the_text_that_it_is_of(core: Core) -> None:
    added = add(core, "yes, that one")
    row = give_context(core, added.id, "which port\nyes, that one", vector("which port"))
    generation = core.embedding.active
    assert generation is not None
    update(core, added.id, importance=0.9)
    with core.store.reading() as connection:
        assert set(contexts.read(connection, [row])) == {row}
    update(core, added.id, content="no, the other one")
    with core.store.reading() as connection:
        assert contexts.read(connection, [row]) == {}
    assert generation.index.find_nearest(vector("no, the other one"), 1).similarities[0] > 0.99
    give_context(core, added.id, "which port\nno, the other one", vector("which port"))
    removed = delete(core, added.id)
    with core.store.reading() as connection:
        assert contexts.read(connection, [row]) == {}
    undo(core, removed.operation)
    assert generation.index.find_nearest(vector("no, the other one"), 1).similarities[0] > 0.99
    assert len(generation.own) == 0


def test_the_vector_of_a_context_is_in_use_until_that_is_taken_away(store: Store) -> None:
    row = insert(store, "yes").row
    number = write(store, lambda connection: vectors.ensure_model(connection, "m", "f", 4))
    write(store, lambda connection: contexts.put(connection, [(row, "which\nyes"), (99, "nothing has this number")]))
    [(_, context)] = write(store, lambda connection: contexts.read(connection, [row, 99])).items()
    write(store, lambda connection: vectors.put(connection, number, context.search_hash, np.ones(4, np.float32)))
    assert write(store, trimming.find_unused) == []
    write(store, lambda connection: contexts.remove(connection, [row]))
    assert len(write(store, trimming.find_unused)) == 1


def test_a_key_is_unique_in_its_namespace(store: Store) -> None:
    first = insert(store, "one", "acme", key="deploy")
    insert(store, "one of another place", "other", key="deploy")
    insert(store, "two", "acme")
    insert(store, "three", "acme")
    with pytest.raises(Conflict, match="same key"):
        insert(store, "four", "acme", key="deploy")
    with store.reading() as connection:
        assert rows.read_key(connection, first.namespace, "deploy") == first
        assert rows.read_key(connection, first.namespace, "depl") is None


def test_a_memory_with_neighbours_is_found_by_what_they_say_and_compared_by_its_own_text(core: Core) -> None:
    added = add(core, "yes, that one", neighbours=["which port does the daemon use", "port 9091 then"])
    add(core, "storks nest on roofs")
    generation = core.embedding.active
    assert generation is not None
    wait_until(lambda: core.embedding.count_pending() == 0)
    alone, whole = vector("yes, that one"), vector("yes, that one\nwhich port does the daemon use\nport 9091 then")
    with core.store.reading() as connection:
        row = rows.read_ids(connection, [added.id])[added.id].row
        _, exact = generation.read_exact(connection, [row])
    assert exact[0] == pytest.approx(contexts.merge(alone, whole), abs=1e-6)
    assert np.linalg.norm(exact[0]) == pytest.approx(1.0)
    assert add(core, "Yes, that one", dedup_threshold=0.99).id == added.id
    assert add(core, "yes, that one", "elsewhere", neighbours=["x" * 251]).outcome == "created"
    wait_until(lambda: core.embedding.count_pending() == 0)
    with core.store.reading() as connection:
        assert len(contexts.read(connection, range(1, 9))) == 1


def test_a_context_that_cannot_be_embedded_leaves_its_memory_with_its_own_vector(
    core: Core, caplog: pytest.LogCaptureFixture
) -> None:
    generation = core.embedding.active
    assert generation is not None
    generation.embedder = CountingEmbedder()
    added = add(core, "yes, that one", neighbours=["when is the poison due"])
    wait_until(lambda: core.embedding.count_pending() == 0)
    assert "1 contexts could not be embedded" in caplog.text
    with core.store.reading() as connection:
        row = rows.read_ids(connection, [added.id])[added.id].row
        assert generation.read_exact(connection, [row])[1].tobytes() == vector("yes, that one").tobytes()


def test_another_text_and_an_undo_leave_a_memory_with_a_context_of_its_text(core: Core) -> None:
    id = add(core, "It nests in the reeds", neighbours=["Tell me about the bittern"]).id
    wait_until(lambda: core.embedding.count_pending() == 0)

    def read_context() -> tuple[str, bool]:
        wait_until(lambda: core.embedding.count_pending() == 0)
        generation = core.embedding.active
        assert generation is not None
        with core.store.reading() as connection:
            [row] = rows.read_ids(connection, [id]).values()
            one = contexts.read(connection, [row.row])[row.row]
            return one.content, bool(vectors.find(connection, generation.model, [one.search_hash]))

    assert read_context() == ("It nests in the reeds\nTell me about the bittern", True)
    update(core, id, content="It sleeps in the reeds")
    assert read_context() == ("It sleeps in the reeds\nTell me about the bittern", True)
    undo(core)
    assert read_context() == ("It nests in the reeds\nTell me about the bittern", True)
