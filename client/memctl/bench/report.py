"""What an evaluation came to: one document for --json, tables for people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.client.errors import Invalid
from memoryd.client.memctl.bench.kinds import WAYS
from memoryd.client.memctl.bench.scoring import Score, Summary, Unanswerable, grouped, summary, unanswerable
from memoryd.client.memctl.output import paint
from memoryd.client.memctl.table import ms, table

FIGURES = {
    "R@1": "recall_1",
    "R@5": "recall_5",
    "R@10": "recall_10",
    "HIT@5": "hit_5",
    "NDCG@10": "ndcg_10",
    "MRR": "mrr",
    "KEPT": "kept",
}


def report(path: Path, model: str, ways: Sequence[str], scores: list[Score], took_s: float) -> dict[str, Any]:
    """Return all figures: per way the total and each type of question, and each question on its own."""
    parts = {way: _part(path, way, [score for score in scores if score.way == way]) for way in ways}
    return {"data": str(path), "model": model, "took_s": round(took_s, 1), "ways": parts, "questions": scores}


def _part(path: Path, way: str, scores: Sequence[Score]) -> dict[str, Any]:
    right = [score for score in scores if score.gold]
    wrong = [score for score in scores if not score.gold]
    if not right:
        raise Invalid(f"{path} holds no question with an answer to find by {way}.")
    part: dict[str, Any] = {"total": summary(right), "by_type": grouped(right, lambda score: score.type)}
    if any(score.language for score in right):
        part["by_language"] = grouped(right, lambda score: score.language)
    if wrong:
        part["unanswerable"] = unanswerable(wrong)
    return part


def text(report: Mapping[str, Any]) -> str:
    """Return the report as tables, at most 100 columns wide."""
    lines = [f"{report['data']}, model {report['model']}, {report['took_s']:.0f} s in all; figures in %"]
    for way, part in report["ways"].items():
        total: Summary = part["total"]
        lines.append(f"\n{paint(WAYS[way], 'bold')}, {total.memories:,} memories")
        lines.append(_by_type({**part["by_type"], **part.get("by_language", {}), "total": total}))
        lines.append(_contexts(total, part.get("unanswerable")))
    return "\n".join(lines)


def _by_type(parts: Mapping[str, Summary]) -> str:
    headers = ["TYPE", "ASKED", *FIGURES, "P50 MS", "P95 MS"]
    rows = [[name, f"{part.questions}", *_figures(part)] for name, part in parts.items()]
    return table(headers, rows, flexible=0, right=range(1, len(headers)))


def _figures(part: Summary) -> list[str]:
    return [*(_percent(getattr(part, figure)) for figure in FIGURES.values()), ms(part.p50_ms), ms(part.p95_ms)]


def _contexts(total: Summary, wrong: Unanswerable | None) -> str:
    headers = ["CONTEXT", "WITH GOLD", "OF THE GOLD", "TOKENS", "P50 MS"]
    rows = [
        [
            f"{size} tokens" if size.isdigit() else size,
            _percent(one.hit),
            _percent(one.recall),
            f"{one.tokens:.0f}",
            ms(one.p50_ms),
        ]
        for size, one in total.contexts.items()
    ]
    if wrong:
        headers += ["NO ANSWER: MEDIAN TOKENS", "≤ 50 TOKENS"]
        rows = [
            [*row, f"{one.median_tokens}", _percent(one.small)]
            for row, one in zip(rows, wrong.contexts.values(), strict=True)
        ]
    shown = table(headers, rows, right=range(1, len(headers)))
    if wrong:
        shown += (
            f"\nno search result: {_percent(wrong.empty)} of {wrong.questions} questions that nothing answers, "
            f"{_percent(total.empty)} of the others"
        )
    return shown


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
