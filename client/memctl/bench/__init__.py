"""bench eval: the retrieval quality of this memoryd on a data set of questions with known answers."""

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from memoryd.client import paths
from memoryd.client.errors import Invalid
from memoryd.client.memctl.arguments import Usage
from memoryd.client.memctl.bench.dataset import WAYS, Question, questions
from memoryd.client.memctl.bench.evaluation import Connect, Score, Summary, evaluate, summary
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import OwnersClient, client_for, own_token
from memoryd.client.memctl.output import paint, show
from memoryd.client.memctl.private import private_daemon
from memoryd.client.memctl.service import WAIT_S, wait_until_ready
from memoryd.client.memctl.table import ms, table

LONG_CALL_S = 600.0
FIGURES = ("recall_1", "recall_5", "recall_10", "hit_5", "ndcg_10", "mrr")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="PATH", help="the questions: a .jsonl or .jsonl.gz file")
    parser.add_argument(
        "--way", choices=(*WAYS, "both"), default="both", help="a memory per session or per turn (both)"
    )
    parser.add_argument("--limit-questions", type=int, metavar="N", help="only the first N questions")
    parser.add_argument("--here", action="store_true", help="use the running daemon, not a temporary one")
    parser.add_argument("--keep", action="store_true", help="with --here: leave the memories there")
    parser.add_argument("--config", metavar="FILE", help="configuration of the temporary daemon")


def _eval(args: Namespace) -> None:
    if args.keep and not args.here:
        raise Usage("--keep goes with --here; the temporary daemon's data is always removed.")
    asked = list(islice(questions(args.path), args.limit_questions))
    if not asked:
        raise Invalid(f"{args.path} holds no questions.")
    ways = list(WAYS) if args.way == "both" else [args.way]
    started = time.monotonic()
    model, scores = _here(args, asked, ways) if args.here else _apart(args, asked, ways)
    report = _report(args.path, model, ways, scores, time.monotonic() - started)
    show(args, report, lambda: _text(report))


def _here(args: Namespace, asked: Sequence[Question], ways: Sequence[str]) -> tuple[str, list[Score]]:
    with client_for(args) as client:
        socket = client.socket_path
        client.status()  # starts the daemon when none answers
    token = own_token()
    return _run(
        lambda space: OwnersClient(space, socket=socket, token=token, timeout_s=LONG_CALL_S), asked, ways, args.keep
    )


def _apart(args: Namespace, asked: Sequence[Question], ways: Sequence[str]) -> tuple[str, list[Score]]:
    with private_daemon(["--config", str(paths.config_path(args.config))]) as daemon:
        return _run(lambda space: daemon.client(space, LONG_CALL_S), asked, ways, keep=True)


def _run(connect: Connect, asked: Sequence[Question], ways: Sequence[str], keep: bool) -> tuple[str, list[Score]]:
    with connect("") as client:
        model = wait_until_ready(client, WAIT_S).model.name
    run = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}"
    return model, evaluate(connect, asked, ways, run, keep)


def _report(path: Path, model: str, ways: Sequence[str], scores: list[Score], took_s: float) -> dict[str, Any]:
    """Return all figures: per way the total and each type of question, and each question on its own."""
    parts = {}
    for way in ways:
        mine = [score for score in scores if score.way == way]
        if not mine:
            raise Invalid(f"{path} holds no question with an answer to find by {way}.")
        kinds = sorted({score.type for score in mine})
        by_type = {kind: summary(score for score in mine if score.type == kind) for kind in kinds}
        parts[way] = {"total": summary(mine), "by_type": by_type}
    return {"data": str(path), "model": model, "took_s": round(took_s, 1), "ways": parts, "questions": scores}


def _text(report: dict[str, Any]) -> str:
    lines = [f"{report['data']}, model {report['model']}, {report['took_s']:.0f} s in all; figures in %"]
    for way, part in report["ways"].items():
        rows = [*part["by_type"].items(), ("total", part["total"])]
        headers = ["TYPE", "QUESTIONS", "R@1", "R@5", "R@10", "HIT@5", "NDCG@10", "MRR", "P50 MS", "P95 MS"]
        body = table(headers, [_row(name, part) for name, part in rows], flexible=0, right=range(1, len(headers)))
        lines.append(f"\n{paint(f'one memory per {way}', 'bold')}, {part['total'].memories:,} memories\n{body}")
    return "\n".join(lines)


def _row(name: str, part: Summary) -> list[str]:
    figures = [f"{100 * getattr(part, figure):.1f}" for figure in FIGURES]
    return [name, f"{part.questions}", *figures, ms(part.p50_ms), ms(part.p95_ms)]


COMMANDS = {
    "bench eval": Command(
        _arguments,
        _eval,
        "  memctl bench eval questions.jsonl.gz\n"
        "  memctl bench eval questions.jsonl --way turn --limit-questions 10 --json",
    )
}
