"""Measure how well the questions of a set are answered: by a search, by contexts, and by what hooks give unasked.

python tests/quality/evaluate.py PATH [--way WAY] [--limit N] [--half HALF] [--model NAME | --config FILE] [--json]

`sets` says which data it reads. All of it is stored in a temporary daemon before the first question, as words are
weighed by everything in a database; each way of storing has a daemon of its own. Turns are observed one by one, and
what is made of a turn must not depend on how fast turns come: the daemon is given the time it needs in between. Ids
follow from namespace and order, so that two runs are alike.
"""

import argparse
import sys
import time
from collections.abc import Hashable, Iterable, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from msgspec.structs import replace
from printing import print_json
from reading import ContextPage, ReadingKind
from scoring import KINDS, ContextScore, Keys, Score, make_report, rank_figures, report_text, share_held
from sets import HALVES, WAYS, EvalItem, GoldQuestion, Material, kind_of, read_material, ways_of
from temporary import (
    DEFAULTS,
    EvaluatedDaemon,
    declare_settings,
    find_counter,
    list_present,
    read_settings,
    run_daemon,
    settle,
)

from memoryd.client.errors import Invalid, MemorydError, TimedOut
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.protocol import ContextText, Hit, Memory, NewTurn, Turn, Unasked
from memoryd.client.transport.sync import Client

LIMIT = 10
ATTEMPTS, LATE_S = 10, 2.0  # of a search whose shared root was late
BUDGETS = (400, 800, 2000)  # tokens of a context
PROMPT = 250  # of what comes up beside a prompt
MIN_TEXT = 20  # characters: a shorter text is in another one by chance


