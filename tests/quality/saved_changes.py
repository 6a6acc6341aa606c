"""What is told of a saved memory after a later session changed it, or only sounded so (`tests/data/changes`).

Each case is a project of its own: the memory is saved, and the session is replayed through the hooks. Days later, when
the jobs have run, the old memory may be told in four ways: at a new session's start, beside the prompt that asks for
it, by `memctl search` and by the MCP server's `memory_search`. Each gives entries, lines or results. An entry tells the
memory that has its first id, or, as lines of a start have none, whose text it begins with. It tells the later statement
beside it if it has a passage of `LEAST_BYTES` of what the session said of the change, which the old memory does not
have, or if it names that turn by its id and has a whole sentence of it.

Of what was changed, an entry with both helps and the old memory alone harms; it is `apart` if the later statement is in
another entry of the same text. Of what holds, any turn of the session beside the memory is a false later statement; it
is counted apart if it is told as what may be a change.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from holds import Change, read_half
from judging import LEAST_BYTES, split_sentences
from printing import format_table, percent
from replaying import call_tool, make_id, replay
from sets import seconds_of
from temporary import DEFAULTS
from timeline import MemoryEvent, Prompt, SessionEndEvent, Start, TimelineRow, TurnEvent

from memoryd.client.programs.memctl.local import read_output
from memoryd.client.prompt_text import make_inert
from memoryd.client.times import iso

WAYS = ("start", "prompt", "search", "mcp")
KINDS = ("old-value", "other-value", "other-words")
HARD = ("exception", "refused", "question", "elsewhere", "quoted-or-past")
EASY = "easy"
MAYBE = "maybe changed, "
TURN_S = 30.0
_ID = re.compile(r"\b[0-9a-f]{8}\b")
LATER_S = 2 * 86_400.0  # after the last session of all


class Told(msgspec.Struct):
    """What one way tells: the old memory at all, alone, beside the later statement; `apart`: see above.

    `maybe`: what is beside it is told as what may be a change, and not as one.
    """

    old: bool = False
    alone: bool = False
    beside: bool = False
    apart: bool = False
    maybe: bool = False


class JudgedCase(msgspec.Struct):
    """A case without any text."""

    id: str
    kind: str
    is_foreign: bool
    told: dict[str, Told]


def measure_changes(half: str, settings: str = DEFAULTS) -> dict[str, Any]:
    """Return the figures of a half, and what was told in each case."""
    cases: list[Change] = read_half("changes", half)
    texts: dict[str, dict[str, str]] = {one.id: {} for one in cases}
    with replay(make_rows(cases), settings, LATER_S) as (_, injections):
        for one in injections:
            texts[one.point.session][one.point.id.partition(":")[2]] = one.text
        for case in cases:
            namespace = place_of(case)
            words = ["search", "--namespace", namespace, case.question]
            texts[case.id]["search"] = read_output("memoryd.client.programs.memctl", words).decode()
            texts[case.id]["mcp"] = call_tool("memory_search", {"query": case.question}, namespace).text
    judged = [judge(case, texts[case.id]) for case in cases]
    figures = count_figures(judged)
    shares = {
        f"{name}, {what}": figures[name].ways["any"][what]
        for name in (*KINDS, "all that changed", "all that hold, hard")
        if name in figures
        for what in (("beside", "maybe") if "hold" in name else ("alone", "beside"))
    }
    return {"shares": shares, "figures": figures, "cases": judged}


def place_of(case: Change) -> str:
    """Return the namespace of a case."""
    return f"changes/{case.id}"


def make_rows(cases: Sequence[Change]) -> list[TimelineRow]:
    """Return all cases in the order of time, then their test points, whose session is called like the case."""
    rows = sorted((pair for case in cases for pair in _list_events(case)), key=lambda pair: pair[0])
    at = rows[-1][0] + LATER_S
    points = [point for case in cases for point in _list_points(case, at)]
    return [row for _, row in rows] + points


def _list_events(case: Change) -> Iterator[tuple[float, TimelineRow]]:
    saved, began = case.saved, seconds_of(case.started_at)
    yield (
        seconds_of(saved.saved_at),
        MemoryEvent(
            namespace=place_of(case),
            at=saved.saved_at,
            id=case.id,
            type=saved.type,
            content=saved.content,
            importance=saved.importance,
        ),
    )
    for number, turn in enumerate(case.turns):
        at = began + number * TURN_S
        yield (
            at,
            TurnEvent(**_stand(case, at), id=_name_turn(case, number), role=turn.role, content=turn.content),
        )
    at = began + len(case.turns) * TURN_S
    yield at, SessionEndEvent(**_stand(case, at))


def _list_points(case: Change, at: float) -> Iterator[TimelineRow]:
    marks: dict[str, Any] = {"wanted": [], "helps": [], "harms": []}
    about = {**_stand(case, at), **marks, "session": case.id}
    yield Start(**about, id=f"{case.id}:start")
    yield Prompt(**about, id=f"{case.id}:prompt", content=case.question, nothing=False)


def _stand(case: Change, at: float) -> dict[str, Any]:
    return {"namespace": place_of(case), "session": f"{case.id}-said", "at": iso(at)}


def _name_turn(case: Change, number: int) -> str:
    return f"{case.id}:{number}"


# Judging -------------------------------------------------------------------------------------------------------------


def judge(case: Change, texts: dict[str, str]) -> JudgedCase:
    """Return what each way told."""
    numbers = (case.statement, *case.also) if case.label == "changes" else range(len(case.turns))
    told = {way: _judge_text(case, numbers, list_entries(way, texts[way])) for way in WAYS}
    return JudgedCase(case.id, case.kind, case.language != case.said_in or case.language != "en", told)


def list_entries(way: str, text: str) -> list[str]:
    """Return the entries of a text, each on one line: of a search's results the head and what is indented below it."""
    pattern = r"\n(?! )" if way == "search" else r"\n"
    return [entry for part in re.split(pattern, text) if (entry := " ".join(part.split()))]


