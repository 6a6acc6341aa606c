"""A change of model: search goes on with the old vectors, what is written meanwhile is there after it, old ones go."""

import threading
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from memoryd.client.errors import ModelUnavailable
from memoryd.daemon.config import Config
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding import embedder as module
from memoryd.models import Floors, ModelBroken, ModelMissing
from workbench import CountingEmbedder, add, delete, disk_and_memory, found, running, search, undo, update, wait_until

OLD = Config().model.name


class Models:
    """Two models whose vectors cannot be compared: `old` and `new`."""

    def __init__(self) -> None:
        self.old = CountingEmbedder(OLD, "f-old")
        self.new = CountingEmbedder("new", "f-new", turn=7)
        self.broken: Exception | None = None

    def __call__(self, name: str, folder: Path) -> Any:
        if name == "new" and self.broken:
            raise self.broken
        return {OLD: self.old, "new": self.new}[name]


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setattr(module, "installed", lambda folder: [OLD, "new"])
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "_LONGEST_PAUSE_S", 0.05)
    return Models()


def fill(core: Core, count: int = 40) -> None:
    for number in range(count):
        add(core, f"Note {number} about herons")


def count_reembedded(core: Core) -> int:
    progress = core.embedding.report_state().reembedding
    return progress.done if progress else 0


def vectors_of(core: Core) -> dict[str, int]:
    with core.store.reading() as connection:
        return dict(
            connection.execute(
                "SELECT m.name || ' ' || m.fingerprint, count(e.id) FROM models m"
                " LEFT JOIN vec_embeddings e ON e.model = m.id GROUP BY m.id"
            ).fetchall()
        )


def test_search_answers_on_the_old_vectors_until_the_swap_and_on_the_new_ones_after_it(
    folder: Path, models: Models
) -> None:
    with running(folder, models) as core:
        fill(core)
        models.new.gate.clear()
        core.embedding.use("new")
        wait_until(lambda: bool(models.new.texts))
        hits = search(core, "note 7 about herons")
        assert (hits[0].similarity, hits.degraded) == (pytest.approx(1.0, abs=1e-5), [])
        state = core.embedding.report_state()
        assert (state.name, state.state) == (OLD, "ready")
        assert state.reembedding is not None
        assert (state.reembedding.stage, state.reembedding.total) == ("new", 40)
        models.new.gate.set()
        wait_until(lambda: core.embedding.report_state().name == "new")
        assert core.embedding.report_state().reembedding is None
        asked = len(models.old.queries)
        hits = search(core, "note 7 about herons")
        assert (hits[0].content, hits[0].similarity) == ("Note 7 about herons", pytest.approx(1.0, abs=1e-5))
        assert (len(models.old.queries), models.new.queries) == (asked, ["note 7 about herons"])
        assert vectors_of(core) == {"new f-new": 40}
        assert disk_and_memory(core)[0] == disk_and_memory(core)[1]
    with running(folder, models) as core:  # the database remembers its model
        assert core.embedding.report_state().name == "new"


def test_what_is_written_during_the_change_is_there_before_and_after_it(folder: Path, models: Models) -> None:
    with running(folder, models) as core:
        fill(core)
        gone, changed = add(core, "Storks nest"), add(core, "Cranes dance")
        models.new.gate.clear()
        core.embedding.use("new")
        wait_until(lambda: bool(models.new.texts))
        added = add(core, "Egrets wade in shallow water")
        delete(core, gone.id)
        update(core, changed.id, content="Ibises probe the mud")
        back = add(core, "Bitterns boom")
        delete(core, back.id)
        undo(core)
        for query in ("egrets wade in shallow water", "ibises probe the mud", "bitterns boom"):
            assert search(core, query)[0].similarity == pytest.approx(1.0, abs=1e-5)
        models.new.gate.set()
        wait_until(lambda: core.embedding.report_state().name == "new" and core.embedding.count_pending() == 0)
        for query in ("egrets wade in shallow water", "ibises probe the mud", "bitterns boom"):
            assert search(core, query)[0].similarity == pytest.approx(1.0, abs=1e-5)
        assert "Storks nest" not in found(core, "storks nest")
        assert add(core, "egrets wade in shallow water").id == added.id
        stored, held = disk_and_memory(core)
        assert stored == held
        assert len(held) == 43


