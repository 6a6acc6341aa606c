"""How good the answers are: every set of docs/quality.md, one after the other, with the tables of `memctl bench`.

python tests/benchmarks/quality.py [--longmemeval FILE] [--locomo FILE] [--limit N]

The team's set, what comes up unasked and contradictions are in this checkout. The public sets are their authors': fetch
`longmemeval_s.json` (github.com/xiaowu0162/LongMemEval) and `locomo10.json` (github.com/snap-research/locomo), and give
them as they are, or lines in the form that `memctl bench eval` reads.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}  # of LoCoMo


def main() -> int:
    """Run all; return how many failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longmemeval", type=Path, metavar="FILE")
    parser.add_argument("--locomo", type=Path, metavar="FILE")
    parser.add_argument("--limit", type=int, metavar="N", help="only so many questions of each set that has any")
    given = parser.parse_args()
    limit = ["--limit", str(given.limit)] if given.limit else []
    with tempfile.TemporaryDirectory(prefix="quality-") as folder:
        orders = [["eval", str(DATA / "team"), *limit]]
        for file, ways in ((given.longmemeval, ("session", "turn")), (given.locomo, ("add", "observe"))):
            if file:
                lines = str(write_lines(file, Path(folder)))
                orders += [["eval", lines, "--way", way, *limit] for way in ways]
        orders.append(["unasked", str(DATA / "unasked" / "seen.jsonl")])
        orders.append(["pairs", str(DATA / "pairs" / "pairs-seen.jsonl")])
        return sum(not _run(order) for order in orders)


def _run(order: list[str]) -> bool:
    print(f"$ memctl bench {' '.join(order)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "memoryd.client.memctl", "bench", *order], check=False)
    print(flush=True)
    return done.returncode == 0


def write_lines(file: Path, folder: Path) -> Path:
    """Return the file with the lines that memctl reads: as it is, or made of a set as it is published."""
    if file.suffix != ".json":
        return file
    published = json.loads(file.read_text("utf-8"))
    convert = _convert_chat if "haystack_sessions" in published[0] else _convert_conversation
    target = folder / f"{file.stem}.jsonl"
    target.write_text("".join(f"{json.dumps(convert(one))}\n" for one in published), "utf-8")
    return target


def _convert_chat(published: dict[str, Any]) -> dict[str, Any]:
    """Return a question of LongMemEval with the sessions that are searched for it."""
    parts = ("haystack_session_ids", "haystack_dates", "haystack_sessions")
    return {
        "id": published["question_id"],
        "type": published["question_type"],
        "question": published["question"],
        "question_date": published["question_date"],
        "gold_sessions": published["answer_session_ids"],
        "sessions": [
            {"id": id, "date": date, "turns": turns}
            for id, date, turns in zip(*(published[part] for part in parts), strict=True)
        ],
    }


def _convert_conversation(published: dict[str, Any]) -> dict[str, Any]:
    """Return a conversation of LoCoMo with its questions."""
    said = published["conversation"]
    return {
        "id": published["sample_id"],
        "speakers": [said["speaker_a"], said["speaker_b"]],
        "sessions": list(_list_sessions(said)),
        "questions": [
            {
                "id": f"{published['sample_id']}-{number}",
                "category": _CATEGORIES[asked["category"]],
                "question": asked["question"],
                "gold_turns": asked.get("evidence", []),
            }
            for number, asked in enumerate(published["qa"])
        ],
    }


def _list_sessions(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for number in range(1, len(said)):
        turns = said.get(f"session_{number}")
        if turns:
            yield {
                "id": f"session_{number}",
                "date": said[f"session_{number}_date_time"],
                "turns": [{"id": turn["dia_id"], "speaker": turn["speaker"], "text": turn["text"]} for turn in turns],
            }


if __name__ == "__main__":
    sys.exit(main())
