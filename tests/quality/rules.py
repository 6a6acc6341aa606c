"""What each rule about language is for: what is worse without it, on the development sets.

python tests/quality/rules.py [--sets FOLDER] [--keep FOLDER] [--only SET] ... [NAME ...]

`RULES` is the table. Each rule is taken out of a temporary daemon in turn. The measures are those that decide whether
one stays (`LIMITS`): both halves of the team's set; nDCG@10 of LoCoMo, REALTALK and BEAM, whose files are in `--sets`;
the lines that harm at starts and prompts, on the seen halves of `tests/data/projects` and `tests/data/unasked`.

A set is stored once. A rule for searches answers from a copy of that; a rule for what is saved, or for turns, has
everything stored anew. A text is embedded once for all. `--keep` is where figures and vectors are kept: what is there
is not measured again. The sets are measured one after the other, and the table is printed after each.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple

from evaluate import EvaluationStore, ask_all, store_all
from judging import JudgedPoint, judge_all
from replaying import replay
from saved_projects import list_needs, make_rows
from scoring import Score
from sets import HALVES, Material, read_material
from temporary import EvaluatedDaemon, run_daemon
from timeline import TimelineRow, read_rows
from unasked import SEEN

from memoryd.client.confidence import LIKELY
from memoryd.client.programs.memctl.private_daemon import PrivateDaemon

_HERE = Path(__file__).resolve().parent
_TEAM = _HERE.parent / "data" / "team"
_PUBLIC = ("locomo", "realtalk", "beam")  # the beginnings of files' names
SETS = ("team", "locomo", "projects", "beam", "realtalk", "unasked")
# By how much a figure has to be worse without a rule for the rule to stay. Questions, points of nDCG@10, lines.
LIMITS = {"first": 3.0, "in five": 3.0, "said right": 3.0, "nDCG": 1.0, "harm": 1.0}
NONE = "none taken out"

Figures = dict[str, float]
Found = dict[str, dict[str, Figures]]  # by rule, by set


class Rule(NamedTuple):
    """A rule, what it is for, and the Python that takes it out.

    `acts`: in `searches` and starts alone, when something is `saved` on purpose, or when `turns` are taken in.
    """

    name: str
    purpose: str
    without: str
    acts: Literal["searches", "saved", "turns"] = "searches"


def _cue(name: str) -> str:
    return (
        f"from memoryd.daemon.search import cues\ncues.CUES = tuple(one for one in cues.CUES if one.name != {name!r})"
    )


def _replace(place: str, *names: str, by: str) -> str:
    folder, module = place.split(".")
    lines = [f"assert hasattr({module}, {name!r})\n{module}.{name} = {by}" for name in names]
    return "\n".join([f"from memoryd.daemon.{folder} import {module}", *lines])


_NO, _NEVER = "lambda *_: False", "__import__('re').compile('(?!)')"

RULES = (
    Rule(NONE, "", ""),
    Rule("cue: identifier", "ranks what holds the identifiers and numbers of a question", _cue("identifier")),
    Rule("cue: date", "ranks what is of the day or month that a question names", _cue("date")),
    Rule("cue: when", "ranks what names a time where a question asks when", _cue("when")),
    Rule(
        "versions",
        "puts the newer of two that disagree first, or the older where that is asked for",
        _replace("search.clean", "place_versions", by="lambda retrieval, sources, kept: kept"),
    ),
    Rule(
        "former state",
        "sees that a question asks for what was before",
        _replace("search.hints", "_PAST", "_WAS", by=_NEVER),
    ),
    Rule(
        "told changes",
        "puts a newer hit that tells of a change first",
        _replace("search.precedence", "tells_change", by=_NO),
    ),
    Rule(
        "told changes: more words",
        "knows words that tell less surely of a change",
        _replace("agreement.words", "RETOLD", by=_NEVER),
    ),
    Rule("asking", "has questions give way to what answers them", _replace("search.precedence", "only_asks", by=_NO)),
    Rule(
        "unknown",
        "sets back what only says that it does not know",
        _replace("search.precedence", "knows_nothing", by=_NO),
    ),
    Rule("logs", "sets back logs that a person pasted", _replace("search.precedence", "is_log", by=_NO)),
    Rule(
        "names",
        "lowers the confidence of hits that lack what a question names",
        _replace("language.names", "find_names", by="lambda text: names.Names((), ())"),
    ),
    Rule(
        "names: German",
        "takes no German noun for a name",
        _replace("language.names", "_GERMAN", by="frozenset()"),
    ),
    Rule(
        "small words",
        "has small words not count as held",
        _replace("language.tongues", "is_telling", by="lambda word: True"),
    ),
    Rule(
        "stop words", "leaves small words out of a query", _replace("store.stopwords", "STOP_WORDS", by="frozenset()")
    ),
    Rule(
        "claims: questions", "tells no question as a statement", _replace("language.sentences", "is_question", by=_NO)
    ),
    Rule("claims: orders", "tells no order as a statement", _replace("language.sentences", "is_order", by=_NO)),
    Rule("claims: guesses", "tells no guess as a statement", _replace("language.sentences", "is_guess", by=_NO)),
    Rule("claims: denials", "tells nothing that is taken back", _replace("language.sentences", "is_denial", by=_NO)),
    Rule(
        "claims: not yet", "tells nothing that was not there yet", _replace("agreement.claims", "_NOT_YET", by=_NEVER)
    ),
    Rule("claims: open", "tells what a session left open", _replace("agreement.claims", "_OPEN", by=_NEVER)),
    Rule(
        "abbreviations",
        "ends no sentence after `e.g.`",
        _replace("language.sentences", "_ABBREVIATED", "_ORDINAL", by=_NEVER),
    ),
    Rule(
        "contradictions",
        "marks memories that say something else of the same",
        _replace("agreement.statements", "find_contradiction", by="lambda old, new: None"),
        "saved",
    ),
    Rule(
        "contradictions: change",
        "knows words for a change",
        _replace("agreement.words", "CHANGE", "CORRECTED", by=_NEVER),
        "saved",
    ),
    Rule(
        "contradictions: done",
        "knows words for what was waited for and is done",
        _replace("agreement.words", "PENDING", "DONE", by=_NEVER),
        "saved",
    ),
    Rule(
        "contradictions: some",
        "knows words for all and for some",
        _replace("agreement.words", "WHOLE", "PART", by=_NEVER),
        "saved",
    ),
    Rule(
        "contradictions: guesses",
        "has no guess contradict",
        _replace("agreement.words", "GUESS", by=_NEVER),
        "saved",
    ),
    Rule(
        "same statement",
        "merges statements that differ in articles and punctuation alone",
        _replace("agreement.statements", "is_same", by="lambda old, new: old == new"),
        "saved",
    ),
    Rule(
        "changes",
        "marks memories that something said later changes",
        _replace("agreement.changes", "find_change", by="lambda *_: None"),
        "saved",
    ),
    Rule(
        "orders to remember",
        "knows that a person ordered what an agent saves",
        _replace("memories.origins", "list_ordered", by="lambda text: []"),
        "saved",
    ),
    Rule(
        "speakers",
        "takes `Ada: …` for talk, not for a statement",
        _replace("language.talk", "find_speaker", by="lambda text: ''"),
        "saved",
    ),
    Rule(
        "importance",
        "decides between the tiers L1 and L2",
        _replace("language.rating", "importance", by="lambda text: 0.6"),
        "turns",
    ),
    Rule("importance: features", "rates what a text says", _replace("language.rating", "FEATURES", by="()"), "turns"),
    Rule(
        "importance: requests",
        "rates what only requests lower",
        _replace("language.rating", "_REQUEST", by=_NEVER),
        "turns",
    ),
    Rule(
        "importance: courtesy",
        "rates small talk lower",
        _replace("language.sentences", "COURTESY", by="frozenset()"),
        "turns",
    ),
    Rule(
        "asking without a mark",
        "knows a question by its words",
        _replace("language.questions", "_BEGINS", "_HOLDS", by=_NEVER),
        "turns",
    ),
    Rule(
        "no answer",
        "takes nothing for an answer that says that it does not know",
        _replace("language.questions", "knows_nothing", by=_NO),
        "turns",
    ),
    Rule(
        "gate: small words",
        "takes no turn in that has small words alone",
        _replace("conversations.gate", "FILLERS", "_SILENT", by="frozenset()"),
        "turns",
    ),
    Rule(
        "gate: output",
        "takes no turn in that a program printed",
        _replace("conversations.gate", "NOISE", by="()"),
        "turns",
    ),
)


def main() -> None:
    """Measure each rule, or the named ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sets", type=Path, metavar="FOLDER", help="the folder of public sets")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where figures and vectors are kept")
    parser.add_argument("--only", action="append", choices=SETS, metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only these, as 'logs'; several at once as 'logs + names'"
    )
    args = parser.parse_args()
    chosen = [RULES[0], *(find_rule(name) for name in args.names)] if args.names else RULES
    with tempfile.TemporaryDirectory(prefix="rules-") as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "figures.json"
        found: Found = json.loads(file.read_text()) if file.exists() else {}
        for name in args.only or SETS:
            left = [rule for rule in chosen if acts_on(rule, name) and name not in found.get(rule.name, {})]
            for rule, figures in measure(name, left, args.sets, folder / "vectors") if left else ():
                found.setdefault(rule.name, {})[name] = figures
                print(f"{name} without {rule.name}: {figures}", file=sys.stderr, flush=True)
                file.write_text(json.dumps(found, indent=1) + "\n")
            print("\n".join(write_table(found)) + "\n", flush=True)


