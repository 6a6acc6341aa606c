"""The guard on the cosines it is made for: those of the default model."""

from collections.abc import Callable
from pathlib import Path

import pytest
from agreement_pairs import KEPT_TWICE, LOOK_ALIKES, REPHRASINGS, Pair

from memoryd.daemon.language.agreement import disagreement
from memoryd.models import DEFAULT, Embedder, load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def embedder(model_dir: Path) -> Embedder:
    return load(DEFAULT, model_dir)


def _near(embedder: Embedder, pairs: list[Pair]) -> list[Pair]:
    """Return the pairs that count as duplicates by their cosine."""
    near = []
    for old, new in pairs:
        one, other = embedder.embed_texts([old, new])
        if float(one @ other) >= embedder.floors.duplicate:
            near.append((old, new))
    return near


def test_no_look_alike_would_be_merged(embedder: Embedder, record_property: Callable[[str, object], None]) -> None:
    near = _near(embedder, LOOK_ALIKES)
    record_property("look-alikes above the floor", f"{len(near)} of {len(LOOK_ALIKES)}")
    print(f"{len(near)} of {len(LOOK_ALIKES)} look-alikes have a cosine of a duplicate")
    assert len(near) >= 40, "the guard is hardly exercised"
    assert [pair for pair in near if disagreement(*pair) is None] == []


def test_most_rephrasings_are_merged(embedder: Embedder, record_property: Callable[[str, object], None]) -> None:
    near = _near(embedder, REPHRASINGS + KEPT_TWICE)
    merged = [pair for pair in near if disagreement(*pair) is None]
    record_property("rephrasings merged", f"{len(merged)} of {len(near)}")
    print(f"{len(merged)} of {len(near)} rephrasings above the floor are merged")
    assert len(merged) >= 0.7 * len(near)
