"""The session for the OpenAI Agents SDK with its real package; `test_on_packages.py` runs this."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import SQLiteSession

from memoryd.client import Client
from memoryd.client.integrations.openai_agents import MemorydSession
from memoryd.client.protocol import Undo
from workbench import Daemon

TOKEN = "".join(("gh", "p_", "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo"))
Make = Callable[..., MemorydSession]


def say(text: str, role: str = "user") -> Any:
    return {"role": role, "content": text}


@pytest.fixture
def client(daemon: "Daemon") -> Iterator[Client]:
    with daemon.client("assistant") as client:
        yield client


@pytest.fixture
def make(client: Client) -> Make:
    return lambda id="seven", **options: MemorydSession(id, client, **options)


async def list_said(session: MemorydSession) -> list[str]:
    return [item["content"] for item in await session.get_items()]  # type: ignore[misc, typeddict-item]


async def test_items_are_added_all_or_none(make: Make) -> None:
    session = make()
    await session.add_items([say("one")])
    for bad in ({"n": float("nan")}, {"n": b"bytes"}, say("x" * 9_000_000), {"n": {1}}, "hi"):
        with pytest.raises(ValueError, match=r"\w"):
            await session.add_items([say("two"), bad, say("three")])
    with pytest.raises(ValueError, match="1000"):
        await session.add_items([say("many")] * 1001)
    with pytest.raises(ValueError, match="over the limit"):
        await session.add_items([say("x" * 6_000_000)] * 3)
    assert await list_said(session) == ["one"]


async def test_items_of_two_writers_do_not_interleave(make: Make) -> None:
    texts = [[f"{who} {number}" for number in range(30)] for who in range(6)]
    await asyncio.gather(*(make().add_items([say(text) for text in said]) for said in texts))
    stored = await list_said(make())
    assert sorted(stored[at : at + 30] for at in range(0, 180, 30)) == sorted(texts)


async def test_one_undo_takes_back_what_one_call_added(make: Make, client: Client) -> None:
    session = make()
    await session.add_items([say("one")])
    await session.add_items([say("two"), say("three")])
    await asyncio.to_thread(client.call, Undo())
    assert await list_said(session) == ["one"]


@pytest.mark.parametrize("number", [0, 1, 2, 7])
async def test_each_item_is_popped_by_one_caller_and_the_others_get_none(make: Make, number: int) -> None:
    await make().add_items([say(f"item {at}") for at in range(number)])
    popped = await asyncio.gather(*(make().pop_item() for _ in range(number + 3)))
    assert sorted(item["content"] for item in popped if item) == [f"item {at}" for at in range(number)]
    assert popped.count(None) == 3
    assert await make().get_items() == []


ITEMS: dict[str, Any] = {
    "nul": say("a\0b"),
    "half an emoji": say("\ud83d here"),
    "only nul": say("\0"),
    "blank": say(" "),
    "large": say("word " * 500_000),
    "wide": say("\N{SLICE OF PIZZA}" * 600_000),
    "parts": {"role": "user", "content": [{"type": "input_text", "text": "see\0"}, {"type": "input_image", "b": "x"}]},
    "call": {"type": "function_call", "name": "look", "arguments": '{"a": "\\u0000"}', "call_id": "c\ud83d", "n": None},
    "output": {"type": "function_call_output", "call_id": "c", "output": "\0\ufdd0\ufdd00000"},
}


@pytest.mark.parametrize("name", ITEMS)
async def test_an_item_comes_back_equal_as_from_the_frameworks_session(make: Make, name: str) -> None:
    session, other = make(), SQLiteSession("seven")
    await session.add_items([say("before"), ITEMS[name]])
    await other.add_items([ITEMS[name]])
    assert await session.get_items() == [say("before"), *await other.get_items()]
    assert await session.pop_item() == await other.pop_item() == ITEMS[name]
    other.close()


async def test_what_is_read_is_what_the_frameworks_session_gives(make: Make) -> None:
    session, other = make(), SQLiteSession("seven")
    for kept in (session, other):
        await kept.add_items([])
        await kept.add_items([say(str(number)) for number in range(5)])
    for limit in (None, 0, 1, 2, 5, 6):
        assert await session.get_items(limit) == await other.get_items(limit)
    other.close()


@pytest.mark.parametrize("id", [" ", "a\0b", "\ud83d", "a\nb", "\N{SLICE OF PIZZA}" * 100])
async def test_a_session_has_its_own_items_whatever_its_name(make: Make, id: str) -> None:
    await make().add_items([say("another session")])
    await make(id).add_items([say("mine")])
    assert await list_said(make(id)) == ["mine"]
    await make(id).clear_session()
    assert (await list_said(make(id)), await list_said(make())) == ([], ["another session"])


def test_a_name_that_is_too_long_is_refused(make: Make) -> None:
    with pytest.raises(ValueError, match="400 bytes"):
        make("x" * 401)


async def test_credentials_are_taken_out_unless_they_are_allowed(make: Make) -> None:
    await make().add_items([say(f"push with {TOKEN}")])
    assert TOKEN not in str(await make().get_items())
    await make("open", allow_secrets=True).add_items([say(f"push with {TOKEN}")])
    assert await list_said(make("open")) == [f"push with {TOKEN}"]
    with pytest.raises(ValueError, match="The key contains"):
        await make(TOKEN).add_items([say("whose session?")])
    await make(TOKEN, allow_secrets=True).add_items([say("its own")])
    assert await list_said(make(TOKEN)) == ["its own"]


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_session_without_a_name_is_refused_when_it_is_made(make: Make, name: Any) -> None:
    with pytest.raises(ValueError, match="The name of a session is a text that is not empty, not "):
        make(name)


@pytest.mark.parametrize("limit", [-1, "x", True, 1.5])
async def test_a_limit_that_is_none_is_refused(make: Make, limit: Any) -> None:
    with pytest.raises(ValueError, match="The limit must be a whole number, 0 or more, not "):
        await make().get_items(limit)
