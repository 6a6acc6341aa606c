"""Stage: the candidates of other machines, which were asked when the search began (`ask`).

They are ranked together with those of this machine. Words are weighed by how many memories here and there have them. A
machine that does not answer in time (the deadline, else one second) or refuses is named in `degraded`.

`build_answer` is the other side: what another machine needs to rank the memories of this one.
"""

import time
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from memoryd.client.errors import MemorydError
from memoryd.client.protocol import Candidates, CountedText, FindCandidates, FoundMemory, Memory, Query
from memoryd.daemon.arrays import lexical
from memoryd.daemon.arrays.positions import Places
from memoryd.daemon.search.candidates import rank_words
from memoryd.daemon.search.clean import read
from memoryd.daemon.search.remotes import WAIT_S, Asked, MeasuredText, Remotes, build_row, pack_vector, read_vector
from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.store.conversion import fields_of
from memoryd.daemon.store.rows import fit_reply
from memoryd.daemon.store.tiers import L3
from memoryd.daemon.store.vectors import Vector

_MAX_HITS = 1000  # of one answer
_MORE = 20  # candidates than hits, as other places weigh words in another way
_FIRST_ROW = 1 << 48  # rows of other machines have the negatives of the numbers from here on; turns of L0 have less


def ask(sources: Sources, call: Query[Any]) -> list[Asked]:
    """Ask the roots that a search may reach for candidates; return the pending answers."""
    remotes: Remotes = sources.state(Remotes)
    # Another place has neither vectors of this model nor the memories of this machine.
    is_for_here = call.like or call.options.vector or (call.tier and L3 not in call.tier)
    if not remotes.all or is_for_here or not call.query.strip():
        return []
    asked = build_question(call)
    within_s = WAIT_S if call.deadline_ms is None else min(WAIT_S, call.deadline_ms / 1000)
    return [Asked(one, one.ask(asked, sources.caller, within_s)) for one in remotes.find_covering(asked)]


def build_question(call: Query[Any]) -> FindCandidates:
    """Return the question for another place's candidates for a search."""
    fields = {name: getattr(call, name) for name in FindCandidates.__struct_fields__}
    fields |= {"limit": min(_MAX_HITS, call.offset + call.limit), "offset": 0, "session": "", "tier": []}
    return FindCandidates(**fields)


def remote(retrieval: Retrieval, sources: Sources) -> None:
    """Add the candidates that arrive in time, or are in RAM, and weigh words by all memories."""
    answers, told = _await_answers(retrieval), list[tuple[Memory, MeasuredText]]()
    if retrieval.is_prompt:  # what is in RAM of shared roots
        remotes: Remotes = sources.state(Remotes)
        shelved = (one for place in remotes.all for one in place.list_told(retrieval.call))
        told = [(memory, text) for memory, text in shelved if text is not None]
    if not answers and not told:
        return
    _weigh_words(retrieval, sources, answers, told)
    generation = retrieval.generation
    for answer in answers:
        has_vectors = generation is not None and generation.name == answer.model
        for memory in sorted(answer.found, key=lambda one: -one.created_at):  # the newest first among equals
            vector = read_vector(memory.float16) if has_vectors else None
            similarity = None
            if generation is not None and memory.similarity is not None:
                similarity = generation.embedder.floors.restore(memory.similarity)
            _add(retrieval, sources, memory, memory.texts, similarity, vector)
    for shown, text in told:
        vector = text.vector if generation is not None and generation.name == text.model else None
        similarity = None
        if vector is not None and retrieval.vector is not None:
            similarity = float(vector @ retrieval.vector)
        _add(retrieval, sources, shown, [text.words], similarity, vector)
    candidates = retrieval.candidates.values()
    by_meaning = [one for one in candidates if "meaning" in one.origins and one.similarity is not None]
    for rank, one in enumerate(sorted(by_meaning, key=lambda one: -(one.similarity or 0.0)), start=1):
        one.similarity_rank = rank
    by_words = [one for one in candidates if one.bm25]
    for rank, one in enumerate(sorted(by_words, key=lambda one: -(one.bm25 or 0.0)), start=1):
        one.bm25_rank = rank


