"""model try: what another model would give, measured beside the one in use, which nothing of it touches.

A sample of one's own memories is copied into temporary daemons, one with each model, and each is asked the same
questions, whose answers are known:

- *confirmed*: searches of late that gave a memory which was then called useful, or cited
- *neighbours*: what was said beside a short memory, as a query for that memory; of others, a sentence for the whole
- *bundled*: the questions of the set that models are calibrated by, with its texts among the memories

With `--data` a file that `bench eval` reads takes the place of one's own memories. A model that is not installed is
fetched into a temporary folder and removed with it.
"""

import re
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

import msgspec

from memoryd.client.bench.command import LONG_CALL_S, first_time, run_alone
from memoryd.client.bench.evaluation import LIMIT, VECTORS_S, EvaluatedDaemon, EvaluationRun, drop_neutral, evaluate
from memoryd.client.bench.kinds import KINDS, WAYS, kind_of
from memoryd.client.bench.material import GoldQuestion, Material, Selection
from memoryd.client.bench.scoring import percentile, rank_figures
from memoryd.client.calls import export_memories, import_memories
from memoryd.client.errors import Invalid, TimedOut
from memoryd.client.memctl.arguments import Usage
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.local import effective_settings
from memoryd.client.memctl.model import API, folder_options, pull, run_models
from memoryd.client.memctl.output import show
from memoryd.client.memctl.private import PrivateDaemon, make_guarded_folder
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.memctl.service import wait_until_ready
from memoryd.client.memctl.table import format_table, ms_text
from memoryd.client.protocol import GetTrace, Reach, Record, Traces
from memoryd.client.transport.sync import Client

MOST = 2000  # memories of a sample
_PORTION = 200  # records of one call
_QUESTIONS = 200  # of neighbours and sentences
_TRACES = 256
_START_LIMIT_S, _POLL_S = 120.0, 0.005
_LEAST_CHARS = 20  # of a query made of a text
_SECTIONS = ("model", "embedding_api", "search", "network")  # of the settings, for the temporary daemons
_BUNDLED = "bundled-set"  # the namespace of its texts
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*")
_EVERYTHING: Reach = "all"

QuestionKind = Literal["confirmed", "neighbours", "bundled", "data"]


class Trial(NamedTuple):
    """What each model is tried on: memories with questions about them, or the material of a file."""

    records: Sequence[Record] = ()
    questions: Sequence[tuple[QuestionKind, str, GoldQuestion]] = ()  # with the namespace that each is asked in
    material: Sequence[Material] = ()


class Quality(msgspec.Struct):
    """How a whole search answered some questions: shares of 0 to 1."""

    questions: int
    hit_1: float
    hit_5: float
    ndcg_10: float


class TriedModel(msgspec.Struct):
    """What was measured of one model. `answered` are shares of the bundled questions by language."""

    name: str
    in_use: bool
    quality: Quality
    by_kind: dict[str, Quality]
    search_p50_ms: float
    search_p95_ms: float
    start_ms: float
    rss_mb: float
    disk_mb: float
    dimensions: int
    embedding_s: float
    answered: dict[str, float]


class TryReport(msgspec.Struct):
    """The models side by side; `data` is the file that they were tried on, null: one's own memories."""

    data: str | None
    memories: int
    models: list[TriedModel]


class _Answer(NamedTuple):
    kind: QuestionKind
    figures: dict[str, float]
    latency_ms: float


def _declare(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a model of the catalogue, an installed one, or openai:NAME")
    parser.add_argument(
        "--sample", type=int, default=MOST, metavar="N", help=f"memories that are tried on, at most {MOST:,} ({MOST})"
    )
    parser.add_argument("--data", type=Path, metavar="PATH", help="try it on data of `bench eval` instead")
    parser.add_argument("--way", choices=tuple(WAYS), help="with --data: how it is stored (its first way)")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="leave a model installed that was fetched for it, which is else removed at the end",
    )


def _try(args: Namespace) -> None:
    if not 1 <= args.sample <= MOST:
        raise Usage(f"--sample is 1 to {MOST}.")
    if args.way and args.data is None:
        raise Usage("--way needs --data.")
    with client_for(args) as client:
        used = client.status().model
        trial = read_material(args.data, args.way) if args.data else read_sample(client, args.sample)
    if not (trial.questions or trial.material):
        raise Invalid("There is no memory that a model could be tried on.")
    with make_guarded_folder() as folder, _provide(args, folder) as options:
        tried = [_measure(trial, used.name, True, folder, folder_options())] if used.state == "ready" else []
        if args.name != used.name or not tried:
            tried.append(_measure(trial, args.name, args.name == used.name, folder, options))
    stored = len(trial.records) or sum(len(one.items) for one in trial.material)
    report = TryReport(str(args.data) if args.data else None, stored, tried)
    show(args, report, lambda: _report_text(report))


