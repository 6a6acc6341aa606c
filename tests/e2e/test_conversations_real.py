"""Conversations with planted facts, no language model, the real embedding model: what is kept, what a context holds.

`laboratory` and `removal` were written before and held out while the rules were tuned on `ledger` and `festival`.
"""

from typing import Any

import pytest
from conversations import Conversation, read

from memoryd.client.protocol import Memory
from workbench import wait_until

TOKENS = 400
NAMES = ["ledger", "festival", "laboratory", "removal"]


def holds(text: str, words: list[str]) -> bool:
    return all(word.casefold() in text.casefold() for word in words)


def conversation(memory: Any, talk: Conversation, session: str) -> list[Memory]:
    """Hold a conversation in calls of two turns, end it, and return what was kept of it."""
    for start in range(0, len(talk.turns), 2):
        pair = talk.turns[start : start + 2]
        memory.observe([{"role": role, "content": text} for role, text in pair], session=session)
        wait_until(lambda: not {"rate", "compare"} & memory.tiers().waiting.keys())  # people talk more slowly
    assert memory.end_session(session).waiting == ["extract", "summary"]
    wait_until(lambda: not memory.tiers().heard, limit_s=60)
    wait_until(lambda: not memory.tiers().waiting, limit_s=60)
    return list(memory.list(limit=200, reach="exact"))


@pytest.mark.parametrize("name", NAMES)
def test_planted_facts_are_kept_and_found_in_a_new_session(real: Any, name: str) -> None:
    talk = read(name)
    with real.client(namespace=f"talks/{name}") as memory:
        kept = conversation(memory, talk, "first")
        facts = [one for one in kept if one.source == "extraction"]
        found = [one for one in talk.planted if any(holds(fact.content, one.words) for fact in facts)]
        others = [one.content for one in facts if not any(holds(one.content, fact.words) for fact in talk.planted)]
        answered = []
        for number, question in enumerate(talk.questions):
            made = memory.context(question.text, max_tokens=TOKENS, session=f"later {number}")
            assert made.tokens <= TOKENS
            answered.append(question.needs.casefold() in made.text.casefold())
        print(
            f"\n{name}: {len(found)} of {len(talk.planted)} kept, {len(others)} others, "
            f"{sum(answered)} of {len(answered)} answered, {len(kept)} memories"
        )
        print([(one.type, one.source, one.content) for one in kept if one.source != "extraction"])
        print([q.text for q, a in zip(talk.questions, answered) if not a], others)
        assert len(found) >= 10
        assert len(others) <= 5
        assert sum(answered) >= 7
