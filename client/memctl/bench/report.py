"""What an evaluation came to: one document for --json, tables for people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.client.errors import Invalid
from memoryd.client.memctl.bench.kinds import WAYS
from memoryd.client.memctl.bench.scoring import (
    Score,
    Summary,
    Unanswerable,
    summarise,
    summarise_groups,
    summarise_unanswerable,
)
from memoryd.client.memctl.output import paint
from memoryd.client.memctl.table import format_table, ms_text

FIGURES = {
    "R@1": "recall_1",
    "R@5": "recall_5",
    "R@10": "recall_10",
    "HIT@1": "hit_1",
    "HIT@5": "hit_5",
    "NDCG@10": "ndcg_10",
    "MRR": "mrr",
    "KEPT": "kept",
}


def make_report(path: Path, model: str, ways: Sequence[str], scores: list[Score], took_s: float) -> dict[str, Any]:
    """Return all figures: per way the total and each type of question, and each question on its own."""
    parts = {way: _make_part(path, way, [score for score in scores if score.way == way]) for way in ways}
    return {"data": str(path), "model": model, "took_s": round(took_s, 1), "ways": parts, "questions": scores}


def _make_part(path: Path, way: str, scores: Sequence[Score]) -> dict[str, Any]:
    right = [score for score in scores if score.gold]
    wrong = [score for score in scores if not score.gold]
    if not right:
        raise Invalid(f"{path} holds no question with an answer to find by {way}.")
    part: dict[str, Any] = {"total": summarise(right), "by_type": summarise_groups(right, lambda score: score.type)}
    if any(score.language for score in right):
        part["by_language"] = summarise_groups(right, lambda score: score.language)
    if wrong:
        part["unanswerable"] = summarise_unanswerable(wrong)
    return part


def report_text(report: Mapping[str, Any]) -> str:
    """Return the report as tables, at most 100 columns wide."""
    lines = [f"{report['data']}, model {report['model']}, {report['took_s']:.0f} s in all; figures in %"]
    for way, part in report["ways"].items():
        total: Summary = part["total"]
        lines.append(f"\n{paint(WAYS[way], 'bold')}, {total.memories:,} memories")
        lines.append(_types_text({**part["by_type"], **part.get("by_language", {}), "total": total}))
        lines.append(_contexts_text(total, part.get("unanswerable")))
    return "\n".join(lines)


def _types_text(parts: Mapping[str, Summary]) -> str:
    headers = ["TYPE", "ASKED", *FIGURES, "P50 MS", "P95 MS"]
    rows = []
    for name, part in parts.items():
        shares = [_percent_text(getattr(part, figure)) for figure in FIGURES.values()]
        rows.append([name, f"{part.questions}", *shares, ms_text(part.p50_ms), ms_text(part.p95_ms)])
    return format_table(headers, rows, flexible=0, right=range(1, len(headers)))


def _contexts_text(total: Summary, wrong: Unanswerable | None) -> str:
    headers = ["CONTEXT", "WITH GOLD", "OF THE GOLD", "TOKENS", "DISPUTED", "P50 MS"]
    rows = [
        [
            f"{size} tokens" if size.isdigit() else size,
            _percent_text(one.hit),
            _percent_text(one.recall),
            f"{one.tokens:.0f}",
            _percent_text(one.disputed),
            ms_text(one.p50_ms),
        ]
        for size, one in total.contexts.items()
    ]
    if not wrong:
        return format_table(headers, rows, right=range(1, len(headers)))
    headers += ["NO ANSWER: MEDIAN TOKENS", "≤ 50 TOKENS"]
    for row, one in zip(rows, wrong.contexts.values(), strict=True):
        row += [f"{one.median_tokens}", _percent_text(one.small)]
    return (
        f"{format_table(headers, rows, right=range(1, len(headers)))}\n"
        f"no search result: {_percent_text(wrong.empty)} of {wrong.questions} questions that nothing answers, "
        f"{_percent_text(total.empty)} of the others"
    )


def _percent_text(share: float) -> str:
    return f"{100 * share:.1f}"
