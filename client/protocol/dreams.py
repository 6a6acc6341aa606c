"""Dreams: put MEMORY.md of a workspace in order."""

from typing import Literal

from msgspec import Struct

from memoryd.client.protocol.base import Call, rpc

Fate = Literal["take", "repeat", "outdated"]
DreamOutcome = Literal["written", "planned", "unchanged", "refused", "undone"]


class DreamStep(Struct, kw_only=True):
    """What a dream does with one statement: `take` puts it into MEMORY.md; `repeat` and `outdated` leave it out."""

    action: Fate
    """what is done with it"""
    text: str
    """the statement"""
    source: str
    """the file that it is from"""
    date: str = ""
    """its day; empty: unknown"""
    kept: str = ""
    """the statement that is kept in its place"""
    reason: str = ""
    """why"""


class DreamReport(Struct, kw_only=True):
    """How one dream went. With the outcomes `refused` and `unchanged`, `problem` says why."""

    place: str
    """the namespace of the workspace"""
    outcome: DreamOutcome
    """what was done"""
    by: str = "rules"
    """who decided: `rules` or a model, or both"""
    steps: list[DreamStep] = []
    """what is done with each statement"""
    passing: int = 0
    """notes that stay in the daily files alone"""
    path: str = ""
    """path of MEMORY.md; empty: the workspace could not be read"""
    chars_before: int = 0
    """characters in MEMORY.md before"""
    chars_after: int = 0
    """characters in MEMORY.md after it, or if it were written"""
    diary: str | None = None
    """the file that describes the dream"""
    backup: str | None = None
    """the copy of the former MEMORY.md"""
    problem: str = ""
    """why nothing was changed, or how to have the plan written"""


class Dreamt(Struct, kw_only=True):
    """Dreams, one for each workspace."""

    dreams: list[DreamReport]
    """one report per workspace"""


@rpc("owner", grows=True, lane="control", page=False)
class Dream(Call[Dreamt], kw_only=True, frozen=True):
    """Put MEMORY.md of a workspace in order, together with its daily files.

    Repetitions are removed, and a statement that a newer note contradicts is replaced by the note, with its date. A
    language model, if one is configured, also adds what is of lasting use in the daily files, which may take minutes.
    The former MEMORY.md and a diary are kept in `memory/dreams/`; `undo` restores it byte for byte. MEMORY.md is a
    person's file: it is written only if somebody has allowed that for the workspace (`allow`); until then a dream
    returns its plan. Files are processed once, or again with `force`, which also permits that MEMORY.md loses more than
    half of its text. `dry_run` changes nothing. Sends progress.
    """

    place: str | None = None
    """a workspace: its namespace, or a path inside; left out: all workspaces with daily files"""
    dry_run: bool = False
    """report what would be done, and change nothing"""
    force: bool = False
    """process all files again, and permit that MEMORY.md loses more than half of its text"""
    undo: bool = False
    """put back MEMORY.md as it was before the latest dream"""
    allow: bool | None = None
    """permit dreams of the workspace, this one and later ones, to write MEMORY.md; false: no longer"""
