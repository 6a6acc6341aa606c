"""Whether what was taken in by `memctl backfill` is found, and comes up unasked, as if it had been observed.

`--questions FILE` (as `memctl bench eval` reads it; `--limit N` of its questions): its sessions are written into a home
folder as three agents write theirs, and taken in; in another database they are observed. The same questions are asked
of both. `--unasked FILE` (as `memctl bench unasked` reads it): the months are replayed twice, once as hooks observe
them, once with each session taken in when the next test point comes. Without a file: the seen half of
`tests/data/unasked`. `--words`: without a model.
"""

import argparse
import sys
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import tempfile

import msgspec
from bench_backfill import take_in, wait_for_vectors
from harness import CHECKOUT, NO_MODEL, Daemon, Report, prepared

from memoryd.client.agents.hooks.answering import find_speaker
from memoryd.client.backfill.calls import Backfill, PastTurn
from memoryd.client.bench import judging, replaying
from memoryd.client.bench.command import replay_alone
from memoryd.client.bench.evaluation import settle
from memoryd.client.bench.kinds import KINDS, kind_of
from memoryd.client.bench.material import GoldQuestion, Material, Selection
from memoryd.client.bench.replaying import ReplayPlayer, make_id
from memoryd.client.bench.scoring import rank_figures
from memoryd.client.bench.unasked import Prompt, SessionEndEvent, Start, TimelineEvent, TurnEvent, read_rows
from past_sessions import SaidPair, SpokenSession, write_home

_SEEN = CHECKOUT / "tests" / "data" / "unasked" / "seen.jsonl"
_HITS = 10
_SHOWN = {"hit_5": "hit@5", "recall_5": "recall@5", "recall_10": "recall@10", "ndcg_10": "nDCG@10"}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--questions", type=Path, action="append", default=[])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--unasked", type=Path, action="append", default=[])
    parser.add_argument("--words", action="store_true")
    given, sys.argv[1:] = parser.parse_known_args()
    report = Report(__doc__)
    for path in given.questions:
        _compare_answers(report, path, given.limit, NO_MODEL if given.words else "")
    for path in given.unasked or ([] if given.questions else [_SEEN]):
        _compare_unasked(report, path)
    report.close()


# Questions -----------------------------------------------------------------------------------------------------------


def _compare_answers(report: Report, path: Path, limit: int | None, config: str) -> None:
    """Ask the questions of a file of both databases, and report both figures."""
    materials = list(KINDS[kind_of(path)].materials(path, "observe", Selection(limit)))
    with tempfile.TemporaryDirectory(prefix="mb-home-") as folder:
        home = Path(folder)
        made = write_home(home, [session for material in materials for session in _list_sessions(material)])
        with prepared(config=config) as daemon:
            take_in(daemon.start(), home)
            backfilled = _ask_all(daemon, materials)
    with prepared(config=config) as daemon:
        _observe(daemon.start(), materials)
        observed = _ask_all(daemon, materials)
    ways = {"backfill": backfilled, "observe": observed}
    rows = [
        {"by": way, **{title: 100 * fmean(one[name] for one in figures) for name, title in _SHOWN.items()}}
        for way, figures in ways.items()
    ]
    report.table(f"{path.name}: {len(observed)} questions of {made.sessions} sessions, {made.turns:,} turns", rows)
    hits = [(one["hit_5"], other["hit_5"]) for one, other in zip(backfilled, observed, strict=True)]
    alone = [sum(one > other for one, other in hits), sum(one < other for one, other in hits)]
    report.note(f"Among the first five by backfill alone: {alone[0]}, by observing alone: {alone[1]}.")


def _name_project(material: Material) -> str:
    return material.name.replace("/", "-").lower()


def _list_sessions(material: Material) -> list[SpokenSession]:
    """Return the sessions of a conversation, each with its prompts and answers."""
    return [
        SpokenSession(_name_project(material), turns[0].created_at or 0.0, _pair(turns))
        for _, turns in _group_turns(material)
    ]


def _group_turns(material: Material) -> list[tuple[str, list[Any]]]:
    """Return the turns of each session, without the speaker that data puts before a text."""
    return [
        (session, [msgspec.structs.replace(item.what, content=item.text.strip()) for item in items])
        for session, items in groupby(material.items, lambda item: item.session)
    ]


