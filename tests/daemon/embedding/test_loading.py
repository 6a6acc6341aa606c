"""Loading: a model that fails, is missing or comes late; what search and status say meanwhile."""

import threading
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.errors import ModelUnavailable
from memoryd.client.protocol import Get, GetStats
from memoryd.daemon.config import Config, ModelConfig
from memoryd.daemon.embedding import embedder as module
from memoryd.daemon.memories import reading
from memoryd.models import ModelBroken, ModelMissing
from workbench import CountingEmbedder, add, found, running, search, wait_until


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "_LONGEST_PAUSE_S", 0.05)


class Loader:
    """Fails until it is mended; counts its calls."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.calls = 0
        self.embedder = CountingEmbedder()

    def __call__(self, name: str, folder: Path) -> Any:
        self.calls += 1
        if self.error:
            raise self.error
        return self.embedder


@pytest.mark.parametrize("error", [ModelBroken("the file is cut off"), OSError("disk"), RuntimeError("session")])
def test_a_load_that_fails_is_shown_and_tried_again_until_it_succeeds(
    folder: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    loader = Loader(error)
    with running(folder, loader, ready=False) as core:
        wait_until(lambda: loader.calls >= 3)
        wait_until(lambda: core.embedding.report_state().state == "failed")
        state = core.embedding.report_state()
        assert (state.error, state.attempts >= 2, state.dimensions, state.format) == (str(error), True, None, "")
        loader.error = None
        wait_until(lambda: core.embedding.report_state().state == "ready")
        state = core.embedding.report_state()
        assert (state.error, state.attempts >= 3, state.dimensions, state.format) == ("", True, 64, "words/1")
        assert search(core, "anything").degraded == []
    assert len([record for record in caplog.records if "uses words alone" in record.message]) == 1


def test_a_missing_model_is_fetched_again_and_again_and_then_loaded(folder: Path) -> None:
    loader = Loader(ModelMissing("it is not installed"))
    fetched: list[str] = []
    states: list[str] = []
    opened = threading.Event()

    def fetch(name: str, where: Path, closing: threading.Event) -> None:
        fetched.append(name)
        assert opened.wait(60)
        states.append(core.embedding.report_state().state)
        if len(fetched) < 3:
            raise ModelUnavailable("no network")
        loader.error = None

    with running(folder, loader, fetch=fetch, ready=False) as core:
        opened.set()
        wait_until(lambda: core.embedding.report_state().state == "ready")
    assert fetched == [Config().model.name] * 3
    assert set(states) == {"fetching"}


def test_a_missing_model_is_not_fetched_when_that_is_switched_off(folder: Path) -> None:
    fetched: list[str] = []
    loader = Loader(ModelMissing("it is not installed"))
    config = Config(model=ModelConfig(fetch=False))
    with running(folder, loader, fetch=lambda name, *_: fetched.append(name), config=config, ready=False) as core:
        wait_until(lambda: loader.calls >= 3)
        wait_until(lambda: core.embedding.report_state().state == "missing")
        assert core.embedding.report_state().error == "it is not installed"
    assert fetched == []


def test_without_a_model_different_questions_get_different_answers_by_their_words(folder: Path) -> None:
    with running(folder, Loader(ModelMissing("")), ready=False) as core:
        for text in ("Herons fish at dawn", "The budget is due in May", "Valkey caches sessions"):
            assert not add(core, text).embedded
        answers = [
            search(core, query) for query in ("where do herons fish", "when is the budget due", "what caches sessions")
        ]
        assert [answer.hits[0].content for answer in answers] == [
            "Herons fish at dawn",
            "The budget is due in May",
            "Valkey caches sessions",
        ]
        assert all(len(answer.hits) == 1 and answer.degraded == ["vector"] for answer in answers)
        assert [answer.hits[0].similarity for answer in answers] == [None] * 3
        assert search(core, "elephants").hits == []


def test_what_is_added_without_a_model_is_found_by_words_at_once_counted_and_embedded_later(folder: Path) -> None:
    loader = Loader(ModelMissing(""))
    with running(folder, loader, ready=False) as core:
        for number in range(70):
            add(core, f"Note {number} about herons")
        assert found(core, "note 42")[0] == "Note 42 about herons"
        assert core.embedding.count_pending() is None
        assert reading.stats(core, GetStats()).pending_embeddings == 70
        loader.error = None
        wait_until(lambda: core.embedding.count_pending() == 0)
        assert sorted(loader.embedder.texts) == sorted(f"Note {number} about herons" for number in range(70))
        hits = search(core, "note 42 about herons")
        assert (hits.degraded, hits[0].content) == ([], "Note 42 about herons")
        assert hits[0].similarity == pytest.approx(1.0, abs=1e-5)
        assert reading.stats(core, GetStats()).embedded == 70


def test_what_was_embedded_before_a_restart_is_not_embedded_again_and_the_rest_is(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        add(core, "Herons fish at dawn")
    with running(folder, Loader(ModelMissing("")), ready=False) as core:
        add(core, "Storks nest on roofs")
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        wait_until(lambda: core.embedding.count_pending() == 0)
        assert embedder.texts == ["Storks nest on roofs"]
        assert search(core, "herons")[0].similarity is not None


def test_a_text_that_cannot_be_embedded_holds_up_no_other_and_is_tried_again(folder: Path) -> None:
    loader = Loader(ModelMissing(""))
    with running(folder, loader, ready=False) as core:
        for number in range(50):
            add(core, f"Note {number} {'poison' if number in (0, 20) else ''}")
        loader.error = None
        wait_until(lambda: core.embedding.count_pending() == 2)
        tried = loader.embedder.texts.count("Note 20 poison")
        wait_until(lambda: loader.embedder.texts.count("Note 20 poison") > tried + 1)
        assert loader.embedder.texts.count("Note 7 ") == 1
        assert found(core, "poison", limit=2) == ["Note 20 poison", "Note 0 poison"]
        assert add(core, "Note 51 is good").embedded
        loader.embedder._made = loader.embedder._vector  # type: ignore[method-assign]
        wait_until(lambda: core.embedding.count_pending() == 0)


@pytest.mark.parametrize("few", [0, 256])
def test_an_add_whose_text_cannot_be_embedded_is_kept_and_found_by_words(
    folder: Path, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.daemon.embedding.generation._FEW", few)
    with running(folder, CountingEmbedder()) as core:
        added = add(core, "poison ivy in the garden")
        assert (added.outcome, added.embedded) == ("created", False)
        assert found(core, "ivy") == ["poison ivy in the garden"]
        assert core.embedding.count_pending() == 1
        assert search(core, "garden").degraded == ["pending_embeddings"]
        add(core, "an orchard", namespace="acme")
        assert search(core, "garden", namespace="acme", reach="exact").degraded == [], "that text is out of reach"


def test_a_model_that_fails_on_a_query_leaves_the_words(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        add(core, "Herons fish at dawn")
        hits = search(core, "poison herons")
        assert ([hit.content for hit in hits], hits.degraded) == (["Herons fish at dawn"], ["vector"])


def test_closing_while_the_model_loads_or_pauses_ends_at_once(folder: Path) -> None:
    for error in (ModelMissing(""), None):
        loader = Loader(error or ModelBroken(""))
        loader.error = error
        for _ in range(20):
            with running(folder, loader, ready=False):
                pass


def test_a_repair_reads_the_vectors_anew_without_leaving_the_old_ones_before(folder: Path) -> None:
    embedder = CountingEmbedder()
    with running(folder, embedder) as core:
        added = add(core, "Herons fish at dawn")
        before = core.embedding.active
        assert before is not None
        core.store.write(lambda transaction: transaction.connection.execute("DELETE FROM vec_embeddings")).result()
        core.embedding.rebuild()
        wait_until(lambda: core.embedding.active is not before and core.embedding.count_pending() == 0)
        assert embedder.texts == ["Herons fish at dawn"] * 2
        assert search(core, "herons")[0].similarity is not None
        assert reading.get(core, Get(id=added.id)).content == "Herons fish at dawn"
