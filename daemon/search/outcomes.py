"""Describe a trace and the outcome of a memory in a search, in sentences that `memctl` and the page print."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from memoryd.client.confidence import FLOOR, describe_confidence, word_of
from memoryd.client.protocol import CandidateTrace, Trace, Why
from memoryd.daemon.search.traces import Candidate, StoredTrace
from memoryd.daemon.store import rows
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.conversion import convert_to
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L0
from memoryd.daemon.store.tokenizer import build_stemmer, split_words, stem_words

_PREVIEW = 80
SURENESS = "sureness"  # the stage that decides what is shown beside a prompt
_NEARNESS = ((0.7, "very near"), (0.3, "near"), (-1.0, "a little near"))  # from a cosine on
_WORDS = 8  # of a memory, listed at most
_READ_CHARS = 10_000  # of a memory, searched for words
_WHO = {"user": "the user", "assistant": "the agent", "tool": "a tool"}
_REASONS = {
    "hot": "found for a search lately",
    L0: "said just now",
    "graph": "often found together with the others",
    "role": "said by the one that the question means",
    "date": "from the time that you name",
    "when": "names a date, and the question asks when",
    "identifier": "has the name or number that you ask for",
    "asks": "a question that nobody answered, which counts less",
    "unknown": "says that it does not know, which counts less",
    "tool": "printed by a tool, or a pasted log, which counts less",
}


def build_whole(connection: Connection, trace: StoredTrace, seen: frozenset[int] | None = None) -> Trace:
    """Return the trace with its candidates, best first, without candidates deleted since or outside `seen`."""
    by_row = rows.read_rows(connection, [candidate.row for candidate in trace.candidates if candidate.row > 0])
    visible = {
        number: row for number, row in {**by_row, **trace.recent}.items() if seen is None or row.namespace in seen
    }
    candidates = [
        convert_to(
            CandidateTrace,
            candidate,
            id=visible[candidate.row].id,
            preview=_shorten(visible[candidate.row].content),
            tier=visible[candidate.row].tier,
            origins=list(dict.fromkeys(candidate.origins)),
            cues=list(candidate.cues),
            lost=f"{candidate.lost_in}: {candidate.lost}" if candidate.lost else "",
            confidence_word="" if candidate.lost else word_of(candidate.confidence),
            outcome=describe_outcome(candidate, visible[candidate.row].id, trace.trace),
            reasons=list(list_reasons(connection, candidate, visible[candidate.row], trace.trace.query)),
        )
        for candidate in sorted(trace.candidates, key=lambda one: (bool(one.lost), -one.score))
        if candidate.row in visible
    ]
    given_ids, named_ids = trace.trace.given, {candidate.id for candidate in candidates}
    if seen is not None:
        given_ids = [id for id in given_ids if id in named_ids]
    left_out = {id: why for id, why in trace.trace.left_out.items() if id in named_ids}
    return msgspec.structs.replace(trace.trace, candidates=candidates, given=given_ids, left_out=left_out)


def _shorten(text: str) -> str:
    """Return the beginning of a text in one line, with an ellipsis if there is more."""
    line = " ".join(text[: 2 * _PREVIEW].split())
    return line if len(line) <= _PREVIEW else f"{line[: _PREVIEW - 1].rstrip()}…"


def describe_outcome(candidate: Candidate, id: str, trace: Trace) -> str:
    """Return why a candidate was dropped or not given, or else its confidence; and the effect of feedback on its score.

    For a prompt the confidence is the probability that the memory is about it, which decides whether it is shown.
    """
    rated = "" if candidate.usefulness == 1.0 else f" (feedback ×{candidate.usefulness:.3f})"
    sureness: dict[str, Any] = next((stage.notes for stage in trace.stages if stage.name == SURENESS), {})
    if candidate.lost:
        return f"{candidate.lost_in}: {candidate.lost}{rated}"
    if id in trace.left_out:
        return f"not given: {trace.left_out[id]}{rated}"
    if id in sureness:
        return f"given, {sureness[id]['sure']:.0%} confident that it is about the prompt{rated}"
    if trace.kind == "search":
        outcome = "found, not shown" if candidate.confidence < FLOOR else "found"
    else:
        outcome = "given" if id in trace.given else "found, not given"
    return f"{outcome}, {describe_confidence(candidate.confidence)}{rated}"


def list_reasons(connection: Connection, candidate: Candidate, row: Row, query: str) -> Iterator[str]:
    """Yield how a candidate was found, what raised or lowered its score, and who said it."""
    if candidate.bm25 is not None:
        stems, stem = set(stem_words(connection, row.content[:_READ_CHARS])), build_stemmer(connection)
        words = [word for word in split_words(connection, query) if stems.intersection(stem(word))][:_WORDS]
        if words:
            quoted = ", ".join(f"“{word}”" for word in words)
            yield f"the word {quoted}" if len(words) == 1 else f"these words: {quoted}"
    if candidate.similarity is not None and "meaning" in candidate.origins:
        near = next(words for least, words in _NEARNESS if candidate.similarity >= least)
        yield f"{near} in meaning ({candidate.similarity:.2f})"
    yield from (_REASONS[name] for name in (*candidate.origins, *candidate.cues) if name in _REASONS)
    if candidate.usefulness != 1:
        yield f"rated {'useful' if candidate.usefulness > 1 else 'not useful'} before"
    metadata: dict[str, Any] = msgspec.json.decode(row.metadata)
    speaker = metadata.get("speaker") or metadata.get("role")
    yield f"written in {row.path}" if row.path else f"said by {_WHO.get(str(speaker), speaker)}" if speaker else "saved"


def describe_why(why: Why) -> list[str]:
    """Describe the outcome of a memory in a search, in sentences."""
    id = why.id[:8]
    sure = "" if why.confidence is None else f", {describe_confidence(why.confidence)}"
    if why.found and why.confidence is not None and why.confidence < FLOOR:
        hidden = f"{describe_confidence(why.confidence)}, {FLOOR:.0%} are needed; `memctl search … --all` shows it"
        because = [f"Perhaps since {why.reason}."] if why.reason else []
        return [f"{id} is found, but not shown: {hidden}.", *because]
    if why.found:
        return [f"{id} is found, at rank {why.rank}{sure}."]
    if why.shown_with:
        return [f"{id} is a part of another result: {why.reason}."]
    return [f"{id} is not among the results: {why.reason} (stage {why.stage})."]


def format_figures(why: Why) -> dict[str, str]:
    """Format the figures behind an outcome with their names; unknown ones are left out."""
    sure, last = why.confidence, why.last_hit_confidence
    confidence = ""
    if sure is not None and why.confidence_reason:
        needed = f", {FLOOR:.0%} are needed to be shown" if sure < FLOOR and not why.found else ""
        confidence = f"{describe_confidence(sure)}{needed}: {why.confidence_reason}"
    figures = {
        "similarity": _format_number(why.similarity, why.similarity_rank),
        "bm25": _format_number(why.bm25, why.bm25_rank),
        "score": _format_number(why.score) + _format_sum(why.parts, why.score),
        "confidence": confidence,
        "last result": _format_number(why.last_hit_score) + ("" if last is None else f", {describe_confidence(last)}"),
    }
    return {name: value for name, value in figures.items() if value}


def _format_sum(parts: Mapping[str, float], score: float | None) -> str:
    """Return the parts of a score as a sum, ` = 0.610 meaning + 0.300 words`; empty if they are unknown."""
    shown = {name: value for name, value in parts.items() if abs(value) >= 0.0005}
    if not score or not shown:
        return ""
    terms = [f" {'-' if value < 0 else '+'} {abs(value):.3f} {name}" for name, value in shown.items()]
    return " = " + "".join(terms).removeprefix(" + ")


def _format_number(value: float | None, rank: int | None = None) -> str:
    return ("–" if value is None else f"{value:.3f}") + ("" if rank is None else f", rank {rank:,}")
