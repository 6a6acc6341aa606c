"""Texts and questions for the benchmarks, made without a data set: what developers' agents would remember.

A memory is a sentence about a made-up service (who, when, which version) followed by sentences harvested from the
docstrings and comments of the installed Python and of numpy, which have a natural vocabulary. Names follow Zipf's law
too: few are common, most are rare. Everything is a function of its number, so 100,000 texts are distinct and the same
in each run on the same Python.
"""

import ast
import io
import os
import random
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

VERSION = 1  # of what this module makes; a change makes cached vectors void
_MIN_WORDS, _MAX_WORDS = 15, 40
_SKIPPED = {"site-packages", "lib2to3", "idlelib", "pydoc_data"}
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")

_PEOPLE = (
    "Ana Bilal Chen Dmitri Elif Farah Goran Hana Ivo Jonas Kwame Leila Mateo Nadia Oskar Priya Quinn Rosa Sven Tariq "
    "Uma Viktor Wren Ximena Yusuf Zofia Aiko Bruno Carmen Davit Esther Felix Greta Hugo Ines Jamal Katya Liam Mei Noor"
).split()
_AREAS = (
    "billing checkout search login invoice catalog shipping ledger report profile session export import pricing refund "
    "quota notification webhook payment inventory identity audit backup metrics image video chat calendar mail map tax "
    "coupon fraud onboarding ranking recommendation subscription upload scheduler gateway warehouse archive feature"
).split()
_PARTS = "api worker service gateway proxy cache queue pipeline dashboard client daemon store index sync agent".split()
_TOOLS = (
    "PostgreSQL Valkey Redis SQLite Kafka NATS RabbitMQ nginx Envoy Terraform Ansible Docker Podman Kubernetes "
    "Nomad pytest Ruff mypy uv Poetry Celery FastAPI Django Flask React Svelte TypeScript Go Rust Elixir GraphQL gRPC "
    "Protobuf OpenTelemetry Prometheus Grafana Loki Sentry Vault Keycloak Elasticsearch OpenSearch DuckDB ClickHouse "
    "Parquet Arrow"
).split()
_FRAMES = (
    "{person} decided on {date} that {service} runs {tool} {version}.",
    "In {service} we keep {tool} at {version} until {date}.",
    "Lesson from ticket {ticket} in {service}: {tool} needs {number} {unit} more.",
    "{person} prefers {tool} over {other} for {service}.",
    "The {service} incident of {date} came from {tool} {version}.",
    "{service} calls {peer} with a limit of {number} {unit}.",
    "Since {date} {person} owns {service} and its {tool} cluster.",
    "Never restart {service} while {peer} drains; ask {person} first.",
    "Deploys of {service} take {number} minutes because of {tool}.",
    "{person} fixed {ticket} by moving {service} from {other} to {tool}.",
    "Tests of {service} need {tool} {version} on port {number}.",
    "Best practice for {service}: review {tool} settings with {person} before {date}.",
)
_QUESTIONS = (
    "how does {service} deal with {words}",
    "what did {person} say about {words}",
    "why does {tool} in {service} {words}",
    "which rule do we have for {words} in {service}?",
    "{service} {words}",
    "do you remember {person} and {words}?",
    "what should I know before changing {words} of {service}?",
)
_PARAPHRASES = {
    "return": "give back",
    "returns": "gives back",
    "raise": "throw",
    "raised": "thrown",
    "file": "document",
    "files": "documents",
    "error": "failure",
    "list": "sequence",
    "value": "content",
    "create": "make",
    "created": "made",
    "remove": "delete",
    "argument": "parameter",
    "arguments": "parameters",
    "used": "applied",
    "string": "text",
    "number": "count",
    "function": "routine",
    "check": "verify",
    "object": "thing",
}
_COMMON = frozenset(
    "the a an is to of and if in for be this or that as are it with by on not from at was will can we you its has have "
    "when which should but all any may no than then there these they so do does only into one other been use".split()
)


class Place(NamedTuple):
    """The names that a memory is about, by slot of its frame."""

    names: dict[str, str]
    frame: str


def cache_dir() -> Path:
    """Return the folder of what benchmarks keep between runs."""
    folder = Path(os.environ.get("MEMORYD_BENCH_CACHE") or Path(__file__).parents[2] / ".cache" / "bench")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fingerprint() -> str:
    """Return what the texts depend on, for the names of cached files."""
    import numpy

    return f"{VERSION}-py{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}-np{numpy.__version__}"


def memory(number: int) -> str:
    """Return the text of memory `number`: 15 to 40 words."""
    place = _place(number)
    text = place.frame.format(**place.names)
    enough = random.Random(f"length {number}").randint(_MIN_WORDS, _MAX_WORDS - 6)
    for sentence in _topic(number):
        longer = f"{text} {sentence}"
        if len(longer.split()) <= _MAX_WORDS:
            text = longer
        if len(text.split()) >= enough:
            return text
    return text


