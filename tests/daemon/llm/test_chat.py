"""A language model over the chat API: good, odd, slow, refusing and dead servers."""

import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from each import each
from memoryd.daemon.config import LlmConfig
from memoryd.daemon.llm import chat
from memoryd.daemon.llm.chat import Chat, ChatFailed, Ledger
from memoryd.daemon.llm.llm import Llm
from model_server import ModelServer, after, drips, fails, says


class Answer(msgspec.Struct):
    words: list[str]


GOOD = says({"words": ["a", "b"]})


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "MEMORYD_LLM_KEY"):
        monkeypatch.delenv(name, raising=False)


def made(server: ModelServer, **settings: Any) -> Chat:
    config = LlmConfig(**{"url": server.url, "model": "tiny", **settings})
    return Chat(config, Ledger(None, lambda text: None).spend)


def ask(model: Chat) -> list[str]:
    return model.ask("Name words.", {"when": "now"}, Answer).words


def test_an_answer_comes_back_as_its_struct(server: ModelServer) -> None:
    server.will(GOOD)
    model = made(server)
    assert ask(model) == ["a", "b"]
    [request] = server.requests
    assert (request["path"], request["model"]) == ("/v1/chat/completions", "tiny")
    assert request["response_format"]["json_schema"]["schema"] == msgspec.json.schema(Answer)
    assert request["messages"][1] == {"role": "user", "content": '{"when":"now"}'}
    assert (model.usage.requests, model.usage.answers, model.usage.tokens_in, model.usage.tokens_out) == (1, 1, 100, 20)


@each(
    "said",
    [
        '```json\n{"words": ["a", "b"]}\n```',
        'Sure! Here it is: {"words": ["a", "b"]}',
        '{"words": ["a", "b",]}',
        "{'words': ['a', 'b']}",
        '{"words": ["a", "b"]',
        '{"words": ["a", "b"], }',
    ],
)
def test_near_json_is_repaired_and_counted(server: ModelServer, said: str) -> None:
    server.will(says(said))
    model = made(server)
    assert ask(model) == ["a", "b"]
    assert (model.usage.repaired, model.usage.failures) == (1, 0)


