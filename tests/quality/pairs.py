"""Measure whether two statements that contradict each other are linked, and no others.

python tests/quality/pairs.py PATH [--wrong] [--model NAME | --config FILE] [--json]

PATH has one JSON object a line: `id`, `older`, `newer`, `label` (`contradicts` or `compatible`), `kind`. Each pair is
added to a namespace of its own, first the older one. Right is a link of `contradicts` between the two where the label
says so.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from printing import format_table, percent, print_json
from sets import read_lines
from temporary import DEFAULTS, EvaluatedDaemon, declare_settings, read_settings, run_daemon

from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.programs.memctl.progress import ProgressBar


class Pair(msgspec.Struct):
    """A line of the file."""

    id: str
    older: str
    newer: str
    label: Literal["contradicts", "compatible"]
    kind: str = ""


class JudgedPair(msgspec.Struct):
    """A pair and what adding it came to: `linked` as a contradiction, `merged` into one memory, or neither."""

    pair: Pair
    linked: bool
    merged: bool

    @property
    def wrong(self) -> bool:
        """Whether the link, or its absence, is wrong."""
        return self.linked != (self.pair.label == "contradicts")


class PairFigures(msgspec.Struct):
    """How many pairs there were and what became of them; `precision` and `recall` of the links, null of nothing."""

    pairs: int
    contradicts: int
    linked: int
    merged: int
    precision: float | None
    recall: float | None


def main() -> None:
    """Judge the pairs of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("path", type=Path, metavar="PATH", help="a .jsonl or .jsonl.gz file")
    parser.add_argument("--wrong", action="store_true", help="list the pairs that are judged wrongly")
    parser.add_argument("--json", action="store_true", help="print all figures")
    declare_settings(parser)
    args = parser.parse_args()
    try:
        report = judge_file(args.path, args.wrong, read_settings(args))
    except (MemorydError, OSError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")
    print_json(report) if args.json else print(report_text(report))


def judge_file(path: Path, show_wrong: bool = False, settings: str = DEFAULTS) -> dict[str, Any]:
    """Return the report on a file; with `show_wrong` it has the texts of the pairs that are judged wrongly."""
    pairs = list(read_lines(path, Pair, "a pair"))
    if not pairs:
        raise Invalid(f"{path} holds no pairs.")
    with run_daemon(settings) as (place, _):
        model = place.wait_until_ready()
        judged = judge(place, pairs)
    kinds = dict.fromkeys(kind for _, kind in sorted({(pair.label, pair.kind) for pair in pairs}))
    report: dict[str, Any] = {
        "data": str(path),
        "model": model,
        "total": count_figures(judged),
        "by_kind": {kind: count_figures([one for one in judged if one.pair.kind == kind]) for kind in kinds},
        "linked": {one.pair.id: one.linked for one in judged},
    }
    return {**report, "wrong": [one for one in judged if one.wrong]} if show_wrong else report


def judge(place: EvaluatedDaemon, pairs: Sequence[Pair]) -> list[JudgedPair]:
    """Add each pair and return what became of it."""
    judged = []
    with ProgressBar("adding pairs", len(pairs)) as progress:
        for pair in pairs:
            with place.connect(f"bench-eval/{pair.id}") as client:
                client.add(pair.older)
                added = client.add(pair.newer)
            judged.append(JudgedPair(pair, bool(added.contradicts), added.outcome == "merged"))
            progress.update(len(judged))
    return judged


def count_figures(judged: Sequence[JudgedPair]) -> PairFigures:
    """Return what some pairs came to."""
    linked = sum(one.linked for one in judged)
    expected = sum(one.pair.label == "contradicts" for one in judged)
    right = sum(one.linked and not one.wrong for one in judged)
    return PairFigures(
        pairs=len(judged),
        contradicts=expected,
        linked=linked,
        merged=sum(one.merged for one in judged),
        precision=right / linked if linked else None,
        recall=right / expected if expected else None,
    )


def report_text(report: dict[str, Any]) -> str:
    """Return the report as a table and the wrong pairs below it."""
    total: PairFigures = report["total"]
    rows = [
        [kind or "(none)", *(f"{count}" for count in (part.pairs, part.contradicts, part.linked, part.merged))]
        for kind, part in {**report["by_kind"], "total": total}.items()
    ]
    lines = [
        f"{report['data']}, model {report['model']}",
        format_table(["KIND", "PAIRS", "CONTRADICT", "LINKED", "MERGED"], rows),
        f"links: precision {percent(total.precision)} %, recall {percent(total.recall)} %; "
        f"{total.merged} of {total.pairs} pairs merged",
    ]
    for one in report.get("wrong", []):
        became = "linked" if one.linked else "merged" if one.merged else "not linked"
        lines.append(f"\n{one.pair.id} {one.pair.kind}, {one.pair.label}, {became}")
        lines += [f"  {one.pair.older}", f"  {one.pair.newer}"]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