@contextmanager
def _provide(args: Namespace, folder: Path) -> Iterator[list[str]]:
    """Have the model of the arguments installed somewhere; yield the options that name the folder."""
    there = {model["name"] for model in run_models("list", "--json", *folder_options()) if model["installed"]}
    options = folder_options()
    if args.name not in there and not args.name.startswith(API):
        options = options if args.keep else ["--dir", str(folder / "models")]
        pull(args.name, *options)
    yield options


# What is asked -------------------------------------------------------------------------------------------------------


def read_material(path: Path, way: str | None) -> Trial:
    """Return the material of a file of `bench eval`."""
    kind = kind_of(path)
    if way is not None and way not in KINDS[kind].ways:
        raise Usage(f"{path} holds {kind}, which --way {way} does not store; use {' or '.join(KINDS[kind].ways)}.")
    return Trial(material=list(KINDS[kind].materials(path, way or KINDS[kind].ways[0], Selection())))


def read_sample(client: Client, most: int) -> Trial:
    """Return a sample of all memories, those of confirmed searches first, and questions about it.

    Ids are drawn by chance, so that the first ones of their order are a sample.
    """
    confirmed = list(_read_confirmed(client))
    records = {record.id: record for _, found in confirmed for record in found}
    with ProgressBar("reading memories", most) as progress:
        for turn in client.turns(limit=1000, reach=_EVERYTHING):
            records.setdefault(turn.id, _make_record(turn))
        after: str | None = ""
        while after is not None and len(records) < most:
            part = client.call(export_memories(after, limit=min(_PORTION, most), reach=_EVERYTHING))
            for record in part.records:
                if record.searchable and record.superseded_by is None and record.tier != "documents":
                    records.setdefault(record.id, record)
            after = part.next
            progress.update(min(len(records), most))
    chosen = list(records.values())[:most]
    kept = {record.id for record in chosen}
    questions: list[tuple[QuestionKind, str, GoldQuestion]] = []
    for number, (trace, found) in enumerate(confirmed):
        gold = frozenset(record.id for record in found if record.id in kept)
        if gold:
            asked = GoldQuestion(f"confirmed-{number}", "confirmed", trace.query, (gold,))
            questions.append(("confirmed", trace.namespace, asked))
    questions += [("neighbours", place, asked) for place, asked in _ask_beside(chosen)]
    bundled, asked_of_set = _read_bundled()
    return Trial([*chosen, *bundled], [*questions, *(("bundled", _BUNDLED, asked) for asked in asked_of_set)])


def _read_confirmed(client: Client) -> Iterator[tuple[Any, list[Record]]]:
    """Yield searches of late with those of the memories given that were called useful or cited afterwards."""
    known: dict[str, Record | None] = {}
    asked: set[tuple[str, str]] = set()
    for one in client.call(Traces(kind=["search", "get_context"], limit=_TRACES, reach=_EVERYTHING)).traces:
        if not (one.given and one.touch and one.query.strip()) or (one.namespace, one.query) in asked:
            continue
        asked.add((one.namespace, one.query))
        trace = client.call(GetTrace(id=one.id, reach=_EVERYTHING))
        for id in trace.given:
            if id not in known:
                known[id] = _read_record(client, id)
        found = [record for id in trace.given if (record := known[id]) and _is_confirmed(record, trace.at)]
        if found:
            yield trace, found


def _read_record(client: Client, id: str) -> Record | None:
    before = f"{int(id, 16) - 1:032x}" if int(id, 16) else ""
    page = client.call(export_memories(before, limit=1, reach=_EVERYTHING)).records
    return page[0] if page and page[0].id == id else None


def _is_confirmed(record: Record, at: float) -> bool:
    return any(vote.at >= at and (vote.useful or (vote.useful is None and vote.cited)) for vote in record.votes)


def _make_record(turn: Any) -> Record:
    """Return a turn of L0 as the memory that it becomes."""
    about = {"role": turn.role, "session": turn.session, "speaker": turn.speaker, "files": turn.files}
    return Record(
        id=turn.id,
        namespace=turn.namespace,
        type="turn",
        content=turn.content,
        importance=turn.importance,
        source=turn.source,
        created_at=turn.created_at,
        updated_at=turn.created_at,
        metadata={name: value for name, value in about.items() if value},
        turns=1,
    )