def main() -> None:
    """Evaluate the data of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="a .jsonl, .jsonl.gz or published .json file, or a team's folder"
    )
    parser.add_argument("--way", choices=WAYS, help="how it is stored (questions: session and turn; else each way)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    parser.add_argument("--half", choices=HALVES, default=HALVES[0], help="of a team's questions (seen)")
    parser.add_argument("--json", action="store_true", help="print all figures, and those of each question")
    declare_settings(parser)
    args = parser.parse_args()
    try:
        report = evaluate_file(args.path, args.way, args.limit, args.half, read_settings(args))
    except (MemorydError, OSError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")
    print_json(report) if args.json else print(report_text(report))


def evaluate_file(
    path: Path, way: str | None = None, limit: int | None = None, half: str = HALVES[0], settings: str = DEFAULTS
) -> dict[str, Any]:
    """Return the report on a file, stored by one way; by default by all that do not take a minute a question."""
    ways = ways_of(path)
    if way is not None and way not in ways:
        raise Invalid(f"{path} holds {kind_of(path)}, which --way {way} does not store; use {' or '.join(ways)}.")
    chosen = (way,) if way else tuple(one for one in ways if (kind_of(path), one) != ("questions", "observe"))
    started = time.monotonic()
    model, scores = "", []
    for one in chosen:  # each on a daemon of its own: what another way stored would change how rare a word is
        materials = read_material(path, one, limit, half)
        if not any(material.questions for material in materials):
            raise Invalid(f"{path} holds no questions with an answer to find by {one}.")
        began_at = min((at for material in materials if (at := material.began_at) is not None), default=None)
        with run_daemon(settings, began_at) as (place, _):
            model = place.wait_until_ready()
            scores += evaluate(place, materials)
    return make_report(path, model, chosen, scores, time.monotonic() - started)


def evaluate(place: EvaluatedDaemon, materials: Sequence[Material]) -> list[Score]:
    """Store everything, then ask every question."""
    return ask_all(place, materials, store_all(place, materials))


def store_all(place: EvaluatedDaemon, materials: Sequence[Material]) -> list["EvaluationStore"]:
    """Store everything; return where each material is."""
    stores: list[EvaluationStore] = []
    with ProgressBar("storing", sum(len(material.items) for material in materials)) as progress:
        for material in materials:
            stores.append(EvaluationStore("/".join([place.root, material.name, material.way])))
            _fill(place, stores[-1], material, progress)
    place.wait_until_ready()
    for store in stores:
        with place.connect(store.namespace) as client:
            store.survey(client)
    return stores


def ask_all(
    place: EvaluatedDaemon, materials: Sequence[Material], stores: Sequence["EvaluationStore"], contexts: bool = True
) -> list[Score]:
    """Ask every question: for hits, and for contexts."""
    scores: list[Score] = []
    with ProgressBar("asking", sum(len(material.questions) for material in materials)) as progress:
        for material, store in zip(materials, stores, strict=True):
            with place.connect(store.namespace) as client:
                client.status()  # opens the connection, which is not what is timed
                for asked in material.questions:
                    if asked.at is not None:
                        place.set_time(asked.at)
                    scores.append(_ask(client, store, material.way, asked, contexts))
                    progress.update(len(scores))
    return scores


# Storing -------------------------------------------------------------------------------------------------------------


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


def _fill(place: EvaluatedDaemon, store: EvaluationStore, material: Material, progress: ProgressBar) -> None:
    """Store all items in their order; where turns are observed, end their sessions, consolidate, make the graph."""
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
            client.graph_rebuild(reach="exact")


def _add(place: EvaluatedDaemon, store: EvaluationStore, client: Client, items: Sequence[EvalItem], dedup: bool) -> int:
    made: list[Any] = [replace(item.what, id=store.next_id()) for item in items]
    if dates := [memory.created_at for memory in made if memory.created_at is not None]:
        place.set_time(max(dates))
    for id, item in zip(place.add(client, store.namespace, made, dedup), items, strict=True):
        store.note(item, id)
    return len(made)


def _observe(place: EvaluatedDaemon, store: EvaluationStore, client: Client, item: EvalItem) -> None:
    turn: Any = replace(item.what, id=store.next_id())
    if turn.created_at is not None:
        place.set_time(turn.created_at)
    outcome = client.observe([turn], session=item.session).turns[0]
    store.note(item, outcome.same_as or (turn.id if outcome.outcome == "accepted" else None))
    settle(client, conversations=False)


# Asking --------------------------------------------------------------------------------------------------------------


def _ask(client: Client, store: EvaluationStore, way: str, asked: GoldQuestion, contexts: bool) -> Score:
    for _ in range(ATTEMPTS):
        started = time.perf_counter()
        hits = client.search(asked.question, limit=LIMIT, reach="exact", touch=False)
        latency_ms = (time.perf_counter() - started) * 1000
        if not any(part.startswith("shared:") for part in hits.degraded):
            break
        time.sleep(LATE_S)
    else:
        raise TimedOut(f"A shared root did not answer {asked.question!r}: run it again when the machine is less busy.")
    counted = drop_neutral([(hit, _keys(store, hit)) for hit in hits], asked)
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
        confidence=counted[0][0].confidence if counted else None,
        contexts=_ask_contexts(client, store, asked) if contexts else [],
        **rank_figures([keys for _, keys in counted], asked.gold),
    )


def drop_neutral(hits: Sequence[tuple[Hit, Keys]], asked: GoldQuestion) -> list[tuple[Hit, Keys]]:
    """Return hits and what they give, without those that give nothing but what is neither right nor wrong."""
    return [(hit, keys) for hit, keys in hits if not keys or not asked.neutral.issuperset(keys)]


def _keys(store: EvaluationStore, hit: Hit) -> frozenset[Hashable]:
    """Return what a hit gives: itself, and the question and the answers that come with it."""
    return store.find_keys([hit.id, *(one.id for one in hit.related if one.content)])


def _ask_contexts(client: Client, store: EvaluationStore, asked: GoldQuestion) -> list[ContextScore]:
    return [*(_ask_context(client, store, asked, size) for size in BUDGETS), _ask_unasked(client, store, asked)]


def _ask_context(client: Client, store: EvaluationStore, asked: GoldQuestion, max_tokens: int) -> ContextScore:
    """Ask for a context; the query has its vector from the search, so its time is without that."""
    started = time.perf_counter()
    made = client.context(asked.question, max_tokens=max_tokens, reach="exact", touch=False)
    latency_ms = (time.perf_counter() - started) * 1000
    return _score_context(store, asked, made, ContextScore(max_tokens, latency_ms))


def _ask_unasked(client: Client, store: EvaluationStore, asked: GoldQuestion) -> ContextScore:
    """Begin a session and give it a prompt, as hooks do; gold may stand in either, the tokens are of the latter."""
    place: dict[str, Any] = {"session": f"bench-eval {asked.id}", "reach": "exact", "touch": False}
    opened = client.get_unasked(fresh=True, **place)
    started = time.perf_counter()
    made = client.get_unasked(asked.question, **place)
    latency_ms = (time.perf_counter() - started) * 1000
    return _score_context(store, asked, made, ContextScore(PROMPT, latency_ms, unasked=True), opened)


def _score_context(
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
        kinds=_count_kinds(store, asked, made, pages[0]),
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
    store: EvaluationStore, asked: GoldQuestion, made: ContextText | Unasked, page: ContextPage
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
    count = find_counter(made.tokenizer)
    for kind, text in page.divide(texts):
        counts[kind] += count(text)
    return counts | {"heads": max(0, made.tokens - sum(counts.values()))}


if __name__ == "__main__":
    main()
