"""What the lines are worth that came up unasked: what they are made of, whether they help or harm.

A line is known by its text: frame, headings and the greeting of a first session are none, and the date, id and
speaker before a text and the origin behind it do not count, nor does the case of its letters. It is the thing whose
text it is, or the turns of which the daemon made it; else every thing of which it has a whole sentence, or that has one
of its sentences (of at least `LEAST_BYTES`: shorter ones are in other texts by chance). A line of a question and its
answer is both, one that sums up a session is the summary and all the turns whose sentences it has. What it names
further on by its id it is too.

A line harms if one of the things in it does, whatever else it says and however little of that thing it shows:

- `private`: it is in the root, neither pinned nor a preference, and comes up in a project.
- `refuted`, `superseded`: by something that was said or saved before the test point, also where the line says that
  another one disagrees; not where the data says by what, and that is in the line.
- `other-project`: all of it is of projects that the one at hand is not in.
- `request`: somebody asks for work. `tool`: the output of a tool.
- `question`: no line here has its answer.
- what the data calls harmful at this point, by its word for it (`passing`: it mattered that day alone).

So does one that is `cut` (it ends in dots, or in the middle of a sentence) or `repeated`: a sentence of it is in a line
before, here or at an earlier test point of the session. A line that does not harm helps where one of its things is
wanted or helps; a wanted thing is there if a line that helps has it. All else is of no help. These readings are strict:
whoever sees a summary with one refuted sentence among good ones sees the good ones too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
from printing import format_table, percent
from replaying import Injection, make_id
from timeline import MemoryEvent, Prompt, Start, Thing, TimelineRow, TurnEvent

from memoryd.client.prompt_text import FRAME, make_inert

LEAST_BYTES = 20
HARMS = (
    *("private", "refuted", "superseded", "request", "tool", "question", "passing", "other-project"),
    *("cut", "repeated"),
)
_FRAME = frozenset(" ".join(line.split()) for part in FRAME for line in part.splitlines())
_HEADING = re.compile(r"[A-Z][A-Za-z, ]{0,40}:")
_NO_LINE = ("memoryd keeps what is said in sessions", "More is saved: ")
_MARK = re.compile(r"(?:[-*•] )?(?:disagrees with )?(?:\d{4}-\d\d-\d\d )?(?:\[[0-9a-f]{8}\b[^][]*\] )?")
_ID = re.compile(r"\b[0-9a-f]{8}\b")
_NOTE = re.compile(r" \((?:person|agent|heard|file|import|[^()]*\.md[\d:-]*)(?:, (?:un)?confirmed)?\)$")
_PARTS = re.compile(r"(?:^|\s)(?:asked|answer): ")
_SENTENCES = re.compile(r"(?<=[.!?…。！？])\s+|(?<=[。！？])|\n+")
_ENDS = " .!?…。！？"
_DOTS = ("…", "...")


# Texts ---------------------------------------------------------------------------------------------------------------


@cache
def _normalise(text: str) -> str:
    return make_inert(text).casefold()


@cache
def split_sentences(text: str, least_bytes: int = LEAST_BYTES) -> tuple[str, ...]:
    """Return the sentences of a text long enough to say where they are from, folded, without their ends."""
    parts = (_normalise(part).strip(_ENDS) for part in _SENTENCES.split(text))
    return tuple(part for part in parts if len(part.encode()) >= least_bytes)


def read_lines_of(text: str) -> list[str]:
    """Return the lines of what a hook gave that say something, without what is before and behind their text."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    said = [line for line in lines if line and line not in _FRAME and not line.startswith(_NO_LINE)]
    return [_NOTE.sub("", _MARK.sub("", line, count=1)) for line in said if not _HEADING.fullmatch(line)]


