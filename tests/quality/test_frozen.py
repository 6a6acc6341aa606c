"""The evaluation sets are those that were read and checked, so that figures of two days are about the same data.

Whoever changes a set on purpose reads it against its README, then `cd tests/data; sha256sum FILE` gives the new line.
"""

from hashlib import sha256
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def test_no_set_has_changed() -> None:
    lines = [line.split("  ") for line in (DATA / "frozen.sha256").read_text().splitlines()]
    assert [name for known, name in lines if sha256((DATA / name).read_bytes()).hexdigest() != known] == []
    sets = {path for _, name in lines for path in (DATA / name).parent.glob("*seen.jsonl")}
    assert sets <= {DATA / name for _, name in lines}
