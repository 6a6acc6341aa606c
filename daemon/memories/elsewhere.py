"""Forward calls to the shared roots within their reach: by id if it is not found here, lists as a merged page."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec

from memoryd.client.errors import MemorydError, NotFound
from memoryd.client.protocol import DECLARED, List, Memory, NamespaceCount, NamespaceList, Namespaces, Page, Scoped
from memoryd.daemon.core.core import Core
from memoryd.daemon.search.remotes import CHANGE_S, WAIT_S, Remote, Remotes
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.tiers import L3

R = TypeVar("R")

_MAX_MEMORIES = 1000  # in one answer
_SORTED_BY: dict[str, Callable[[Memory], float]] = {
    "created": lambda memory: memory.created_at,
    "updated": lambda memory: memory.updated_at,
    "accessed": lambda memory: memory.last_accessed_at or 0.0,
    "count": lambda memory: memory.access_count,
    "importance": lambda memory: memory.importance,
}


def here_or_elsewhere(
    core: Core, call: Scoped[R], caller: Caller, here: "Callable[[], R | Future[R]]"
) -> "R | Future[R]":
    """Answer a call here; if it raises `NotFound`, ask the shared roots within reach."""
    remotes: Remotes = core.state(Remotes)
    places = remotes.find_covering(call) if remotes.all else []
    if not places:
        return here()
    outcome: Future[R] = Future()
    try:
        result = here()
    except NotFound as error:
        _ask_next(places, call, caller, error, outcome)
        return outcome
    if not isinstance(result, Future):
        return result

    def take(done: "Future[R]") -> None:
        error = done.exception()
        if isinstance(error, NotFound):
            _ask_next(places, call, caller, error, outcome)
        elif error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(done.result())

    result.add_done_callback(take)
    return outcome


def _ask_next(places: Sequence[Remote], call: Scoped[R], caller: Caller, error: NotFound, outcome: "Future[R]") -> None:
    """Ask one root after the other until one knows the memory; fail with `error` if none does."""
    if not places:
        outcome.set_exception(error)
        return

    def take(done: "Future[R]") -> None:
        failure = done.exception()
        if isinstance(failure, NotFound):
            _ask_next(places[1:], call, caller, error, outcome)
        elif isinstance(failure, MemorydError):
            outcome.set_exception(type(failure)(f"It is not on this machine. {failure.message}", dict(failure.data)))
        elif failure is not None:
            outcome.set_exception(failure)
        else:
            outcome.set_result(done.result())

    places[0].ask(call, caller, WAIT_S if DECLARED[type(call)].reads else CHANGE_S).add_done_callback(take)


def list_both(core: Core, call: List, caller: Caller, here: Callable[[List], Page]) -> Page:
    """Return one page of the local memories and those of shared roots, merged in the order of the call.

    A root is asked for at most `_MAX_MEMORIES`; for later pages it is named in `degraded`. A call for shared memories
    alone waits as long as a change.
    """
    remotes: Remotes = core.state(Remotes)
    is_for_here = call.ids or (call.tier and L3 not in call.tier)
    places = remotes.find_covering(call) if remotes.all and not is_for_here else []
    if not places:
        return here(call)
    end, wait_s = call.offset + call.limit, CHANGE_S if call.tier == [L3] else WAIT_S
    asked = msgspec.structs.replace(call, offset=0, limit=min(end, _MAX_MEMORIES), tier=[])
    answers: list[tuple[Remote, Future[Page]]] = [
        (place, place.ask(asked, caller, wait_s)) for place in places if end <= _MAX_MEMORIES
    ]
    give_up_at = time.monotonic() + wait_s
    page = here(msgspec.structs.replace(call, offset=0, limit=end))
    page.degraded = [] if end <= _MAX_MEMORIES else [f"shared:{place.name}" for place in places]
    for place, answer in answers:
        try:
            there = answer.result(max(0.0, give_up_at - time.monotonic()))
        except (MemorydError, TimeoutError):
            page.degraded.append(f"shared:{place.name}")
            continue
        page.memories += there.memories
        page.total += there.total
        page.degraded += there.degraded
    by: Any = _SORTED_BY[call.sort]
    page.memories.sort(key=lambda memory: (by(memory), memory.id), reverse=not call.ascending)
    page.memories = page.memories[call.offset : end]
    return page


def list_namespaces_both(
    core: Core, call: Namespaces, caller: Caller, here: Callable[[Namespaces], NamespaceList]
) -> NamespaceList:
    """Return the namespaces here and in the shared roots that the call reaches, with the memories of both."""
    remotes: Remotes = core.state(Remotes)
    places = remotes.find_covering(call) if remotes.all else []
    if not places:
        return here(call)
    every = msgspec.structs.replace(call, offset=0, limit=_MAX_MEMORIES)
    answers = [(place, place.ask(every, caller, WAIT_S)) for place in places]
    pages, degraded = [here(every)], []
    for place, answer in answers:
        try:
            pages.append(answer.result(WAIT_S))
        except (MemorydError, TimeoutError):
            degraded.append(f"shared:{place.name}")
    counts: dict[str, int] = {}
    for entry in (entry for page in pages for entry in page.namespaces):
        counts[entry.name] = counts.get(entry.name, 0) + entry.memories
    names = sorted(counts, key=lambda name: name.split("/"))
    entries = [NamespaceCount(name=name, memories=counts[name]) for name in names]
    total = max(len(names), *(page.total for page in pages))
    return NamespaceList(namespaces=entries[call.offset : call.offset + call.limit], total=total, degraded=degraded)
