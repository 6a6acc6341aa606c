"""bench unasked: what comes up though nobody asked, at a session's start and beside a prompt.

The data are some months of a person's work in the order in which it happened, one JSON object a line, known by `kind`:

- `namespace` (`name`, `about`): a project; `/` is the person's root.
- `memory` (`id`, `namespace`, `type`, `at`, `content`, `pinned`, `supersedes`): saved by hand.
- `turn` (`id`, `namespace`, `session`, `at`, `role`, `content`): said, or the output of a tool. What is known of it
  later: `refuted_by`, `superseded_by` (a turn or a memory, from which on it is wrong or out of date), `request` (asks
  for work and says nothing that lasts), `asks` (is a question), `answered_by` (the turn that answers it).
- `end_session` (`namespace`, `session`, `at`).
- `start` and `prompt` (`id`, `namespace`, `session`, `at`): the test points. A prompt has its `content`, which is that
  of the turn after it, and `nothing`: no memory has anything to say to it. `wanted` are things that belong there,
  `helps` those that are of use there, `harms` those that must not come, each as `ref` and `why`. A thing is named by
  its id, a session's summary by `summary:SESSION`.

`replaying` has it happen on a daemon, `judging` says what each line is worth that came up.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from memoryd.client.bench.material import read_lines, seconds_of
from memoryd.client.errors import Invalid

WhyUnasked = Literal[
    "private", "refuted", "superseded", "request", "tool", "repeat", "question", "passing", "other-project"
]


class Strict(msgspec.Struct, tag_field="kind", forbid_unknown_fields=True, kw_only=True):
    """A line of the file."""


class Space(Strict, tag="namespace"):
    """A project."""

    name: str
    about: str


class TimelineEvent(Strict):
    """Something that happened at a time, in a namespace."""

    namespace: str
    at: str

    @property
    def seconds(self) -> float:
        """Return when it happened, in UTC seconds."""
        return seconds_of(self.at, "%Y-%m-%dT%H:%M:%SZ", "2026-05-29T07:01:00Z")


class MemoryEvent(TimelineEvent, tag="memory"):
    """What somebody saved by hand."""

    id: str
    type: str
    content: str
    pinned: bool = False
    supersedes: str | None = None


class TurnEvent(TimelineEvent, tag="turn"):
    """What was said, or what a tool gave."""

    id: str
    session: str
    role: Literal["user", "assistant", "tool"]
    content: str
    refuted_by: str | None = None
    superseded_by: str | None = None
    request: bool = False
    asks: bool = False
    answered_by: str | None = None


class SessionEndEvent(TimelineEvent, tag="end_session"):
    """The end of a session."""

    session: str


class Harm(msgspec.Struct, forbid_unknown_fields=True):
    """A thing that must not come up, and why."""

    ref: str
    why: WhyUnasked


class Point(TimelineEvent):
    """A test point: what should come up and what must not."""

    id: str
    session: str
    wanted: list[str]
    helps: list[str]
    harms: list[Harm]


class Start(Point, tag="start"):
    """The start of a session."""


class Prompt(Point, tag="prompt"):
    """A prompt, just before it is said."""

    content: str
    nothing: bool


TimelineRow = Space | MemoryEvent | TurnEvent | SessionEndEvent | Start | Prompt
Thing = MemoryEvent | TurnEvent


def read_rows(path: Path) -> list[TimelineRow]:
    """Return the lines of a file, with at least one test point; raise `Invalid` where they do not fit together."""
    rows: list[TimelineRow] = list(read_lines(path, TimelineRow, "a line of this data"))  # type: ignore[arg-type]
    if not any(isinstance(row, Point) for row in rows):
        raise Invalid(f"{path} holds no test point.")
    if problem := next(find_problems(rows), ""):
        raise Invalid(f"{path}: {problem}.")
    return rows


def find_problems(rows: Sequence[TimelineRow]) -> Iterator[str]:
    """Yield what is wrong with the lines of a file: times, ids, and what refers to something that is not there."""
    events = [row for row in rows if isinstance(row, TimelineEvent)]
    spaces = {row.name for row in rows if isinstance(row, Space)}
    ids = [row.id for row in events if isinstance(row, MemoryEvent | TurnEvent | Point)]
    all_ids = set(ids)
    yield from (f"the id {id} is there twice" for id in all_ids if ids.count(id) > 1)
    known: set[str] = set()
    last = 0.0
    for number, row in enumerate(events):
        name = getattr(row, "id", row.namespace)
        if row.seconds < last:
            yield f"{name} is before what precedes it"
        last = row.seconds
        if row.namespace not in spaces:
            yield f"{name} is in an unknown namespace"
        later = (row.refuted_by, row.superseded_by, row.answered_by) if isinstance(row, TurnEvent) else ()
        yield from (f"{name} names {ref}, which is nowhere" for ref in later if ref and ref not in all_ids)
        earlier: list[str] = []
        if isinstance(row, MemoryEvent) and row.supersedes:
            earlier = [row.supersedes]
        if isinstance(row, Point):
            earlier = [*row.wanted, *row.helps, *(harm.ref for harm in row.harms)]
        yield from (f"{name} names {ref}, which is not there yet" for ref in earlier if ref not in known)
        if isinstance(row, Prompt):
            following = events[number + 1] if number + 1 < len(events) else None
            if not (isinstance(following, TurnEvent) and (following.role, following.content) == ("user", row.content)):
                yield f"{name} is not followed by its turn"
        known.add(f"summary:{row.session}" if isinstance(row, SessionEndEvent) else name)
