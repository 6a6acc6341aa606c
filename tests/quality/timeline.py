"""Months of a person's work in the order in which they happened, with marks of what should come up unasked.

One JSON object a line, known by `kind`:

- `namespace` (`name`, `about`): a project; `/` is the person's root.
- `memory` (`id`, `namespace`, `type`, `at`, `content`, `pinned`, `supersedes`, `importance`): saved by hand, or by an
  agent (`saved_by`).
- `turn` (`id`, `namespace`, `session`, `at`, `role`, `content`): said, or the output of a tool. What is known of it
  later: `refuted_by`, `superseded_by` (a turn or a memory, from which on it is wrong or out of date), `request` (asks
  for work and says nothing that lasts), `asks` (is a question), `answered_by` (the turn that answers it).
- `end_session` (`namespace`, `session`, `at`).
- `start` and `prompt` (`id`, `namespace`, `session`, `at`): the test points. A prompt has its `content`, which is that
  of the turn after it, and `nothing`: no memory has anything to say to it. `wanted` are things that belong there,
  `helps` those that are of use there, `harms` those that must not come, each as `ref` and `why`, where `by` is given
  unless that stands in the same line. A thing is named by its id, a session's summary by `summary:SESSION`.
"""

from pathlib import Path
from typing import Literal

import msgspec
from sets import read_lines, seconds_of

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
        return seconds_of(self.at)


class MemoryEvent(TimelineEvent, tag="memory"):
    """What somebody saved on purpose."""

    id: str
    type: str
    content: str
    pinned: bool = False
    supersedes: str | None = None
    importance: float | None = None
    saved_by: Literal["person", "agent"] = "person"


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
    by: str = ""


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
    """Return the lines of a file, with at least one test point."""
    rows: list[TimelineRow] = list(read_lines(path, TimelineRow, "a line of this data"))  # type: ignore[arg-type]
    if not any(isinstance(row, Point) for row in rows):
        raise Invalid(f"{path} holds no test point.")
    return rows
