"""Large memories within reach: every reply fits into a frame, what is long comes shortened, `get` returns the whole."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memoryd.client import Client
from memoryd.client.errors import Invalid
from memoryd.client.protocol import GetContext, NewMemory
from memoryd.daemon.context import counting
from memoryd.daemon.server.envelope import FIT_BYTES, shorten
from workbench import Daemon

MANY = 23
LARGE = 960_000


def large(number: int) -> str:
    return f"The kettle number {number} is {'x' * LARGE}"


@pytest.fixture
def client(start_daemon: "Callable[..., Daemon]") -> Iterator[Client]:
    """A client that has added many large memories and a small one."""
    with start_daemon().client() as client:
        for number in range(MANY):
            client.add_many([NewMemory(content=large(number))], dedup=False)
        client.add("The kettle is small")
        yield client


@pytest.mark.slow
def test_a_reply_that_would_be_too_large_comes_with_its_longest_contents_shortened(client: Client) -> None:
    for found in (client.list(limit=100), client.search("kettle", limit=40), client.explain("kettle", limit=40).hits):
        assert len(found) == MANY + 1
        cut = [memory for memory in found if memory.content_bytes is not None]
        assert [memory.content for memory in found if memory not in cut] == ["The kettle is small"]
        for memory in cut:
            mark = f" … [shortened, {memory.content_bytes:,} bytes in all; `get` returns the whole]"
            assert memory.content.endswith(mark)
            whole = client.get(memory.id).content
            assert whole == large(int(memory.content.split()[3]))
            assert memory.content_bytes == len(whole)
    assert [memory.content_bytes for memory in client.list(limit=10)] == [None] * 10  # these fit


@pytest.mark.slow
def test_history_and_turns_that_would_be_too_large_are_returned(start_daemon: "Callable[..., Daemon]") -> None:
    with start_daemon().client() as client:
        id = client.add("The kettle is small").id
        for number in range(12):
            client.update(id, content=large(number))
        changes = list(client.history(id))
        assert len(changes) == 13
        assert "shortened" in changes[-1].changed["content"][0]
        for start in (0, 10):
            said = [f"We decided on kettle {number}, {'y' * LARGE}" for number in range(start, start + 10)]
            client.observe([{"role": "user", "content": text} for text in said], session="s")
        assert len(client.turns(limit=100).turns) == 20


@pytest.mark.slow
def test_a_context_cuts_what_cannot_fit_before_it_counts_tokens(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def count(counter: Any, text: str) -> int:
        counted.append(len(text))
        return sum(map(counter.of_slice, counting.slice_text(text)))

    monkeypatch.setattr(counting.Counter, "count", count)
    made = client.call(GetContext(task="kettle", max_tokens=400))
    assert made.tokens <= 400
    assert made.ids
    assert max(counted) < LARGE / 10


def test_too_many_parts_are_refused_with_what_to_do() -> None:
    with pytest.raises(Invalid, match="ask for fewer with `limit`"):
        shorten({"items": [{"a": "x" * 40} for _ in range(400_000)]}, 17_000_000)


def test_only_the_longest_texts_are_cut_and_all_fits() -> None:
    texts = ["short", "ü" * 100_000, "y" * FIT_BYTES, "z" * FIT_BYTES]
    made = shorten({"texts": texts}, sum(len(text.encode()) for text in texts))
    assert made["texts"][:2] == texts[:2]
    assert sum(len(text.encode()) for text in made["texts"]) <= FIT_BYTES
    assert all(text.endswith("whole]") for text in made["texts"][2:])
