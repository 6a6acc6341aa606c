"""Dialogues in which a person asks a thing three times in other words: its answer stands first, not a question.

With the real model. `MEMORYD_DIALOGUES` may name another file of such dialogues.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import Client
from memoryd.client.protocol import Hit, NewTurn
from workbench import Process, wait_until

DIALOGUES = Path(
    os.environ.get("MEMORYD_DIALOGUES") or Path(__file__).parents[2] / "data" / "asking" / "dialogues.jsonl"
)
LIMIT_S = 240


class Dialogue:
    """A dialogue in a namespace of its own: the ids of its questions, and that of the answer."""

    def __init__(self, line: dict[str, Any], real: Process) -> None:
        self.name = line["id"]
        self.asked: dict[str, str] = {}
        self.answer = ""
        with real.client(self.name) as client:
            for number, turn in enumerate(line["turns"]):
                said = NewTurn(role=turn["role"], content=turn["content"], created_at=1_780_000_000.0 + 60 * number)
                [taken] = client.observe([said], session=f"{self.name}-{turn.get('session', 1)}").turns
                assert taken.id, turn
                if turn.get("asks"):
                    self.asked[taken.id] = turn["content"]
                if turn.get("answers"):
                    self.answer = taken.id

    def judge(self, client: Client) -> list[str]:
        """Return what is wrong with what the questions find."""
        wrong = []
        for question in self.asked.values():
            hits = client.search(question, limit=10, reach="exact").hits
            ids = [hit.id for hit in hits]
            place = ids.index(self.answer) if self.answer in ids else len(ids)
            if above := [self.asked[id] for id in ids[:place] if id in self.asked]:
                wrong.append(f"{self.name} {question!r}: {above} above the answer ({place} of {len(ids)})")
            if lost := self.asked.keys() - find_shown(hits):
                wrong.append(f"{self.name} {question!r}: {sorted(self.asked[id] for id in lost)} nowhere")
        return wrong


def find_shown(hits: list[Hit]) -> set[str]:
    return {id for hit in hits for id in (hit.id, *(one.id for one in hit.related))}


@pytest.mark.slow
def test_a_question_that_is_asked_three_times_never_stands_above_its_answer(real: Process) -> None:
    dialogues = [Dialogue(json.loads(line), real) for line in DIALOGUES.read_text().splitlines()]
    assert len(dialogues) == 40
    with real.client("") as everything:
        for place in ("L0", "stored"):
            if place == "stored":
                everything.consolidate()
            wait_until(lambda: not sum(everything.tiers().waiting.values()), LIMIT_S)
            wait_until(lambda: everything.status().pending_embeddings == 0, LIMIT_S)
            wrong = []
            for dialogue in dialogues:
                with real.client(dialogue.name) as client:
                    wrong += dialogue.judge(client)
            assert not wrong, "\n".join([place, *wrong])
