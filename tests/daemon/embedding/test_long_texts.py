"""Long texts by parts: what their end says is found by meaning, as long as the memory has that text."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.client.protocol import Erase, GetStats
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.long_texts import split
from memoryd.daemon.erasing import erasing
from memoryd.daemon.memories import reading
from workbench import (
    CountingEmbedder,
    Process,
    WordEmbedder,
    add,
    delete,
    found,
    running,
    search,
    undo,
    update,
    wait_until,
)

LONG = " ".join(f"Sentence {number} tells of the harbour {number} once more." for number in range(100))
END = "zebra quagga " * 40


class Window(CountingEmbedder):
    """Reads so many words of a text."""

    max_tokens = 108  # 8 are those of the frame

    def _made(self, text: str) -> Any:
        return super()._made(" ".join(text.split()[: self.max_tokens]))


def find(core: Core, query: str = "zebra quagga") -> tuple[str, float]:
    hit = search(core, query, mode="dense")[0]
    assert hit.similarity is not None
    return hit.id, hit.similarity


def wait(core: Core) -> None:
    generation = core.embedding.active
    assert generation is not None
    wait_until(lambda: core.embedding.count_pending() == 0 and not generation.parts.list_touched(1))


def read_keys(core: Core) -> list[tuple[int, int]]:
    with core.store.reading() as connection:
        return list(connection.execute("SELECT number, size FROM parts ORDER BY memory, number"))


def test_the_end_of_a_long_text_is_found_by_meaning_and_counts_for_its_memory(folder: Path) -> None:
    with running(folder, Window()) as core:
        id = add(core, f"{LONG} {END}").id
        add(core, "A crossing of the harbour")
        wait(core)
        best, similarity = find(core)
        assert best == id
        assert similarity > 0.5
        assert len(search(core, "zebra quagga", mode="dense")) == 2
        assert len(read_keys(core)) > 5
        generation = core.embedding.active
        assert generation is not None
        assert len(generation.parts.index) == len(read_keys(core)) - 1
        assert reading.stats(core, GetStats()).embedding_cache == 2 + len(generation.parts.index)


def test_parts_are_there_after_a_restart_without_a_new_embedding(folder: Path) -> None:
    with running(folder, Window()) as core:
        id = add(core, f"{LONG} {END}").id
        wait(core)
        before = find(core)
        assert before[0] == id
    embedder = Window()
    with running(folder, embedder) as core:
        assert find(core) == before
        wait(core)
        assert find(core) == before
        assert embedder.texts == []


def test_a_text_that_was_not_cut_before_the_daemon_ended_is_cut_after_its_start(folder: Path) -> None:
    with running(folder, Window()) as core:
        add(core, f"{LONG} {END}")
        wait(core)
        core.store.write(lambda transaction: transaction.connection.execute("DELETE FROM parts")).result()
    with running(folder, Window()) as core:
        wait(core)
        assert find(core)[1] > 0.5


def test_parts_follow_their_text_and_are_deleted_with_it(folder: Path) -> None:
    with running(folder, Window()) as core:
        id = add(core, f"{LONG} {END}").id
        wait(core)
        update(core, id, content=LONG)
        wait(core)
        assert find(core)[1] < 0.3
        undo(core)
        wait(core)
        assert find(core)[1] > 0.5
        delete(core, id)
        assert read_keys(core) == []
        assert found(core, "zebra quagga", mode="dense") == []
        undo(core)
        wait(core)
        assert find(core) == (id, find(core)[1])
        update(core, id, content="short again")
        wait(core)
        generation = core.embedding.active
        assert generation is not None
        assert len(generation.parts.index) == 0


def test_an_erased_text_leaves_no_vector_of_its_parts(folder: Path) -> None:
    with running(folder, Window()) as core:
        id = add(core, f"{LONG} {END}").id
        wait(core)
        list(erasing.erase(core, Erase(ids=[id])))
        with core.store.reading() as connection:
            assert connection.execute("SELECT count(*) FROM vec_embeddings").get == 0
        assert found(core, "zebra quagga", mode="dense") == []


def test_filters_hold_for_parts(folder: Path) -> None:
    with running(folder, Window()) as core:
        add(core, f"{LONG} {END}", "acme")
        add(core, "A crossing of the harbour", "other")
        wait(core)
        assert [hit.namespace for hit in search(core, "zebra quagga", mode="dense", namespace="other")] == ["other"]


@given(st.text(st.sampled_from("ab c.\n!"), max_size=300), st.integers(3, 40))
def test_a_text_is_cut_without_a_gap_and_no_part_is_longer_than_the_room(text: str, room: int) -> None:
    pieces = split(text, lambda part: len(part), room)
    assert "".join(text[start : start + size] for start, size in pieces) == text
    assert len(pieces) == 1 or max(size for _, size in pieces) <= room
    assert len(pieces) > 1 or len(text) <= 1.1 * room


def test_a_text_is_cut_at_the_ends_of_sentences() -> None:
    pieces = split(LONG, WordEmbedder().count_tokens, 100)
    assert all(re.search(r"more\.\s*$", LONG[start : start + size]) for start, size in pieces)
    assert len(split("word " * 100_000, WordEmbedder().count_tokens, 100)) <= 64


def test_what_is_said_before_code_is_found_as_if_it_stood_alone(folder: Path) -> None:
    code = " ".join(f"name{number} = {number};" for number in range(200))
    with running(folder, Window()) as core:
        id = add(core, f"The zebra quagga crossed.\n```\n{code}\n```\nWhy?").id
        add(core, f"The zebra quagga crossed. {code} Why?")
        wait(core)
        best, other = search(core, "the zebra quagga crossed", mode="dense")
        assert best.id == id
        assert best.similarity == pytest.approx(1.0)
        assert (other.similarity or 0.0) < 0.6


@pytest.mark.slow
def test_a_fact_at_the_end_of_a_turn_of_3000_words_is_found_by_meaning(real: Process) -> None:
    """With the default model; the words of the question are others than those of the fact."""
    with real.client(namespace="acme") as client:
        said = [
            f"Step {number} of the report looks at the throughput of queue {number} under load."
            for number in range(215)
        ]
        said[200] = "By the way, our dentist is moving her practice to Lisbon next spring."
        turn = " ".join(said)
        assert len(turn.split()) > 2_900
        client.observe([{"role": "user", "content": turn}], session="s")
        for number in range(30):
            client.observe([{"role": "user", "content": f"We chose the colour {number} for the {number}th fence."}])
        client.consolidate()
        wait_until(lambda: client.status().pending_embeddings == 0, limit_s=120)
        hits = client.search("Where will the tooth doctor go?", mode="dense", type="turn", limit=5)
        assert turn in [hit.content for hit in hits]