def _await_answers(retrieval: Retrieval) -> list[Candidates]:
    give_up_at = retrieval.began + WAIT_S
    if retrieval.deadline is not None:
        give_up_at = min(give_up_at, retrieval.deadline)
    answers: list[Candidates] = []
    for place, pending in retrieval.asked:
        try:
            answer = pending.result(max(0.0, give_up_at - time.monotonic()))
        except (MemorydError, TimeoutError) as error:
            retrieval.degrade(f"shared:{place.name}")
            retrieval.notes[place.name] = getattr(error, "message", "It did not answer in time.")
        else:
            answers.append(answer)
            retrieval.notes[place.name] = len(answer.found)
            for part in answer.degraded:
                retrieval.degrade(part)
    return answers


def _weigh_words(
    retrieval: Retrieval,
    sources: Sources,
    answers: list[Candidates],
    told: list[tuple[Memory, MeasuredText]],
) -> None:
    """Weigh the words of the query by all memories, and score those of this machine again."""
    question = retrieval.question
    if question is None:
        return
    for answer in answers:
        question = lexical.widen(question, answer.documents, answer.average, answer.holding)
    if told:
        texts = [text.words for _, text in told]
        holding = {word.stem: sum(word.stem in text.counts for text in texts) for word in question.words}
        question = lexical.widen(question, len(texts), fmean(text.length for text in texts), holding)
    rank_words(retrieval, sources, question)
    for candidate in retrieval.candidates.values():
        candidate.bm25_rank, candidate.bm25 = retrieval.words.get(candidate.row, (None, None))


def _add(
    retrieval: Retrieval,
    sources: Sources,
    memory: Memory,
    texts: Sequence[CountedText],
    similarity: float | None,
    vector: Vector | None,
) -> None:
    """Add a memory of another machine as a candidate; `texts` are its own and those of memories that it superseded."""
    generation, question = retrieval.generation, retrieval.question
    number = -(_FIRST_ROW + len(retrieval.elsewhere))
    retrieval.elsewhere[number] = memory
    retrieval.recent[number] = build_row(memory, number, sources.store.namespaces)
    if generation is not None and vector is not None and len(vector) == generation.index.dimensions:
        retrieval.vectors[number] = vector
    counts, lengths = [text.counts for text in texts], [text.length for text in texts]
    bm25 = max(lexical.score(question, counts, lengths), default=0.0) if question else 0.0
    candidate = retrieval.ensure_candidate(number, "meaning" if similarity is not None else "words")
    if bm25 and similarity is not None:
        candidate.origins += ("words",)
    candidate.similarity, candidate.bm25 = similarity, bm25 or None
    candidate.stems = counts[0] if counts else ()


def build_answer(retrieval: Retrieval, sources: Sources) -> Candidates:
    """Return the best candidates of a search that has fused its arms, with what it takes to rank them elsewhere."""
    generation, question = retrieval.generation, retrieval.question
    best = retrieval.ranked[: retrieval.wanted + _MORE]
    read(retrieval, best, sources)
    records = fit_reply([one.record for one in best if one.record])
    by_row = {one.row: one for one in best}
    vectors: dict[int, str] = {}
    with sources.store.reading() as connection:
        if generation is not None:
            numbers, matrix = generation.read_exact(connection, [row.row for row in records])
            vectors = {number: pack_vector(vector) for number, vector in zip(numbers, matrix, strict=True)}
    found = []
    for row in records:
        candidate = by_row[row.row]
        similarity = candidate.similarity
        places = retrieval.allowed.positions.find([row.row, *(one.row for one in candidate.formers)])
        found.append(
            FoundMemory(
                **fields_of(row, sources.store.namespaces, {}),
                similarity=None if similarity is None or generation is None else retrieval.scale(similarity),
                texts=_count_words(sources, question, places) if question else [],
                float16=vectors.get(row.row, ""),
            )
        )
    return Candidates(
        found=found,
        model=generation.name if generation else "",
        documents=question.documents if question else 0,
        average=question.average if question else 1.0,
        holding={word.stem: word.documents for word in question.words} if question else {},
        degraded=retrieval.degraded,
    )


def _count_words(sources: Sources, question: lexical.TextQuery, places: Places) -> list[CountedText]:
    """Return the words of the query in the texts at some positions."""
    lengths = sources.arrays.postings.read_lengths(places).tolist()
    counts = [word.posting.count_at(places).tolist() for word in question.words]
    stems = [word.stem for word in question.words]
    return [
        CountedText(length=length, counts={stem: row[at] for stem, row in zip(stems, counts, strict=True) if row[at]})
        for at, length in enumerate(lengths)
    ]
