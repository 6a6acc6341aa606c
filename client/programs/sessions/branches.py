"""Find the branches of a session that the person has retracted, from the parent of each entry.

A prompt is retracted, with everything below it, if a later prompt continues from the same entry and nothing was added
to the branch of the earlier prompt since then. Parallel tool calls and two terminals in one session create branches
too. Therefore tool results and attachments do not count as prompts, and a branch that grew later is kept.
"""

from typing import Any

from memoryd.client.programs.sessions.building import Session, get_object, get_text, make_id

_ROOT = "\0"


class Branches:
    """The entries of a session as a tree of `uuid` and `parentUuid`, or `logicalParentUuid` at a compaction."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parents: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # id -> position of its first occurrence
        self._speakers: set[str] = set()  # entries that a prompt can continue from: prompts and messages of the agent
        self._prompts: list[str] = []

    def add(self, entry: dict[str, Any]) -> bool:
        """Add an entry; return whether it is new."""
        id = get_text(entry, "uuid")
        if not id or id in self._parents:
            return not id
        self._parents[id] = get_text(entry, "parentUuid") or get_text(entry, "logicalParentUuid") or _ROOT
        self._numbers[id] = len(self._numbers)
        # "Summarize from here" continues from the same entry as the prompt that it summarises, but retracts nothing.
        if entry.get("type") == "assistant" or entry.get("summarizeMetadata"):
            self._speakers.add(id)
        return True

    def note_prompt(self, entry: dict[str, Any]) -> None:
        """Mark an entry as a prompt of the person."""
        id = get_text(entry, "uuid")
        if id and "parentUuid" in entry and get_object(entry, "message") and id not in self._speakers:
            self._speakers.add(id)
            self._prompts.append(id)

    def mark(self, is_part: bool) -> None:
        """Mark retracted utterances.

        If the entries are only a part of the session's file (`is_part`), also set whether they continue from an entry
        before that part.
        """
        retracted = self._find_retracted()
        if retracted:
            for id, parent in self._parents.items():
                if parent in retracted:
                    retracted.add(id)
            session = self._session
            ids = {make_id(session.agent, session.name, id) for id in retracted}
            said = session.utterances
            said[:] = [one._replace(taken_back=True) if one.id in ids else one for one in said]
        if is_part:
            later = (id for id in self._prompts if self._numbers[id])
            self._session.is_torn = any(self._find_origin(id) not in self._parents for id in later)

    def _find_retracted(self) -> set[str]:
        """Return the retracted prompts."""
        last = dict(self._numbers)  # id -> position of the last entry below it
        for id in reversed(self._numbers):
            parent = self._parents[id]
            if parent in last:
                last[parent] = max(last[parent], last[id])
        latest: dict[str, int] = {}  # origin -> position of the last prompt that continues from it
        origins = {id: self._find_origin(id) for id in self._prompts}
        for id, origin in origins.items():
            latest[origin] = max(latest.get(origin, 0), self._numbers[id])
        return {id for id, origin in origins.items() if latest[origin] > last[id]}

    def _find_origin(self, id: str) -> str:
        """Return the entry that a prompt continues from: its nearest ancestor with a message of the person or agent."""
        at, seen = self._parents[id], {id}
        while at in self._parents and at not in self._speakers and at not in seen:
            seen.add(at)
            at = self._parents[at]
        return at