class LineSource(msgspec.Struct, frozen=True):
    """A text that a line may be made of, and what it represents."""

    text: str
    refs: frozenset[str]

    @property
    def is_summary(self) -> bool:
        """Return whether this sums up a session: it has sentences of its turns, and none of its own."""
        return any(ref.startswith("summary:") for ref in self.refs)

    def is_in(self, part: str) -> bool:
        """Return whether a part of a line has a sentence of this text, or this text one of its sentences."""
        whole = _normalise(self.text)
        if self.is_summary:
            return whole.startswith(_normalise(part).rstrip(_ENDS))
        return any(one in _normalise(part) for one in split_sentences(self.text)) or any(
            one in whole for one in split_sentences(part)
        )


def find_sources(line: str, sources: Sequence[LineSource]) -> list[LineSource]:
    """Return what a line is made of."""
    found: list[LineSource] = []
    for part in filter(None, _PARTS.split(_normalise(line))):
        same = [one for one in sources if not one.is_summary and _normalise(one.text) == part]
        found += same or [one for one in sources if one.is_in(part)]
    return found


def is_cut(line: str, texts: Sequence[str]) -> bool:
    """Return whether a line ends before a sentence does of the texts that it is made of."""
    whole = _normalise(line)
    if any(_normalise(text).endswith(whole) for text in texts):
        return False
    if whole.endswith(_DOTS):
        return True
    last = next(reversed(split_sentences(line)), "")
    if not last or not whole.strip(_ENDS).endswith(last):
        return False
    has = [sentence for text in texts for sentence in split_sentences(text) if last in sentence]
    return bool(has) and not any(sentence.endswith(last) for sentence in has)


class _GivenTexts:
    """What a session was given: texts, and the things in lines that did not harm."""

    def __init__(self) -> None:
        self.refs: set[str] = set()
        self._texts: set[str] = set()
        self._sentences: set[str] = set()

    def add(self, text: str) -> None:
        """Take note of a text."""
        self._texts.add(_normalise(text))
        self._sentences.update(split_sentences(text))

    def has(self, line: str) -> bool:
        """Return whether something that a line says was given before."""
        whole = _normalise(line)
        if whole in self._texts or any(one in whole for one in self._sentences):
            return True
        return any(one in text for text in self._texts for one in split_sentences(line))


# One test point ------------------------------------------------------------------------------------------------------


class JudgedLine(msgspec.Struct):
    """A line, what it is made of, how it harms, and whether it helps."""

    text: str
    refs: list[str]
    harms: list[str]
    helps: bool


class JudgedPoint(msgspec.Struct, kw_only=True):
    """A test point. `there`: which of `wanted` were. `nothing`: a prompt to which no memory has anything to say.

    `got`: a line helps. `had`: or its session was given a wanted thing before, by a line that does not harm; `known`
    are these.
    """

    id: str
    kind: str
    tokens: int
    lines: list[JudgedLine]
    wanted: list[str]
    there: list[str]
    got: bool
    had: bool
    known: list[str] = []
    nothing: bool = False


def judge_all(rows: Sequence[TimelineRow], injections: Iterable[Injection]) -> list[JudgedPoint]:
    """Judge what was given at the test points, in their order."""
    given: dict[tuple[str, str], _GivenTexts] = {}
    judged: list[JudgedPoint] = []
    for one in injections:
        before = given.setdefault((one.point.namespace, one.point.session), _GivenTexts())
        judged.append(_judge(one, _View(rows[: one.known], one), before))
        before.refs.update(ref for line in judged[-1].lines if not line.harms for ref in line.refs)
    return judged


