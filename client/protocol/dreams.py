"""Dreams: MEMORY.md of a workspace, or the memories of a namespace, put in order."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call

Fate = Literal["take", "repeat", "outdated"]
DreamOutcome = Literal["written", "planned", "unchanged", "refused", "undone"]


class DreamStep(Struct, kw_only=True):
    """What becomes of one statement: `take` it into MEMORY.md, leave it out as a `repeat` of another, or as `outdated`.

    `source` is the file or the id that it is from, `kept` the statement that stands in its place.
    """

    action: Fate
    text: str
    source: str
    date: str = ""
    kept: str = ""
    reason: str = ""


class DreamReport(Struct, kw_only=True):
    """How one dream went. `passing` counts the notes that are of their day only and stay in the daily files.

    `by` is `rules` or the model that decided; `refused` and `unchanged` say why in `problem`.
    """

    place: str
    outcome: DreamOutcome
    by: str = "rules"
    steps: list[DreamStep] = []
    passing: int = 0
    path: str | None = None
    chars_before: int = 0
    chars_after: int = 0
    diary: str | None = None
    backup: str | None = None
    operation: int | None = None
    problem: str = ""


class Dreamt(Struct, kw_only=True):
    """Dreams, one for each place."""

    dreams: list[DreamReport]


class Dream(Call[Dreamt], kw_only=True, frozen=True):
    """Put MEMORY.md of a workspace in order with its daily files, or the memories of a namespace.

    Repeats go, the newest of a subject stays, what is lasting in the daily files is taken over. The old MEMORY.md and a
    diary lie in `memory/dreams/` then; `undo` puts the old one back, byte for byte. `place` is a workspace, or a
    namespace (with `facts` also where a workspace has that name); left out: all workspaces with daily files. What was
    dreamt of is not dreamt of again, unless with `force`, which also lets MEMORY.md lose more than half. A language
    model is asked where one is configured, so this may take minutes. `dry_run` changes nothing. Sends progress.
    """

    place: str | None = None
    facts: bool = False
    dry_run: bool = False
    force: bool = False
    undo: bool = False
    date: str | None = None
