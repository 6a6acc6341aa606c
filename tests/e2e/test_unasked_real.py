"""What comes up unasked stays clean, with the default model: no question, no request, and next to nothing where
nothing answers a prompt. On the seen half of the team's set, and on ten sessions of coding."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conversing import resting
from memoryd.client import Client
from memoryd.client.protocol import NewMemory, NewTurn
from workbench import Process, wait_until

sys.path.append(str(Path(__file__).parents[1] / "quality"))
from sets import read_material

pytestmark = pytest.mark.slow
TEAM = Path(__file__).parents[1] / "data" / "team"
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
    wait_until(lambda: not resting(client.tiers()), limit_s=300)
    client.consolidate()
    wait_until(lambda: not client.tiers().waiting and client.status().pending_embeddings == 0, limit_s=600)


def test_the_team_set_comes_up_clean(client: Client) -> None:
    [material] = read_material(TEAM, "team")
    memories = [item.what for item in material.items if isinstance(item.what, NewMemory)]
    client.add_many(memories)
    turns = [(item.session, item.what) for item in material.items if isinstance(item.what, NewTurn)]
    for session, turn in turns:
        client.observe([turn], session=session)
    close_sessions(client, {session for session, _ in turns})
    unanswered = [asked for asked in material.questions if not asked.gold]
    assert len(unanswered) == 30
    assert client.get_unasked(session="opening").tokens <= 1500
    tokens = []
    for asked in unanswered:
        client.get_unasked(session=asked.id)
        tokens.append(client.get_unasked(asked.question, session=asked.id).tokens)
    print(f"\ntokens beside prompts without an answer: {sorted(tokens)}")
    assert sum(count <= FEW_TOKENS for count in tokens) >= SHARE * len(tokens)


def test_sessions_of_coding_begin_with_what_was_stated(client: Client) -> None:
    for number, place in enumerate(PLACES, 2):
        for line in SESSION:
            role, text = line.format(place=place, number=number).split(": ", 1)
            client.observe([{"role": role, "content": text}], session=place)
    close_sessions(client, set(PLACES))
    started = client.get_unasked(session="next")
    left = {line.why: line.text for line in started.lines}["what the latest session left open"]
    assert left == f"Only the flaky test of the retry loop of the {PLACES[-1]} is left."
    said = [line.text for line in started.lines if line.note != "asked first"]
    for place in PLACES:
        said += [line.text for line in client.get_unasked(f"Work on the {place}", session=f"next {place}").lines]
    assert not [text for text in said if text.endswith(("?", "…", "..."))]
