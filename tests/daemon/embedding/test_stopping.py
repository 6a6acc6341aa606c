"""A stop waits for no text that has no vector yet: what waits is embedded after the next start."""

import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memoryd.client.errors import MemorydError, Unavailable
from memoryd.client.protocol import Record
from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding import embedder as embedding
from memoryd.daemon.embedding.bulk import BulkPool
from waiting import wait_until
from workbench import WordEmbedder

if TYPE_CHECKING:
    from conftest import GatedEmbedder, Process

WAITING = 60


class Counting(WordEmbedder):
    """Embeds nothing until its gate opens; counts the texts that it was given."""

    def __init__(self) -> None:
        self.gate, self.given = threading.Event(), 0

    def embed_texts(self, texts: Sequence[str]) -> Any:
        self.given += len(texts)
        assert self.gate.wait(60)
        return super().embed_texts(texts)


def test_texts_not_begun_are_left_and_what_is_asked_for_later_is_embedded() -> None:
    pool, model, failed = BulkPool(), Counting(), list[BaseException]()

    def ask() -> None:
        try:
            pool.embed(model, [f"text {number}" for number in range(WAITING)])
        except BaseException as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_until(lambda: model.given > 0)
    pool.interrupt()
    model.gate.set()
    asking.join(20)
    assert isinstance(failed[0], Unavailable)
    assert model.given < WAITING
    assert all(isinstance(one, np.ndarray) for one in pool.embed(model, ["text 1", "text 59"]))
    pool.close()


def test_a_stop_does_not_wait_for_what_has_no_vector(
    start_daemon: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_CLOSE_LIMIT_S", 0.05)
    daemon = start_daemon()
    model: GatedEmbedder = daemon.embedder
    model.gate.clear()
    with daemon.client() as client:
        times = {"created_at": 1.0, "updated_at": 1.0}
        client.import_memories(
            [Record(id=f"{n:032x}", namespace="", type="fact", content=f"Heron {n}", **times) for n in range(WAITING)]
        )
        wait_until(lambda: model.held > 0)
    daemon.stop()
    daemon.core.close()
    assert not model.gate.is_set()  # nobody embedded anything
    assert not daemon.core.has_ended
    model.gate.set()
    again = Core(daemon.core.folder, Config(), folder, lambda name, where: WordEmbedder())
    again.start()
    wait_until(lambda: again.embedding.count_pending() == 0)
    assert again.embedding.active is not None
    assert len(again.embedding.active.index) == WAITING
    again.close()
    assert again.has_ended


@pytest.mark.slow
def test_a_daemon_ends_soon_while_long_texts_are_added_and_none_that_was_stored_is_lost(real: "Process") -> None:
    chosen = random.Random(4)
    stems = "harbour lantern queue deploy timeout vector ledger heron kettle branch review staging".split()
    words = [f"{chosen.choice(stems)}{chosen.randrange(999)}" for _ in range(90_000)]

    def add(number: int) -> str | None:
        text = " ".join(words[1000 * number :] + words[: 1000 * number])
        with suppress(MemorydError), real.client() as client:
            return client.add(text).id
        return None

    assert real.child is not None
    with ThreadPoolExecutor(WAITING) as pool:
        adding = [pool.submit(add, number) for number in range(WAITING)]
        wait_until(lambda: any(one.done() for one in adding), 60)
        began = time.monotonic()
        real.child.send_signal(signal.SIGTERM)
        assert real.child.wait(60) == 0
        took_s = time.monotonic() - began
        stored = {id for one in adding if (id := one.result())}
    assert took_s < 30.0  # under any load; alone it takes 5 s at most
    real.start()
    with real.client() as client:
        assert stored <= {memory.id for memory in client.list(limit=100)}
