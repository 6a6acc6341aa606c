"""The simulator's own books: what it said and asked for, and where each turn and each note must be by now.

They are kept from the daemon's replies alone; `problems` compares them with the rows of the database, so that a turn
that gets lost, or is there twice, shows even if the daemon's own account adds up.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from memoryd.daemon.core.core import Core
from memoryd.daemon.store.turns import KEPT_CHARS

DAY_S = 86400.0
LEFT = "left L0 with importance "
UNIMPORTANT = "dropped: unimportant"


@dataclass
class Known:
    """A turn or a note: where it was said, what, and why it is gone (empty: it must be there)."""

    namespace: str
    text: str
    gone: str = ""


@dataclass
class Books:
    """Everything that is known without looking into the database."""

    observed: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    turns: dict[str, Known] = field(default_factory=dict)
    notes: dict[str, Known] = field(default_factory=dict)
    alias: dict[str, str] = field(default_factory=dict)  # notes that were merged into another
    ends: dict[str, float] = field(default_factory=dict)  # when a memory expires
    _skipped: int = 0  # up to which row the list of skipped turns was read
    _flows: dict[tuple[str, str], int] = field(default_factory=dict)

    def note(self, id: str) -> str:
        """Return the id of the memory that a note is in."""
        return self.alias.get(id, id)

    def removed(self, ids: Iterable[str], why: str) -> Callable[[], None]:
        """Book turns and notes as gone; return what takes that back."""
        concerned = [known for id in ids for known in (self.turns.get(id), self.notes.get(id)) if known]
        before = [known.gone for known in concerned]
        for known in concerned:
            known.gone = why

        def back() -> None:
            for known, gone in zip(concerned, before, strict=True):
                known.gone = gone

        return back

    # Comparing -------------------------------------------------------------------------------------------------------

    def problems(self, core: Core) -> list[str]:
        """Compare the books with the database; what was dropped or has expired since is booked first."""
        with core.store.reading() as connection:
            placed = list(_placed(connection))
            notes: dict[str, str] = dict(
                connection.execute("SELECT m.id, n.name FROM memories m JOIN namespaces n ON n.id = m.namespace")  # type: ignore[arg-type]
            )
            dropped = self._newly_skipped(connection)
            flows = {
                (name, kind): count
                for name, kind, count in connection.execute(
                    "SELECT n.name, f.kind, f.count FROM flows f JOIN namespaces n ON n.id = f.namespace"
                )
            }
        where = {id: (namespace, tier) for id, namespace, tier in placed}
        found = [
            f"turn {id[:8]} is in two places" for id, count in Counter(id for id, _, _ in placed).items() if count > 1
        ]
        self._book_expired(core.clock(), where, notes)
        found += self._misplaced(where, dropped)
        found += self._lost_notes(notes)
        found += self._wrong_flows(flows)
        return found

    def _book_expired(self, now: float, turns: dict[str, Any], notes: dict[str, str]) -> None:
        for id, end in self.ends.items():
            if now >= end + 30 * DAY_S and id not in turns and id not in notes:
                for known in (self.turns.get(id), self.notes.get(id)):
                    if known and not known.gone:
                        known.gone = "expired"

    def _misplaced(self, where: dict[str, tuple[str, str]], dropped: dict[tuple[str, str], str]) -> Iterator[str]:
        for id in where.keys() - self.turns.keys():
            yield f"turn {id[:8]} was never accepted"
        for id, known in self.turns.items():
            here = where.get(id)
            if here is None and not known.gone:
                known.gone = dropped.get((known.namespace, known.text[:KEPT_CHARS]), "")
                if not known.gone:
                    yield f"turn {id[:8]} of {known.namespace} is lost: {known.text[:50]}"
            elif here is not None and known.gone:
                yield f"turn {id[:8]} is in {here[1]}, but it was {known.gone}"
            elif here is not None and here[0] != known.namespace:
                yield f"turn {id[:8]} of {known.namespace} is in {here[0]}"

    def _lost_notes(self, notes: dict[str, str]) -> Iterator[str]:
        for id, known in self.notes.items():
            here = notes.get(id)
            if (here is None) != bool(known.gone):
                fate = "lost" if here is None else f"there, but was {known.gone}"
                yield f"note {id[:8]} is {fate}: {known.text[:50]}"
            elif here is not None and here != known.namespace:
                yield f"note {id[:8]} of {known.namespace} is in {here}"

    def _newly_skipped(self, connection: Any) -> dict[tuple[str, str], str]:
        """Return the turns listed as not kept since the last look, with the reason."""
        rows = connection.execute(
            "SELECT s.id, n.name, s.content, s.reason FROM skipped s JOIN namespaces n ON n.id = s.namespace"
            " WHERE s.id > ? ORDER BY s.id",
            (self._skipped,),
        ).fetchall()
        self._skipped = max((row[0] for row in rows), default=self._skipped)
        return {
            (name, content): UNIMPORTANT
            for _, name, content, reason in rows
            if reason.startswith(LEFT) and float(reason.removeprefix(LEFT)) < 0.5
        }

    def _wrong_flows(self, flows: dict[tuple[str, str], int]) -> Iterator[str]:
        """Compare the daemon's account with the replies; what came and what was refused never gets less."""
        for namespace, count in self.observed.items():
            if flows.get((namespace, "observed"), 0) != count:
                yield f"{namespace}: {count} turns were observed, the account says {flows.get((namespace, 'observed'))}"
        refused = {(name, kind): count for (name, kind), count in flows.items() if kind.startswith("skipped: ")}
        told = {(name, f"skipped: {reason}"): count for (name, reason), count in self.refused.items()}
        if refused != told:
            yield f"refused were {told}, the account says {refused}"
        gone = Counter(
            (known.namespace, known.gone) for known in self.turns.values() if known.gone.startswith("dropped")
        )
        account = {(name, kind): n for (name, kind), n in flows.items() if kind == "dropped: unimportant"}
        if account != {key: n for key, n in gone.items() if key[1] == "dropped: unimportant"}:
            yield f"dropped were {dict(gone)}, the account says {account}"
        for key, before in self._flows.items():
            if not key[1].startswith("gone: ") and flows.get(key, 0) < before:
                yield f"the count of {key[1]} in {key[0]} fell from {before} to {flows.get(key, 0)}"
        self._flows = flows


def _placed(connection: Any) -> Iterator[tuple[str, str, str]]:
    """Yield id, namespace and tier of every turn, as often as it is there."""
    ring = "SELECT t.key, n.name FROM turns t JOIN namespaces n ON n.id = t.namespace"
    kept = "SELECT m.id, n.name, m.tier, m.metadata FROM memories m JOIN namespaces n ON n.id = m.namespace"
    for id, namespace in connection.execute(ring):
        yield id, namespace, "L0"
    for id, namespace, tier, metadata in connection.execute(f"{kept} WHERE m.turns > 0"):
        for part in msgspec.json.decode(metadata).get("turns", [id]):
            yield part, namespace, tier
