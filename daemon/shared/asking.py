"""Stage: what is not here. Servers of shared roots that hold more than this machine are asked beside the search.

The question leaves as soon as the query's vector and words are known; this stage takes the answers that are there by
the deadline. Without a deadline nobody is asked: a local answer does not wait for a network. What a server brings is
scored as everything else is: its cosine, and the words by what full text here knows of their rarity.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError

import msgspec

from memoryd.client.protocol import SharedOutcome
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.shared.questions import Asker, Askers, PendingQuestion, ServerHit, ServerQuestion
from memoryd.daemon.store import fulltext, rows
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import SHARED
from memoryd.daemon.store.tokenizer import stem_words
from memoryd.daemon.store.vectors import Vector

_FIRST = -(1 << 52)  # numbers of rows that are not here, far from those of turns
_REST_S = 0.02  # of the deadline, left for the stages that follow
_READ_CHARS = 100_000
_RARE = 20  # memories here, at most, that hold a word which servers are asked for: of a common one they have too many
_MOST_WORDS = 4
_WORST: tuple[SharedOutcome, ...] = ("unasked", "offline", "late", "asked", "")


def ask(retrieval: Retrieval, sources: Sources) -> None:
    """Ask the servers that hold more of the reached namespaces than this machine, once the vector is known."""
    askers = sources.state(Askers).list_all()
    if not askers:
        return
    reached, vector = retrieval.chosen.reached, retrieval.vector
    found = [(one, one.list_namespaces()) for one in askers]
    chosen = [(one, held if reached is None else held & reached) for one, held in found]
    chosen = [(one, places) for one, places in chosen if places]
    if not chosen:
        return
    # Only plain filters can be applied to what a server returns.
    is_plain = not retrieval.chosen.further and "tier" not in retrieval.chosen.words
    if retrieval.deadline is None or vector is None or not is_plain:
        retrieval.shared = "unasked"
        return
    retrieval.shared = "late"  # until somebody answers
    _send(retrieval, chosen, vector)


def _send(retrieval: Retrieval, chosen: list[tuple[Asker, frozenset[int]]], vector: Vector) -> None:
    assert retrieval.generation is not None
    call, fingerprint = retrieval.call, retrieval.generation.embedder.fingerprint
    narrowed = bool(retrieval.chosen.condition)
    wanted = retrieval.depth if narrowed else max(2 * retrieval.wanted, 20)
    asked = retrieval.question.words if retrieval.question else ()
    words = tuple(word.text for word in asked if word.documents <= _RARE)[:_MOST_WORDS]
    for asker, places in chosen:
        question = ServerQuestion(fingerprint, vector, places, wanted, call.namespace, call.touch, words)
        retrieval.asked.append(asker.ask(question))


def shared(retrieval: Retrieval, sources: Sources) -> None:
    """Add what the servers returned in time."""
    if not retrieval.shared:
        return
    if retrieval.shared == "unasked":
        retrieval.notes["shared"] = "unasked"
        return
    outcomes: list[SharedOutcome] = []
    for asked in retrieval.asked:
        outcome, found = _take(retrieval, asked)
        outcomes.append(outcome)
        _add(retrieval, sources, found)
    retrieval.shared = next((one for one in _WORST if one in outcomes), "late")
    if retrieval.shared in ("late", "offline"):
        retrieval.degrade("shared")
    retrieval.notes.update(shared=retrieval.shared, found=len(retrieval.origins))


def _take(retrieval: Retrieval, asked: PendingQuestion) -> tuple[SharedOutcome, list[ServerHit]]:
    """Wait for an answer as long as the deadline allows."""
    remaining_s = retrieval.remaining_s() or 0.0
    try:
        return "asked", asked.answer.result(max(0.0, remaining_s - _REST_S))
    except FutureTimeoutError:
        if asked.give_up():
            return "late", []
    except Exception:
        return "offline", []
    return ("offline", []) if asked.answer.exception() else ("asked", asked.answer.result())


def _add(retrieval: Retrieval, sources: Sources, found: list[ServerHit]) -> None:
    """Make candidates of what is not here."""
    with sources.store.reading() as connection:
        here = rows.read_ids(connection, [known.row.id for known in found])
        # What came here since this search began is as it is here, whatever the server said.
        now = [_merge(retrieval, known, here.get(known.row.id)) for known in found]
        new = [known for known in now if known.row.row not in retrieval.candidates and _is_met(retrieval, known.row)]
        stems = [Counter(stem_words(connection, known.row.content[:_READ_CHARS])) for known in new]
    lengths = [counted.total() for counted in stems]
    question = retrieval.question
    words: Iterator[float] = iter(fulltext.score(question, stems, lengths) if question else [0.0] * len(new))
    for known, counted, score in zip(new, stems, words, strict=True):
        number = _FIRST - len(retrieval.origins)
        candidate = retrieval.ensure_candidate(number, SHARED)
        candidate.similarity, candidate.bm25, candidate.stems = known.similarity, score or None, counted
        retrieval.recent[number] = msgspec.structs.replace(known.row, row=number)
        retrieval.origins[number] = known.origin


def _merge(retrieval: Retrieval, known: ServerHit, here: Row | None) -> ServerHit:
    """Return a memory as it is here, if it is; a candidate whose vector is not made yet gets the server's cosine."""
    if here is None:
        return known
    similarity = known.similarity if here.text_hash == known.row.text_hash else None
    candidate = retrieval.candidates.get(here.row)
    if candidate is not None and candidate.similarity is None:
        candidate.similarity = similarity
    return known._replace(row=here, similarity=similarity)


def _is_met(retrieval: Retrieval, row: Row) -> bool:
    """Apply the filters, and leave out what is no longer alive."""
    chosen = retrieval.chosen
    fields = {"type": row.type, "source": row.source}
    return (
        row.superseded_by is None
        and (row.expires_at is None or row.expires_at > retrieval.passed)
        and all(fields[name] in wanted for name, wanted in chosen.words.items())
        and (chosen.after is None or row.created_at > chosen.after)
        and (chosen.before is None or row.created_at < chosen.before)
        and row.id != retrieval.excluded
    )


def keep(retrieval: Retrieval, sources: Sources) -> None:
    """Have the hits that were not here kept, as what is used is."""
    if not (retrieval.origins and retrieval.call.touch):
        return
    ids = {retrieval.recent[hit.row].id for hit in retrieval.ranked if hit.row in retrieval.origins}
    for asker in sources.state(Askers).list_all() if ids else ():
        asker.keep(retrieval.call.namespace, ids)