def find_rule(name: str) -> Rule:
    """Return the rule of a name, or several that are taken out together."""
    by_name = {rule.name: rule for rule in RULES}
    if unknown := [part for part in name.split(" + ") if part not in by_name]:
        sys.exit(f"{unknown[0]!r} is no rule; there are {', '.join(by_name)}.")
    parts = [by_name[part] for part in name.split(" + ")]
    acts = max((part.acts for part in parts), key=("searches", "saved", "turns").index)
    return Rule(name, "; ".join(part.purpose for part in parts), "\n".join(part.without for part in parts), acts)


def acts_on(rule: Rule, name: str) -> bool:
    """Return whether a set can show a rule: nothing is saved on purpose in the public ones."""
    return rule.acts != "saved" or name not in _PUBLIC


def measure(name: str, rules: Sequence[Rule], folder: Path | None, vectors: Path) -> Iterator[tuple[Rule, Figures]]:
    """Yield the figures of a set without each of some rules."""
    if name in ("projects", "unasked"):
        rows = make_rows(HALVES[0]) if name == "projects" else read_rows(SEEN)
        for rule in rules:
            with _take_out(rule, vectors):
                yield rule, _measure_telling(rows)
        return
    files = [file for file in sorted(folder.glob(f"{name}*")) if ".json" in file.name] if folder else []
    if name == "team":
        materials = [read_material(_TEAM, "team", half=half)[0] for half in HALVES]
        # Both halves ask about the same items.
        materials = [materials[0]._replace(questions=[one for half in materials for one in half.questions])]
    elif files:
        materials = read_material(files[0], "observe")
    else:
        return
    yield from _measure_answers(materials, rules, vectors)