def test_a_restart_in_the_middle_goes_on_where_it_was(folder: Path, models: Models) -> None:
    class Halting(CountingEmbedder):
        def embed_texts(self, texts: Any) -> Any:
            if len(self.texts) >= 10:
                raise RuntimeError("stop here")
            return super().embed_texts(texts)

    whole = models.new
    models.new = Halting("new", "f-new", turn=7)
    with running(folder, models) as core:
        fill(core)
        core.embedding.use("new")
        wait_until(lambda: len(models.new.texts) >= 10 and count_reembedded(core) > 0)
        assert core.embedding.report_state().name == OLD
    half = set(models.new.texts)
    models.new = whole
    with running(folder, models) as core:
        wait_until(lambda: core.embedding.report_state().name == "new")
        assert core.embedding.count_pending() == 0
        kept = 40 - len(whole.texts)
        assert 0 < kept <= len(half)
        assert vectors_of(core) == {"new f-new": 40}


def test_a_model_of_the_same_name_that_makes_other_vectors_embeds_everything_anew(folder: Path, models: Models) -> None:
    with running(folder, models) as core:
        fill(core, 5)
    models.old = CountingEmbedder(OLD, "f-retrained", turn=3)
    models.old.gate.clear()
    with running(folder, models) as core:
        wait_until(lambda: bool(models.old.texts))
        hits = search(core, "note", limit=10, deadline_ms=1)
        assert [hit.similarity for hit in hits] == [None] * len(hits)  # never compared with the vectors of the former
        models.old.gate.set()
        wait_until(lambda: core.embedding.count_pending() == 0)
        assert len(models.old.texts) == 5
        assert search(core, "note 3 about herons")[0].similarity == pytest.approx(1.0, abs=1e-5)
        assert vectors_of(core) == {f"{OLD} f-retrained": 5}


def test_a_text_that_the_new_model_cannot_embed_does_not_keep_the_old_one(folder: Path, models: Models) -> None:
    models.old._made = models.old._vector  # type: ignore[method-assign]
    with running(folder, models) as core:
        fill(core, 10)
        add(core, "poison ivy")
        core.embedding.use("new")
        wait_until(lambda: core.embedding.report_state().name == "new")
        assert core.embedding.count_pending() == 1
        assert found(core, "ivy")[0] == "poison ivy"


def test_a_text_that_the_old_model_cannot_embed_does_not_hold_up_the_new_one(folder: Path, models: Models) -> None:
    models.new._made = models.new._vector  # type: ignore[method-assign]
    with running(folder, models) as core:
        add(core, "poison ivy")
        wait_until(lambda: core.embedding.count_pending() == 1)
        core.embedding.use("new")
        wait_until(lambda: core.embedding.report_state().name == "new" and core.embedding.count_pending() == 0)
        assert search(core, "poison ivy")[0].similarity == pytest.approx(1.0)


def test_a_new_model_that_fails_on_everything_does_not_replace_one_that_works(folder: Path, models: Models) -> None:
    models.new.broken = True
    with running(folder, models) as core:
        fill(core, 5)
        core.embedding.use("new")
        wait_until(lambda: len(models.new.texts) >= 15)  # it was tried, and tried again
        assert core.embedding.report_state().name == OLD
        assert search(core, "note 3 about herons").degraded == []
        models.new.broken = False
        wait_until(lambda: core.embedding.report_state().name == "new")


def test_a_new_model_that_cannot_be_loaded_is_shown_and_what_is_added_is_embedded_all_the_same(
    folder: Path, models: Models
) -> None:
    models.broken = ModelBroken("the file is cut off")
    with running(folder, models) as core:
        core.embedding.use("new")
        wait_until(lambda: core.embedding.report_state().error == "the file is cut off")
        assert (core.embedding.report_state().name, core.embedding.report_state().state) == (OLD, "ready")
        models.old.broken = True
        add(core, "Herons fish at dawn")
        wait_until(lambda: bool(core.embedding._list_failing()))  # the thread has tried it, too
        models.old.broken = False
        wait_until(lambda: core.embedding.count_pending() == 0)
        models.broken = None
        wait_until(lambda: core.embedding.report_state().name == "new")
        assert core.embedding.report_state().error == ""


def test_going_back_to_the_present_model_gives_up_the_change(folder: Path, models: Models) -> None:
    with running(folder, models) as core:
        fill(core, 20)
        models.new.gate.clear()
        core.embedding.use("new")
        wait_until(lambda: bool(models.new.texts))
        core.embedding.use(OLD)
        models.new.gate.set()
        wait_until(lambda: core.embedding.report_state().reembedding is None)
        wait_until(lambda: vectors_of(core) == {f"{OLD} f-old": 20})
        assert core.embedding.report_state().name == OLD
    with running(folder, models) as core:
        assert core.embedding.report_state().name == OLD


