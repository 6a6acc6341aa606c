"""What comes up unasked stays clean, with the default model: no turn of low importance, and next to nothing where
nothing answers a prompt. On the seen half of the team's set, and on ten sessions of coding."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.client import Client
from memoryd.client.memctl.bench import team
from memoryd.client.memctl.bench.material import Choice
from memoryd.client.protocol import NewMemory, NewTurn
from workbench import Process, wait_until

pytestmark = pytest.mark.slow
TEAM = Path(__file__).parents[1] / "data" / "team"
IMPORTANT = 0.5
FEW_TOKENS, SHARE = 50, 0.9
PLACES = ("importer", "exporter", "billing", "login", "search", "mailer", "router", "cache", "parser", "archive")
SESSION = [  # of coding: what is asked and done, little of which anybody wants to know unasked
    "user: the tests of the {place} are red again, can you look?",
    "assistant: I'll look at the failing tests first.",
    "assistant: Two tests of the {place} fail: the fixture has no column for the time zone.",
    "user: hm ok. fix it",
    "assistant: Added the column in tests/{place}/fixtures.py and ran the tests: 48 passed.",
    "user: nice, thanks!",
    "user: where do we set the timeout of the {place}?",
    "assistant: In settings.py, line {number}; it is {number} seconds now.",
    "user: we decided to make it {number} minutes for the {place}, write that down somewhere",
    "assistant: Done, it is in settings.py and in the notes.",
    "user: can you rename the variable x to attempts?",
    "assistant: Renamed it in three files.",
    "user: looks good to me",
    "user: never deploy the {place} on a Friday, we always regret it",
    "assistant: Understood.",
    "user: ok what else is open?",
    "assistant: Only the flaky test of the retry loop of the {place} is left.",
    "user: skip it for today, I'm hungry",
]


@pytest.fixture
def client(real: Process) -> Iterator[Client]:
    with real.client(namespace="acme/api") as made:
        yield made


def close_sessions(client: Client, sessions: set[str]) -> None:
    for session in sessions:
        client.end_session(session)
    wait_until(lambda: not client.tiers().heard, limit_s=300)
    client.consolidate()
    wait_until(lambda: not client.tiers().waiting and client.status().pending_embeddings == 0, limit_s=600)


def find_minor(client: Client, ids: list[str]) -> list[str]:
    """Return the turns of low importance among some memories."""
    found = [client.get(id) for id in ids]
    return [one.content for one in found if one.type == "turn" and one.importance < IMPORTANT]


def open_session(client: Client, session: str, task: str) -> list[str]:
    made = client.context(task, max_tokens=800, session=session, opening=True, fresh=True)
    assert made.ids
    return made.ids


def test_the_team_set_comes_up_clean(client: Client) -> None:
    [material] = team.make_materials(TEAM, "team", Choice(half="seen"))
    memories = [item.what for item in material.items if isinstance(item.what, NewMemory)]
    client.add_many(memories)
    turns = [(item.session, item.what) for item in material.items if isinstance(item.what, NewTurn)]
    for session, turn in turns:
        client.observe([turn], session=session)
    close_sessions(client, {session for session, _ in turns})
    unanswered = [asked for asked in material.questions if not asked.gold]
    assert len(unanswered) == 30
    assert find_minor(client, open_session(client, "opening", "Go on")) == []
    tokens = []
    for asked in unanswered:
        client.context("Go on", max_tokens=800, session=asked.id, opening=True, fresh=True)
        made = client.context(asked.question, max_tokens=800, session=asked.id, unasked=True)
        tokens.append(made.tokens)
    print(f"\ntokens of contexts without an answer: {sorted(tokens)}")
    assert sum(count <= FEW_TOKENS for count in tokens) >= SHARE * len(tokens)


def test_sessions_of_coding_begin_without_a_turn_of_low_importance(client: Client) -> None:
    for number, place in enumerate(PLACES, 2):
        for line in SESSION:
            role, text = line.format(place=place, number=number).split(": ", 1)
            client.observe([{"role": role, "content": text}], session=place)
    close_sessions(client, set(PLACES))
    kept = client.list(type="turn", limit=500).memories
    assert len(kept) > 100
    assert sum(turn.importance < IMPORTANT for turn in kept) > 40
    for place in PLACES:
        for task in ("Go on", f"Work on the {place}"):
            assert find_minor(client, open_session(client, f"next {place} {task}", task)) == []