class _View:
    """What there is at a test point: things by id, and the texts that lines may be made of."""

    def __init__(self, rows: Sequence[TimelineRow], injection: Injection) -> None:
        self.point = injection.point
        self.things: dict[str, Thing] = {row.id: row for row in rows if isinstance(row, MemoryEvent | TurnEvent)}
        self.replaced = {row.supersedes for row in rows if isinstance(row, MemoryEvent)}
        self.by_digits = {make_id(id)[:8]: id for id in self.things}
        own = [LineSource(thing.content, frozenset([id])) for id, thing in self.things.items()]
        self.sources = [*own, *(LineSource(made.content, made.refs) for made in injection.made)]

    def find_refs(self, line: str, sources: Iterable[LineSource]) -> list[str]:
        """Return what a line is made of these sources, or names by the first digits of its id."""
        named = {self.by_digits[digits] for digits in _ID.findall(line) if digits in self.by_digits}
        return sorted(named.union(*(one.refs for one in sources)))

    def is_of_others(self, refs: Sequence[str]) -> bool:
        """Return whether things are all of projects that the one at hand is not in."""
        places = [self.things[ref].namespace for ref in refs if ref in self.things]
        own = f"{self.point.namespace}/"
        return bool(places) and not any(one == "/" or own.startswith(f"{one}/") for one in places)

    def find_harms(self, ref: str, shown: set[str], line: Sequence[str]) -> set[str]:
        """Return how a thing harms, beside other things that are shown and those of its line."""
        thing = self.things.get(ref)
        marked = [harm.why for harm in self.point.harms if harm.ref == ref and harm.by not in line]
        harms: set[str] = {"repeated" if why == "repeat" else why for why in marked}
        if thing is None:
            return harms
        if thing.namespace == "/" != self.point.namespace and not _is_for_all(thing):
            harms.add("private")
        if ref in self.replaced:
            harms.add("superseded")
        if isinstance(thing, TurnEvent):
            is_true = {
                "refuted": thing.refuted_by in self.things,
                "superseded": thing.superseded_by in self.things,
                "request": thing.request,
                "tool": thing.role == "tool",
                "question": thing.asks,
            }
            harms.update(name for name, holds in is_true.items() if holds)
            if thing.answered_by in shown:
                harms.discard("question")
        return harms


def _is_for_all(thing: Thing) -> bool:
    return isinstance(thing, MemoryEvent) and (thing.pinned or thing.type == "preference")


def _judge(injection: Injection, view: _View, before: _GivenTexts) -> JudgedPoint:
    point = injection.point
    texts = read_lines_of(injection.text)
    sources = [find_sources(text, view.sources) for text in texts]
    refs = [view.find_refs(text, found) for text, found in zip(texts, sources, strict=True)]
    shown = {ref for found in refs for ref in found}
    good = {*point.wanted, *point.helps}
    lines: list[JudgedLine] = []
    for text, named in zip(texts, refs, strict=True):
        harms = {harm for ref in named for harm in view.find_harms(ref, shown, named)}
        harms |= {"other-project"} if view.is_of_others(named) else set()
        whole = [view.things[ref].content for ref in named if ref in view.things]
        harms |= {"cut"} if is_cut(text, whole) else set()
        harms |= {"repeated"} if before.has(text) else set()
        before.add(text)
        lines.append(JudgedLine(text, named, sorted(harms, key=HARMS.index), not harms and not good.isdisjoint(named)))
    useful = {ref for line in lines if line.helps for ref in line.refs}
    got = any(line.helps for line in lines)
    return JudgedPoint(
        id=point.id,
        kind="start" if isinstance(point, Start) else "prompt",
        tokens=injection.tokens,
        lines=lines,
        wanted=point.wanted,
        there=[ref for ref in point.wanted if ref in useful],
        got=got,
        had=got or not before.refs.isdisjoint(point.wanted),
        known=[ref for ref in point.wanted if ref in before.refs],
        nothing=isinstance(point, Prompt) and point.nothing,
    )


# Figures -------------------------------------------------------------------------------------------------------------