def test_when_the_present_model_cannot_be_loaded_another_takes_its_place_at_once(folder: Path, models: Models) -> None:
    with running(folder, models) as core:
        fill(core, 5)

    def load(name: str, where: Path) -> Any:
        if name == OLD:
            raise ModelMissing("removed")
        return models(name, where)

    with running(folder, load, ready=False) as core:
        wait_until(lambda: core.embedding.report_state().state == "missing")
        core.embedding.use("new")
        wait_until(lambda: core.embedding.report_state().name == "new" and core.embedding.count_pending() == 0)
        assert search(core, "note 3 about herons")[0].similarity == pytest.approx(1.0, abs=1e-5)
        assert vectors_of(core) == {"new f-new": 5}


def test_a_restart_in_the_middle_that_finds_the_old_model_gone_fetches_the_old_one(
    folder: Path, models: Models
) -> None:
    models.new.gate.clear()
    with running(folder, models) as core:
        fill(core, 3)
        core.store.set_setting("next_model", "new").result()
    fetched: list[str] = []

    def load(name: str, where: Path) -> Any:
        if name == OLD and OLD not in fetched:
            raise ModelMissing("removed")
        return models(name, where)

    with running(folder, load, fetch=lambda name, *_: fetched.append(name)) as core:
        assert (core.embedding.report_state().name, fetched) == (OLD, [OLD])
        models.new.gate.set()
        wait_until(lambda: core.embedding.report_state().name == "new")


def test_a_model_that_is_not_installed_is_refused_and_nothing_changes(folder: Path, models: Models) -> None:
    with running(folder, models) as core:
        with pytest.raises(ModelUnavailable, match="not installed; run: memctl model pull static"):
            core.embedding.use("static")
        with pytest.raises(ModelUnavailable, match="neither installed nor in the catalogue: `memctl model list`"):
            core.embedding.use("gpt-4")
        assert core.store.read_setting("next_model") is None


def test_an_add_that_was_embedded_just_before_the_swap_is_written_just_after_it(folder: Path, models: Models) -> None:
    with running(folder, models) as core:
        fill(core, 3)
        old = core.embedding.active
        assert old is not None
        core.embedding.use("new")
        wait_until(lambda: core.embedding.report_state().name == "new")
        stale = (old, models.old._made("Storks nest"))
        core.embedding.embed_text = lambda text: stale  # type: ignore[method-assign, assignment]
        added = add(core, "Storks nest")
        assert added.outcome == "created"
        wait_until(lambda: core.embedding.count_pending() == 0)
        assert search(core, "storks nest")[0].similarity == pytest.approx(1.0, abs=1e-5)
        assert vectors_of(core) == {"new f-new": 4}


class CrowdedEmbedder(CountingEmbedder):
    """A model of which unlike texts have cosines of 0.8 and more: a part of each vector is the same."""

    shared = 4.0  # cosines are (c + 4) / 5
    floors = Floors(*((floor + 4.0) / 5.0 for floor in msgspec.structs.astuple(CountingEmbedder.floors)))

    def _made(self, text: str) -> Any:
        vector = super()._made(text)
        vector[0] = 0.0
        vector /= np.linalg.norm(vector)
        vector[0] = self.shared**0.5
        return vector / np.linalg.norm(vector)


def test_there_and_back_nothing_is_lost_or_merged_and_searches_answer_all_the_time(
    folder: Path, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "new", CrowdedEmbedder("new", "f-new", turn=7))
    limits = [f"The gateway of tenant{number} waits {seconds} seconds" for number in range(20) for seconds in (3, 9)]
    answers: list[tuple[str, list[str]]] = []
    failures: list[BaseException] = []
    stopping = threading.Event()

    def keep_asking(core: Core) -> None:
        try:
            for text in cycle(limits):
                hits = search(core, text, limit=5)
                answers.append((text, [hit.content for hit in hits]))
                assert not hits.degraded
                if stopping.is_set():
                    return
        except BaseException as error:
            failures.append(error)

    with running(folder, models) as core:
        ids = {add(core, text).id for text in limits}
        assert len(ids) == len(limits)
        thread = threading.Thread(target=keep_asking, args=(core,))
        thread.start()
        try:
            for number, name in enumerate(("new", OLD, "new", OLD)):
                before = len(answers)
                core.embedding.use(name)
                wait_until(lambda name=name: core.embedding.report_state().name == name)  # type: ignore[misc]
                looks_alike = f"The gateway of tenant{number} waits 6 seconds"
                assert add(core, looks_alike).outcome == "created"
                assert add(core, limits[number]).outcome == "merged"
                wait_until(lambda before=before: len(answers) > before or bool(failures))  # type: ignore[misc]
        finally:
            stopping.set()
            thread.join()
        assert failures == []
        assert all(text in contents for text, contents in answers)
        kept, _ = disk_and_memory(core)
        assert len(kept) == len(limits) + 4
        assert {hit.id for text in limits for hit in search(core, text, limit=5)} >= ids
