"""Nothing of a credential is left on disk or in a reply, whichever way it came in."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client, Invalid
from memoryd.client.protocol import METHODS, READS, Feedback, Record, Tag, method_name
from memoryd.daemon.system import log_lines
from wire import Wire
from workbench import Daemon

TOKEN = "".join(("gh", "p_", "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo"))
TEXT = f"The deploy pushes with {TOKEN} to the mirror of the payments service."
CLEAN = "The deploy pushes with [secret: GitHub token] to the mirror of the payments service."
ONE = {"GitHub token": 1}
GOLDEN = Path(__file__).parents[2] / "contract" / "golden.jsonl"
# Names by which things are found and words that are chosen from a list stay as they are given.
CHOICES = frozenset(
    "method id ids name names namespace namespaces to reach kind role outcome type level tier status order format"
    " mode model tokenizer path paths folder workspace file server schema origin target by label".split()
)
ENDING = frozenset({"shutdown", "restart", "repair", "subscribe"})
TEXTS = {"memory", "text", "content", "summary", "note", "output", "task", "message", "description"} | {
    "turns", "memories", "entries", "records", "metadata", "values", "tags",
}  # fmt: skip


def holding(folder: Path, needle: str = TOKEN) -> list[str]:
    """Return the files below a folder whose bytes have something in them."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_socket() and needle.encode() in path.read_bytes()
    ]


def ways_in(client: Client) -> list[Any]:
    """Bring the token in every way there is; return what the replies say of it."""
    added = client.add(TEXT, summary=TEXT, metadata={"note": TEXT, TOKEN: 1, "deep": [{"token": TOKEN}]})
    other = client.add("The staging cluster runs in Frankfurt since the spring release.")
    record = Record(
        id="ab" * 16, namespace="", type="fact", content=f"Imported: {TEXT}", created_at=5.0, updated_at=5.0
    )
    turn = {"role": "user", "content": f"Please remember for later: {TEXT}"}
    return [
        added,
        client.add_many([{"content": f"First of many. {TEXT}", "neighbours": [TEXT]}, {"content": "no secret here"}]),
        client.put_many([{"key": "deploy", "memory": {"content": f"Put. {TEXT}", "metadata": {"deep": [TEXT]}}}]),
        client.update(other.id, content=f"Changed. {TEXT}"),
        client.call(Tag(id=other.id, tags=[TOKEN])),
        client.call(Feedback(id=other.id, useful=True, note=TEXT)),
        client.observe([turn, {"role": "user", "content": f"Error: {TOKEN}"}], session=TOKEN),
        client.import_memories([record]),
        client.complete_task("failed", TEXT, task=TEXT, session=TOKEN),
    ]


