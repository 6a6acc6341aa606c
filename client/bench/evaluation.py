"""Store the material of an evaluation in namespaces, ask every question and score the answers.

Turns are observed one by one, and the daemon is given the time to think in between, as it has in real use: what becomes
of a turn must not depend on how fast turns come. Ids follow from namespace and order, so that two runs are alike. What
each memory there represents is known afterwards. No printing but a progress bar.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import cycle, groupby, islice
from statistics import fmean
from typing import Any, NamedTuple

from msgspec.structs import replace

from memoryd.client.bench.material import EvalItem, GoldQuestion, Material
from memoryd.client.bench.reading import ContextPage, ReadingKind
from memoryd.client.bench.scoring import KINDS, ContextScore, Keys, Score, rank_figures, share_held
from memoryd.client.errors import TimedOut
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.memctl.service import wait_until_ready
from memoryd.client.protocol import ContextText, Delete, Hit, Memory, NewTurn, Turn, Unasked
from memoryd.client.transport.sync import Client

LIMIT = 10
BUDGETS = (400, 800, 2000)  # tokens of a context
PROMPT = 250  # of what comes up beside a prompt
PAGE = 200  # memories of a list: sessions are long
POLL_S = 0.01
STANDSTILL_S = 120.0
VECTORS_S = 3600.0
MIN_TEXT = 20  # characters: a shorter text is in another one by chance


class EvaluationRun(NamedTuple):
    """How an evaluation runs. It stores below namespace `below`, all material of a way `together` or each by itself."""

    below: str
    together: bool = False
    keep: bool = False
    unrelated: int = 0  # searches for what others ask, before the first question

    def namespace(self, material: Material) -> str:
        """Return where some material is stored."""
        return "/".join([self.below, *([] if self.together else [material.name]), material.way])


class EvaluatedDaemon(NamedTuple):
    """The daemon that is evaluated: how to connect at a namespace, and how to set its time."""

    connect: Callable[[str], Client]
    set_time: Callable[[float], None] = lambda seconds: None  # the user's daemon has the time of the machine


class EvaluationStore:
    """A namespace and what was stored in it. `held`: memory or turn of L0 by id → keys; `kept`: all of these keys.

    `contents`: memory or turn by id → its text; `said`: key → what was said; `near`: key → those before and after it.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.held: dict[str, frozenset[Hashable]] = {}
        self.contents: dict[str, str] = {}
        self.said: dict[Hashable, str] = {}
        self.near: dict[Hashable, list[Hashable]] = {}
        self.kept: frozenset[Hashable] = frozenset()
        self._keys: dict[str, set[Hashable]] = {}
        self._texts: dict[str, set[Hashable]] = {}
        self._sessions: dict[str, set[Hashable]] = {}
        self._summed_up: dict[str, str] = {}  # by id of a summary its session
        self._items = 0
        self._last: EvalItem | None = None

    def next_id(self) -> str:
        """Return the id for one more item."""
        self._items += 1
        return sha256(f"{self.namespace}\n{self._items}".encode()).hexdigest()[:32]

    def note(self, item: EvalItem, id: str | None) -> None:
        """Note what an item says, and which memory or turn represents it (None: none); one may represent several."""
        if id is not None:
            self._keys.setdefault(id, set()).add(item.key)
        self.said[item.key] = item.text
        self._sessions.setdefault(item.session, set()).add(item.key)
        if self._last is not None and item.session and self._last.session == item.session:
            self.near.setdefault(item.key, []).append(self._last.key)
            self.near.setdefault(self._last.key, []).append(item.key)
        self._last = item
        if len(text := _normalise(item.what.content)) >= MIN_TEXT:
            self._texts.setdefault(text, set()).add(item.key)

    def survey(self, client: Client) -> None:
        """Look at what is there now."""
        present = list(list_present(client))
        self.held = {one.id: self._keys_of(one) for one in present}
        self.contents = {one.id: one.content for one in present}
        self.kept = frozenset().union(*self.held.values())
        self._summed_up = {one.id: session for one in present if (session := _find_summed_up(one)) is not None}

    def find_keys(self, ids: Iterable[str]) -> frozenset[Hashable]:
        """Return what some memories represent together."""
        return frozenset().union(*(self.held.get(id, ()) for id in ids))

    def find_quoted(self, ids: Iterable[str]) -> frozenset[Hashable]:
        """Return what some memories represent or may have sentences of, as a summary of its session."""
        ids = list(ids)
        sessions = {self._summed_up[id] for id in ids if id in self._summed_up}
        return self.find_keys(ids).union(*(self._sessions.get(session, ()) for session in sessions))

    def is_of_its_own(self, id: str) -> bool:
        """Return whether a memory's text is none of those that it represents: a fact, a summary."""
        content = _normalise(self.contents.get(id, ""))
        return bool(content) and not any(_normalise(self.said.get(key, "")) in content for key in self.held[id])

    def _keys_of(self, one: Memory | Turn) -> frozenset[Hashable]:
        """Return what a memory represents: by its id, by the turns that it names, by its text as a last resort."""
        named = one.metadata.get("turns") if isinstance(one, Memory) else None
        ids = [one.id, *(named if isinstance(named, list) else [])]  # a summary has the number of its turns there
        keys = frozenset(key for id in ids for key in self._keys.get(id, ()))
        if keys:
            return keys
        said = _normalise(one.content)
        return frozenset(key for text, found in self._texts.items() if text in said for key in found)


