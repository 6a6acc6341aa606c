"""bench eval, bench pairs, bench unasked: the commands."""

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from memoryd.client.bench import judging, pairs, replaying, scoring, team, unasked
from memoryd.client.bench.evaluation import EvaluatedDaemon, EvaluationRun, evaluate
from memoryd.client.bench.kinds import KINDS, WAYS, kind_of
from memoryd.client.bench.material import Material, Selection
from memoryd.client.errors import Invalid
from memoryd.client.memctl.arguments import Usage, accept_whole
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import OwnersClient, client_for, own_token
from memoryd.client.memctl.local import read_output
from memoryd.client.memctl.output import show
from memoryd.client.memctl.private import PrivateDaemon, run_private_daemon
from memoryd.client.memctl.service import WAIT_S, wait_until_ready
from memoryd.client.transport import paths

LONG_CALL_S = 600.0
_SEEN = Path(__file__).resolve().parents[2] / "tests" / "data" / "unasked" / "seen.jsonl"

R = TypeVar("R")


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="the data: a .jsonl or .jsonl.gz file, or the folder of a team's set"
    )
    parser.add_argument(
        "--way",
        choices=(*WAYS, "both"),
        help="how it is stored: questions by session, turn, `both` of these (the default) or observe; "
        "conversations by add, neighbours or observe (each); a team's set by team",
    )
    parser.add_argument(
        "--limit",
        "--limit-questions",
        dest="limit",
        type=accept_whole(1),
        metavar="N",
        help="only the first N questions",
    )
    parser.add_argument("--half", choices=team.HALVES, help="half of a team's questions (seen)")
    parser.add_argument(
        "--unrelated",
        type=accept_whole(0),
        default=0,
        metavar="N",
        help="first search for N questions about other material of the file, which must change no figure",
    )
    parser.add_argument("--together", action="store_true", help="store everything in one namespace")
    _declare_place(parser)


def _declare_place(parser: ArgumentParser) -> None:
    parser.add_argument("--here", action="store_true", help="use the running daemon, not a temporary one")
    parser.add_argument("--keep", action="store_true", help="with --here: leave the memories there")
    parser.add_argument("--config", metavar="FILE", help="configuration of the temporary daemon")


def _run_eval(args: Namespace) -> None:
    keep, kind = _is_kept(args), kind_of(args.path)
    ways = _choose_ways(args, kind)
    if args.half and kind != "team":
        raise Usage("--half needs a team's set.")
    choice = Selection(args.limit, args.half or team.HALVES[0])
    started = time.monotonic()
    model, scores = "", []
    for way in ways:  # each on a daemon of its own: what another way stored would change how rare a word is
        materials = list(KINDS[kind].materials(args.path, way, choice))
        if not any(material.questions for material in materials):
            raise Invalid(f"{args.path} holds no questions with an answer to find by {way}.")
        model, found = _evaluate(args, materials, keep)
        scores += found
    made = scoring.make_report(args.path, model, ways, scores, time.monotonic() - started)
    show(args, made, lambda: scoring.report_text(made))


def _evaluate(args: Namespace, materials: Sequence[Material], keep: bool) -> tuple[str, list[scoring.Score]]:
    def work(place: EvaluatedDaemon, below: str) -> list[scoring.Score]:
        return evaluate(place, materials, EvaluationRun(below, args.together, keep, args.unrelated))

    return _run_work(args, work, first_time(materials))


def _choose_ways(args: Namespace, kind: str) -> Sequence[str]:
    allowed = KINDS[kind].ways
    by_both = args.way == "both" or (args.way is None and kind == "questions")  # observing takes a minute a question
    asked = ("session", "turn") if by_both else (args.way,) if args.way else allowed
    if not set(asked) <= set(allowed):
        raise Usage(f"{args.path} holds {kind}, which --way {args.way} does not store; use {' or '.join(allowed)}.")
    return asked


def first_time(materials: Sequence[Material]) -> float | None:
    """Return when the first thing of material came about whose questions are asked at a time of their own."""
    timed = [material for material in materials if any(one.at is not None for one in material.questions)]
    return min((item.what.created_at or 0.0 for material in timed for item in material.items), default=None)


def _declare_pairs(parser: ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="PATH", help="the pairs: a .jsonl or .jsonl.gz file")
    parser.add_argument(
        "--wrong", action="store_true", help="list the pairs that are linked or not against their label"
    )
    _declare_place(parser)


def _run_pairs(args: Namespace) -> None:
    keep, given = _is_kept(args), pairs.read_pairs(args.path)
    model, judged = _run_work(args, lambda place, below: pairs.judge(place, given, below, keep))
    made = pairs.make_report(args.path, model, judged, args.wrong)
    show(args, made, lambda: pairs.report_text(made))


def _is_kept(args: Namespace) -> bool:
    """Return whether what is stored is left there: it is where the daemon itself is temporary."""
    if args.keep and not args.here:
        raise Usage("--keep needs --here; the temporary daemon's data is always removed.")
    return args.keep or not args.here