def _ask_beside(records: Sequence[Record]) -> Iterator[tuple[str, GoldQuestion]]:
    """Yield questions made of what stands beside memories, or of a sentence in them."""
    alike: dict[str, set[str]] = {}
    for record in records:
        alike.setdefault(record.content, set()).add(record.id)
    pairs = [(record, query) for record in records if (query := _find_query(record))]
    for record, query in pairs[:: max(1, -(-len(pairs) // _QUESTIONS))]:
        neutral = frozenset(alike.get(query, ())) - alike[record.content]
        gold = (frozenset(alike[record.content]),)
        yield record.namespace, GoldQuestion(record.id, "neighbours", query, gold, neutral=neutral)


def _find_query(record: Record) -> str:
    """Return a line from beside a memory, or else its shortest sentence of some length; empty where there is none."""
    lines = [line.strip() for line in record.neighbours.splitlines()]
    sentences = [part.strip() for part in _SENTENCE.split(record.content)]
    usable = [line for line in lines if len(line) >= _LEAST_CHARS]
    usable = usable or [part for part in sentences if _LEAST_CHARS <= len(part) <= len(record.content) // 2]
    return min(usable, key=len, default="")[:1000]


def _read_bundled() -> tuple[list[Record], list[GoldQuestion]]:
    """Return the texts of the bundled set as memories, and its questions."""
    records: list[Record] = []
    asked: list[GoldQuestion] = []
    now = time.time()
    for number, subject in enumerate(run_models("set")):
        ids = [f"{number:08x}{at:024x}" for at in range(len(subject["texts"]))]
        records += [
            Record(id=id, namespace=_BUNDLED, type="fact", content=text, created_at=now, updated_at=now)
            for id, text in zip(ids, subject["texts"], strict=True)
        ]
        asked += [
            GoldQuestion(f"{number}", subject["language"], question, (frozenset([ids[answer]]),), subject["language"])
            for question, answer in subject["questions"]
        ]
    return records, asked


# Measuring -----------------------------------------------------------------------------------------------------------


def _measure(trial: Trial, name: str, in_use: bool, folder: Path, options: Sequence[str]) -> TriedModel:
    """Measure one model on a daemon of its own."""
    settings = effective_settings()
    own_folder = {"folder": options[1]} if options else {}
    settings["model"] = {**settings["model"], "name": name, **own_folder}
    path = folder / "config.toml"
    path.write_text(format_toml({section: settings[section] for section in _SECTIONS}), "utf-8")
    with run_alone(["--config", str(path)], first_time(trial.material)) as (place, daemon):
        started = time.monotonic()
        answers = _evaluate_material(place, trial.material) if trial.material else []
        if trial.records:
            _store(daemon, trial.records)
        embedding_s = time.monotonic() - started
        start_ms = _restart(daemon)
        answers = answers or _ask(daemon, trial.questions)
        with daemon.client() as client:
            status = client.status()
    described = _describe(name, options)
    return TriedModel(
        name=name,
        in_use=in_use,
        quality=_summarise(answers),
        by_kind=_summarise_kinds(answers),
        search_p50_ms=percentile([one.latency_ms for one in answers], 0.5),
        search_p95_ms=percentile([one.latency_ms for one in answers], 0.95),
        start_ms=start_ms,
        rss_mb=status.rss_bytes / 1e6,
        disk_mb=sum(file["size_bytes"] for file in described.get("files", {}).values()) / 1e6,
        dimensions=status.model.dimensions or 0,
        embedding_s=embedding_s,
        answered=(described.get("calibration") or {}).get("answered", {}),
    )


def _describe(name: str, options: Sequence[str]) -> dict[str, Any]:
    """Return the manifest of an installed model; of one behind an API there is none."""
    return {} if name.startswith(API) else run_models("show", name, *options)


def _store(daemon: PrivateDaemon, records: Sequence[Record]) -> None:
    with daemon.client(timeout_s=LONG_CALL_S) as client, ProgressBar("copying memories", len(records)) as progress:
        for start in range(0, len(records), _PORTION):
            client.call(import_memories(records[start : start + _PORTION], allow_secrets=True))
            progress.update(start)
        wait_until_ready(client, VECTORS_S)


def _restart(daemon: PrivateDaemon) -> float:
    """Start the daemon again on what it holds; return the milliseconds until it searches by vectors."""
    daemon.stop()
    started = time.perf_counter()
    daemon.start()
    with daemon.client(timeout_s=LONG_CALL_S) as client:
        while client.search("the memory of a machine", limit=1, touch=False, reach=_EVERYTHING).degraded:
            if time.perf_counter() - started > _START_LIMIT_S:
                raise TimedOut(f"The temporary daemon does not search by vectors after {_START_LIMIT_S:g} s.")
            time.sleep(_POLL_S)
    return (time.perf_counter() - started) * 1000


def _evaluate_material(place: EvaluatedDaemon, material: Sequence[Material]) -> list[_Answer]:
    scores = evaluate(place, material, EvaluationRun("bench-eval", keep=True))
    figures = ("hit_1", "hit_5", "ndcg_10")
    return [
        _Answer("data", {name: getattr(score, name) for name in figures}, score.latency_ms)
        for score in scores
        if score.gold
    ]


def _ask(daemon: PrivateDaemon, questions: Sequence[tuple[QuestionKind, str, GoldQuestion]]) -> list[_Answer]:
    answers: list[_Answer] = []
    clients: dict[str, Client] = {}
    try:
        with ProgressBar("asking", len(questions)) as progress:
            for kind, namespace, asked in questions:
                if namespace not in clients:
                    clients[namespace] = daemon.client(namespace, LONG_CALL_S)
                    clients[namespace].status()  # opens the connection, which is not what is timed
                started = time.perf_counter()
                hits = clients[namespace].search(asked.question, limit=LIMIT, touch=False).hits
                latency_ms = (time.perf_counter() - started) * 1000
                keys = [frozenset([hit.id, *(one.id for one in hit.related if one.content)]) for hit in hits]
                answers.append(_Answer(kind, rank_figures(drop_neutral(keys, asked), asked.gold), latency_ms))
                progress.update(len(answers))
    finally:
        for client in clients.values():
            client.close()
    return answers


def _summarise(answers: Sequence[_Answer]) -> Quality:
    figures = {name: fmean(one.figures[name] for one in answers) for name in ("hit_1", "hit_5", "ndcg_10")}
    return Quality(len(answers), **figures)


def _summarise_kinds(answers: Sequence[_Answer]) -> dict[str, Quality]:
    kinds = dict.fromkeys(one.kind for one in answers)
    return {kind: _summarise([one for one in answers if one.kind == kind]) for kind in kinds}


def format_toml(settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Return settings by section as a configuration file."""
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {_format_value(value)}" for name, value in values.items() if value is not None]
    return "\n".join([*lines, ""])


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{msgspec.json.encode(k).decode()} = {_format_value(v)}' for k, v in value.items())}}}"
    return msgspec.json.encode(value).decode()  # what JSON and TOML write alike


# The report ----------------------------------------------------------------------------------------------------------


def _report_text(report: TryReport) -> str:
    where = report.data or "your own memories, questions of the bundled set among them"
    headers = ["MODEL", "QUESTIONS", "HIT@1", "HIT@5", "NDCG@10", "MS A SEARCH", "START MS", "RAM MB", "DISK MB", "DIM"]
    rows = []
    for one in report.models:
        name = f"{one.name} (in use)" if one.in_use else one.name
        for kind, part in {"": one.quality, **({} if "data" in one.by_kind else one.by_kind)}.items():
            shares = [f"{100 * share:.1f}" for share in (part.hit_1, part.hit_5, part.ndcg_10)]
            speed, start = ms_text(one.search_p50_ms), f"{one.start_ms:.0f}"
            costs = [speed, start, f"{one.rss_mb:.0f}", f"{one.disk_mb:.0f}", f"{one.dimensions}"]
            rows.append([f"  {kind}" if kind else name, f"{part.questions}", *shares, *([""] * 5 if kind else costs)])
    lines: list[str] = [f"{report.memories:,} memories: {where}; figures of whole searches in %"]
    lines.append(format_table(headers, rows, right=range(1, len(headers))))
    for one in report.models:
        if one.answered:
            answered = ", ".join(f"{language} {100 * share:.0f} %" for language, share in one.answered.items())
            lines.append(f"{one.name}, by cosine alone, finds of the bundled questions: {answered}")
    lines.append(_advice_text(report.models))
    return "\n".join(lines)


def _advice_text(models: Sequence[TriedModel]) -> str:
    used, other = next((one for one in models if one.in_use), None), models[-1]
    if other is used:
        return "It is the model in use. Nothing was changed."
    back = f" `memctl model use {used.name}` switches back." if used else ""
    return f"Nothing was changed. `memctl model use {other.name}` switches while searches go on.{back}"


COMMANDS = {
    "model try": Command(
        _declare, _try, "  memctl model try bge-small-en-v1.5\n  memctl model try static --sample 500 --json"
    ),
}