def _find_summed_up(one: Memory | Turn) -> str | None:
    """Return the session that a memory is the summary of; None: it is none."""
    if isinstance(one, Memory) and isinstance(one.metadata.get("turns"), int):
        return str(one.metadata.get("session", ""))
    return None


def _normalise(text: str) -> str:
    return " ".join(text.casefold().split())


def list_present(client: Client) -> Iterator[Memory | Turn]:
    """Yield the memories of a client's namespace that a search may find, and the turns of L0."""
    offset = 0
    while page := client.list(limit=PAGE, offset=offset, sort="created", reach="exact").memories:
        yield from page
        offset += len(page)
    yield from client.turns(limit=1000, reach="exact")


def evaluate(place: EvaluatedDaemon, materials: Sequence[Material], run: EvaluationRun) -> list[Score]:
    """Store everything, then ask every question; what was stored is deleted unless it is to be kept.

    All is stored before the first question: in one database, as in real use, words are weighed by all of it.
    """
    stores: dict[str, EvaluationStore] = {}
    try:
        _store(place, materials, run, stores)
        with place.connect("") as client:
            wait_until_ready(client, VECTORS_S)
        for store in stores.values():
            with place.connect(store.namespace) as client:
                store.survey(client)
        return _ask_all(place, materials, run, stores)
    finally:
        if not run.keep:
            for namespace in stores:
                clear(place, namespace)


def _store(
    place: EvaluatedDaemon, materials: Sequence[Material], run: EvaluationRun, stores: dict[str, EvaluationStore]
) -> None:
    with ProgressBar("storing", sum(len(material.items) for material in materials)) as progress:
        for material in materials:
            namespace = run.namespace(material)
            progress.label = f"storing, way {material.way}"
            fill(place, stores.setdefault(namespace, EvaluationStore(namespace)), material, progress)


# Storing -------------------------------------------------------------------------------------------------------------


def fill(place: EvaluatedDaemon, store: EvaluationStore, material: Material, progress: ProgressBar) -> None:
    """Store all items in their order; where turns are observed, end their sessions and consolidate."""
    turns = {item.session: item.key for item in material.items if isinstance(item.what, NewTurn)}  # its last one
    with place.connect(store.namespace) as client:
        for observed, part in groupby(material.items, lambda item: isinstance(item.what, NewTurn)):
            if not observed:
                progress.update(progress.done + _add(place, store, client, list(part), material.dedup))
                continue
            for item in part:
                _observe(place, store, client, item)
                if turns[item.session] == item.key:
                    client.end_session(item.session)
                    settle(client)
                progress.update(progress.done + 1)
        if turns:
            client.consolidate(reach="exact")
            settle(client)