def _declare_unasked(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path",
        type=Path,
        nargs="?",
        metavar="PATH",
        help="the data: a .jsonl or .jsonl.gz file (this checkout's seen half)",
    )
    parser.add_argument("--show", action="append", default=[], metavar="ID", help="print the lines of a test point")
    parser.add_argument("--verbose", action="store_true", help="print the lines of all test points")
    parser.add_argument(
        "--even-unseen", action="store_true", help="print lines of a file whose name says that nobody is to read it"
    )
    parser.add_argument("--config", metavar="FILE", help="configuration of the temporary daemon")


def _run_unasked(args: Namespace) -> None:
    path = args.path or _SEEN
    if not path.exists():
        raise Usage(
            "PATH is needed: there is no data beside this memoryd." if args.path is None else f"{path} is not there."
        )
    is_shown = args.verbose or args.show
    if is_shown and not args.even_unseen and any("unseen" in one.name.casefold() for one in (path, path.resolve())):
        raise Usage(f"{path} is not to be read by whoever works on what it measures; --even-unseen prints it anyway.")
    rows = unasked.read_rows(path)
    points = [row.id for row in rows if isinstance(row, unasked.Start | unasked.Prompt)]
    if unknown := set(args.show) - set(points):
        raise Usage(f"{path} has no test point {min(unknown)}.")
    model, judged = _judge(args, rows)
    made = judging.make_report(path, model, judged, points if args.verbose else args.show)
    show(args, made, lambda: judging.report_text(made))


def _judge(args: Namespace, rows: Sequence[unasked.TimelineRow]) -> tuple[str, list[judging.JudgedPoint]]:
    with replay_alone(paths.config_path(args.config), rows) as (place, injections):
        return _model_name(place), judging.judge_all(rows, injections)


@contextmanager
def replay_alone(
    config_path: Path, rows: Sequence[unasked.TimelineRow], play: type[replaying.ReplayPlayer] | None = None
) -> Iterator[tuple[EvaluatedDaemon, list[replaying.Injection]]]:
    """Replay data of `unasked` on a daemon of its own; it ends with the context."""
    config = ["--config", str(config_path)]
    everything = msgspec.json.decode(read_output("memoryd.daemon", ["--print-config", *config]))
    settings = everything["cognition"]
    quiet_s, summed_up_s = settings["quiet_s"], settings["summary_after_s"]
    rests = {"summary": replaying.Rest(summed_up_s, max(replaying.LONGEST_SUMMARY_S, summed_up_s))}
    if everything["llm"]["url"]:
        rests["extract"] = replaying.Rest(quiet_s, max(replaying.LONGEST_S, quiet_s))
    began_at = next(row.seconds for row in rows if isinstance(row, unasked.TimelineEvent))
    with (
        run_alone([*config, "--seed", "0"], began_at) as (place, daemon),
        replaying.set_hooks_environment(daemon.socket, daemon.data_dir),
    ):
        yield place, replaying.replay(place, rows, rests, play)


# The daemon ----------------------------------------------------------------------------------------------------------


def _run_work(
    args: Namespace, work: Callable[[EvaluatedDaemon, str], R], began_at: float | None = None
) -> tuple[str, R]:
    """Do some work with the daemon of the arguments, below a namespace; return the model's name and the result."""
    if args.here:
        return _run_here(args, work)
    with run_alone(["--config", str(paths.config_path(args.config))], began_at) as (place, _):
        return _model_name(place), work(place, "bench-eval")


@contextmanager
def run_alone(options: Sequence[str], began_at: float | None) -> Iterator[tuple[EvaluatedDaemon, PrivateDaemon]]:
    """Run a daemon whose jobs wait to be asked; with `began_at` its time is set by whoever has it."""
    with run_private_daemon(options, clock=began_at) as daemon:
        place = EvaluatedDaemon(lambda space: daemon.client(space, LONG_CALL_S))
        with daemon.client() as client:
            for job in client.jobs().jobs:
                client.pause_job(job.name)  # so that nothing depends on when one happens to run
        if began_at is not None:
            place = place._replace(set_time=lambda seconds: os.utime(daemon.clock, (seconds, seconds)))
        yield place, daemon


def _run_here(args: Namespace, work: Callable[[EvaluatedDaemon, str], R]) -> tuple[str, R]:
    with client_for(args) as client:
        socket = client.socket_path
        client.status()  # starts the daemon when none answers
    token = own_token()
    place = EvaluatedDaemon(lambda space: OwnersClient(space, socket=socket, token=token, timeout_s=LONG_CALL_S))
    run = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}"
    return _model_name(place), work(place, f"bench-eval/{run}")


def _model_name(place: EvaluatedDaemon) -> str:
    with place.connect("") as client:
        return wait_until_ready(client, WAIT_S).model.name


COMMANDS = {
    "bench eval": Command(
        _declare,
        _run_eval,
        "  memctl bench eval questions.jsonl.gz\n"
        "  memctl bench eval questions.jsonl --way turn --limit 10 --json\n"
        "  memctl bench eval conversations.jsonl.gz --way observe",
    ),
    "bench pairs": Command(
        _declare_pairs, _run_pairs, "  memctl bench pairs pairs.jsonl\n  memctl bench pairs pairs.jsonl --wrong --json"
    ),
    "bench unasked": Command(
        _declare_unasked,
        _run_unasked,
        "  memctl bench unasked months.jsonl\n  memctl bench unasked months.jsonl --show p7 --json",
    ),
}
