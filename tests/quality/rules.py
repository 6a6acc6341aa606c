"""What each rule about language is for: the figures of development sets with it and without it.

`RULES` is the table. Each rule is taken out of a temporary daemon, which then stores and answers the seen half of
`tests/data/team`, and the conversations of `--conversations FILE` where it is given: as turns that are observed, ended
and consolidated; and judges the seen half of `tests/data/pairs`. Of the pairs of `tests/data/versions` it says in how
many the one that is asked for is found before the other. Of the turns of `tests/data/unasked` (but its unseen half) it
says which are held back from coming up: of those that ask or order, that are refuted, that should come up. All figures
are in %.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from evaluate import evaluate_file
from pairs import judge_file
from printing import percent
from temporary import run_daemon

from memoryd.client import Client

_DATA = Path(__file__).resolve().parents[1] / "data"
_AT, _MONTH_S = 1_780_000_000.0, 30 * 86_400.0


class Rule(NamedTuple):
    """A rule, the languages that it knows, what it is for, and the Python that takes it out."""

    name: str
    languages: str
    purpose: str
    without: str


def _cue(name: str) -> str:
    return (
        f"from memoryd.daemon.search import cues\ncues.CUES = tuple(one for one in cues.CUES if one.name != {name!r})"
    )


def _replace(place: str, name: str, value: str) -> str:
    folder, module = place.split(".")
    return f"from memoryd.daemon.{folder} import {module}\n{module}.{name} = {value}"


RULES = (
    Rule("none taken out", "", "", ""),
    Rule("cue: speaker", "any", "ranks what the one whom a question names has said", _cue("speaker")),
    Rule("cue: role", "en de zh ja", "ranks the user's turns for `I`, the assistant's for `you said`", _cue("role")),
    Rule("cue: subject", "any", "ranks what begins with the one whom a question names", _cue("subject")),
    Rule("cue: identifier", "any", "ranks what holds the identifiers and numbers of a question", _cue("identifier")),
    Rule("cue: date", "en de zh ja", "ranks what is of the day or month that a question names", _cue("date")),
    Rule(
        "versions",
        "en de zh ja",
        "puts of two that disagree the newer first, or what was before where that is asked for",
        "from memoryd.daemon.search import clean\nclean.place_versions = lambda retrieval, sources, kept: kept",
    ),
    Rule(
        "asking",
        "any by its mark; en de zh ja without",
        "has questions give way to what answers them",
        "from memoryd.daemon.search import precedence\nprecedence.only_asks = lambda text: False",
    ),
    Rule("cue: when", "en de zh ja", "ranks what names a time where a question asks when", _cue("when")),
    Rule(
        "names",
        "any",
        "lowers the confidence of hits that lack what a question names",
        _replace("language.names", "find_names", "lambda text: names.Names((), ())"),
    ),
    Rule(
        "importance",
        "en",
        "decides between the tiers L1 and L2",
        _replace("language.rating", "importance", "lambda text: 0.6"),
    ),
    Rule(
        "contradictions",
        "en de zh ja",
        "marks memories that say something else of the same",
        _replace("agreement.statements", "find_contradiction", "lambda old, new: None"),
    ),
    Rule(
        "same statement",
        "any",
        "merges statements that differ in articles and punctuation alone",
        _replace("agreement.statements", "is_same", "lambda old, new: old == new"),
    ),
    Rule(
        "told changes",
        "en de zh ja; some French",
        "puts a newer hit that tells of a change before the older",
        "from memoryd.daemon.search import precedence\nprecedence.tells_change = lambda old, new: False",
    ),
    Rule(
        "claims: questions",
        "any by its mark; en de fr without",
        "holds back what a user asks",
        _replace("language.sentences", "is_question", "lambda sentence: False"),
    ),
    Rule(
        "claims: orders",
        "en de fr zh",
        "holds back what a user orders",
        _replace("language.sentences", "is_order", "lambda _: False"),
    ),
    Rule(
        "claims: guesses",
        "en de fr zh",
        "holds back what is not sure",
        _replace("language.sentences", "is_guess", "lambda _: False"),
    ),
    Rule(
        "claims: denials",
        "en de fr zh",
        "holds back what the next messages take back; has who denies guess",
        _replace("language.sentences", "is_denial", "lambda text: False"),
    ),
)


def main() -> None:
    """Measure each rule, or the named ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--conversations", type=Path, metavar="FILE", help="conversations to measure on as well")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these rules, like 'cue: date'")
    args = parser.parse_args()
    for rule in RULES:
        if not args.names or rule.name in args.names:
            print(f"without {rule.name} ({rule.languages}): {rule.purpose}")
            for name, figures in _measure(rule, args.conversations).items():
                print(f"  {name}: {figures}", flush=True)


def _measure(rule: Rule, conversations: Path | None) -> dict[str, str]:
    with _take_out(rule):
        found = {"team: at rank 1 · hit@5 · unasked": _rate_team()}
        pairs = judge_file(_DATA / "pairs" / "pairs-seen.jsonl")["total"]
        found["pairs: precision · recall"] = _join(pairs.precision, pairs.recall)
        found["versions: in order"] = _rate_versions()
        found["held back: asking · refuted · wanted"] = _rate_claims()
        if conversations:
            found["conversations: nDCG@10 · recall@10 · context of 400"] = _rate_conversations(conversations)
    return found


@contextmanager
def _take_out(rule: Rule) -> Iterator[None]:
    """Have every Python that is started meanwhile run without a rule."""
    former = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="rule-") as folder:
        (Path(folder) / "sitecustomize.py").write_text(rule.without + "\n")
        os.environ["PYTHONPATH"] = folder
        try:
            yield
        finally:
            del os.environ["PYTHONPATH"]
            os.environ.update({"PYTHONPATH": former} if former else {})


def _rate_team() -> str:
    total = evaluate_file(_DATA / "team")["ways"]["team"]["total"]
    return _join(total.hit_1, total.hit_5, total.contexts["250 unasked"].hit)


def _rate_conversations(path: Path) -> str:
    total = evaluate_file(path, "observe")["ways"]["observe"]["total"]
    return _join(total.ndcg_10, total.recall_10, total.contexts["400"].hit)


def _rate_versions() -> str:
    shares = []
    with run_daemon() as (place, _):
        for file in sorted((_DATA / "versions").glob("*.jsonl"), key=lambda path: path.stem):
            pairs = [json.loads(line) for line in file.read_text().splitlines()]
            with place.connect(file.stem) as client:
                shares.append(sum(_list_in_order(client, pairs)) / len(pairs))
    return _join(*shares)


def _list_in_order(client: Client, pairs: Sequence[dict[str, Any]]) -> list[bool]:
    """Return for each pair, all added to one namespace, whether the one that is asked for is found first."""
    added = [
        [client.add(pair[name], created_at=_AT + age_s).id for name, age_s in (("older", 0.0), ("newer", _MONTH_S))]
        for pair in pairs
    ]
    in_order = []
    for pair, ids in zip(pairs, added, strict=True):
        found = [hit.id for hit in client.search(pair["question"], limit=10) if hit.id in ids]
        in_order.append(found[:1] == [ids[0] if pair.get("asks") == "before" else ids[1]])
    return in_order


def _rate_claims() -> str:
    command = [sys.executable, "-P", str(Path(__file__).with_name("claims_side.py"))]
    counts = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return _join(*(held / all_ for held, all_ in counts.values()))


def _join(*shares: float | None) -> str:
    return " · ".join(map(percent, shares))


if __name__ == "__main__":
    main()
