"""Measure whether the confidence of hits is true: of those said to be right with p, how many are?

`python tests/benchmarks/bench_sure.py PATH [MODEL ...] [--url URL] [--hits FILE]`: stores the data of `bench eval` by
its last way in a temporary daemon with each model, asks every question, and prints for the five best hits of each, by
what was said of them, how many there are, the mean of what was said, and the share that is right. `--url` is the
server of models behind an API; `--hits` writes the hits as JSON lines.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from memoryd.client.bench.command import first_time, run_alone
from memoryd.client.bench.evaluation import EvaluatedDaemon, EvaluationStore, fill
from memoryd.client.bench.kinds import KINDS, kind_of
from memoryd.client.bench.material import Material, Selection
from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.memctl.service import wait_until_ready
from memoryd.models import DEFAULT

STEPS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.01)
BEST = 5
LIMIT_S = 3600.0


def main() -> None:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("models", nargs="*", default=[DEFAULT])
    parser.add_argument("--url", default="")
    parser.add_argument("--hits", type=Path)
    args = parser.parse_args()
    kind = KINDS[kind_of(args.path)]
    material = list(kind.materials(args.path, kind.ways[-1], Selection()))
    for model in args.models:
        hits = list(ask(material, model, args.url))
        print_table(f"{model}, {args.path.name}, {kind.ways[-1]}", hits)
        if args.hits:
            with args.hits.open("a") as file:
                file.writelines(json.dumps({"model": model, "data": args.path.name, **hit}) + "\n" for hit in hits)


def ask(material: list[Material], model: str, url: str) -> Iterator[dict[str, Any]]:
    """Yield the best hits of all questions, with what was said of each and whether it is right."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text(f'[model]\nname = "{model}"\n' + (f'[embedding_api]\nurl = "{url}"\n' if url else ""))
        with run_alone(["--config", str(config)], first_time(material)) as (place, _):
            for one in material:
                yield from _ask_one(place, one)


def _ask_one(place: EvaluatedDaemon, one: Material) -> Iterator[dict[str, Any]]:
    store = EvaluationStore(f"sure/{one.name}")
    with place.connect("") as client:
        wait_until_ready(client, LIMIT_S)
    fill(place, store, one, ProgressBar("storing", len(one.items)))
    with place.connect(store.namespace) as client:
        wait_until_ready(client, LIMIT_S)
        store.survey(client)
        for asked in one.questions:
            if asked.at is not None:
                place.set_time(asked.at)
            for rank, hit in enumerate(client.search(asked.question, limit=BEST, reach="exact", touch=False), 1):
                keys = store.find_keys([hit.id, *(other.id for other in hit.related if other.content)])
                if not keys or not asked.neutral.issuperset(keys):
                    right = any(not gold.isdisjoint(keys) for gold in asked.gold)
                    yield {"question": asked.id, "rank": rank, "said": hit.confidence, "right": right} | {
                        "similarity": hit.similarity
                    }


def print_table(title: str, hits: list[dict[str, Any]]) -> None:
    """Print by what was said of hits how many are right."""
    said = np.array([hit["said"] for hit in hits])
    right = np.array([hit["right"] for hit in hits], float)
    print(f"\n### {title}: {len(hits)} hits\n\n| said to be right | hits | mean of that | right |\n|---|---|---|---|")
    for low, high in itertools.pairwise(STEPS):
        chosen = (said >= low) & (said < high)
        if chosen.any():
            cells = f"{chosen.sum()} | {100 * said[chosen].mean():.0f} % | {100 * right[chosen].mean():.0f} %"
            print(f"| {100 * low:.0f} to {min(100, 100 * high):.0f} % | {cells} |", flush=True)
    print(f"\nBrier score {float(np.mean((said - right) ** 2)):.4f}")


if __name__ == "__main__":
    main()
