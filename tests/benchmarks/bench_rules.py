"""What each rule about language is for: the figures of development sets with it and without it.

`RULES` is the table. Each rule is taken out of a temporary daemon, which then stores and answers the seen half of
`tests/data/team`, and the conversations of `--conversations FILE` where it is given: as turns that are observed, ended
and consolidated. `memctl bench pairs` judges the seen half of `tests/data/pairs`. Of the pairs of `tests/data/versions`
it says in how many the one that is asked for is found before the other. Of the turns of `tests/data/unasked`
(but its unseen half) it says which are held back from coming up: of those that ask or order, that are refuted, that
should come up. All figures are in %.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import CHECKOUT, Daemon, Report, progress

from memoryd.client import Client

_DATA = CHECKOUT / "tests" / "data"
_MEMCTL = [sys.executable, "-P", "-m", "memoryd.client.memctl"]
_LIMIT_S = 1800
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


def _replace(module: str, name: str, value: str) -> str:
    return f"from memoryd.daemon.language import {module}\n{module}.{name} = {value}"


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
        _replace("names", "find_names", "lambda text: names.Names((), ())"),
    ),
    Rule(
        "importance",
        "en",
        "decides between the tiers L1 and L2",
        _replace("rating", "importance", "lambda text: 0.6"),
    ),
    Rule(
        "summaries", "any", "gives a conversation's main sentences", _replace("digesting", "summary", "lambda *_: ''")
    ),
    Rule(
        "contradictions",
        "en de zh ja",
        "marks memories that say something else of the same",
        _replace("statements", "find_contradiction", "lambda old, new: None"),
    ),
    Rule(
        "same statement",
        "any",
        "merges statements that differ in articles and punctuation alone",
        _replace("statements", "is_same", "lambda old, new: old == new"),
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
        _replace("claims", "is_question", "lambda sentence: False"),
    ),
    Rule(
        "claims: orders",
        "en de fr zh",
        "holds back what a user orders",
        _replace("claims", "is_order", "lambda _: False"),
    ),
    Rule(
        "claims: guesses",
        "en de fr zh",
        "holds back what is not sure",
        _replace("claims", "is_guess", "lambda _: False"),
    ),
    Rule(
        "claims: denials",
        "en de fr zh",
        "holds back what the next messages take back; has who denies guess",
        _replace("claims", "is_denial", "lambda text: False"),
    ),
)


def main() -> None:
    """Measure each rule."""
    sys.argv, conversations = _take_option(sys.argv)
    report = Report(__doc__)
    rows = []
    for rule in RULES[:2] if report.quick else RULES:
        progress(rule.name)
        rows.append(
            {"without": rule.name, "languages": rule.languages, "it": rule.purpose, **_measure(rule, conversations)}
        )
    report.table("Rules about language", rows)
    report.close()


def _take_option(arguments: list[str]) -> tuple[list[str], str]:
    if "--conversations" not in arguments:
        return arguments, ""
    at = arguments.index("--conversations")
    return arguments[:at] + arguments[at + 2 :], arguments[at + 1]


def _measure(rule: Rule, conversations: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="mb-") as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(rule.without + "\n")
        found = {"team: at rank 1 · hit@5 · unasked": _rate_team(folder)}
        pairs = _run(folder, "bench", "pairs", str(_DATA / "pairs" / "pairs-seen.jsonl"))["total"]
        found["pairs: precision · recall"] = " · ".join(_percent(pairs[key]) for key in ("precision", "recall"))
        found["versions: in order"] = _rate_versions(folder)
        found["held back: asking · refuted · wanted"] = _rate_claims(folder)
        if conversations:
            found["conversations: nDCG@10 · recall@10 · context of 400"] = _rate(folder, conversations)
    return found


def _rate_team(folder: Path) -> str:
    total = _run(folder, "bench", "eval", str(_DATA / "team"))["ways"]["team"]["total"]
    unasked = total["contexts"]["250 unasked"]["hit"]
    return " · ".join(map(_percent, (total["hit_1"], total["hit_5"], unasked)))


def _rate(folder: Path, conversations: str) -> str:
    total = _run(folder, "bench", "eval", conversations, "--way", "observe")["ways"]["observe"]["total"]
    return " · ".join(map(_percent, (total["ndcg_10"], total["recall_10"], total["contexts"]["400"]["hit"])))


def _rate_versions(folder: Path) -> str:
    place = folder / "versions"
    place.mkdir()
    daemon = Daemon(place)
    daemon.environment["PYTHONPATH"] = str(folder)
    counts = []
    try:
        daemon.start()
        for file in sorted((_DATA / "versions").glob("*.jsonl"), key=lambda path: path.stem):
            pairs = [json.loads(line) for line in file.read_text().splitlines()]
            with daemon.client(file.stem) as client:
                counts.append(sum(_count_in_order(client, pairs)) / len(pairs))
    finally:
        daemon.stop()
    return " · ".join(map(_percent, counts))


def _count_in_order(client: Client, pairs: Sequence[dict[str, str]]) -> Iterator[bool]:
    """Yield for each pair, all added to one namespace, whether the one that is asked for is found first."""
    added = [
        [client.add(pair[name], created_at=_AT + age_s).id for name, age_s in (("older", 0.0), ("newer", _MONTH_S))]
        for pair in pairs
    ]
    for pair, ids in zip(pairs, added, strict=True):
        found = [hit.id for hit in client.search(pair["question"], limit=10) if hit.id in ids]
        yield found[:1] == [ids[0] if pair.get("asks") == "before" else ids[1]]


def _rate_claims(folder: Path) -> str:
    counts = _run_in(folder, [sys.executable, "-P", str(Path(__file__).with_name("claims_side.py"))])
    return " · ".join(_percent(held / all_) for held, all_ in counts.values())


def _run(folder: Path, *arguments: str) -> Any:
    """Return what memctl prints, whose daemon runs without the rule."""
    return _run_in(folder, [*_MEMCTL, *arguments, "--json"])


def _run_in(folder: Path, command: Sequence[str]) -> Any:
    """Return the JSON that a command prints, without the rule, in folders of its own."""
    own = {name: str(folder) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")}
    environment = os.environ | own | {"PYTHONPATH": str(folder), "MEMORYD_SOCKET": str(folder / "s")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


if __name__ == "__main__":
    main()
