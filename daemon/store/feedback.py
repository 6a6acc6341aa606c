"""Feedback on a memory: the column `feedback`, a JSON list of one `Vote` for each caller, and what follows from it.

One's own word precedes what one's agents merely cited, and each caller counts once, however often it repeats itself.
With a = 1 + votes for and b = 1 + votes against, usefulness is the mean of the Beta distribution over its prior's,
2a / (a + b), as Agent Swarm has it: 1 without feedback, between 0 and 2. The score is multiplied by
1 + 0.15 (usefulness - 1): never less than 0.85 nor more than 1.15, so that feedback decides between memories that
answer a query about equally well, and brings up none that does not.
"""

from collections.abc import Iterable, Sequence

import msgspec

from memoryd.client.protocol import Usefulness, Vote

CITED = 0.5  # what a citation counts beside one's own word
MAX_CITATIONS = 2  # of one caller that count
MAX_VOTES = 64  # of one memory; the oldest go
_SHARE = 0.15
_NOTES = 5

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Vote]).decode


def decode_votes(feedback: str) -> list[Vote]:
    """Return the votes of a column, oldest first."""
    return _decode(feedback) if feedback else []


def text(votes: Iterable[Vote]) -> str:
    """Return the column of some votes."""
    latest = sorted(votes, key=lambda vote: (vote.at, vote.by))[-MAX_VOTES:]
    return _encode(latest).decode() if latest else ""


def note_vote(feedback: str, by: str, useful: bool, note: str, now: float) -> str:
    """Return the column after a caller has said whether the memory is useful; what it said before counts no more."""
    present = {vote.by: vote for vote in decode_votes(feedback)}
    note_citation = present[by].cited if by in present else []
    present[by] = Vote(by=by, useful=useful, note=note, at=now, cited=note_citation)
    return text(present.values())


def note_citation(feedback: str, by: str, session: str, now: float) -> str | None:
    """Return the column after a caller's session cited the memory; None if that counts no more."""
    present = {vote.by: vote for vote in decode_votes(feedback)}
    mine = present.get(by) or Vote(by=by, at=now)
    if session in mine.cited or len(mine.cited) >= MAX_CITATIONS:
        return None
    present[by] = msgspec.structs.replace(mine, cited=[*mine.cited, session], at=now)
    return text(present.values())


def drop_notes(feedback: str) -> str:
    """Return the column without the reasons given: words of those who saw the memory where it was."""
    return text(msgspec.structs.replace(vote, note="") for vote in decode_votes(feedback))


def merge(one: str, other: str) -> str:
    """Return the column of a memory that two become: of each caller its latest word, and what cited it in either."""
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
    """Return the usefulness that follows from feedback, None without any."""
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
    """Return the factor of the score of a memory with some feedback."""
    return _factor(decode_votes(feedback))


def _factor(votes: Sequence[Vote]) -> float:
    a = 1.0 + sum(1.0 if vote.useful else CITED * len(vote.cited) for vote in votes if vote.useful is not False)
    b = 1.0 + sum(vote.useful is False for vote in votes)
    return round(1.0 + _SHARE * (2.0 * a / (a + b) - 1.0), 6)
