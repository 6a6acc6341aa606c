"""The figures of `agreement.claims` for `rules`: which turns of the unasked sets it holds back from coming up.

Runs by itself, so that a rule can be taken out of it. Prints counts as JSON: of the turns that ask or order, of those
that a later one refutes, and of those that should come up somewhere, (held back, all).
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memoryd.daemon.agreement.claims import is_taken_back, list_statements

_DATA = Path(__file__).resolve().parents[1] / "data" / "unasked"
_UNSEEN = "unseen.jsonl"

Row = dict[str, Any]


def main() -> None:
    rows = [json.loads(line) for path in _list_files() for line in path.read_text().splitlines()]
    wanted = {ref for row in rows for name in ("wanted", "helps") for ref in row.get(name, ())}
    sessions: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if "role" in row:
            sessions.setdefault((row["namespace"], row["session"]), []).append(row)
    counts = {"asking": [0, 0], "refuted": [0, 0], "wanted": [0, 0]}
    for turns in sessions.values():
        for at, turn in enumerate(turns):
            if kind := _find_kind(turn, wanted):
                counts[kind][0] += _is_held_back(turn, turns[at + 1 :])
                counts[kind][1] += 1
    print(json.dumps(counts))


def _list_files() -> list[Path]:
    return sorted(path for path in _DATA.glob("*.jsonl") if path.name != _UNSEEN)


def _find_kind(turn: Row, wanted: Iterable[str]) -> str:
    if turn.get("request") or turn.get("asks"):
        return "asking"
    return "refuted" if turn.get("refuted_by") else "wanted" if turn["id"] in wanted else ""


def _is_held_back(turn: Row, following: list[Row]) -> bool:
    said = [(other["role"], other["content"]) for other in following if other["role"] != "tool"]
    return is_taken_back(said) or not list_statements(turn["role"], turn["content"])


if __name__ == "__main__":
    main()
