"""A year in the life of several agents, as a list of things they do: conversations, notes, questions, changes of mind.

The same seed gives the same year: texts, times and ids. Whoever plays it (the simulator of the tests, `memctl demo
--year`) carries out each event at its time; what an event names may be gone by then. A few events stand in every year:
the three stories that the demo tells.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from scripted import stories
from scripted import vocabulary as v
from scripted.events import Ask, Edit, Event, Forget, Note, Say, Share, TakeBack, Talk

DAY_S, HOUR_S = 86400.0, 3600.0
REPEATED = 0.06  # share of statements that were said before, word for word

# What happens, and how often.
_TALKS: tuple[tuple[str, int], ...] = (
    ("decision", 20), ("change", 22), ("incident", 14), ("preference", 8), ("question", 12), ("small talk", 12),
    ("noise", 8), ("limit", 6), ("common", 3),
)  # fmt: skip
_DEEDS: tuple[tuple[str, int], ...] = (
    ("ask", 40), ("done", 12), ("summary", 10), ("lesson", 8), ("rule", 1), ("edit", 6), ("forget", 4),
    ("shorten", 3), ("share", 12), ("take back", 4),
)  # fmt: skip


class Scale(NamedTuple):
    """How long and how busy a year is: turns and other deeds on a working day, all agents together."""

    days: int = 365
    turns: float = 6.0
    deeds: float = 1.5


MODERATE = Scale()


def year(seed: int, start: float, scale: Scale = MODERATE) -> list[Event]:
    """Return the events of a year that begins at `start` (UTC seconds), by time."""
    events = [*_Author(seed, start, scale).events(), *stories.events(seed, start, scale.days)]
    return sorted(events, key=lambda event: event.at)


def id_of(seed: int, name: str) -> str:
    """Return the id that something of a script has."""
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()[:32]


class _Author:
    """Writes one year. What was decided is remembered, so that it can change."""

    def __init__(self, seed: int, start: float, scale: Scale) -> None:
        self._seed, self._start, self._scale = seed, start, scale
        self._random = random.Random(seed)
        self._values: dict[tuple[str, str, str], str] = {}
        self._said: dict[tuple[str, str], list[str]] = {}
        self._notes: dict[str, list[str]] = {place.namespace: [] for place in v.PLACES}
        self._number = 0

    def events(self) -> Iterator[Event]:
        for day in range(self._scale.days):
            at = self._start + day * DAY_S
            for place in self._working(day):
                moment = at + 8 * HOUR_S + self._random.randrange(3600)
                for exchange in range(self._count(self._scale.turns / 2 / len(v.PLACES))):
                    yield self._talk(moment, place, f"{day}-{exchange // 4}")
                    moment += self._random.randrange(60, 1800)
                for _ in range(self._count(self._scale.deeds / len(v.PLACES))):
                    yield self._deed(moment, place, f"{day}-asks")
                    moment += self._random.randrange(60, 1800)

    def _working(self, day: int) -> list[v.Place]:
        """Return who works on a day: the garden any day, the others not at weekends nor in their holidays."""
        weekend = day % 7 >= 5
        return [
            place
            for number, place in enumerate(v.PLACES)
            if not (weekend and place.namespace != "garden") and not (60 * (number + 1) <= day < 60 * (number + 1) + 14)
        ]

    def _count(self, mean: float) -> int:
        return int(mean) + (self._random.random() < mean % 1) if mean < 1 else round(self._random.gauss(mean, mean / 3))

    # Conversations ---------------------------------------------------------------------------------------------------

    def _talk(self, at: float, place: v.Place, session: str) -> Talk:
        kind = self._choose(_TALKS)
        if kind == "noise":
            said = [("user", self._fill(self._random.choice(v.NOISE), self._gaps(place)))]
        elif kind == "limit":
            said = [("user", self._fill(place.limit, self._gaps(place) | {"n": f"{self._random.randrange(2, 9)}"}))]
        elif kind == "common":
            said = [("user", self._random.choice(v.COMMON))]
        else:
            said = self._exchange(kind, place)
        if kind not in ("noise", "small talk"):
            said = [(role, self._again(place.namespace, role, text)) for role, text in said]
        turns = tuple(Say(self._id("turn"), role, text) for role, text in said)
        return Talk(at, place.namespace, session, turns)

    def _exchange(self, kind: str, place: v.Place) -> list[tuple[str, str]]:
        pairs = {
            "decision": v.DECISIONS,
            "change": v.CHANGES,
            "incident": v.INCIDENTS,
            "preference": v.PREFERENCES,
            "question": v.QUESTIONS,
            "small talk": v.SMALL_TALK,
        }[kind]
        gaps = self._gaps(place, changes=kind in ("decision", "change", "incident"))
        question, answer = self._random.choice(pairs)
        return [("user", self._fill(question, gaps)), ("assistant", self._fill(answer, gaps))]

    def _again(self, namespace: str, role: str, text: str) -> str:
        """Return what is said, now and then something that was said before."""
        before = self._said.setdefault((namespace, role), [])
        if before and self._random.random() < REPEATED:
            return self._random.choice(before)
        before.append(text)
        return text

    def _gaps(self, place: v.Place, changes: bool = False) -> dict[str, str]:
        thing, setting = self._random.choice(place.things), self._random.choice(sorted(place.settings))
        choices, key = place.settings[setting], (place.namespace, thing, setting)
        old = self._values.setdefault(key, choices[0])
        new = self._random.choice([value for value in choices if value != old])
        if changes:
            self._values[key] = new
        numbers = {"n": f"{self._random.randrange(100, 5000)}", "minute": f"{self._random.randrange(10, 60)}"}
        return {"thing": thing, "setting": setting, "old": old, "new": new, **numbers}

    # Everything else -------------------------------------------------------------------------------------------------

    def _deed(self, at: float, place: v.Place, session: str) -> Event:
        kind = self._choose(_DEEDS)
        write: dict[str, Callable[[], Event]] = {
            "ask": lambda: Ask(at, place.namespace, session, self._text(place, *v.ASKED), self._random.random() < 0.3),
            "done": lambda: self._note(at, place, self._text(place, v.DONE), "fact", source="task_completion"),
            "summary": lambda: self._note(at, place, self._text(place, v.SUMMARY), "fact", source="session_summary"),
            "lesson": lambda: self._note(at, place, self._text(place, v.LESSON), "lesson"),
            "rule": lambda: self._rule(at, place),
            "edit": lambda: self._edit(at, place),
            "forget": lambda: Forget(at, place.namespace, self._pick(place), self._random.random()),
            "shorten": lambda: Edit(at, place.namespace, None, expires_at=at + 10 * DAY_S, which=self._random.random()),
            "share": lambda: self._share(at, place),
            "take back": lambda: TakeBack(at, place.namespace),
        }
        return write[kind]()

    def _note(self, at: float, place: v.Place, text: str, type: str, source: str = "manual") -> Note:
        name = self._id("note")
        self._notes[place.namespace].append(name)
        return Note(at, place.namespace, name, text, type, source)

    def _rule(self, at: float, place: v.Place) -> Note:
        """Return a pinned rule, said to everybody in the enclosing namespace."""
        namespace = v.SHARED[place.namespace] or place.namespace
        return Note(at, namespace, self._id("note"), self._text(place, v.RULE), "rule", pinned=True, importance=0.9)

    def _edit(self, at: float, place: v.Place) -> Edit:
        text = self._text(place, v.LESSON)
        return Edit(at, place.namespace, self._pick(place), content=text, which=self._random.random())

    def _share(self, at: float, place: v.Place) -> Event:
        target = v.SHARED[place.namespace]
        if not target:
            return Ask(at, place.namespace, "", self._text(place, *v.ASKED))
        move, which = self._random.random() < 0.3, self._random.random()
        return Share(at, place.namespace, self._pick(place), target, move, which)

    def _pick(self, place: v.Place) -> str | None:
        """Return one of the latest notes, or None: then whoever plays it takes what came from a conversation."""
        notes = self._notes[place.namespace][-20:]
        return self._random.choice(notes) if notes and self._random.random() < 0.7 else None

    # Parts -----------------------------------------------------------------------------------------------------------

    def _text(self, place: v.Place, *templates: str) -> str:
        return self._fill(self._random.choice(templates), self._gaps(place))

    def _fill(self, template: str, gaps: dict[str, str]) -> str:
        return template.format(**gaps)

    def _choose(self, weighted: tuple[tuple[str, int], ...]) -> str:
        return self._random.choices([name for name, _ in weighted], [weight for _, weight in weighted])[0]

    def _id(self, kind: str) -> str:
        self._number += 1
        return id_of(self._seed, f"{kind} {self._number}")