# Asking --------------------------------------------------------------------------------------------------------------


def _measure_answers(
    materials: Sequence[Material], rules: Sequence[Rule], vectors: Path
) -> Iterator[tuple[Rule, Figures]]:
    began_at = min((at for one in materials if (at := one.began_at) is not None), default=None)
    if searching := [rule for rule in rules if rule.acts == "searches"]:
        with _take_out(RULES[0], vectors), run_daemon(began_at=began_at) as (place, daemon):
            stores = store_all(place, materials)
            daemon.stop()
            stored = daemon.folder / "stored"
            daemon.data_dir.rename(stored)
            for rule in searching:
                yield rule, _ask_copy(rule, vectors, stored, daemon, partial(_rate, place, materials, stores))
    for rule in rules:
        if rule.acts != "searches":
            with _take_out(rule, vectors), run_daemon(began_at=began_at) as (place, _):
                yield rule, _rate(place, materials, store_all(place, materials))


def _ask_copy(rule: Rule, vectors: Path, stored: Path, daemon: PrivateDaemon, rate: "partial[Figures]") -> Figures:
    shutil.copytree(stored, daemon.data_dir)
    try:
        with _take_out(rule, vectors):
            daemon.start()
            return rate()
    finally:
        daemon.stop()
        shutil.rmtree(daemon.data_dir)


def _rate(place: EvaluatedDaemon, materials: Sequence[Material], stores: Sequence[EvaluationStore]) -> Figures:
    place.wait_until_ready()
    scores = ask_all(place, materials, stores, contexts=False)
    right = [score for score in scores if score.gold]
    if materials[0].way != "team":
        return {"nDCG": 100 * fmean(score.ndcg_10 for score in right)}
    return {
        "first": sum(score.hit_1 for score in right),
        "in five": sum(score.all_5 for score in right),
        "said right": sum(map(_is_said_right, scores)),
    }