class PointFigures(msgspec.Struct, kw_only=True):
    """What came up at test points of one kind; shares are 0..1, null of nothing.

    `helping`, `useless` and `harmful` are shares of all lines, `harms` counts the lines that harm in a way. `wanted` is
    the share of all wanted things that were there; `got` that of prompts with something to say that got a line which
    helps, `had` the same with what their session was given before; `silent` that of the others that got no line.
    """

    points: int
    lines: float
    tokens: float
    helping: float | None
    useless: float | None
    harmful: float | None
    wanted: float | None
    got: float | None = None
    had: float | None = None
    silent: float | None = None
    harms: dict[str, int]


def count_figures(judged: Sequence[JudgedPoint]) -> PointFigures:
    """Return the figures of some test points of one kind."""
    lines = [line for one in judged for line in one.lines]
    telling = [one for one in judged if one.kind == "prompt" and not one.nothing]
    counts = Counter(harm for line in lines for harm in line.harms)
    return PointFigures(
        points=len(judged),
        lines=_share(len(one.lines) for one in judged) or 0.0,
        tokens=_share(one.tokens for one in judged) or 0.0,
        helping=_share(line.helps for line in lines),
        useless=_share(not line.helps and not line.harms for line in lines),
        harmful=_share(bool(line.harms) for line in lines),
        wanted=_share(ref in one.there for one in judged for ref in one.wanted),
        got=_share(one.got for one in telling),
        had=_share(one.had for one in telling),
        silent=_share(not one.lines for one in judged if one.nothing),
        harms={name: counts[name] for name in HARMS},
    )


def _share(values: Iterable[float]) -> float | None:
    given = list(values)
    return fmean(given) if given else None


def make_report(path: Path, model: str, judged: Sequence[JudgedPoint], show_lines: bool) -> dict[str, Any]:
    """Return all figures, of each test point what it came to without any text, and the lines if they are wanted."""
    parts = {kind: count_figures([one for one in judged if one.kind == kind]) for kind in ("start", "prompt")}
    points = [
        {
            "id": one.id,
            "kind": one.kind,
            "tokens": one.tokens,
            "lines": len(one.lines),
            "helping": sum(line.helps for line in one.lines),
            "harmful": sum(bool(line.harms) for line in one.lines),
            "wanted": len(one.wanted),
            "there": len(one.there),
        }
        for one in judged
    ]
    report: dict[str, Any] = {"data": str(path), "model": model, "figures": parts, "points": points}
    return {**report, "shown": judged} if show_lines else report


def report_text(report: Mapping[str, Any]) -> str:
    """Return the report as tables, with the lines of the points that are shown before them."""
    parts: Mapping[str, PointFigures] = report["figures"]
    headers = ["", "POINTS", "LINES", "TOKENS", "HELP", "NO HELP", "HARM", "WANTED", "GOT", "OR HAD", "SILENT"]
    rows = []
    for kind, part in parts.items():
        shares = (part.helping, part.useless, part.harmful, part.wanted, part.got, part.had, part.silent)
        rows.append([f"{kind}s", f"{part.points}", f"{part.lines:.1f}", f"{part.tokens:.0f}", *map(percent, shares)])
    ways = [[name, *(f"{part.harms[name]}" for part in parts.values())] for name in HARMS]
    return "\n".join(
        [
            *(_point_text(one) for one in report.get("shown", ())),
            f"{report['data']}, model {report['model']}; lines and tokens of a test point, shares in %",
            format_table(headers, rows),
            "",
            format_table(["LINES THAT HARM", *(f"{kind}s".upper() for kind in parts)], ways),
        ]
    )


def _point_text(one: JudgedPoint) -> str:
    missing = [ref for ref in one.wanted if ref not in one.there]
    lines = [f"{one.id} {one.kind}, {one.tokens} tokens" + (", nothing to say" if one.nothing else "")]
    for line in one.lines:
        verdict = ", ".join(line.harms) if line.harms else "helps" if line.helps else "no help"
        lines.append(f"  {verdict} [{' '.join(line.refs)}] {line.text}")
    return "\n".join([*lines, *([f"  not there: {' '.join(missing)}"] if missing else []), ""])
