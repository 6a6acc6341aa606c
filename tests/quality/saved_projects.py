"""What sessions are told of saved memories (`tests/data/projects`): is it what they need, and is it nothing wrong?

The projects of a half are replayed in the order of time (`replaying`), and each line is judged (`judging`). What was
told counts for the rest of its session. Beside ours stand the two extremes: the same sessions whose starts tell
nothing, where all that is told comes with the prompts, and starts that tell all that the project may know, so that no
prompt has to. Last, what a start costs for stores of 5, 40 and 200 memories, filled from the sets of this half.

The data has no output of tools, so nothing of that kind can be told.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, cycle, islice
from statistics import median
from typing import Any

import msgspec
from holds import Change, Place, Project, Saved, Session, read_half
from judging import HARMS, JudgedPoint, judge_all
from printing import format_table, percent
from replaying import Injection, ReplayPlayer, replay
from sets import seconds_of
from temporary import DEFAULTS, EvaluatedDaemon, find_counter
from timeline import Harm, MemoryEvent, Prompt, SessionEndEvent, Start, TimelineRow, TurnEvent

from memoryd.client.prompt_text import FRAME, make_inert
from memoryd.client.times import iso

SIZES = (5, 40, 200)
STORES = 3  # of each size
TURN_S = 30.0
PERSONS = "preference"  # the type of what a person wants in each project


class ProjectFigures(msgspec.Struct, kw_only=True):
    """Shares are 0..1, null of nothing; tokens and lines are of one start.

    `told`: of the memories that prompts need, those that their session was told at its start or beside a prompt up to
    then. `told_late`: the same of those that were not told at the start, `late` is their number. `silent`: prompts that
    need nothing and get none. `helping`: lines beside prompts that help. `needed`: lines of starts that a prompt of the
    session needs. `harmful`: lines that harm, of all; `harms` counts them by how they do.
    """

    told: float | None
    told_late: float | None
    late: int
    silent: float | None
    helping: float | None
    needed: float | None
    start_lines: float
    start_tokens: float
    most_tokens: int
    harmful: float | None
    harms: dict[str, int]


def measure_projects(half: str, settings: str = DEFAULTS) -> dict[str, Any]:
    """Return the figures of a half, what came of each test point, and the tokens of starts by size of a store."""
    rows = make_rows(half)
    with replay(rows, settings) as (place, injections):
        ours = judge_all(rows, injections)
        everything = judge_all(rows, list(tell_everything(rows, injections, place)))
        tokens = {str(size): list(measure_starts(place, half, size)) for size in SIZES}
    silent_rows = [row for row in rows if not isinstance(row, Start)]
    with replay(silent_rows, settings) as (_, injections):
        nothing = judge_all(silent_rows, injections)
    ways = {"ours": ours, "a start that tells nothing": nothing, "one that tells everything": everything}
    figures = {name: count_figures(judged, rows) for name, judged in ways.items()}
    names = ("told", "told_late", "silent", "helping", "needed", "harmful")
    return {
        "shares": {name: getattr(figures["ours"], name) for name in names},
        "figures": figures,
        "tokens": tokens,
        "cases": [
            {
                "id": one.id,
                "lines": len(one.lines),
                "helping": sum(line.helps for line in one.lines),
                "harms": [harm for line in one.lines for harm in line.harms],
                "needs": one.wanted,
                "told": sorted({*one.there, *one.known}),
            }
            for one in ours
        ],
    }


# The data as a timeline ----------------------------------------------------------------------------------------------


def make_rows(half: str) -> list[TimelineRow]:
    """Return what happened in the projects of a half in the order of time, with a test point before each prompt."""
    rows: list[tuple[float, TimelineRow]] = []
    for one in read_half("projects", half):
        if isinstance(one, Saved):
            rows.append((seconds_of(one.saved_at), _convert_memory(one)))
        elif isinstance(one, Session):
            rows.extend(_convert_session(one))
        else:
            assert isinstance(one, Project)
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _convert_memory(one: Saved) -> MemoryEvent:
    return MemoryEvent(
        namespace=one.namespace,
        at=one.saved_at,
        id=one.id,
        type=one.type,
        content=one.content,
        supersedes=one.supersedes or None,
        importance=one.importance,
        saved_by=one.saved_by,
    )


def _convert_session(one: Session) -> Iterator[tuple[float, TimelineRow]]:
    began = seconds_of(one.started_at)
    harms: list[Harm] = []

    def mark(place: Place, at: float, name: str) -> dict[str, Any]:
        harms.extend(Harm(ref=never.id, why=never.why, by=never.by) for never in place.never)
        wanted = {"wanted": place.needs, "helps": place.helps, "harms": list(harms)}
        return {**stand(at), "id": f"{one.id}:{name}", **wanted}

    def stand(at: float) -> dict[str, Any]:
        return {"namespace": one.project, "session": one.id, "at": iso(at)}

    yield began, Start(**mark(one.start, began, "start"))
    for number, turn in enumerate(one.turns):
        at = began + (number + 1) * TURN_S
        marks = mark(turn, at, f"{number}:prompt")
        if turn.role == "user":
            yield at, Prompt(**marks, content=turn.content, nothing=turn.expects == "nothing")
        yield at, TurnEvent(**stand(at), id=f"{one.id}:{number}", role=turn.role, content=turn.content)
    at = began + (len(one.turns) + 1) * TURN_S
    yield at, SessionEndEvent(**stand(at))


# The extremes and the sizes ------------------------------------------------------------------------------------------


def tell_everything(
    rows: Sequence[TimelineRow], injections: Iterable[Injection], place: EvaluatedDaemon
) -> Iterator[Injection]:
    """Yield the same test points with starts that tell each memory of the project and what the person wants always."""
    count = find_counter(place.wait_until_ready())
    for injection in injections:
        point, text = injection.point, ""
        if isinstance(point, Start):
            saved = [row for row in rows[: injection.known] if isinstance(row, MemoryEvent)]
            replaced = {row.supersedes for row in saved}
            told = [row for row in saved if row.id not in replaced and _is_open(row, point.namespace)]
            text = "".join([FRAME[0], *(f"- {make_inert(row.content)}\n" for row in told), FRAME[1]])
        yield injection._replace(text=text, tokens=count(text))


def _is_open(row: MemoryEvent, namespace: str) -> bool:
    return row.namespace == namespace or (row.namespace == "/" and row.type == PERSONS)


def measure_starts(place: EvaluatedDaemon, half: str, size: int) -> Iterator[int]:
    """Yield how many tokens a start has in projects of so many memories."""
    changes: list[Change] = read_half("changes", half)
    saved = [one for one in read_half("projects", half) if isinstance(one, Saved) and one.namespace != "/"]
    saved += [one.saved for one in changes]
    now = max(seconds_of(one.saved_at) for one in saved) + 86_400.0
    for number in range(STORES):
        chosen = islice(cycle(saved), number * len(saved) // STORES, number * len(saved) // STORES + size)
        name = f"sizes/{size}-{number}"
        events = [
            msgspec.structs.replace(
                _convert_memory(one), namespace=name, id=f"{name}-{at}", supersedes=None, at=iso(now)
            )
            for at, one in enumerate(chosen)
        ]
        start = Start(namespace=name, session=name, at=iso(now) or "", id=name, wanted=[], helps=[], harms=[])
        player = ReplayPlayer(place, {})
        player.go_to(now)
        try:
            for event in events:
                player.run(event)
            yield player.run(start)[1]
        finally:
            player.close()


# Figures -------------------------------------------------------------------------------------------------------------


def count_figures(judged: Sequence[JudgedPoint], rows: Sequence[TimelineRow]) -> ProjectFigures:
    """Return the figures of one way of telling."""
    starts, prompts = split_points(judged)
    needs = list(list_needs(judged, rows))
    at_prompts = [line for one in prompts for line in one.lines]
    at_starts = [not line.harms and not set(line.refs).isdisjoint(one.wanted) for one in starts for line in one.lines]
    late = [told for _, told, at_start in needs if not at_start]
    lines = [line for one in judged for line in one.lines]
    return ProjectFigures(
        told=_share(told for _, told, _ in needs),
        told_late=_share(late),
        late=len(late),
        silent=_share(not one.lines for one in prompts if one.nothing),
        helping=_share(line.helps for line in at_prompts),
        needed=_share(at_starts),
        start_lines=len(at_starts) / (len(starts) or 1),
        start_tokens=median(one.tokens for one in starts) if starts else 0,
        most_tokens=max((one.tokens for one in starts), default=0),
        harmful=_share(bool(line.harms) for line in lines),
        harms={name: count for name in HARMS if (count := sum(name in line.harms for line in lines))},
    )


def split_points(judged: Sequence[JudgedPoint]) -> tuple[list[JudgedPoint], list[JudgedPoint]]:
    """Return the starts and the prompts."""
    return [one for one in judged if one.kind == "start"], [one for one in judged if one.kind == "prompt"]


def list_needs(judged: Sequence[JudgedPoint], rows: Sequence[TimelineRow]) -> Iterator[tuple[str, bool, bool]]:
    """Yield for each memory that a prompt needs the prompt's id, whether it was told by then, whether at the start."""
    sessions = {row.id: row.session for row in rows if isinstance(row, Prompt | Start)}
    at_start: dict[str, set[str]] = {}
    for one in judged:
        if one.kind == "start":
            refs = (line.refs for line in one.lines if not line.harms)
            at_start[sessions[one.id]] = set(chain.from_iterable(refs))
            continue
        for ref in one.wanted:
            is_told = ref in one.there or ref in one.known
            yield one.id, is_told, ref in at_start.get(sessions[one.id], ())


