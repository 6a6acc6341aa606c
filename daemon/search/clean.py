"""Stage 7: read the rows; the same content once; of two that contradict each other the newer first; then the limit."""

from memoryd.daemon.search.retrieval import Retrieval, Sources
from memoryd.daemon.search.traces import Candidate
from memoryd.daemon.store import rows
from memoryd.daemon.store.present import contradictions


def clean(retrieval: Retrieval, sources: Sources) -> None:
    """Leave the hits, best first, each with its row."""
    kept: list[Candidate] = []
    seen: set[bytes] = set()
    waiting = list(retrieval.ranked)
    while waiting and len(kept) < retrieval.call.limit:
        part = waiting[: retrieval.call.limit + 8]
        del waiting[: len(part)]
        _read(part, sources)
        kept += [candidate for candidate in part if _is_new(candidate, seen)]
    retrieval.contradictions = _contradictions(kept, sources)
    _newer_first(kept, retrieval.contradictions)
    for candidate in [*kept[retrieval.call.limit :], *waiting]:
        candidate.lost = f"ranked below the limit of {retrieval.call.limit}"
    retrieval.ranked = kept[: retrieval.call.limit]


def _read(part: list[Candidate], sources: Sources) -> None:
    with sources.store.reading() as connection:
        found = rows.by_rows(connection, [candidate.row for candidate in part])
    for candidate in part:
        candidate.record = found.get(candidate.row)


def _is_new(candidate: Candidate, seen: set[bytes]) -> bool:
    if candidate.record is None:
        candidate.lost = "deleted meanwhile"
        return False
    if candidate.record.content_hash in seen:
        candidate.lost = "the same content is ranked higher"
        return False
    seen.add(candidate.record.content_hash)
    return True


def _contradictions(kept: list[Candidate], sources: Sources) -> dict[str, list[str]]:
    with sources.store.reading() as connection:
        return contradictions(connection, [candidate.record.id for candidate in kept if candidate.record])


def _newer_first(kept: list[Candidate], links: dict[str, list[str]]) -> None:
    """Move each memory that contradicts an older one ranked above it to just before that one."""
    ids = {candidate.record.id: candidate for candidate in kept if candidate.record}
    for here, others in links.items():
        for there in others:
            if there in ids:
                _put_before(kept, newer=ids[here], older=ids[there])


def _put_before(kept: list[Candidate], newer: Candidate, older: Candidate) -> None:
    if _created(newer) > _created(older) and kept.index(newer) > kept.index(older):
        kept.remove(newer)
        kept.insert(kept.index(older), newer)


def _created(candidate: Candidate) -> tuple[float, int]:
    return candidate.record.created_at if candidate.record else 0.0, candidate.row
