"""Feedback on a memory: the column `feedback`, a JSON list with one `Vote` per caller, and the factor derived from it.

A caller's vote takes precedence over citations by its sessions, and each caller counts once, however often it votes.
With a = 1 + votes for and b = 1 + votes against, usefulness is 2a / (a + b): the mean of the Beta distribution divided
by the mean of its prior, as in Agent Swarm. It is between 0 and 2, and 1 without feedback. The score of a memory is
multiplied by 1 + 0.15 (usefulness - 1), which is between 0.85 and 1.15. So feedback decides between memories that
answer a query about equally well, but does not raise a memory that does not answer it.
"""

from collections.abc import Iterable, Sequence

import msgspec

from memoryd.client.protocol import Usefulness, Vote

CITED = 0.5  # weight of a citation, compared with a vote
MAX_CITATIONS = 2  # that count per caller
MAX_VOTES = 64  # per memory; the oldest are dropped
_SHARE = 0.15
_NOTES = 5

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Vote]).decode


def decode_votes(feedback: str) -> list[Vote]:
    """Return the votes in a column, oldest first."""
    return _decode(feedback) if feedback else []


def text(votes: Iterable[Vote]) -> str:
    """Return the column for some votes."""
    latest = sorted(votes, key=lambda vote: (vote.at, vote.by))[-MAX_VOTES:]
    return _encode(latest).decode() if latest else ""


def note_vote(feedback: str, by: str, useful: bool, note: str, now: float) -> str:
    """Return the column with the vote of a caller, which replaces its former vote."""
    present = {vote.by: vote for vote in decode_votes(feedback)}
    note_citation = present[by].cited if by in present else []
    present[by] = Vote(by=by, useful=useful, note=note, at=now, cited=note_citation)
    return text(present.values())


def note_citation(feedback: str, by: str, session: str, now: float) -> str | None:
    """Return the column with a citation by a caller's session; None if the citation does not count."""
    present = {vote.by: vote for vote in decode_votes(feedback)}
    mine = present.get(by) or Vote(by=by, at=now)
    if session in mine.cited or len(mine.cited) >= MAX_CITATIONS:
        return None
    present[by] = msgspec.structs.replace(mine, cited=[*mine.cited, session], at=now)
    return text(present.values())


def drop_notes(feedback: str) -> str:
    """Return the column without the notes, whose authors may refer to things in the memory's former namespace."""
    return text(msgspec.structs.replace(vote, note="") for vote in decode_votes(feedback))


def merge(one: str, other: str) -> str:
    """Merge the columns of two memories: the latest vote of each caller, and its citations in both."""
    if not (one and other):
        return one or other
    merged: dict[str, Vote] = {}
    for vote in sorted((*decode_votes(one), *decode_votes(other)), key=lambda vote: vote.at):
        former = merged.get(vote.by, vote)
        cited = list(dict.fromkeys([*former.cited, *vote.cited]))[:MAX_CITATIONS]
        word = former if vote.useful is None else vote
        merged[vote.by] = msgspec.structs.replace(word, at=vote.at, cited=cited)
    return text(merged.values())


def rate_usefulness(feedback: str, notes: bool = False) -> Usefulness | None:
    """Return the usefulness by a column, None without feedback."""
    votes = decode_votes(feedback)
    if not votes:
        return None
    return Usefulness(
        factor=_factor(votes),
        useful=sum(vote.useful is True for vote in votes),
        useless=sum(vote.useful is False for vote in votes),
        cited=sum(len(vote.cited) for vote in votes),
        notes=[vote.note for vote in reversed(votes) if vote.note][:_NOTES] if notes else [],
    )


def factor(feedback: str) -> float:
    """Return the factor for the score of a memory with this column."""
    return _factor(decode_votes(feedback))


def _factor(votes: Sequence[Vote]) -> float:
    a = 1.0 + sum(1.0 if vote.useful else CITED * len(vote.cited) for vote in votes if vote.useful is not False)
    b = 1.0 + sum(vote.useful is False for vote in votes)
    return round(1.0 + _SHARE * (2.0 * a / (a + b) - 1.0), 6)
