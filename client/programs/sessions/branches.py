"""Which branches of a session the person took back, by what each entry says of the entry before it.

Taken back is what is below a prompt for which a later prompt goes on from the same entry, if nothing was added below
the first one after that. Tools that run side by side make branches too, and so do two terminals in one session: results
of tools and what a host attaches decide nothing, and a branch that grew later lives.
"""

from typing import Any

from memoryd.client.programs.sessions.building import Session, get_object, get_text, make_id

_ROOT = "\0"


class Branches:
    """The entries of a session as a tree: `uuid`, `parentUuid`, at a compaction `logicalParentUuid`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parents: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # by id: the how many-th entry it was first
        self._speakers: set[str] = set()  # entries at which the way up ends: prompts, and the agent's
        self._prompts: list[str] = []

    def add(self, entry: dict[str, Any]) -> bool:
        """Note an entry; return whether it is new."""
        id = get_text(entry, "uuid")
        if not id or id in self._parents:
            return not id
        self._parents[id] = get_text(entry, "parentUuid") or get_text(entry, "logicalParentUuid") or _ROOT
        self._numbers[id] = len(self._numbers)
        # "Summarize from here" goes on from the same entry as the prompt that it sums up, and takes nothing back.
        if entry.get("type") == "assistant" or entry.get("summarizeMetadata"):
            self._speakers.add(id)
        return True

    def note_prompt(self, entry: dict[str, Any]) -> None:
        """Note that an entry is a prompt of the person."""
        id = get_text(entry, "uuid")
        if id and "parentUuid" in entry and get_object(entry, "message") and id not in self._speakers:
            self._speakers.add(id)
            self._prompts.append(id)

    def mark(self, is_part: bool) -> None:
        """Mark the utterances that were taken back; of a part of a session note whether it goes on from before."""
        below = self._find_gone()
        if below:
            for id, parent in self._parents.items():
                if parent in below:
                    below.add(id)
            session = self._session
            ids = {make_id(session.agent, session.name, id) for id in below}
            said = session.utterances
            said[:] = [one._replace(taken_back=True) if one.id in ids else one for one in said]
        if is_part:
            later = (id for id in self._prompts if self._numbers[id])
            self._session.is_torn = any(self._find_origin(id) not in self._parents for id in later)

    def _find_gone(self) -> set[str]:
        """Return the prompts that were taken back."""
        last = dict(self._numbers)  # by id: the number of the last entry below
        for id in reversed(self._numbers):
            parent = self._parents[id]
            if parent in last:
                last[parent] = max(last[parent], last[id])
        latest: dict[str, int] = {}  # by origin: the number of the last prompt that goes on from it
        origins = {id: self._find_origin(id) for id in self._prompts}
        for id, origin in origins.items():
            latest[origin] = max(latest.get(origin, 0), self._numbers[id])
        return {id for id, origin in origins.items() if latest[origin] > last[id]}

    def _find_origin(self, id: str) -> str:
        """Return the entry that a prompt goes on from: the next one upward in which somebody speaks."""
        at, seen = self._parents[id], {id}
        while at in self._parents and at not in self._speakers and at not in seen:
            seen.add(at)
            at = self._parents[at]
        return at
