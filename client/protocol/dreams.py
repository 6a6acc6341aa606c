"""Dreams: put MEMORY.md of a workspace in order."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, rpc

Fate = Literal["take", "repeat", "outdated"]
DreamOutcome = Literal["written", "planned", "unchanged", "refused", "undone"]


class DreamStep(Struct, kw_only=True):
    """What became of one statement: `take` puts it into MEMORY.md; `repeat` and `outdated` leave it out.

    `source` is the file that it is from, `kept` the statement that is in its place.
    """

    action: Fate
    """what became of it"""
    text: str
    """the statement"""
    source: str
    """the file that it is from"""
    date: str = ""
    """its day, empty when that is not known"""
    kept: str = ""
    """the statement that is kept for it"""
    reason: str = ""
    """why"""


class DreamReport(Struct, kw_only=True):
    """How one dream went. `passing` counts notes that stay in the daily files alone.

    `by` is `rules` or the model that decided; `refused` and `unchanged` say why in `problem`.
    """

    place: str
    """the namespace of the workspace"""
    outcome: DreamOutcome
    """what was done"""
    by: str = "rules"
    """who decided: `rules` or a model, or both"""
    steps: list[DreamStep] = []
    """what became of each statement"""
    passing: int = 0
    """notes that stay in the daily files alone"""
    path: str = ""
    """of MEMORY.md; empty for a workspace that could not be read"""
    chars_before: int = 0
    """how many characters it had"""
    chars_after: int = 0
    """how many it has, or would have"""
    diary: str | None = None
    """the file that describes it"""
    backup: str | None = None
    """the file that holds MEMORY.md as it was"""
    problem: str = ""
    """why nothing was changed, or how to have what is planned written"""


class Dreamt(Struct, kw_only=True):
    """Dreams, one for each workspace."""

    dreams: list[DreamReport]
    """how each of them went"""


@rpc("owner", grows=True, lane="control", page=False)
class Dream(Call[Dreamt], kw_only=True, frozen=True):
    """Put MEMORY.md of a workspace in order with its daily files.

    Repeats are removed, and what a newer note contradicts is replaced by it, with its date. A language model, where one
    is configured, also adds what lasts of the daily files, which may take minutes. The old MEMORY.md and a diary are
    kept in `memory/dreams/`; `undo` puts the old one back, byte for byte. MEMORY.md is a person's file: it is written
    once somebody has allowed that for the workspace (`allow`); until then a dream returns what it would do. Files that
    were processed are not processed again, unless with `force`, which also lets MEMORY.md lose more than half.
    `dry_run` changes nothing. Sends progress.
    """

    place: str | None = None
    """a workspace: its namespace, or a path inside; left out: all workspaces with daily files"""
    dry_run: bool = False
    """report what would be done, and change nothing"""
    force: bool = False
    """also files that were processed already, and where MEMORY.md loses more than half"""
    undo: bool = False
    """put back MEMORY.md as it was before the latest dream"""
    allow: bool | None = None
    """let dreams of the workspace write MEMORY.md, now, later and each night; false: not any more"""
