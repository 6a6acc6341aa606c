"""Whether much is stored in languages that the embedding model does not read."""

import pytest

from memoryd.client import Client
from memoryd.client.protocol import AddToken, Unread
from memoryd.daemon.core.core import Core
from memoryd.models.catalog import CATALOG
from workbench import Daemon

MODEL = "all-MiniLM-L6-v2"
GERMAN = "Der Wartungsvertrag für die große Maschine in der Halle {} ist in diesem Jahr nicht verlängert."
CHINESE = "三号仓库的钥匙在第 {} 个抽屉里。"
ENGLISH = "The key of the third store is in drawer {}."


def fill(client: Client, **texts: int) -> None:
    for text, many in ((ENGLISH, "english"), (GERMAN, "german"), (CHINESE, "chinese")):
        client.add_many([{"content": text.format(number)} for number in range(texts.get(many, 0))], dedup=False)


@pytest.mark.parametrize(
    ("texts", "languages"),
    [
        ({}, None),
        ({"english": 5}, None),
        ({"german": 1}, None),
        ({"german": 2}, None),
        ({"german": 3}, ["German"]),
        ({"english": 31, "german": 3}, None),
        ({"english": 27, "german": 3}, ["German"]),
        ({"english": 10, "german": 3, "chinese": 4}, ["Chinese", "German"]),
        ({"english": 360, "german": 40}, ["German"]),
    ],
)
def test_a_tenth_that_the_model_does_not_read_is_told(
    core: "Core", client: Client, texts: dict[str, int], languages: list[str] | None
) -> None:
    fill(client, **texts)
    found = core.languages.find_unread(MODEL)
    assert (found.languages if found else None) == languages
    if found:
        assert found.model == "multilingual-e5-small"
        number = sum(texts.values())
        assert found.share == pytest.approx((number - texts.get("english", 0)) / number, abs=0.02)


def test_few_short_texts_with_small_words_of_another_language_name_none(core: "Core", client: Client) -> None:
    for text in ("Maestro then. flows go in e2e/flows, one per screen", "per la come", "come con la", "si per la"):
        client.add(text)
    assert core.languages.find_unread(MODEL) is None


def test_a_model_that_reads_them_and_one_that_is_not_known_are_left_alone(core: "Core", client: Client) -> None:
    fill(client, german=5)
    assert core.languages.find_unread(MODEL)
    for model in ("multilingual-e5-small", "openai:text-embedding-3-small", "my-own", "none"):
        assert core.languages.find_unread(model) is None


def test_it_is_looked_for_again_when_something_new_is_stored(core: "Core", client: Client) -> None:
    fill(client, english=4)
    assert core.languages.find_unread(MODEL) is None
    client.observe([{"role": "user", "content": GERMAN.format(number)} for number in range(4)])
    assert core.languages.find_unread(MODEL) == Unread(languages=["German"], share=0.5, model="multilingual-e5-small")
    client.delete(*(memory.id for memory in client.list(limit=100)))
    fill(client, english=50)
    found = core.languages.find_unread(MODEL)
    assert found is None


def test_status_tells_it_to_the_owner_alone(daemon: "Daemon", client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOG, client.status().model.name, CATALOG[MODEL])
    assert client.status().unread is None
    fill(client, german=5)
    assert client.status().unread == Unread(languages=["German"], share=1.0, model="multilingual-e5-small")
    token = client.call(AddToken(name="beta", namespace="beta")).token
    with daemon.client(token=token) as bound:
        assert bound.status().unread is None