def test_nothing_of_a_credential_is_on_disk_whichever_way_it_came_in(
    daemon: "Daemon", client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    replies = ways_in(client)
    client.search(f"who pushes with {TOKEN}")
    client.context(f"push with {TOKEN}", session=TOKEN)
    assert client.end_session(TOKEN).waiting  # it is the session that was observed
    client.explain(f"who pushes with {TOKEN}")
    data = daemon.core.folder
    assert holding(data) == []  # the WAL too
    client.delete(replies[0].id)
    daemon.core.store.write(lambda t: None).result()
    with daemon.core.store.reading() as connection:
        assert connection.execute("SELECT count(*) FROM history").get
    daemon.stop()
    daemon.core.close()
    assert holding(data) == []
    assert TOKEN not in caplog.text


def test_each_reply_says_what_was_taken_out(client: Client) -> None:
    told = [reply.redacted for reply in ways_in(client)]
    assert told == [
        {"GitHub token": 5}, {"GitHub token": 2}, {"GitHub token": 2}, ONE, ONE, ONE, {"GitHub token": 3},
        ONE, {"GitHub token": 3},
    ]  # fmt: skip


def test_queries_and_traces_are_redacted_without_a_word(client: Client) -> None:
    hits = client.search(f"where is {TOKEN} used")
    assert client.trace(hits.trace).query == "where is [secret: GitHub token] used"


def test_a_call_may_store_a_credential_on_purpose(daemon: "Daemon", client: Client) -> None:
    added = client.add(TEXT, allow_secrets=True)
    assert (client.get(added.id).content, added.redacted) == (TEXT, {})
    assert client.update(added.id, content=f"{TEXT} Still.", allow_secrets=True).memory.content == f"{TEXT} Still."
    many = client.add_many([{"content": f"Another. {TEXT}"}], allow_secrets=True)
    assert TOKEN in client.get(many.results[0].id).content
    assert holding(daemon.core.folder) != []  # the test of the others can fail


def test_a_key_with_a_credential_is_refused_as_two_would_become_one(client: Client) -> None:
    with pytest.raises(Invalid, match=r"key contains what looks like 1 GitHub token.*Choose another key") as caught:
        client.put(f"session {TOKEN}", "A value of its own")
    assert TOKEN not in str(caught.value)
    client.put(f"session {TOKEN}", "A value of its own", allow_secrets=True)
    assert client.get(key=f"session {TOKEN}").content == "A value of its own"


def test_undo_brings_back_what_was_stored_not_what_was_taken_out(client: Client) -> None:
    added = client.add(TEXT)
    changed = client.update(added.id, content="It pushes with nothing.")
    client.undo(changed.operation)
    assert client.get(added.id).content == CLEAN


def test_refused_credentials_change_nothing_and_the_error_says_what_to_do(start_daemon: Callable[..., Any]) -> None:
    with start_daemon(privacy={"secrets": "refuse"}).client() as client:
        with pytest.raises(Invalid, match=r"1 GitHub token, so nothing was stored.*allow_secrets=True") as caught:
            client.add_many([{"content": "an innocent one"}, {"content": TEXT}])
        assert caught.value.data == {"secrets": ONE}
        assert TOKEN not in str(caught.value)
        assert client.list().total == 0
        client.add(TEXT, allow_secrets=True)
        assert len(client.search(f"mirror {TOKEN}")) == 1  # a question is never refused


def test_with_allow_everything_is_stored_as_it_is(start_daemon: Callable[..., Any]) -> None:
    with start_daemon(privacy={"secrets": "allow"}).client() as client:
        assert client.get(client.add(TEXT).id).content == TEXT


def test_the_allow_list_lets_through_what_it_matches_whole(start_daemon: Callable[..., Any]) -> None:
    with start_daemon(privacy={"allow": ["ghp_q7Rt.*"]}).client() as client:
        assert client.get(client.add(TEXT).id).content == TEXT
        assert client.add("password = hunter2x").redacted == {"password": 1}


def test_every_call_that_brings_text_to_be_stored_passes_here() -> None:
    writing = [call for call in METHODS if call not in READS]
    storing = {method_name(call) for call in writing if "allow_secrets" in call.__struct_fields__}
    bringing = {method_name(call) for call in writing if TEXTS & set(call.__struct_fields__)}
    # `forget` compares its text with what is in a file;
    # the task of `get_context` is redacted as queries are.
    assert bringing - storing == {"forget", "get_context"}
    assert storing <= bringing


def _put_in(value: Any, name: str = "") -> Any:
    """Return a call's arguments with the token in each text that is no name or choice."""
    if isinstance(value, str):
        return value if name in CHOICES else f"see {TOKEN} there"
    if isinstance(value, list):
        return [_put_in(item, name) for item in value]
    return {key: _put_in(item, key) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.slow
def test_no_text_of_any_call_leaves_a_credential_on_disk_or_in_the_log(
    daemon: "Daemon", client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    formatter = log_lines._LineFormatter(under_systemd=False)
    id = client.add("The heron fishes at dawn").id
    refused = 0
    for line in GOLDEN.read_text().splitlines():
        example = json.loads(line)
        if ": request" not in example["name"] or example["value"][2]["method"] in ENDING:
            continue
        call = {key: _put_in(value, key) for key, value in example["value"][2].items() if key != "allow_secrets"}
        given = {"id": id, "ids": [id], "namespace": ""}
        with Wire(daemon.socket) as wire:
            refused += wire.ask({**call, **{key: value for key, value in given.items() if key in call}})[0]
    assert refused < 150  # most are what their method takes
    daemon.core.store.write(lambda t: None).result()
    assert holding(daemon.core.folder) == []
    assert TOKEN not in "".join(map(formatter.format, caplog.records))
