"""The rules on what changes a saved memory, on the seen half of `changes`, with the default model."""

from collections import Counter
from pathlib import Path

import pytest
from holds import Change, read_half

from memoryd.daemon.agreement.changes import find_change
from memoryd.models.embedder import Embeddings, load

pytestmark = pytest.mark.slow
LEAST = {"old-value": 0.95, "other-value": 0.75, "other-words": 0.3}  # of these kinds are found


def test_changes_are_found_and_what_holds_is_left_alone(model_dir: Path) -> None:
    embedder = load("all-MiniLM-L6-v2", model_dir)
    found, of, false = Counter[str](), Counter[str](), list[str]()
    for case in read_half("changes", "seen"):
        told = list_changed(case, embedder.embed_texts([case.saved.content, *(turn.content for turn in case.turns)]))
        of[case.kind] += 1
        if case.label == "changes":
            found[case.kind] += bool(told & {case.statement, *case.also})
        elif told:
            false.append(case.id)
    assert {kind: found[kind] / of[kind] for kind in LEAST if found[kind] < LEAST[kind] * of[kind]} == {}
    assert len(false) <= 2, false


def list_changed(case: Change, vectors: Embeddings) -> set[int]:
    """Return the numbers of the turns that seem to change the memory."""
    memory, *said = vectors
    cosines = [float(memory @ one) for one in said]
    return {
        at
        for at, turn in enumerate(case.turns)
        if find_change(
            case.saved.content,
            turn.content,
            [one.content for one in case.turns[max(0, at - 2) : at]],
            max(cosines[max(0, at - 1) : at + 1]),
            turn.role,
        )
    }