def question(number: int, memories: int) -> str:
    """Return question `number`, derived from one of the first `memories` memories; no two are equal."""
    dice = random.Random(f"question {number}")
    about = dice.randrange(memories)
    place = _place(about)
    told = _WORD.findall(memory(about)[len(place.frame.format(**place.names)) :])
    words = [word.lower() for word in told if word.lower() not in _COMMON and len(word) > 2]
    start = dice.randrange(max(1, len(words) - 4))
    chosen = [_PARAPHRASES.get(word, word) for word in words[start : start + dice.randint(3, 5)]]
    asked = dice.choice(_QUESTIONS).format(**place.names, words=" ".join(chosen))
    return f"{asked} {_ticket(number)}" if number % 7 == 0 else asked


def questions(count: int, memories: int, offset: int = 0) -> list[str]:
    """Return `count` distinct questions."""
    found: dict[str, None] = {}
    number = offset
    while len(found) < count:
        found[question(number, memories)] = None
        number += 1
    return list(found)


def _place(number: int) -> Place:
    dice = random.Random(f"memory {number}")
    services, weights = _services()
    service, peer = dice.choices(services, cum_weights=weights, k=2)
    tool, other = dice.sample(_TOOLS, 2)
    names = {
        "person": dice.choice(_PEOPLE),
        "service": service,
        "peer": peer,
        "tool": tool,
        "other": other,
        "version": f"{dice.randint(0, 24)}.{dice.randint(0, 30)}",
        "date": f"20{dice.randint(23, 26)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}",
        "ticket": _ticket(number),
        "number": str(
            dice.choice((3, 5, 8, 12, 15, 20, 25, 30, 45, 60, 90, 120, 250, 400, 512, 900, 1200, 4096, 8080))
        ),
        "unit": dice.choice(("seconds", "MB", "threads", "retries", "connections", "replicas")),
    }
    return Place(names, dice.choice(_FRAMES))


def _ticket(number: int) -> str:
    return f"{('OPS', 'API', 'WEB', 'DATA', 'SEC')[number % 5]}-{number // 5 + 100}"


@cache
def _services() -> tuple[list[str], list[float]]:
    """Return 3,000 names of services and their cumulated weights by Zipf's law."""
    dice = random.Random("services")
    syllables = "ar be cor da el fi gor ha il ju ka lo mi nor os pa qui ru sol ta ur ve wi xan yo zel".split()
    coined = ["".join(dice.choices(syllables, k=dice.randint(2, 3))) for _ in range(3000)]
    names = [f"{name}-{dice.choice(_PARTS)}" if dice.random() < 0.5 else "" for name in coined]
    services = [name or f"{dice.choice(_AREAS)}-{dice.choice(_PARTS)}" for name in names]
    return services, list(accumulate(1 / (rank + 8) for rank in range(len(services))))


def _topic(number: int) -> Iterator[str]:
    """Yield a sentence and those after it in its source, so that a memory keeps to one subject."""
    found = _sentences()
    start = random.Random(f"topic {number}").randrange(len(found))
    for step in range(8):
        yield found[(start + step) % len(found)]


@cache
def _sentences() -> list[str]:
    """Return every English sentence of 5 to 30 words in the sources, in order; kept in a file, as it takes 15 s."""
    kept = cache_dir() / f"sentences-{fingerprint()}.txt"
    if kept.exists():
        return kept.read_text().split("\n")
    found: dict[str, None] = {}
    for text in _sources():
        for paragraph in re.split(r"\n\s*\n", text):
            for sentence in re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split())):
                if _is_prose(sentence):
                    found[sentence] = None
    kept.with_suffix(".part").write_text("\n".join(found))
    kept.with_suffix(".part").replace(kept)
    return list(found)


def _is_prose(sentence: str) -> bool:
    words = sentence.split()
    if not 5 <= len(words) <= 30 or sentence[-1] not in ".!?" or not sentence[0].isalpha():
        return False
    plain = sum(_WORD.fullmatch(word.strip("().,;:!?'\"`")) is not None for word in words)
    return plain > 0.75 * len(words) and ">>>" not in sentence


def _sources() -> Iterator[str]:
    import numpy

    library = Path(sysconfig.get_paths()["stdlib"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for folder in (library, Path(numpy.__file__).parent):
            for path in sorted(folder.rglob("*.py")):
                if not _SKIPPED & set(path.relative_to(folder).parts):
                    yield from _texts_of(path)
    from pydoc_data.topics import topics

    yield from topics.values()


def _texts_of(path: Path) -> Iterator[str]:
    """Yield the docstrings and the comment blocks of a module; a file that is no valid Python has none."""
    try:
        source = path.read_text()
        tree = ast.parse(source)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    block: list[str] = []
    last = 0
    for line, text in _comments(source):
        if line != last + 1 and block:
            yield " ".join(block)
            block = []
        block.append(text.lstrip("#!: "))
        last = line
    yield " ".join(block)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(io.StringIO(source), start=1):
        text = line.strip()
        if text.startswith("#"):
            yield number, text


if __name__ == "__main__":
    for example in range(8):
        print(memory(example * 1237))
        print("   ?", question(example, 10_000))