def _judge_text(case: Change, numbers: Iterable[int], entries: Sequence[str]) -> Told:
    later = {number: case.turns[number].content for number in numbers}

    def is_later(entry: str) -> bool:
        return any(
            tells(entry, text, case.saved.content, make_id(_name_turn(case, number))[:8])
            for number, text in later.items()
        )

    has_old = [entry for entry in entries if _tells_old(entry, case)]
    alone = [entry for entry in has_old if not is_later(entry)]
    beside = [entry for entry in has_old if entry not in alone]
    return Told(
        old=bool(has_old),
        alone=bool(alone),
        beside=bool(beside),
        apart=bool(alone) and any(is_later(entry) for entry in entries if entry not in has_old),
        maybe=bool(beside) and all(MAYBE in entry for entry in beside),
    )


def _tells_old(entry: str, case: Change) -> bool:
    if entry.removeprefix("- ").startswith(make_inert(case.saved.content)):
        return True
    first = _ID.search(entry)
    return first is not None and first[0] == make_id(case.id)[:8]


def tells(entry: str, text: str, old: str, digits: str) -> bool:
    """Return whether an entry has a passage of a text that is not one of the old memory too, or names it."""
    shown, said, former = (make_inert(part).casefold() for part in (entry, text, old))
    if digits in shown and any(sentence in shown for sentence in split_sentences(text, 1)):
        return True
    size = next((size for size in range(len(said)) if len(said[:size].encode()) >= LEAST_BYTES), len(said))
    passages = (said[at : at + size] for at in range(len(said) - size + 1))
    return any(passage in shown and passage not in former for passage in passages)


# Figures -------------------------------------------------------------------------------------------------------------


class ChangeFigures(msgspec.Struct):
    """Shares of all cases of a kind, 0..1: the old memory is told, is told alone, beside its later statement, apart.

    `any` of the ways: told in one of them, told alone in one of them; beside it in one of them, and alone in none.
    """

    cases: int
    ways: dict[str, dict[str, float]]


def count_figures(judged: Sequence[JudgedCase]) -> dict[str, ChangeFigures]:
    """Return the figures by kind."""
    groups = {kind: [one for one in judged if one.kind == kind] for kind in (*KINDS, *HARD, EASY)}
    groups["all that changed"] = [one for one in judged if one.kind in KINDS]
    groups["all that changed, other languages"] = [one for one in groups["all that changed"] if one.is_foreign]
    groups["all that hold, hard"] = [one for one in judged if one.kind in HARD]
    return {name: _count(part) for name, part in groups.items() if part}


def _count(judged: Sequence[JudgedCase]) -> ChangeFigures:
    ways = {way: [one.told[way] for one in judged] for way in WAYS}
    ways["any"] = [_join([one.told[way] for way in WAYS]) for one in judged]
    names = Told.__struct_fields__
    return ChangeFigures(
        len(judged),
        {
            way: {name: sum(getattr(one, name) for one in told) / len(judged) for name in names}
            for way, told in ways.items()
        },
    )


def _join(told: Sequence[Told]) -> Told:
    alone = any(one.alone for one in told)
    return Told(
        old=any(one.old for one in told),
        alone=alone,
        beside=any(one.beside for one in told) and not alone,
        apart=any(one.apart for one in told),
        maybe=any(one.maybe for one in told) and not any(one.beside and not one.maybe for one in told),
    )


def report_text(report: dict[str, Any]) -> str:
    """Return the figures as tables."""
    figures: dict[str, ChangeFigures] = report["figures"]
    changed = [name for name in figures if name in KINDS or "changed" in name]
    held = [name for name in figures if name not in changed]
    ways = (*WAYS, "any")
    headers = ["CHANGED", "CASES", *(f"{way.upper()}: {what}" for way in ways for what in ("ALONE", "BESIDE"))]
    rows = [
        [
            name,
            f"{figures[name].cases}",
            *(percent(figures[name].ways[way][what]) for way in ways for what in ("alone", "beside")),
        ]
        for name in changed
    ]

    def count(name: str, way: str, what: str) -> int:
        return round(figures[name].ways[way][what] * figures[name].cases)

    false = [
        [
            name,
            f"{figures[name].cases}",
            *(f"{count(name, way, 'beside') - count(name, way, 'maybe')}" for way in WAYS),
            f"{sum(_is_false(one) for one in report['cases'] if _is_of(one, name))}",
            f"{count(name, 'any', 'maybe')}",
        ]
        for name in held
    ]
    return "\n".join(
        [
            format_table(headers, rows),
            "",
            format_table(
                ["HOLDS: A FALSE LATER IN", "CASES", *(way.upper() for way in WAYS), "ANY", "MAYBE CHANGED"], false
            ),
        ]
    )


def _is_false(one: JudgedCase) -> bool:
    return any(told.beside and not told.maybe for told in one.told.values())


def _is_of(one: JudgedCase, name: str) -> bool:
    return one.kind == name or (name not in (*HARD, EASY) and one.kind in HARD)