def _pair(turns: Sequence[Any]) -> list[SaidPair]:
    pairs: list[SaidPair] = []
    for turn in turns:
        if turn.role == "user":
            pairs.append((turn.content, ""))
        elif pairs and not pairs[-1][1]:
            pairs[-1] = pairs[-1][0], turn.content
        else:
            pairs.append(("", turn.content))
    return pairs


def _observe(daemon: Daemon, materials: Sequence[Material]) -> None:
    """Observe all as hooks do, and end each session."""
    for material in materials:
        with daemon.client(_name_project(material)) as client:
            for number, (session, turns) in enumerate(_group_turns(material)):
                name = f"{session} {number}"
                for turn in turns:
                    speaker = find_speaker() if turn.role == "user" else ""
                    said = {"role": turn.role, "content": turn.content, "created_at": turn.created_at}
                    client.observe([{**said, "speaker": speaker}], session=name)
                client.end_session(name)
            if daemon.has_model:
                settle(client)


def _ask_all(daemon: Daemon, materials: Sequence[Material]) -> list[Mapping[str, float]]:
    """Return the figures of each question."""
    if daemon.has_model:
        wait_for_vectors(daemon)
    figures = []
    for material in materials:
        keys = {item.text.strip(): item.key for item in material.items}
        with daemon.client(_name_project(material)) as client:
            for asked in material.questions:
                if asked.gold:
                    figures.append(_ask(client, asked, keys))
    return figures


def _ask(client: Any, asked: GoldQuestion, keys: Mapping[str, Hashable]) -> Mapping[str, float]:
    hits = client.search(asked.question, limit=_HITS, reach="exact", touch=False)
    ranked = [[keys[one.content] for one in (hit, *hit.related) if one.content in keys] for hit in hits]
    return rank_figures(ranked, asked.gold)


# Unasked -------------------------------------------------------------------------------------------------------------


class BackfillPlayer(ReplayPlayer):
    """Takes in what was said in the sessions before a test point, as a backfill does, where hooks would observe it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._said: dict[tuple[str, str], list[TurnEvent]] = {}

    def run(self, row: TimelineEvent) -> tuple[str, int]:
        """Have an event happen; return what a hook says at it, and how many tokens that has."""
        if isinstance(row, TurnEvent):
            if row.role != "tool":
                self._said.setdefault((row.namespace, row.session), []).append(row)
            return "", 0
        if isinstance(row, SessionEndEvent):
            return "", 0
        if isinstance(row, Start | Prompt):
            for namespace, session in [key for key in self._said if key[1] != row.session]:
                self._take_in(namespace, session)
        return super().run(row)

    def _take_in(self, namespace: str, session: str) -> None:
        client, turns = self._client(namespace), []
        for row in self._said.pop((namespace, session)):
            id = make_id(row.id)
            self._refs[id] = row.id
            speaker = replaying.SPEAKER if row.role == "user" else ""
            said = PastTurn(role=row.role, content=row.content, id=id, created_at=row.seconds, speaker=speaker)
            turns.append(said)
        client.call(Backfill(namespace=namespace.strip("/"), session=session, turns=turns))
        settle(client, conversations=False)


def _compare_unasked(report: Report, path: Path) -> None:
    """Replay a file both ways and report what came up."""
    rows = read_rows(path)
    lines: dict[str, list[dict[str, Any]]] = {}
    for way, play in (("backfill", BackfillPlayer), ("observe", ReplayPlayer)):
        with replay_alone(Path("/dev/null"), rows, play) as (_, injections):
            judged = judging.judge_all(rows, injections)
        for kind in ("start", "prompt"):
            figures = judging.count_figures([one for one in judged if one.kind == kind])
            shares = {
                "helps %": figures.helping,
                "no help %": figures.useless,
                "harms %": figures.harmful,
                "wanted %": figures.wanted,
                "got %": figures.got,
                "silent %": figures.silent,
            }
            cells = {name: "–" if share is None else f"{100 * share:.1f}" for name, share in shares.items()}
            row = {"by": way, "points": figures.points, "lines": figures.lines, "tokens": figures.tokens, **cells}
            lines.setdefault(kind, []).append(row)
    for kind, cells_of_both in lines.items():
        report.table(f"{path.name}, {kind}s", cells_of_both)


if __name__ == "__main__":
    main()
