"""bench pairs: are two statements that contradict each other linked, and no others?

One JSON object a line: `id`, `older`, `newer`, `label` (`contradicts` or `compatible`), `kind`. Each pair is added to a
namespace of its own, first the older one. Right is a link of `contradicts` between the two where the label says so.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from memoryd.client.bench.evaluation import EvaluatedDaemon, clear
from memoryd.client.bench.material import read_lines
from memoryd.client.errors import Invalid
from memoryd.client.memctl.output import make_printable, paint
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.memctl.table import format_table


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


def judge(place: EvaluatedDaemon, pairs: Sequence[Pair], below: str, keep: bool) -> list[JudgedPair]:
    """Add each pair and return what became of it; what was stored is deleted unless it is to be kept."""
    with ProgressBar("adding pairs", len(pairs)) as progress:
        judged = []
        for pair in pairs:
            judged.append(_judge(place, pair, f"{below}/{pair.id}", keep))
            progress.update(len(judged))
    return judged


def _judge(place: EvaluatedDaemon, pair: Pair, namespace: str, keep: bool) -> JudgedPair:
    try:
        with place.connect(namespace) as client:
            client.add(pair.older)
            added = client.add(pair.newer)
    finally:
        if not keep:
            clear(place, namespace)
    return JudgedPair(pair, bool(added.contradicts), added.outcome == "merged")


def read_pairs(path: Path) -> list[Pair]:
    """Return the pairs of a file, at least one."""
    pairs = list(read_lines(path, Pair, "a pair"))
    if not pairs:
        raise Invalid(f"{path} holds no pairs.")
    return pairs


def count_figures(judged: Sequence[JudgedPair]) -> PairFigures:
    """Return what some pairs came to."""
    counts: Counter[tuple[str, bool]] = Counter((one.pair.label, one.linked) for one in judged)
    right, linked = counts["contradicts", True], sum(one.linked for one in judged)
    expected = right + counts["contradicts", False]
    return PairFigures(
        pairs=len(judged),
        contradicts=expected,
        linked=linked,
        merged=sum(one.merged for one in judged),
        precision=right / linked if linked else None,
        recall=right / expected if expected else None,
    )


def make_report(path: Path, model: str, judged: Sequence[JudgedPair], show_wrong: bool) -> dict[str, Any]:
    """Return all figures: the total, by label and kind, and the wrong pairs where they are wanted."""
    kinds = sorted({(one.pair.label, one.pair.kind) for one in judged})
    by_kind = {kind: count_figures([one for one in judged if one.pair.kind == kind]) for _, kind in kinds}
    made = {"data": str(path), "model": model, "total": count_figures(judged), "by_kind": by_kind}
    return {**made, "wrong": [one for one in judged if one.wrong]} if show_wrong else made


def report_text(report: dict[str, Any]) -> str:
    """Return the report as a table and the wrong pairs below it."""
    total: PairFigures = report["total"]
    links = f"precision {_percent_text(total.precision)}, recall {_percent_text(total.recall)}"
    headers = ["KIND", "PAIRS", "CONTRADICT", "LINKED", "MERGED"]
    rows = [_row(kind or "(none)", part) for kind, part in report["by_kind"].items()]
    lines = [
        f"{report['data']}, model {report['model']}",
        format_table(headers, [*rows, _row("total", total)], flexible=0, right=range(1, len(headers))),
        f"links: {links}; {total.merged} of {total.pairs} pairs merged",
    ]
    return "\n".join([*lines, *(_wrong_text(one) for one in report.get("wrong", []))])


def _wrong_text(one: JudgedPair) -> str:
    became = "linked" if one.linked else "merged" if one.merged else "not linked"
    pair = one.pair
    head = f"\n{paint(pair.id, 'bold')} {pair.kind}, {pair.label}, {became}"
    return "\n  ".join([head, make_printable(pair.older), make_printable(pair.newer)])


def _row(name: str, part: PairFigures) -> list[str]:
    return [name, f"{part.pairs}", f"{part.contradicts}", f"{part.linked}", f"{part.merged}"]


def _percent_text(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
