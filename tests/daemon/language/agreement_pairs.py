"""The pairs of tests/data/agreement, one a line: look-alikes that disagree, rephrasings, and rephrasings kept twice."""

from pathlib import Path

Pair = tuple[str, str]

_FOLDER = Path(__file__).parents[2] / "data" / "agreement"


def _read(name: str) -> list[Pair]:
    pairs = []
    for line in (_FOLDER / name).read_text("utf-8").splitlines():
        if not line.startswith("# "):
            old, new = line.split(" | ")
            pairs.append((old, new))
    return pairs


LOOK_ALIKES = _read("look_alikes.txt")
REPHRASINGS = _read("rephrasings.txt")
KEPT_TWICE = _read("kept_twice.txt")
