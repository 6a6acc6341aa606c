"""Conversations, no language model, the real embedding model: what a context of a later session holds of them.

It is asked for after small talk has pushed the conversation out of L0 and all of it went to the registry. Rules were
tuned on `LOOKED_AT`; the others were written afterwards.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from conversations import read

from conversing import resting
from workbench import Process, wait_until

TOKENS = 400
LOOKED_AT = (
    "ledger festival laboratory removal podcast clinic terse wedding bistro roadmap game allotment school server bridge"
    " home novel garage trip"
).split()
UNSEEN = ["pipeline"]
SOME = ("terse", "bridge", "pipeline")  # of each kind; `make stress` holds the others
SMALL_TALK = [
    "Hi again, back from the bakery.|Welcome back! Did you find something nice?",
    "Cinnamon rolls, still warm. The whole kitchen smells like it.|That sounds delicious, enjoy them!",
    "It's so windy outside that my hat flew off.|Oh no! I hope you caught it.",
    "A kid on a bike brought it back, very sweet.|How kind of them!",
    "Do you know a good joke about hats?|Two hats hang on a rack. One says: you stay here, I'll go on ahead.",
    "Haha, that's terrible. I love it.|Thank you, I try my best!",
    "My sister would roll her eyes so hard.|Every family needs a critic.",
    "What's the capital of Mongolia, by the way?|It's Ulaanbaatar.",
    "Right, I never remember that one.|It's easy to forget.",
    "Okay, I'm off for a walk. Later!|Have a nice walk, see you later!",
]


def hold(memory: Any, turns: Sequence[tuple[str, str]], session: str) -> None:
    """Hold a conversation in calls of two turns, end it, and wait until it was thought about."""
    for start in range(0, len(turns), 2):
        pair = turns[start : start + 2]
        memory.observe([{"role": role, "content": text} for role, text in pair], session=session)
    assert memory.end_session(session).waiting == ["summary"]
    wait_until(lambda: not resting(memory.tiers()), limit_s=60)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SOME else pytest.mark.stress)
        for name in (*LOOKED_AT, *UNSEEN)
    ],
)
def test_all_turns_are_kept_and_a_new_session_finds_what_was_planted(shared_real: Process, name: str) -> None:
    talk = read(name)
    assert (len(talk.turns) >= 40, len(talk.planted), len(talk.questions)) == (True, 12, 8)
    with shared_real.client(namespace=f"talks/{name}") as memory:
        hold(memory, talk.turns, "first")
        assert len(memory.list(source="session_summary").memories) == 1
        chat = [turn for pair in SMALL_TALK for turn in zip(("user", "assistant"), pair.split("|"), strict=True)]
        hold(memory, chat, "second")
        memory.consolidate()
        kept = {one.content for one in memory.list(limit=500, reach="exact", type="turn").memories}
        skipped = {one.content for one in memory.turns(limit=1000, skipped=True).skipped}
        assert kept >= {text for _, text in talk.turns} - skipped
        unanswered = []
        for number, question in enumerate(talk.questions):
            made = memory.context(question.text, max_tokens=TOKENS, session=f"later {number}")
            assert made.tokens <= TOKENS
            if question.needs.casefold() not in made.text.casefold():
                unanswered.append(question.text)
    print(f"\n{name}: unanswered {unanswered}")
    assert len(unanswered) <= 2