@each(
    "odd",
    [
        says("no idea"),
        says({"sentences": []}),
        says(""),
        says("[" * 5000),
        says('{"words": ["a"], "more": ' + "[" * 5000 + "]" * 5000 + "}"),
        fails(200, b'{"choices": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
        fails(200, b"<html>hello</html>"),
        fails(200, b"{}"),
        fails(200, b'{"choices": []}'),
        fails(200, b'{"choices": [{"message": {"content": null}}]}'),
    ],
)
def test_what_makes_no_sense_is_asked_again_and_then_fails(server: ModelServer, odd: Any) -> None:
    server.will(odd, GOOD)
    model = made(server)
    assert ask(model) == ["a", "b"]
    assert model.usage.retries == 1
    server.will(odd)
    with pytest.raises(ChatFailed):
        ask(model)
    assert model.usage.failures == 1
    assert model.usage.last_error


@each("status", [408, 429, 500, 503])
def test_a_passing_failure_is_tried_again(server: ModelServer, status: int) -> None:
    server.will(fails(status), fails(status), GOOD)
    before = len(server.requests)
    assert ask(made(server)) == ["a", "b"]
    assert len(server.requests) == before + 3


def test_a_server_that_says_when_is_waited_for(server: ModelServer) -> None:
    server.will(fails(429, Retry_After="1"), GOOD)
    began = time.monotonic()
    assert ask(made(server)) == ["a", "b"]
    assert time.monotonic() - began >= 1.0


@each("status", [401, 403, 404])
def test_a_lasting_failure_is_not_tried_again(server: ModelServer, status: int) -> None:
    server.will(fails(status, b"wrong key"))
    before = len(server.requests)
    with pytest.raises(ChatFailed, match=f"answered {status}: wrong key"):
        ask(made(server))
    assert len(server.requests) == before + 1


def test_a_server_that_takes_no_schema_is_asked_without(server: ModelServer) -> None:
    server.will(fails(400, b"unknown field response_format"), GOOD)
    model = made(server)
    assert ask(model) == ask(model) == ["a", "b"]
    assert ["response_format" in request for request in server.requests] == [True, False, False]
    assert '"words"' in server.requests[1]["messages"][0]["content"]


def test_a_slow_server_is_given_up(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "RETRIES", 0)
    server.will(after(1.0, GOOD))
    monkeypatch.setattr(chat, "TIMEOUT_S", 0.05)
    model = made(server)
    with pytest.raises(ChatFailed, match=r"within 0\.05 s"):
        ask(model)


def test_a_server_that_drips_has_no_longer(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "RETRIES", 0)
    monkeypatch.setattr(chat, "TIMEOUT_S", 0.2)
    server.will(drips)
    began = time.monotonic()
    with pytest.raises(ChatFailed, match="did not answer"):
        ask(made(server))
    assert time.monotonic() - began < 6.0  # it drips for eight seconds


def test_an_endless_reply_is_cut(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "MAX_REPLY_BYTES", 1000)
    server.will(says("x" * 5000))
    with pytest.raises(ChatFailed, match="too large"):
        ask(made(server))


def test_a_dead_server_is_left_alone_after_some_failures(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "RETRIES", 0)
    now = [1000.0]
    config = LlmConfig(url="http://127.0.0.1:9/v1", model="tiny")
    model = Chat(config, Ledger(None, lambda text: None).spend, ticks=lambda: now[0])
    for _ in range(3):
        with pytest.raises(ChatFailed, match="cannot be reached"):
            ask(model)
    with pytest.raises(ChatFailed, match="not asked for a while"):
        ask(model)
    assert (model.usage.requests, model.usage.refused) == (3, 1)
    now[0] += 31.0
    model.remote.address = model.remote.address._replace(url=server.url)
    server.will(GOOD)
    assert ask(model) == ["a", "b"]
    assert model.usage.failures == 3


def test_no_question_is_asked_beyond_the_limit_of_a_day(server: ModelServer) -> None:
    days = [100.0 * 86_400]
    saved: list[str] = []
    server.will(says({"words": []}, (60, 40)))
    config = LlmConfig(url=server.url, model="tiny", tokens_per_day=150)
    model = Chat(config, Ledger(None, saved.append).spend, clock=lambda: days[0])
    ask(model)
    ask(model)
    for again in (model, Chat(config, Ledger(saved[-1], saved.append).spend, clock=lambda: days[0])):  # a restart
        with pytest.raises(ChatFailed, match="limit of 150 tokens"):
            ask(again)
    days[0] += 86_400
    ask(model)
    assert len(server.requests) == 3


def test_the_key_comes_from_a_file_or_the_environment(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.will(GOOD)
    ask(made(server))
    monkeypatch.setenv("MEMORYD_LLM_KEY", "from-env")
    ask(made(server))
    (tmp_path / "key").write_text("from-file\n")
    ask(made(server, key_file=str(tmp_path / "key")))
    assert [given.get("Authorization") for given in server.headers] == [None, "Bearer from-env", "Bearer from-file"]
    with pytest.raises(ChatFailed, match="key file"):
        ask(made(server, key_file=str(tmp_path / "absent")))


@each("key", ["one-key\nanother-key", "a-key-in-\u201cquotes\u201d", "a-plain-key"])
def test_no_error_holds_the_key(server: ModelServer, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("MEMORYD_LLM_KEY", key)
    server.will(fails(401, f"wrong key: Bearer {key}".encode()))
    with pytest.raises(ChatFailed) as caught:
        ask(made(server))
    assert "key" not in str(caught.value).replace("The key in MEMORYD_LLM_KEY", "").replace(
        "wrong key: Bearer [key]", ""
    )


def test_one_question_is_under_way_at_a_time(server: ModelServer) -> None:
    under_way, most = [0], [0]

    def counted(request: Any) -> None:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        time.sleep(0.03)
        under_way[0] -= 1
        GOOD(request)

    server.will(counted)
    model = made(server)
    threads = [threading.Thread(target=ask, args=(model,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1


def test_a_stop_ends_the_questions_under_way(server: ModelServer) -> None:
    server.will(after(5.0, GOOD))
    model = made(server)
    failed: list[str] = []

    def asks() -> None:
        try:
            ask(model)
        except ChatFailed as error:
            failed.append(str(error))

    thread = threading.Thread(target=asks)
    thread.start()
    while not server.requests:
        time.sleep(0.005)
    model.close()
    thread.join(2)
    assert not thread.is_alive()
    assert failed == ["The daemon is stopping."]
    with pytest.raises(ChatFailed, match="stopping"):
        ask(model)


def test_turns_are_rated_in_one_question_and_texts_condensed(server: ModelServer) -> None:
    server.will(says({"importances": [0.9, 0.1]}), says({"sentence": " The cache\nis Valkey. "}))
    llm = Llm(made(server))
    assert llm.rate([("user", "We use Valkey"), ("user", "ok")]) == [0.9, 0.1]
    assert llm.condense("We talked for long, and then decided on Valkey.") == "The cache is Valkey."
    assert "We use Valkey" in server.requests[0]["messages"][1]["content"]


def test_a_wrong_number_of_ratings_is_a_failure(server: ModelServer) -> None:
    server.will(says({"importances": [0.9]}))
    with pytest.raises(ChatFailed, match="rated 1 turns of 2"):
        Llm(made(server)).rate([("user", "a"), ("user", "b")])
