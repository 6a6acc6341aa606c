"""One shared root: which calls reach it, how they are narrowed to it, and how its answers are validated.

The place may return texts of others, so answers are decoded row by row: a row that is not a memory of the root, or has
impossible values, is left out and counted.
"""

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from memoryd.client import protocol
from memoryd.client.errors import (
    Busy,
    Forbidden,
    Invalid,
    MemorydError,
    NotFound,
    TimedOut,
    Unauthenticated,
    Unavailable,
)
from memoryd.client.offline import is_here
from memoryd.client.protocol import (
    Add,
    Added,
    Candidates,
    Confirm,
    Confirmed,
    FindCandidates,
    FoundMemory,
    Memory,
    Page,
    Reply,
    Scoped,
    Share,
    Shared,
)
from memoryd.client.protocol.shared import Greeting
from memoryd.client.transport.exchange import error_of, result_of
from memoryd.client.transport.ssh import build_line_command
from memoryd.daemon.arrays.postings import count_stems
from memoryd.daemon.config import SharedConfig
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_metadata
from memoryd.daemon.embedding.api import is_api
from memoryd.daemon.privacy.privacy import find_privacy
from memoryd.daemon.search.remotes import CHANGE_S, MeasuredText, Told, read_vector
from memoryd.daemon.server.access import AUTHOR
from memoryd.daemon.shared import confirming, taken
from memoryd.daemon.shared.line import Line
from memoryd.daemon.shared.postgres.line import PostgresLine
from memoryd.daemon.shared.shelf import PAGE, Shelf
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.namespaces import list_enclosing
from memoryd.daemon.store.tiers import L3

R = TypeVar("R")
M = TypeVar("M", bound=Memory)

DECISIONS = frozenset({"rule", "decision", "lesson", "convention"})
ON_PURPOSE = frozenset({"manual", "mcp"})  # sources of memories that are saved one by one
AWAY = (Unavailable, TimedOut, Busy)  # the outcome is unknown, or nothing was done
_PARTS = ("vector", "fulltext", "pending_embeddings")  # what a place may say that its search had to do without
_BY_ID = (protocol.Get, protocol.Update, protocol.Delete, protocol.History, protocol.Undo)
ID = re.compile(r"[0-9a-f]{32}")
_LATEST = 7_258_118_400.0  # the year 2200
_MAX_ROW_BYTES = 2 * protocol.MAX_CONTENT_BYTES + protocol.MAX_VALUE_BYTES

log = logging.getLogger(__name__)


class Target(NamedTuple):
    """A namespace in the root and what is seen from it: `exact` or `subtree`."""

    namespace: str
    reach: protocol.Reach


class _RawCandidates(msgspec.Struct):
    found: list[msgspec.Raw]
    model: str
    documents: int
    average: float
    holding: dict[str, int]
    degraded: list[str] = []


class _RawPage(msgspec.Struct):
    memories: list[msgspec.Raw]
    total: int