def _add(place: EvaluatedDaemon, store: EvaluationStore, client: Client, items: Sequence[EvalItem], dedup: bool) -> int:
    made: list[Any] = [replace(item.what, id=store.next_id()) for item in items]
    if dates := [memory.created_at for memory in made if memory.created_at is not None]:
        place.set_time(max(dates))
    for result, item in zip(client.add_many(made, dedup=dedup), items, strict=True):
        store.note(item, result.id)
    return len(made)


def _observe(place: EvaluatedDaemon, store: EvaluationStore, client: Client, item: EvalItem) -> None:
    turn: Any = replace(item.what, id=store.next_id())
    if turn.created_at is not None:
        place.set_time(turn.created_at)
    outcome = client.observe([turn], session=item.session).turns[0]
    store.note(item, outcome.same_as or (turn.id if outcome.outcome == "accepted" else None))
    settle(client, conversations=False)


def settle(client: Client, conversations: bool = True) -> None:
    """Wait until nothing waits for a judgement, and no conversation for its summary and its facts either."""
    least, give_up_at = None, time.monotonic() + STANDSTILL_S
    while left := _count_waiting(client, conversations):
        if least is None or left < least:
            least, give_up_at = left, time.monotonic() + STANDSTILL_S
        if time.monotonic() > give_up_at:
            raise TimedOut(f"{left} turns still wait to be thought about; none was for {STANDSTILL_S:g} s.")
        time.sleep(POLL_S)
    if conversations:
        wait_until_ready(client, VECTORS_S)


def _count_waiting(client: Client, conversations: bool) -> int:
    report = client.tiers(reach="exact")
    return sum(report.waiting.values()) + (sum(report.heard.values()) if conversations else 0)


def clear(place: EvaluatedDaemon, namespace: str) -> None:
    """Delete all that is in a namespace."""
    with place.connect(namespace) as client:
        while turns := client.turns(limit=PAGE, reach="exact").turns:
            client.call(Delete(ids=[turn.id for turn in turns]))
        while page := client.list(limit=PAGE, all_states=True, reach="exact").memories:
            client.call(Delete(ids=[memory.id for memory in page]))


# Asking --------------------------------------------------------------------------------------------------------------


def _ask_all(
    place: EvaluatedDaemon, materials: Sequence[Material], run: EvaluationRun, stores: dict[str, EvaluationStore]
) -> list[Score]:
    scores: list[Score] = []
    with ProgressBar("asking", sum(len(material.questions) for material in materials)) as progress:
        for material in materials:
            store = stores[run.namespace(material)]
            with place.connect(store.namespace) as client:
                client.status()  # opens the connection, which is not what is timed
                for question in choose_unrelated(materials, material, run.unrelated):
                    client.search(question, limit=LIMIT, reach="exact")
                for asked in material.questions:
                    if asked.at is not None:
                        place.set_time(asked.at)
                    scores.append(_ask(client, store, material.way, asked))
                    progress.update(len(scores))
    return scores


def choose_unrelated(materials: Sequence[Material], material: Material, count: int) -> list[str]:
    """Return so many questions about other material, again and again where it has fewer; none where it has none."""
    others = [asked.question for other in materials if other.name != material.name for asked in other.questions]
    return list(islice(cycle(others), count))


def _ask(client: Client, store: EvaluationStore, way: str, asked: GoldQuestion) -> Score:
    started = time.perf_counter()
    hits = client.search(asked.question, limit=LIMIT, reach="exact", touch=False)
    latency_ms = (time.perf_counter() - started) * 1000
    return Score(
        question=asked.id,
        type=asked.type,
        way=way,
        memories=len(store.held),
        latency_ms=latency_ms,
        empty=not hits.hits,
        kept=share_held(store.kept, asked.gold),
        gold=len(asked.gold),
        language=asked.language,
        store=store.namespace,
        contexts=[
            *(_ask_context(client, store, asked, budget) for budget in BUDGETS),
            _ask_unasked(client, store, asked),
        ],
        **rank_figures(drop_neutral([_keys(store, hit) for hit in hits], asked), asked.gold),
    )


def drop_neutral(hits: Sequence[Keys], asked: GoldQuestion) -> list[Keys]:
    """Return the hits without those that give nothing but what is neither right nor wrong."""
    return [keys for keys in hits if not keys or not asked.neutral.issuperset(keys)]


