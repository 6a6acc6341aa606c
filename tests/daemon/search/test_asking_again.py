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
from memoryd.daemon.search.related import list_shown_ids
from workbench import Process, wait_until

DATA = Path(__file__).parents[2] / "data" / "asking"
OTHER = os.environ.get("MEMORYD_DIALOGUES")
MOST_WRONG = (
    {Path(OTHER): 0}
    if OTHER
    else {
        DATA / "dialogues.jsonl": 0,
        DATA / "dialogues-2.jsonl": 6,  # 5 where weights have 8 bits
        DATA / "dialogues-3.jsonl": 14,
    }
)
LIMIT_S = 240


class Dialogue:
    """A dialogue in a namespace of its own: the ids of its questions, and those of its answers."""

    def __init__(self, line: dict[str, Any], real: Process) -> None:
        self.name = line["id"]
        self.asked: dict[str, str] = {}
        self.answers: set[str] = set()
        with real.client(self.name) as client:
            for number, turn in enumerate(line["turns"]):
                said = NewTurn(role=turn["role"], content=turn["content"], created_at=1_780_000_000.0 + 60 * number)
                [taken] = client.observe([said], session=f"{self.name}-{turn.get('session', 1)}").turns
                if turn.get("asks") or turn.get("answers"):
                    assert taken.id, turn  # another one may say too little to be taken
                    if turn.get("asks"):
                        self.asked[taken.id] = turn["content"]
                    else:
                        self.answers.add(taken.id)

    def judge(self, client: Client) -> list[str]:
        """Return what is wrong with what the questions find."""
        wrong = []
        for question in self.asked.values():
            hits = client.search(question, limit=10, reach="exact").hits
            ids = [hit.id for hit in hits]
            texts = [{hit.id, *list_shown_ids(hit.related)} for hit in hits]
            place = next((at for at, shown in enumerate(texts) if self.answers & shown), len(ids))
            if above := [self.asked[id] for id in ids[:place] if id in self.asked]:
                wrong.append(f"{self.name} {question!r}: {above} above an answer ({place} of {len(ids)})")
            if lost := self.asked.keys() - find_shown(hits):
                wrong.append(f"{self.name} {question!r}: {sorted(self.asked[id] for id in lost)} nowhere")
        return wrong


def find_shown(hits: list[Hit]) -> set[str]:
    return {id for hit in hits for id in (hit.id, *(one.id for one in hit.related))}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=pytest.mark.stress if most else pytest.mark.slow) for file, most in MOST_WRONG.items()],
    ids=lambda file: file.stem,
)
def test_a_question_that_is_asked_three_times_never_stands_above_its_answer(real: Process, file: Path) -> None:
    dialogues = [Dialogue(json.loads(line), real) for line in file.read_text().splitlines()]
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
            print(f"{place}: {len(wrong)} wrong")
            assert len(wrong) <= MOST_WRONG[file], "\n".join([place, *wrong])
