"""Of two versions of a thing the newer is found first, or the older where a question asks for that; the real model.

`MEMORYD_VERSIONS` may name another file of such pairs.
"""

import json
import os
from pathlib import Path

import pytest

from workbench import Process, wait_until

DATA = Path(__file__).parents[2] / "data" / "versions"
OTHER = os.environ.get("MEMORYD_VERSIONS")
LEAST = {"practice": 0.86, "practice-2": 0.78, "practice-3": 0.45}  # of all pairs that are in the right order
FILES = [Path(OTHER)] if OTHER else [DATA / f"{name}.jsonl" for name in LEAST]
AT, MONTH_S = 1_780_000_000.0, 30 * 86_400.0


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_of_two_versions_the_one_that_is_asked_for_is_first(real: Process, file: Path) -> None:
    pairs = [json.loads(line) for line in file.read_text().splitlines()]
    with real.client() as client:
        older = [client.add(pair["older"], created_at=AT).id for pair in pairs]
        newer = [client.add(pair["newer"], created_at=AT + MONTH_S) for pair in pairs]
        wait_until(lambda: client.status().pending_embeddings == 0)
        linked, right, wrong = 0, 0, []
        for pair, old, new in zip(pairs, older, newer, strict=True):
            ids = [hit.id for hit in client.search(pair["question"], limit=10)]
            first, second = (old, new.id) if pair.get("asks") == "before" else (new.id, old)
            is_right = first in ids and (second not in ids or ids.index(first) < ids.index(second))
            right += is_right
            if old in new.contradicts:
                linked += 1
                wrong += [] if is_right else [pair["question"]]
    print(f"{right} of {len(pairs)} pairs in the right order; {linked} are linked, of these {linked - len(wrong)}")
    assert right >= LEAST.get(file.stem, 0) * len(pairs)
    assert len(wrong) <= linked / 20, wrong