def _share(values: Iterable[float]) -> float | None:
    given = list(values)
    return sum(given) / len(given) if given else None


def report_text(report: dict[str, Any]) -> str:
    """Return the figures as tables."""
    figures: dict[str, ProjectFigures] = report["figures"]
    headers = ["SAVED MEMORIES", "TOLD", "LATE", "OF", "SILENT", "HELP", "NEEDED", "LINES", "TOKENS", "MOST", "HARM"]
    rows = [
        [
            name,
            percent(one.told),
            percent(one.told_late),
            f"{one.late}",
            *map(percent, (one.silent, one.helping, one.needed)),
            f"{one.start_lines:.1f}",
            f"{one.start_tokens:.0f}",
            f"{one.most_tokens}",
            percent(one.harmful),
        ]
        for name, one in figures.items()
    ]
    sizes = [[size, f"{median(counts):.0f}", f"{max(counts)}"] for size, counts in report["tokens"].items()]
    harms = ", ".join(f"{count} {name}" for name, count in figures["ours"].harms.items()) or "none"
    return "\n".join(
        [
            format_table(headers, rows),
            f"lines that harm: {harms}",
            "",
            format_table(["MEMORIES OF A PROJECT", "TOKENS OF A START", "MOST"], sizes),
        ]
    )
