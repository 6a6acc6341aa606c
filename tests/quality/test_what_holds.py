"""The weights of what changes a saved memory, on the seen half of `changes`, with the default model."""

from collections import Counter
from pathlib import Path

import pytest
from holds import Change, read_half

from memoryd.daemon.agreement.changes import Said, find_change
from memoryd.daemon.store.later import LIKELY, MAYBE
from memoryd.models.embedder import Embeddings, load

pytestmark = pytest.mark.slow
LEAST = {
    "old-value": 0.8,
    "other-value": 0.5,
    "other-words": 0.2,
}  # of these kinds are found: the weights were fitted on them


def test_changes_are_found_and_what_holds_is_left_alone(model_dir: Path) -> None:
    embedder = load("all-MiniLM-L6-v2", model_dir)
    found, of, false = Counter[str](), Counter[str](), list[str]()
    for case in read_half("changes", "seen"):
        sure = measure(case, embedder.embed_texts([case.saved.content, *(turn.content for turn in case.turns)]))
        of[case.kind] += 1
        if case.label == "changes":
            found[case.kind] += any(sure[at] >= MAYBE for at in (case.statement, *case.also))
        elif max(sure) >= LIKELY:
            false.append(case.id)
    assert {kind: found[kind] / of[kind] for kind in LEAST if found[kind] < LEAST[kind] * of[kind]} == {}
    assert len(false) <= 2, false


def measure(case: Change, vectors: Embeddings) -> list[float]:
    """Return how surely each turn changes the memory."""
    memory, *said = vectors
    near = [float(memory @ one) for one in said]
    found = [
        find_change(
            case.saved.content,
            Said(turn.content, turn.role, tuple(one.content for one in case.turns[max(0, at - 2) : at])),
            max(near[max(0, at - 1) : at + 1]),
            0.0,
        )
        for at, turn in enumerate(case.turns)
    ]
    return [one.sure if one else 0.0 for one in found]
