"""Fit how sure it is that a memory is about a prompt (`daemon/unasked/sureness.py`), and show what the fit is worth.

python tests/quality/fit_sureness.py [PATH ...]: replays data as `timeline` describes it, by default what may be read,
and reads from the traces what was measured of everything that might have come up at each prompt. It prints what each
project gets at several floors by the factors of a fit on all other projects, and the factors of a fit on all of them.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from judging import judge_all
from numpy.typing import NDArray
from printing import format_table
from replaying import make_id, replay
from timeline import MemoryEvent, Prompt, TurnEvent, read_rows

from memoryd.client.protocol import GetTrace, Trace, Traces
from memoryd.daemon.unasked.sureness import Measured

DATA = Path(__file__).parents[1] / "data" / "unasked"
READ = ("seen.jsonl", "practice-2.jsonl")  # nobody reads the unseen half
FLOORS = (0.3, 0.35, 0.4, 0.45, 0.5)
MOST_LINES = 1
RIDGE = 2.0  # on the factors of what was measured, each in its standard deviations: there are few projects
ROUNDS = 60

Numbers = NDArray[np.float64]


class Candidate(NamedTuple):
    """What might come up at a prompt."""

    ref: str
    measured: Measured
    helps: bool


class Point(NamedTuple):
    """A prompt, what might come up there, and which things the session's start gave."""

    project: str
    session: str
    wanted: frozenset[str]
    nothing: bool
    given: frozenset[str]
    candidates: list[Candidate]


def main() -> None:
    """Replay, fit, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", type=Path, nargs="*", metavar="PATH", default=[DATA / name for name in READ])
    points = [point for path in parser.parse_args().paths for point in measure(path)]
    print_worth(points)
    constant, factors = fit(points)
    print(f"\n_CONSTANT, _FACTORS = {constant:.3f}, ({', '.join(f'{factor:.3f}' for factor in factors)})")


def measure(path: Path) -> Iterator[Point]:
    """Yield the prompts of a file, with what was measured there."""
    rows = read_rows(path)
    persons = {row.id for row in rows if isinstance(row, MemoryEvent) and row.namespace == "/"}  # they help everywhere
    refs = {make_id(row.id): row.id for row in rows if isinstance(row, MemoryEvent | TurnEvent)}
    with replay(rows) as (place, injections), place.connect("") as client:
        asked = client.call(Traces(kind=["get_unasked"], limit=256)).traces
        traces = [client.call(GetTrace(id=one.id)) for one in asked]
        judged = judge_all(rows, injections)
    measured = {(trace.namespace, trace.session, trace.query): trace for trace in traces}
    given: dict[tuple[str, str], frozenset[str]] = {}
    for injection, one in zip(injections, judged, strict=True):
        point = injection.point
        if not isinstance(point, Prompt):
            given[point.namespace, point.session] = frozenset(ref for line in one.lines for ref in line.refs)
            continue
        trace = measured[point.namespace.strip("/"), point.session, point.content]
        yield Point(
            f"{path.stem} {point.namespace}",
            point.session,
            frozenset(point.wanted),
            point.nothing,
            given.get((point.namespace, point.session), frozenset()),
            [one for one in read_candidates(trace, refs, {*point.wanted, *point.helps}) if one.ref not in persons],
        )


def read_candidates(trace: Trace, refs: Mapping[str, str], good: set[str]) -> Iterator[Candidate]:
    """Yield what a trace says of what might have come up."""
    for stage in trace.stages:
        for id, known in stage.notes.items() if stage.name == "sureness" else ():
            if "above" in known:
                measured = Measured(*(known[name] for name in Measured._fields))
                yield Candidate(refs.get(id, id), measured, refs.get(id) in good)


def fit(points: Sequence[Point]) -> tuple[float, Numbers]:
    """Return the constant and the factors of a logistic regression on all candidates."""
    known = np.array([one.measured for point in points for one in point.candidates])
    helps = np.array([one.helps for point in points for one in point.candidates], float)
    mean, deviation = known.mean(0), known.std(0) + 1e-9
    columns = np.c_[np.ones(len(known)), (known - mean) / deviation]
    ridge = np.diag([1e-6, *[RIDGE] * known.shape[1]])
    factors = np.zeros(columns.shape[1])
    for _ in range(ROUNDS):
        sure = 1 / (1 + np.exp(-columns @ factors))
        curvature = (columns * (sure * (1 - sure))[:, None]).T @ columns + ridge
        factors -= np.linalg.solve(curvature, columns.T @ (sure - helps) + ridge @ factors)
    found = factors[1:] / deviation
    return float(factors[0] - found @ mean), found


def print_worth(points: Sequence[Point]) -> None:
    """Print what projects get that are left out of the fit."""
    projects = sorted({point.project for point in points})
    fits = {left: fit([point for point in points if point.project != left]) for left in projects}
    parts = {"all": points, **{name: [one for one in points if one.project == name] for name in projects}}
    rows = [
        [name, f"{floor:.2f}", *count([(point, rate(point, *fits[point.project])) for point in part], floor)]
        for name, part in parts.items()
        for floor in (FLOORS if name == "all" else [0.3])
    ]
    headers = ["LEFT OUT OF THE FIT", "FLOOR", "LINES", "HELP", "GOT", "OR HAD", "SILENT"]
    print(format_table(headers, rows))


def rate(point: Point, constant: float, factors: Numbers) -> list[float]:
    """Return how sure each candidate is."""
    return [float(1 / (1 + np.exp(-constant - factors @ np.array(one.measured)))) for one in point.candidates]


def count(prompts: Sequence[tuple[Point, list[float]]], floor: float) -> list[str]:
    """Return the figures of some prompts in percent, as `judging` counts them."""
    given: dict[tuple[str, str], set[str]] = {}
    lines, helping, got, had, silent = 0, 0, 0, 0, 0
    for point, sure in prompts:
        has = given.setdefault((point.project, point.session), set(point.given))
        rated = sorted(zip(sure, point.candidates, strict=True), key=lambda item: -item[0])
        least = max([floor, *(value for value, one in rated if one.ref in has)])
        chosen = [one for value, one in rated if one.ref not in has and value >= least][:MOST_LINES]
        lines, helping = lines + len(chosen), helping + sum(one.helps for one in chosen)
        if point.nothing:
            silent += not chosen
        else:
            got += any(one.helps for one in chosen)
            had += any(one.helps for one in chosen) or not has.isdisjoint(point.wanted)
        has.update(one.ref for one in chosen)
    nothing = sum(point.nothing for point, _ in prompts)
    telling = len(prompts) - nothing
    parts = (helping, lines), (got, telling), (had, telling), (silent, nothing)
    return [f"{lines}", *(f"{100 * part / of:.1f}" if of else "–" for part, of in parts)]


if __name__ == "__main__":
    main()