def _keys(store: EvaluationStore, hit: Hit) -> frozenset[Hashable]:
    """Return what a hit gives: itself, and the question and the answers that come with it."""
    return store.find_keys([hit.id, *(one.id for one in hit.related if one.content)])


def _ask_context(client: Client, store: EvaluationStore, asked: GoldQuestion, max_tokens: int) -> ContextScore:
    """Ask for a context; the query has its vector from the search, so its time is without that."""
    started = time.perf_counter()
    made = client.context(asked.question, max_tokens=max_tokens, reach="exact", touch=False)
    latency_ms = (time.perf_counter() - started) * 1000
    return _score_context(client, store, asked, made, ContextScore(max_tokens, latency_ms))


def _ask_unasked(client: Client, store: EvaluationStore, asked: GoldQuestion) -> ContextScore:
    """Begin a session and give it a prompt, as hooks do; gold may stand in either, the tokens are of the latter."""
    place: dict[str, Any] = {"session": f"bench-eval {asked.id}", "reach": "exact", "touch": False}
    opened = client.get_unasked(fresh=True, **place)
    started = time.perf_counter()
    made = client.get_unasked(asked.question, **place)
    latency_ms = (time.perf_counter() - started) * 1000
    return _score_context(client, store, asked, made, ContextScore(PROMPT, latency_ms, unasked=True), opened)


def _score_context(
    client: Client,
    store: EvaluationStore,
    asked: GoldQuestion,
    made: ContextText | Unasked,
    score: ContextScore,
    *before: Unasked,
) -> ContextScore:
    """Return the score of a context with what of the gold can be read in it, or in those before it (`reading`).

    A gold text of less than `MIN_TEXT` characters counts only where the context names a memory that represents it, for
    it may stand there by chance.
    """
    pages = [ContextPage(one.text) for one in (made, *before)]
    named = store.find_keys(id for one in (made, *before) for id in one.ids)
    found = [_read_gold(store, one, pages, named) for one in asked.gold] or [(False, 0.0)]
    return replace(
        score,
        hit=float(any(whole for whole, _ in found)),
        recall=fmean(whole for whole, _ in found),
        share=fmean(share for _, share in found),
        tokens=made.tokens,
        disputed="disagrees with " in made.text,
        kinds=_count_kinds(client, store, asked, made, pages[0]),
    )


def _read_gold(
    store: EvaluationStore, gold: frozenset[Hashable], pages: Sequence[ContextPage], named: frozenset[Hashable]
) -> tuple[bool, float]:
    """Return whether any of some texts can be read whole, and the largest share of one that can be read."""
    texts = [
        store.said[key] for key in gold if key in store.said and (len(store.said[key]) >= MIN_TEXT or key in named)
    ]
    found = [page.read(text) for page in pages for text in texts]
    return any(one.whole for one in found), max((one.share for one in found), default=0.0)


def _count_kinds(
    client: Client, store: EvaluationStore, asked: GoldQuestion, made: ContextText | Unasked, page: ContextPage
) -> dict[str, int]:
    """Return how many tokens are spent on the gold, on what was said right before or after it, on anything else that
    was stored, and on heads: what is of no text, such as dates, ids, speakers and headings."""
    gold = set[Hashable]().union(*asked.gold)
    near = {key for one in gold for key in store.near.get(one, ())} - gold
    texts: list[tuple[ReadingKind, str]] = [("answer", store.said[key]) for key in gold if key in store.said]
    texts += [("neighbours", store.said[key]) for key in near]
    texts += [("rest", store.said[key]) for key in store.find_quoted(made.ids) - gold - near if key in store.said]
    texts += [("rest", store.contents[id]) for id in made.ids if store.is_of_its_own(id)]
    counts = dict.fromkeys(KINDS, 0)
    if parts := list(page.divide(texts)):
        tokens = client.count_tokens([text for _, text in parts], tokenizer=made.tokenizer).counts
        for (kind, _), count in zip(parts, tokens, strict=True):
            counts[kind] += count
    return counts | {"heads": max(0, made.tokens - sum(counts.values()))}