def _is_said_right(score: Score) -> bool:
    """Return whether the first hit is called likely where it is right, and there alone."""
    return ((score.confidence or 0.0) >= LIKELY) == bool(score.gold and score.hit_1)


# Telling -------------------------------------------------------------------------------------------------------------


def _measure_telling(rows: Sequence[TimelineRow]) -> Figures:
    with replay(rows) as (_, injections):
        judged: list[JudgedPoint] = judge_all(rows, injections)
    lines = [line for one in judged for line in one.lines]
    return {
        "harm": sum(bool(line.harms) for line in lines),
        "help": sum(line.helps for line in lines),
        "needs": sum(is_told for _, is_told, _ in list_needs(judged, rows)),
    }


# Taking out ----------------------------------------------------------------------------------------------------------

_SITE = """\
import os, sys, traceback
try:
    sys.path.insert(0, {here!r})
    import kept_vectors
    sys.path.remove({here!r})
    kept_vectors.keep({vectors!r})
    exec({without!r})
except Exception:
    traceback.print_exc()
    os._exit(1)
"""


@contextmanager
def _take_out(rule: Rule, vectors: Path) -> Iterator[None]:
    """Have every Python that is started meanwhile run without a rule, with the vectors that are kept."""
    former = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="rule-") as folder:
        text = _SITE.format(here=str(_HERE), vectors=str(vectors.resolve()), without=rule.without)
        (Path(folder) / "sitecustomize.py").write_text(text)
        os.environ["PYTHONPATH"] = folder
        try:
            yield
        finally:
            del os.environ["PYTHONPATH"]
            os.environ.update({"PYTHONPATH": former} if former else {})


# The table -----------------------------------------------------------------------------------------------------------


def write_table(found: Found) -> Iterator[str]:
    """Yield the lines of a table: the figures of all rules together, then what changes without each."""
    columns = [(name, list(figures)) for name in SETS if (figures := found.get(NONE, {}).get(name))]
    yield _write_row("rule", (f"{name}: {' · '.join(figures)}" for name, figures in columns), "")
    yield "|---" * (len(columns) + 2) + "|"
    base = (" · ".join(f"{found[NONE][name][one]:.4g}" for one in figures) for name, figures in columns)
    yield _write_row(NONE, base, "")
    alone = [rule.name for rule in RULES if rule.name in found]
    for rule in map(find_rule, dict.fromkeys([*alone, *found])):
        if rule.name != NONE:
            cells = (
                " · ".join(_write_change(_find_change(found, rule, name, one)) for one in figures)
                for name, figures in columns
            )
            yield _write_row(f"{rule.name}: {rule.purpose}", cells, judge(found, rule))


def _write_row(name: str, cells: Iterable[str], verdict: str) -> str:
    return f"| {' | '.join([name, *cells, verdict])} |"


def judge(found: Found, rule: Rule) -> str:
    """Return whether a rule stays by what was measured, and by which figures."""
    worse = [
        figure
        for name in found[rule.name]
        for figure, loss in _list_losses(found, rule, name)
        if loss >= LIMITS[figure]
    ]
    left = [name for name in SETS if acts_on(rule, name) and name not in found[rule.name]]
    open_ = f"no loss, not measured: {', '.join(left)}" if left else "goes"
    return f"stays: {', '.join(dict.fromkeys(worse))}" if worse else open_


def _list_losses(found: Found, rule: Rule, name: str) -> Iterator[tuple[str, float]]:
    """Yield how much worse the figures of a set that count are without a rule."""
    for figure in (one for one in found[NONE][name] if one in LIMITS):
        change = _find_change(found, rule, name, figure) or 0.0
        yield figure, change if figure == "harm" else -change


def _find_change(found: Found, rule: Rule, name: str, figure: str) -> float | None:
    """Return the change of a figure without a rule, None where that was not measured."""
    if figure not in found[rule.name].get(name, {}):
        return None
    return round(found[rule.name][name][figure] - found[NONE][name][figure], 4)


def _write_change(change: float | None) -> str:
    if change is None:
        return "–"
    return f"{round(change, 1):+g}" if round(change, 1) else "0"


if __name__ == "__main__":
    main()
