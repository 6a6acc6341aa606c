"""Embedding models behind an API: good, odd, slow and dead servers; what search, add and the queue do then."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from each import each
from embedding_server import WORDS, embeds, of_length, refuses, replies
from memoryd.client.protocol import Get
from memoryd.daemon.config import Config, EmbeddingApiConfig, ModelConfig
from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding import api
from memoryd.daemon.embedding import embedder as module
from memoryd.daemon.embedding.api import ApiEmbedder, Models
from memoryd.daemon.memories import reading
from memoryd.daemon.search import candidates
from memoryd.daemon.system.model_api import Passing, RemoteFailed
from memoryd.models import Calibration, ModelUnreachable, calibrate, edition
from model_server import ModelServer, after, fails, model_server
from workbench import CountingEmbedder, add, add_many, found, running, search, wait_until

NAME = "openai:words"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as made:
        made.will(embeds)
        yield made


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # the models folder of `opened`
    monkeypatch.setattr(api, "calibrate", lambda questions, texts: Calibration(WORDS.floors, {}, edition()))
    monkeypatch.setattr(api, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "_LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(api, "_LEFT_ALONE_S", 0.05)
    monkeypatch.setattr(api, "WAIT_S", 2.0)
    monkeypatch.setattr(api, "TIMEOUT_S", 5.0)
    monkeypatch.setattr(candidates, "EMBED_LIMIT_S", 0.5)
    for name in ("http_proxy", "HTTP_PROXY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def models(server: Any, **settings: Any) -> Models:
    config = EmbeddingApiConfig(**{"url": server.url, **settings})
    return Models(config, lambda name, folder: CountingEmbedder(name))


def opened(server: Any, **settings: Any) -> ApiEmbedder:
    made = models(server, **settings).load(NAME, Path())
    assert isinstance(made, ApiEmbedder)
    return made


def running_on(folder: Path, server: Any, ready: bool = True, name: str = NAME, **settings: Any) -> Any:
    config = Config(model=ModelConfig(name=name))
    return running(folder, models(server, **settings).load, config=config, ready=ready)


# The model -----------------------------------------------------------------------------------------------------------


def test_vectors_are_unit_vectors_in_the_order_of_the_texts(server: ModelServer) -> None:
    model = opened(server)
    texts = ["plums and pears", "the cache", "a gateway of ours"]
    made = model.embed_texts(texts)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, [WORDS.embed_query(text) for text in texts], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(model.embed_query("plums"), WORDS.embed_query("plums"), atol=1e-6)
    assert (model.name, model.dimensions, model.floors) == (NAME, WORDS.dimensions, WORDS.floors)
    assert [request["path"] for request in server.requests] == ["/v1/embeddings"] * 3
    assert server.requests[1]["model"] == "words"
    assert "dimensions" not in server.requests[1]


def test_dimensions_are_asked_for_and_expected(server: ModelServer) -> None:
    opened(server, dimensions=64)
    assert server.requests[-1]["dimensions"] == 64
    with pytest.raises(ModelUnreachable, match="vectors of 64 numbers instead of 256; set `dimensions`"):
        opened(server, dimensions=256)
    model = opened(server)
    server.will(of_length(8))
    with pytest.raises(RemoteFailed, match="vectors of 8 numbers instead of 64"):
        model.embed_texts(["a", "b"])


def test_a_model_is_calibrated_once_in_few_requests(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def count(embed_questions: Any, embed_texts: Any) -> Calibration:
        calls.append(1)
        return calibrate(embed_questions, embed_texts)

    monkeypatch.setattr(api, "calibrate", count)
    monkeypatch.setattr(api, "BATCH", 100)
    floors = opened(server).floors
    assert 0 < floors.related < floors.join < floors.merge < 1
    assert len(server.requests) < 10
    assert all(len(request["input"]) <= 100 for request in server.requests)
    server.requests.clear()
    assert opened(server).floors == floors
    assert [request["input"] for request in server.requests] == [["dimensions"]]
    assert calls == [1]


def test_a_model_that_was_never_calibrated_waits_for_its_server(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "calibrate", calibrate)
    server.will(fails(503))
    with pytest.raises(ModelUnreachable, match="503"):
        opened(server, dimensions=64)


def test_the_fingerprint_changes_with_address_model_and_dimensions(server: ModelServer) -> None:
    server.will(of_length(8))
    one = models(server).load(NAME, Path()).fingerprint
    assert one == models(server).load(NAME, Path()).fingerprint
    others = {
        models(server).load("openai:other", Path()).fingerprint,
        models(server, url=f"{server.url}/").load(NAME, Path()).fingerprint,
    }
    server.will(of_length(16))
    others.add(models(server).load(NAME, Path()).fingerprint)
    assert len(others | {one}) == 4


@each(
    "data",
    [
        {},
        [],
        {"data": []},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": "no"}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": [0.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": [1e308, 1e308]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]},
    ],
)
def test_an_answer_that_is_none_is_one_sentence(server: ModelServer, data: Any) -> None:
    server.will(replies(data))
    with pytest.raises(ModelUnreachable, match=r"^The embedding server[^\n]*\.$"):
        opened(server)


def test_an_answer_nested_deeper_than_a_parser_follows_is_one_sentence(server: ModelServer) -> None:
    server.will(fails(200, b'{"more": ' + b"[" * 5000 + b"]" * 5000 + b', "data": []}'))
    with pytest.raises(ModelUnreachable, match=r"not one of the embeddings API\.$"):
        opened(server)


def test_the_key_comes_from_a_file_or_the_environment(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened(server)
    assert "Authorization" not in server.headers[-1]
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    opened(server)
    assert server.headers[-1]["Authorization"] == "Bearer from-env"
    (tmp_path / "key").write_text("from-file\n")
    opened(server, key_file=str(tmp_path / "key"))
    assert server.headers[-1]["Authorization"] == "Bearer from-file"
    with pytest.raises(ModelUnreachable, match="key file"):
        opened(server, key_file=str(tmp_path / "none"))


def test_long_texts_are_cut_and_tokens_are_overestimated(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_TOKENS", 10)
    model = opened(server)
    model.embed_texts(["ä" * 100, "x" * 5])
    assert server.requests[-1]["input"] == ["ä" * 10, "x" * 5]
    assert [model.count_tokens(text) for text in ("", "a", "four", "ä")] == [0, 1, 2, 1]


def test_a_batch_is_tried_again_and_a_hurried_text_is_not(server: ModelServer) -> None:
    model = opened(server)
    server.will(fails(429, Retry_After="0"), fails(503), embeds)
    assert model.embed_batch(["a", "b"]).shape == (2, 64)
    server.will(fails(429), embeds)
    with pytest.raises(Passing, match="429"):
        model.embed_query("a")


def test_a_failing_server_is_left_alone_for_a_moment(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_LEFT_ALONE_S", 60.0)
    model = opened(server)
    server.will(fails(500))
    asked = len(server.requests)
    for _ in range(3):
        with pytest.raises(Passing, match="500"):
            model.embed_query("a")
    with pytest.raises(Passing, match=r"answered 500\. It failed 3 times and is left alone"):
        model.embed_query("a")
    assert len(server.requests) == asked + 3


def test_after_the_close_nothing_is_asked(server: ModelServer) -> None:
    both = models(server)
    model = both.load(NAME, Path())
    server.will(after(5.0, embeds))
    failed: list[Exception] = []

    def ask() -> None:
        try:
            model.embed_query("a")
        except Passing as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    asked = len(server.requests)
    thread.start()
    wait_until(lambda: len(server.requests) > asked)
    both.close()
    thread.join(2.0)
    assert failed
    with pytest.raises(Passing, match="stopping"):
        model.embed_query("a")


# In the daemon -------------------------------------------------------------------------------------------------------


def test_many_are_embedded_in_batches_and_one_bad_text_spoils_no_other(
    folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "BATCH", 4)
    with running_on(folder, server) as core:
        server.requests.clear()
        server.will(refuses("poison"))
        texts = [f"plum number {number}" for number in range(10)] + ["a poison plum"]
        made = add_many(core, texts, dedup=False)
        assert [one.embedded for one in made.results] == [True] * 10 + [False]
        assert max(len(request["input"]) for request in server.requests) == 4
        assert core.embedding.report_state().error == ""
        server.will(embeds)
        wait_until(lambda: core.embedding.count_pending() == 0)


def test_a_dead_server_leaves_searches_and_adds_to_words_and_the_queue(folder: Path, server: ModelServer) -> None:
    with running_on(folder, server) as core:
        add(core, "We use Valkey as the cache")
        server.will(fails(503))
        added = add(core, "The gateway has a limit of 100")
        assert not added.embedded
        hits = search(core, "gateway limit")
        assert (hits.degraded, [hit.content for hit in hits]) == (["vector"], ["The gateway has a limit of 100"])
        wait_until(lambda: "503" in core.embedding.report_state().error)
        assert core.embedding.report_state().state == "ready"
        assert core.embedding.count_pending() == 1
        server.will(embeds)
        wait_until(lambda: core.embedding.count_pending() == 0)
        wait_until(lambda: core.embedding.report_state().error == "")
        wait_until(lambda: search(core, "limit of the gateway, once more").degraded == [])


@pytest.mark.slow
def test_a_slow_server_holds_no_search_beyond_its_limit(folder: Path, server: ModelServer) -> None:
    with running_on(folder, server) as core:
        add(core, "We use Valkey as the cache")
        server.will(after(30.0, embeds))
        began = time.monotonic()
        hits = search(core, "which cache")
        assert hits.degraded == ["vector"]
        assert time.monotonic() - began < 20.0
        assert [hit.content for hit in hits] == ["We use Valkey as the cache"]
        hits = search(core, "which Valkey", deadline_ms=50)
        assert (hits.degraded, len(hits)) == (["vector"], 1)


def test_a_server_that_changes_its_dimensions_is_told_and_nothing_wrong_is_kept(
    folder: Path, server: ModelServer
) -> None:
    with running_on(folder, server) as core:
        one = add(core, "We use Valkey as the cache").id
        server.will(of_length(8))
        assert not add(core, "The gateway has a limit").embedded
        wait_until(lambda: "instead of 64" in core.embedding.report_state().error)
        assert reading.get(core, Get(id=one)).id == one
        assert found(core, "gateway limit") == ["The gateway has a limit"]


def test_a_server_that_is_dead_at_the_start_is_waited_for(folder: Path, server: ModelServer) -> None:
    server.will(fails(503))
    with running_on(folder, server, ready=False) as core:
        add(core, "We use Valkey as the cache")
        wait_until(lambda: core.embedding.report_state().state == "failed")
        assert "503" in core.embedding.report_state().error
        assert search(core, "Valkey").degraded == ["vector"]
        server.will(embeds)
        wait_until(lambda: core.embedding.count_pending() == 0)


def test_with_known_dimensions_a_dead_server_hinders_no_start(folder: Path, server: ModelServer) -> None:
    with running_on(folder, server, dimensions=64) as core:
        add(core, "We use Valkey as the cache")
    server.will(fails(503))
    with running_on(folder, server, dimensions=64) as core:
        assert core.embedding.report_state().state == "ready"
        assert core.embedding.count_pending() == 0
        assert found(core, "Valkey") == ["We use Valkey as the cache"]


def vector_count(core: Core) -> int:
    with core.store.reading() as connection:
        found: Any = connection.execute("SELECT count(*) FROM vec_embeddings").get
    return int(found)


def test_another_address_or_length_embeds_everything_anew(folder: Path, server: ModelServer) -> None:
    with running_on(folder, server) as core:
        add(core, "We use Valkey as the cache")
    server.requests.clear()
    with running_on(folder, server) as core:
        wait_until(lambda: core.embedding.count_pending() == 0)
        assert [request["input"] for request in server.requests] == [["dimensions"]], "nothing is embedded twice"
    with running_on(folder, server, url=server.url + "/") as core:
        wait_until(lambda: core.embedding.count_pending() == 0 and vector_count(core) == 1)
        assert ["We use Valkey as the cache"] in [request["input"] for request in server.requests]


def test_a_switch_to_a_dead_server_keeps_the_present_model(folder: Path, server: ModelServer) -> None:
    with running_on(folder, server, name="local") as core:
        add(core, "We use Valkey as the cache")
        server.will(fails(401, b"no key"))
        core.embedding.use(NAME)
        wait_until(lambda: "401: no key" in core.embedding.report_state().error)
        assert (core.embedding.report_state().name, core.embedding.report_state().state) == ("local", "ready")
        assert search(core, "Valkey").degraded == []
