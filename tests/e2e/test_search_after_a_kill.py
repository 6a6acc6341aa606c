"""The first search after `kill -9` has what was observed before it, or names what it could not look into yet.

`MEMORYD_TEST_KILLS=200 pytest -m slow tests/e2e/test_search_after_a_kill.py` kills as often as that.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from configs import NO_MODEL
from memoryd.client import Client
from memoryd.client.protocol import Hits, NewTurn
from waiting import wait_until

KILLS = int(os.environ.get("MEMORYD_TEST_KILLS", "6"))
TURNS, SHOWN = 40, 8
LIMIT_S = 300.0  # the vectors are made at the lowest priority
THINGS = ("login page", "billing job", "search index", "mail queue", "image cache", "audit log", "deploy script")
DONE = ("is owned by", "was moved to", "waits for", "is tested by", "must not touch", "is reviewed by")
BY = ("the night shift", "the Berlin office", "port 8443", "the staging host", "the payments team", "the green cluster")


def draw_turns(dice: random.Random) -> list[str]:
    """Return turns that are alike, so that one that is not compared by meaning has others above it."""
    texts: dict[str, None] = {}
    while len(texts) < TURNS:
        week = dice.randrange(1, 50)
        texts[f"The {dice.choice(THINGS)} {dice.choice(DONE)} {dice.choice(BY)} since week {week}."] = None
    return list(texts)


def is_shown(hits: Hits, text: str) -> bool:
    return any(text in (hit.content, *(related.content for related in hit.related)) for hit in hits)


def observe_and_kill(process: Any, place: str, texts: list[str], dice: random.Random) -> None:
    """Have turns observed one by one or together, and kill the daemon at any moment of what it makes of them."""
    turns = [NewTurn(role="assistant" if at % 2 else "user", content=text) for at, text in enumerate(texts)]
    size = dice.choice((1, 7, TURNS))
    with process.client(place, timeout_s=60) as client:
        for at in range(0, TURNS, size):
            client.observe(turns[at : at + size], session="s")
        for _ in range(dice.choice((0, 10, 100, 1000))):
            client.status()
    process.kill()


def draw_queries(text: str, dice: random.Random) -> list[str]:
    """Return a text, its words in any order, and some of them."""
    words = text.rstrip(".").split()
    return [text, " ".join(dice.sample(words, len(words))), *(" ".join(dice.sample(words, 5)) for _ in range(3))]


def search_first(client: Client, text: str, dice: random.Random) -> list[Hits]:
    """Return the first answers after a start; none may lack the text without a word."""
    if dice.random() < 0.8:  # as who starts the daemon waits
        wait_until(lambda: client.status().model.state != "loading", LIMIT_S)
    for _ in range(dice.choice((0, 0, 10, 100, 500))):
        client.status()
    queries = draw_queries(text, dice)
    first = [client.search(query, limit=SHOWN, touch=False) for query in queries]
    lacking = [query for query, hits in zip(queries, first, strict=True) if not (is_shown(hits, text) or hits.degraded)]
    if lacking:  # some words of a text may be nearer to others: these queries do not bring it later either
        wait_until(lambda: not client.search(text, touch=False).degraded, LIMIT_S)
    for query in lacking:
        assert not is_shown(client.search(query, limit=SHOWN, touch=False), text), query
    return first


def kill_often(process: Any) -> str:
    """Kill a daemon again and again; return how many of the first answers had the turn, or say what they lack."""
    dice = random.Random(KILLS)
    searches = has = named = 0
    process.start()
    for kill in range(KILLS):
        place, texts = f"kill/{kill}", draw_turns(dice)
        observe_and_kill(process, place, texts, dice)
        process.start()
        text = dice.choice(texts)
        with process.client(place, timeout_s=60) as client:
            for hits in search_first(client, text, dice):
                searches, has, named = searches + 1, has + is_shown(hits, text), named + bool(hits.degraded)
    return f"{KILLS} kills, {searches} searches: {has} have the turn, {named} name what they lack"


@pytest.mark.slow
@pytest.mark.timeout(300 + 30 * KILLS)
def test_with_a_model_the_first_search_has_the_turn_or_names_what_it_lacks(
    make_process: Callable[..., Any], model_dir: Path
) -> None:
    print(kill_often(make_process("", {"MEMORYD_MODEL_DIR": str(model_dir)})))


@pytest.mark.slow
@pytest.mark.timeout(300 + 30 * KILLS)
def test_without_a_model_the_first_search_has_the_turn_and_names_the_meaning(make_process: Callable[..., Any]) -> None:
    print(kill_often(make_process(NO_MODEL)))