class Root:
    """A shared root, as a `Remote`. `keep` stores an add here until it can be sent; `move` sends local memories."""

    def __init__(self, core: Core, name: str, settings: SharedConfig, keep: "Keep", move: "Move") -> None:
        self.name, self.settings = name, settings
        self._core, self._keep, self._move = core, keep, move
        self.line = self._build_line()
        forget = partial(taken.forget_root, core, name)
        self.shelf = Shelf(self._read_own, self._is_mine, forget, self._measure, self._find_model)
        self.line.on_away = self.shelf.drop
        self.wake: Callable[[], None] = lambda: None
        self.unreadable = 0
        self.compared_at = 0.0  # on the monotonic clock: when the place was last asked what it still has
        self.identity: Greeting | None = None
        self.refusal = ""  # the message if the place refused the token in its last answer, though the line stays open
        self._confirmed = confirming.read(core, name)

    def _build_line(self) -> Line | PostgresLine:
        settings = self.settings
        command = build_line_command(settings.server, settings.memctl, settings.token or self.name)
        return Line(self.name, command, self._check)

    def describe_place(self) -> dict[str, str]:
        """Return the place's description of itself; empty if it is not asked, or does not answer soon."""
        return {}

    # Which calls reach it --------------------------------------------------------------------------------------------

    def holds(self, namespace: str) -> bool:
        """Return whether a namespace is in the root: the root itself, or inside it."""
        return namespace == self.name or namespace.startswith(f"{self.name}/")

    def excludes(self, namespace: str) -> bool:
        """Return whether memories saved in a namespace stay on this machine."""
        return any(namespace == one or namespace.startswith(f"{one}/") for one in self.settings.exclude)

    def covers(self, call: Scoped[Any]) -> bool:
        """Return whether a call may reach something in the root."""
        return bool(self.find_targets(call))

    def find_targets(self, call: Scoped[Any]) -> list[Target]:
        """Return what a call reaches in the root."""
        place = call.namespace
        match call.reach or ("visible" if place else "all"):
            case "all" | "subtree" as reach if reach == "all" or not place:
                return [Target(self.name, "subtree")]
            case "subtree" | "exact" as reach if self.holds(place):
                return [Target(place, reach)]
            case "visible" if self.holds(place):
                return [Target(name, "exact") for name in list_enclosing(place) if self.holds(name)]
            case _:
                return []

    def takes(self, call: Add) -> bool:
        """Return whether an add is sent there automatically: a configured kind, saved on purpose, below the root.

        Adds in the root itself are not, since an unrelated checkout's folder may have the same name.
        """
        place, memory, auto = call.namespace, call.memory, self.settings.auto
        is_inside = place.startswith(f"{self.name}/")
        is_kind = auto == "all" or (auto == "decisions" and memory.type in DECISIONS)
        return is_inside and not self.excludes(place) and is_kind and memory.id is None and memory.source in ON_PURPOSE

    # Sending calls ---------------------------------------------------------------------------------------------------

    def ask(self, call: Scoped[R], caller: Caller, within_s: float) -> "Future[R]":
        """Send a call without credentials, narrowed to the part of the root that it reaches and its caller may use."""
        try:
            if isinstance(call, Confirm):
                return self._core.background.run(f"confirm in {self.name}", lambda: self._confirm(call, caller))
            self._check_allowed(call)
            answer = self._ask(find_privacy(self._core).strip(call), caller, within_s)
            if isinstance(call, protocol.Update | protocol.Delete | protocol.Undo):
                answer.add_done_callback(partial(taken.note_change, self._core))
        except MemorydError as error:
            refused: Future[R] = Future()
            refused.set_exception(error)
            return refused
        if not protocol.DECLARED[type(call)].reads:
            answer.add_done_callback(self._note_change)
        return answer

    def _note_change(self, answer: "Future[Any]") -> None:
        if answer.exception() is None:
            self.shelf.note_change()
            self.wake()

    def ask_and_wait(self, call: Scoped[R], caller: Caller = USER) -> R:
        """Send a call and return its result, within the time limit of a change."""
        try:
            return self.ask(call, caller, CHANGE_S).result(CHANGE_S + 1)
        except Late:
            raise TimedOut(f"The place of {self.name} did not answer in time.") from None

    def _confirm(self, call: Confirm, caller: Caller) -> Any:
        """Record what the person confirms on this machine only, since it does not count for others."""
        gets = [protocol.Get(id=prefix, reach=call.reach, touch=False) for prefix in call.ids]
        memories = [self.ask_and_wait(get, caller) for get in gets]
        confirming.note(self._core, self.name, memories)
        self._confirmed = confirming.read(self._core, self.name)
        self.shelf.expect()
        self.wake()
        return Confirmed(ids=[memory.id for memory in memories], operation="")

    def _ask(self, call: Scoped[R], caller: Caller, within_s: float) -> "Future[R]":
        outcome: Future[R] = Future()
        calls = self._narrow(call, caller)
        assert isinstance(self.line, Line)
        answers = [self.line.ask(one, within_s) for one in calls]
        left = [len(answers)]

        def take(_: Any) -> None:  # on the line's thread, except for calls that fail at once
            left[0] -= 1
            if left[0]:
                return
            try:
                result = self._join(call, calls, [answer.result() for answer in answers])
            except BaseException as error:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)

        for answer in answers:
            answer.add_done_callback(take)
        return outcome

    def _check_allowed(self, call: Scoped[Any]) -> None:
        if self._core.config.network.offline and not self._is_here():
            server = self.settings.server
            raise Unavailable(f"The place of {self.name} is not asked: {server} is elsewhere, and `offline` is set.")
        if getattr(call, "allow_secrets", False):
            raise Invalid(f"Nothing goes into the shared root {self.name} with `allow_secrets`.")

    def _is_here(self) -> bool:
        return is_here(urlsplit(self.settings.server).hostname or "")

    def _narrow(self, call: Scoped[Any], caller: Caller) -> list[Any]:
        has_key = bool(getattr(call, "key", "") or getattr(call, "keys", []))
        if isinstance(call, _BY_ID) and not has_key:
            own = caller.namespace if caller.bound else self.name
            if not self.holds(own) or (isinstance(call, protocol.Undo) and caller.bound):
                raise NotFound("There is no such memory within reach.")
            here = {"around": None} if isinstance(call, protocol.Get) else {}  # turns are on this machine alone
            return [msgspec.structs.replace(call, namespace=own, reach="subtree", **here)]
        if isinstance(call, Add) or has_key or not isinstance(call, protocol.Filtered | protocol.Namespaces):
            if not self.holds(call.namespace):
                raise NotFound(f"{call.namespace or 'The root'} is not in the shared root {self.name}.")
            return [msgspec.structs.replace(call, reach="exact")]
        return [msgspec.structs.replace(call, namespace=one, reach=reach) for one, reach in self.find_targets(call)]

    def _join(self, call: Scoped[Any], calls: list[Any], replies: list[Reply]) -> Any:
        """Return the results of the narrowed calls as one, without invalid rows."""
        for reply in replies:
            if reply.kind == protocol.ERROR:
                error = error_of(reply)
                if isinstance(error, Unauthenticated):
                    self.shelf.drop(error)
                    self.refusal = error.message
                if isinstance(error, NotFound):  # worded as for a local memory
                    raise error
                raise type(error)(f"The place of {self.name} says: {error.message}", error.data)
        self.refusal = ""
        if isinstance(call, FindCandidates):
            return self._read_candidates(call, replies)
        if isinstance(call, protocol.List):
            return self._read_pages(replies)
        if isinstance(call, protocol.Namespaces):
            return self._read_namespaces(replies)
        [result] = [result_of(one, reply) for one, reply in zip(calls, replies, strict=True)]
        if isinstance(result, Memory):
            return self._check_one(result)
        if isinstance(result, protocol.Changed):
            result.memory = self._check_one(result.memory)
        elif isinstance(result, Added):
            if not ID.fullmatch(result.id):
                raise Unavailable(f"The answer of the place of {self.name} cannot be read: it names no memory.")
            result.shared = self.name
        return result

    def _read_candidates(self, call: FindCandidates, replies: list[Reply]) -> Candidates:
        answers = [_decode(reply, _RawCandidates) for reply in replies]
        found, degraded = self._read_rows([raw for answer in answers for raw in answer.found], FoundMemory)
        documents = sum(answer.documents for answer in answers)
        words = math.fsum(answer.average * answer.documents for answer in answers)
        holding: Counter[str] = Counter()
        for answer in answers:
            holding.update(answer.holding)
        are_counts = 0 <= documents <= protocol.MAX_INTEGER and all(number >= 0 for number in holding.values())
        if not (are_counts and math.isfinite(words) and words >= 0.0):
            raise Unavailable(f"The answer of the place of {self.name} cannot be read: its counts are none.")
        return Candidates(
            found=found,
            model=answers[0].model,
            documents=documents,
            average=words / max(1, documents),
            holding={stem: min(number, documents) for stem, number in holding.items()},
            degraded=[*degraded, *(part for part in _PARTS if any(part in answer.degraded for answer in answers))],
        )

    def _read_pages(self, replies: list[Reply]) -> Page:
        answers = [_decode(reply, _RawPage) for reply in replies]
        memories, degraded = self._read_rows([raw for answer in answers for raw in answer.memories], Memory)
        return Page(memories=memories, total=sum(answer.total for answer in answers), degraded=degraded)

    def _read_namespaces(self, replies: list[Reply]) -> protocol.NamespaceList:
        answers = [_decode(reply, protocol.NamespaceList) for reply in replies]
        every = [entry for answer in answers for entry in answer.namespaces]
        good = [one for one in every if self.holds(one.name) and 0 < one.memories <= protocol.MAX_INTEGER]
        return protocol.NamespaceList(namespaces=good, total=len(good))

    # Memories for sessions -------------------------------------------------------------------------------------------

    def _read_own(self, offset: int) -> Sequence[Memory]:
        """Return a page of memories that include this person's, newest first; the confirmed ones precede all others."""
        author = self._find_author()
        where = {f"metadata.{AUTHOR}": author} if author else {}
        call = protocol.List(namespace=self.name, reach="subtree", limit=PAGE, offset=offset, where=where)
        memories = self.ask_and_wait(call).memories
        if offset or not (ids := list(self._confirmed)):
            return memories
        return [*self.ask_and_wait(msgspec.structs.replace(call, where={}, ids=ids)).memories, *memories]

    def _find_author(self) -> str:
        """Return the name by which the place records this person as an author, empty for the root's owner."""
        return self.identity.name if self.identity and self.identity.name != self.name else ""

    def _is_mine(self, memory: Memory) -> bool:
        """Return whether this person wrote or confirmed a memory.

        Memories without an author, or with the root's own token as author, are by the root's owner.
        """
        author = self._find_author()
        is_own = memory.metadata.get(AUTHOR, "") in ((author,) if author else ("", self.name))
        return is_own or confirming.find_time(self._confirmed, memory) is not None

    def list_told(self, call: Scoped[Any]) -> list[Told]:
        """Return the shelf's memories that a call reaches; have the shelf filled if the place is not connected."""
        targets, now = self.find_targets(call), self._core.clock()
        if targets and self.line.state != "ready" and self.line.may_try():
            self.shelf.expect()
            self.wake()
        return [
            Told(memory, self.shelf.find_measured(memory))
            for memory in self.shelf.memories
            if memory.superseded_by is None and (memory.expires_at is None or memory.expires_at > now)
            if any(
                memory.namespace == place or (reach == "subtree" and memory.namespace.startswith(f"{place}/"))
                for place, reach in targets
            )
        ]

    def _measure(self, memory: Memory) -> MeasuredText:
        with self._core.store.reading() as connection:
            words = count_stems(connection, memory.content, memory.metadata)
        is_sent = is_api(self._find_model())  # nothing of a root goes to a third party
        embedded = None if is_sent else self._core.embedding.embed_text(memory.content)
        return MeasuredText(words, *(("", None) if embedded is None else (embedded[0].name, embedded[1])))

    def _find_model(self) -> str:
        active = self._core.embedding.active
        return active.name if active else ""

    # Validating answers ----------------------------------------------------------------------------------------------

    def _read_rows(self, rows: Sequence[msgspec.Raw], kind: type[M]) -> tuple[list[M], list[str]]:
        """Return the rows that are valid memories, and an entry for `degraded` if others are left out."""
        read = [memory for raw in rows if (memory := self._read(raw, kind)) is not None]
        return read, [f"unreadable:{self.name}"] if len(read) < len(rows) else []

    def _read(self, raw: msgspec.Raw, kind: type[M]) -> M | None:
        """Decode a row as a memory; return None if it is invalid."""
        try:
            if len(raw) > _MAX_ROW_BYTES:
                raise ValueError("it is too large")
            return self._check_memory(msgspec.msgpack.decode(raw, type=kind))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
            self.note_unreadable(error)
            return None

    def note_unreadable(self, error: Exception) -> None:
        """Count a row that is left out."""
        self.unreadable += 1
        if self.unreadable in (1, 10, 100) or not self.unreadable % 1000:
            log.warning("%d rows of the shared root %s cannot be read: %s", self.unreadable, self.name, error)

    def _check_one(self, memory: Memory) -> Memory:
        try:
            return self._check_memory(memory)
        except ValueError as error:
            self.unreadable += 1
            raise Invalid(f"The memory in the shared root {self.name} cannot be read: {error}.") from None

    def _check_memory(self, memory: M) -> M:
        """Return a memory as it is shown here; raise `ValueError` for values that no memory of the root can have."""
        if not ID.fullmatch(memory.id):
            raise ValueError("its id is none")
        if not self.holds(memory.namespace):
            raise ValueError("it is of another namespace")
        times = (memory.created_at, memory.updated_at, memory.last_accessed_at, memory.expires_at, memory.confirmed_at)
        if not all(at is None or (math.isfinite(at) and 0.0 <= at <= _LATEST) for at in times):
            raise ValueError("its times are none")
        if not 0.0 <= memory.importance <= 1.0 or not 0 <= memory.access_count <= protocol.MAX_INTEGER:
            raise ValueError("its numbers are out of range")
        if isinstance(memory, FoundMemory):
            _check_measures(memory)
        lines = (memory.start_line or 1, memory.end_line or 1)
        if not all(1 <= line <= protocol.MAX_INTEGER for line in lines) or 0 in (memory.start_line, memory.end_line):
            raise ValueError("its lines are none")
        try:
            check_metadata(memory.metadata, protocol.MAX_VALUE_BYTES)  # the limit of a memory with a key
        except Invalid as error:
            raise ValueError(error.message) from None
        # What others there confirmed is not confirmed by this person.
        confirmed_at = None if self._find_author() else memory.confirmed_at
        memory.confirmed_at = confirming.find_time(self._confirmed, memory) or confirmed_at
        # Its relations to other memories are found on the machine that shows it.
        memory.contradicts, memory.contradicts_texts, memory.later = [], [], None
        memory.links, memory.linked_from, memory.usefulness, memory.vector = [], [], None, None
        memory.tier, memory.shared = L3, self.name
        if isinstance(memory, protocol.MemoryDetail):
            memory.around = []
        return memory

    def _check(self, identity: Greeting) -> None:
        if identity.namespace != self.name:
            raise Forbidden(
                f"The token {identity.name} there is for {identity.namespace[:80]}, not for {self.name}: name another"
                f" one as `token` in [shared.{self.name}]."
            )
        self.identity = identity

    # Saving ----------------------------------------------------------------------------------------------------------

    def save(self, call: Add, caller: Caller) -> "Future[Added]":
        """Add a memory there; while the place cannot be reached, the add waits here."""
        key = self._core.new_id()

        def save() -> Added:
            sent = msgspec.structs.replace(call, idempotency_key=key, reach=None)
            try:
                added = self.ask_and_wait(sent, caller)
            except AWAY as error:
                if call.memory.supersedes:
                    needs = f"To replace a memory of {self.name} its place is needed; nothing was changed."
                    raise Unavailable(f"{error.message} {needs}") from None
                return self._keep(self, call, caller, key).result()
            taken.note(self._core, self.name, sent, added)
            return added

        return self._core.background.run(f"save in {self.name}", save)

    def share(self, call: Share, caller: Caller) -> "Future[Shared]":
        """Move local memories to the root."""
        return self._core.background.run(f"share with {self.name}", lambda: self._move(self, call, caller))


Keep = Callable[[Root, Add, Caller, str], "Future[Added]"]
Move = Callable[[Root, Share, Caller], Shared]


def _check_measures(memory: FoundMemory) -> None:
    counted = [number for text in memory.texts for number in (text.length, *text.counts.values())]
    if not all(0.0 <= number <= protocol.MAX_CONTENT_BYTES for number in counted):
        raise ValueError("its words are none")
    if memory.similarity is not None and not abs(memory.similarity) <= 1.001:
        raise ValueError("its similarity is none")
    read_vector(memory.float16)


def _decode(reply: Reply, kind: type[R]) -> R:
    try:
        return msgspec.msgpack.decode(reply.body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unavailable(f"The answer of the place cannot be read: {error}.") from None
