"""Measure the quality on every set, print the figures, and say which questions changed since a saved run.

python tests/quality/run.py [--quick] [--sets FOLDER] [--save FILE] [--before FILE]

The team's set, pairs of statements, what comes up unasked and what is told of saved memories are in this checkout.
Public sets are their authors': a FOLDER has those that are wanted, such as `longmemeval_s.json` and `locomo10.json` as
they are published, or `realtalk.jsonl.gz` and `beam.jsonl.gz` in the forms of `sets`. A set that is not there is
skipped.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pairs
import saved
import unasked
from evaluate import evaluate_file
from printing import percent

from memoryd.client.errors import MemorydError

DATA = Path(__file__).resolve().parents[1] / "data"
PUBLIC = {  # the beginnings of files' names, and the ways that are measured
    "locomo": ("observe", "add"),
    "realtalk": ("observe",),
    "beam": ("observe",),
    "longmemeval": ("session", "turn"),
}
QUICK = ("team", "pairs-seen", "pairs-unseen-2", "unasked-seen", "locomo.observe")

Reports = dict[str, dict[str, Any]]


def main() -> int:
    """Measure all; return how many sets failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--sets", type=Path, metavar="FOLDER", help="the folder of public sets")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--before", type=Path, metavar="FILE", help="what an earlier run has saved")
    args = parser.parse_args()
    before: Reports = json.loads(args.before.read_text("utf-8")) if args.before else {}
    reports: Reports = {}
    failed = 0
    for name, measure in list_sets(args.sets):
        if args.quick and name not in QUICK:
            continue
        if measure is None:
            where = args.sets or "--sets, which is not given"
            print(
                f"{name}: skipped, there is no file {name.partition('.')[0]}*.json, *.jsonl or *.jsonl.gz in {where}\n"
            )
            continue
        started = time.monotonic()
        try:
            reports[name] = json.loads(msgspec.json.encode(measure()))
        except (MemorydError, OSError) as error:
            print(f"{name}: FAILED: {error}\n", flush=True)
            failed += 1
            continue
        print(f"{name}, {time.monotonic() - started:.0f} s")
        print("\n".join(compare(reports[name], before.get(name))) + "\n", flush=True)
        if args.save:
            args.save.parent.mkdir(parents=True, exist_ok=True)
            args.save.write_text(json.dumps(reports, indent=1) + "\n", "utf-8")
    return failed


def list_sets(folder: Path | None) -> Iterator[tuple[str, Callable[[], dict[str, Any]] | None]]:
    """Yield the name of each set and what measures it; None: the set is not there."""
    yield "team", partial(evaluate_file, DATA / "team")
    for half in ("seen", "unseen-2"):
        yield f"pairs-{half}", partial(pairs.judge_file, DATA / "pairs" / f"pairs-{half}.jsonl")
    yield "unasked-seen", partial(unasked.judge_file, unasked.SEEN)
    for name in saved.MEASURES:
        yield f"saved-{name}", partial(saved.measure, name, "seen")
    for name, ways in PUBLIC.items():
        files = [file for file in sorted(folder.glob(f"{name}*")) if ".json" in file.name] if folder else []
        for way in ways:
            yield f"{name}.{way}", partial(evaluate_file, files[0], way) if files else None


# Comparing -----------------------------------------------------------------------------------------------------------


def compare(report: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    """Return the lines to print of a set: its figures in %, with their change since `before`, and what changed."""
    former = list_figures(before) if before else {}
    lines = []
    for name, value in list_figures(report).items():
        was = former.get(name)
        change = f"  (was {percent(was)}, {100 * (value - was):+.1f})" if None not in (was, value) else ""
        lines.append(f"  {name:<24}{percent(value):>6}{change}")
    if before is None:
        return lines
    now, then = list_answers(report), list_answers(before)
    changed = [
        f"    {name}: {then.get(name)} → {now.get(name)}" for name in now | then if now.get(name) != then.get(name)
    ]
    return [*lines, f"  {len(changed)} of {len(now)} questions changed", *changed]


def list_figures(report: dict[str, Any]) -> dict[str, float | None]:
    """Return the figures of a set by name; shares."""
    if "shares" in report:
        return dict(report["shares"])
    if "linked" in report:
        return {name: report["total"][name] for name in ("precision", "recall")}
    if "points" in report:
        names = ("helping", "harmful", "wanted", "got", "silent")
        return {
            f"{kind}s {name}": part[name]
            for kind, part in report["figures"].items()
            for name in names
            if part[name] is not None
        }
    [part] = report["ways"].values()
    total = part["total"]
    figures = {
        "nDCG@10": total["ndcg_10"],
        "recall@10": total["recall_10"],
        "hit@5": total["hit_5"],
        "hit@1": total["hit_1"],
    }
    for size, one in total["contexts"].items():
        figures[f"context of {size}"] = one["hit"]
    return figures | {"disputed": max(one["disputed"] for one in total["contexts"].values())}


def list_answers(report: dict[str, Any]) -> dict[str, str]:
    """Return by question, pair, test point or case what came of it, in a few words."""
    if "shares" in report:
        return {one["id"]: json.dumps(one) for one in report["cases"]}
    if "linked" in report:
        return {id: "linked" if is_linked else "not linked" for id, is_linked in report["linked"].items()}
    if "points" in report:
        names = ("lines", "helping", "harmful", "there")
        return {one["id"]: ", ".join(f"{one[name]} {name}" for name in names) for one in report["points"]}
    answers = {}
    for one in report["questions"]:
        contexts = " · ".join(f"{100 * context['hit']:.0f}" for context in one["contexts"])
        answers[one["question"]] = (
            f"nDCG@10 {percent(one['ndcg_10'])}, recall@10 {percent(one['recall_10'])}, contexts {contexts}"
        )
    return answers


if __name__ == "__main__":
    sys.exit(main())
