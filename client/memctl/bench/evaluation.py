"""Store the material of an evaluation, ask every question and score the answers. No printing but a progress bar."""

import time
from collections.abc import Hashable, Sequence
from itertools import cycle, islice
from typing import Any, NamedTuple

from memoryd.client.memctl.bench.material import Asked, Material
from memoryd.client.memctl.bench.scoring import ContextScore, Keys, Score, rank_figures, share_held
from memoryd.client.memctl.bench.storing import VECTORS_S, Place, Store, clear, fill
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.memctl.service import wait_until_ready
from memoryd.client.protocol import Hit
from memoryd.client.transport.sync import Client

LIMIT = 10
BUDGETS = (400, 800, 2000)  # tokens of a context
OPENING, PROMPT = 1000, 500  # of those that hooks ask for


class Run(NamedTuple):
    """How an evaluation runs. It stores below namespace `below`, all material of a way `together` or each by itself."""

    below: str
    together: bool = False
    keep: bool = False
    unrelated: int = 0  # searches for what others ask, before the first question

    def namespace(self, material: Material) -> str:
        """Return where some material is stored."""
        return "/".join([self.below, *([] if self.together else [material.name]), material.way])


def evaluate(place: Place, materials: Sequence[Material], run: Run) -> list[Score]:
    """Store everything, then ask every question; what was stored is deleted unless it is to be kept.

    All is stored before the first question: in one database, as in real use, words are weighed by all of it.
    """
    stores: dict[str, Store] = {}
    try:
        _store(place, materials, run, stores)
        _survey_stores(place, list(stores.values()))
        return _ask_all(place, materials, run, stores)
    finally:
        if not run.keep:
            for namespace in stores:
                clear(place, namespace)


def _store(place: Place, materials: Sequence[Material], run: Run, stores: dict[str, Store]) -> None:
    with ProgressBar("storing", sum(len(material.items) for material in materials)) as progress:
        for material in materials:
            namespace = run.namespace(material)
            store = stores.setdefault(namespace, Store(namespace))
            label = f"storing, way {material.way}"
            fill(place, store, material, lambda count, label=label: progress.update(progress.done + count, label=label))  # type: ignore[misc]


def _survey_stores(place: Place, stores: Sequence[Store]) -> None:
    with place.connect("") as client:
        wait_until_ready(client, VECTORS_S)
    for store in stores:
        with place.connect(store.namespace) as client:
            store.survey(client)


def _ask_all(place: Place, materials: Sequence[Material], run: Run, stores: dict[str, Store]) -> list[Score]:
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


def _ask(client: Client, store: Store, way: str, asked: Asked) -> Score:
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


def drop_neutral(hits: Sequence[Keys], asked: Asked) -> list[Keys]:
    """Return the hits without those that give nothing but what is neither right nor wrong."""
    return [keys for keys in hits if not keys or not asked.neutral.issuperset(keys)]


def _keys(store: Store, hit: Hit) -> frozenset[Hashable]:
    """Return what a hit gives: itself, and the question and the answers that come with it."""
    ids = [hit.id, *(one.id for one in hit.related if one.content)]
    return frozenset().union(*(store.held.get(id, ()) for id in ids))


def _ask_context(client: Client, store: Store, asked: Asked, max_tokens: int) -> ContextScore:
    """Ask for a context; the query has its vector from the search, so its time is without that."""
    started = time.perf_counter()
    made = client.context(asked.question, max_tokens=max_tokens, reach="exact", touch=False)
    latency_ms = (time.perf_counter() - started) * 1000
    recall = share_held(frozenset().union(*(store.held.get(id, ()) for id in made.ids)), asked.gold)
    return ContextScore(
        max_tokens, float(recall > 0), recall, made.tokens, latency_ms, disputed="- disagrees with " in made.text
    )


def _ask_unasked(client: Client, store: Store, asked: Asked) -> ContextScore:
    """Begin a session and give it a prompt, as hooks do; the tokens are those of the prompt's context."""
    session = f"bench-eval {asked.id}"
    place: dict[str, Any] = {"session": session, "reach": "exact", "touch": False}
    opened = client.context("Go on", max_tokens=OPENING, opening=True, fresh=True, **place)
    started = time.perf_counter()
    made = client.context(asked.question, max_tokens=PROMPT, unasked=True, **place)
    latency_ms = (time.perf_counter() - started) * 1000
    ids = [*opened.ids, *made.ids]
    recall = share_held(frozenset().union(*(store.held.get(id, ()) for id in ids)), asked.gold)
    return ContextScore(PROMPT, float(recall > 0), recall, made.tokens, latency_ms, unasked=True)
