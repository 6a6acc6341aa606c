"""Measure a set with its memories in a shared root, beside the same set with all of them on one machine.

python tests/quality/placed.py PATH [--way WAY] [--limit N]

All that is added, or every second memory of it, is saved into a root at each kind of place, through the daemon that is
then asked. What is observed stays with that daemon.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count, product
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg
from evaluate import evaluate
from msgspec.structs import replace
from printing import format_table, percent
from scoring import Score, summarise
from sets import WAYS, read_material, ways_of
from temporary import DEFAULTS, EvaluatedDaemon, run_daemon

from memoryd.client import Client, Unavailable
from memoryd.client.protocol import Add, AddToken, NewMemory
from memoryd.client.transport.postgres import schema
from places import make_folder
from postgres_server import PostgresServer
from sshd import Sshd
from waiting import wait_until

ROOT = "bench_eval"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("path", type=Path, metavar="PATH", help="as of evaluate.py")
    parser.add_argument("--way", choices=WAYS, help="how it is stored (the first of the set's)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    args = parser.parse_args()
    materials = read_material(args.path, args.way or ways_of(args.path)[0], args.limit)
    began_at = min((at for material in materials if (at := material.began_at) is not None), default=None)
    with run_daemon(began_at=began_at) as (alone, _):
        here = evaluate(alone._replace(root=ROOT), materials)
    found = {"HERE": compare(here, here)}
    for kind, every in product(("ssh", "postgres"), (1, 2)):
        with run_with_root(kind, every, began_at) as place:
            found[f"{kind} 1/{every}".upper()] = compare(here, evaluate(place, materials))
    print(format_table(["", *found], [[name, *(one[name] for one in found.values())] for name in found["HERE"]]))


@contextmanager
def run_with_root(kind: str, every: int, began_at: float | None) -> Iterator[EvaluatedDaemon]:
    """Run a daemon that saves every so many memories into a root at a place of a kind."""
    numbers = count()

    def add(client: Client, namespace: str, memories: Sequence[NewMemory], dedup: bool) -> list[str]:
        ids = []
        for memory in memories:
            if next(numbers) % every:
                ids.append(client.add_many([memory], dedup=dedup).results[0].id)
                continue
            added = client.call(Add(memory=replace(memory, id=None), namespace=namespace, dedup=dedup))
            if added.waiting or not added.shared:
                raise Unavailable(f"The root does not take {memory.content!r}.")
            ids.append(added.id)
        return ids

    with ExitStack() as stack:
        folder = make_folder()
        stack.callback(shutil.rmtree, folder)
        daemons = []
        if kind == "ssh":
            sshd = Sshd(folder / "sshd")
            stack.callback(sshd.stop)
            os.environ["PATH"] = f"{sshd.programs}:{os.environ['PATH']}"
            there, process = stack.enter_context(run_daemon(began_at=began_at))
            daemons.append(there)
            with there.connect("") as owner:
                owner.call(AddToken(name=ROOT, namespace=ROOT))
            memctl = f"MEMORYD_SOCKET={process.socket} {sys.executable} -m memoryd.client.programs.memctl"
            section = f'server = "ssh://place"\nmemctl = "{memctl}"'
        else:
            database = PostgresServer(folder / "pg")
            stack.callback(database.stop)
            database.make_database()
            section = f'server = "{database.url()}"'
        here, _ = stack.enter_context(run_daemon(f'{DEFAULTS}[shared.{ROOT}]\nauto = "all"\n{section}\n', began_at))
        daemons.append(here)
        if kind == "postgres":
            with here.connect("") as client, psycopg.connect(database.url()) as connection:
                model = client.status().model
                schema.create(connection, ROOT, model.name, model.dimensions, [])
        with here.connect(ROOT) as client:
            wait_until(lambda: not client.search("anything").degraded)
        yield here._replace(root=ROOT, add=add, set_time=lambda at: [one.set_time(at) for one in daemons])


def compare(here: Sequence[Score], there: Sequence[Score]) -> dict[str, str]:
    """Return figures of what is in a root, by name."""
    total = summarise(score for score in there if score.gold)
    pairs = [(one.confidence, other.confidence) for one, other in zip(here, there, strict=True)]
    apart = [abs(one - other) for one, other in pairs if one is not None and other is not None]
    silent, was = ({one.question for one in scores if not one.contexts[-1].tokens} for scores in (there, here))
    return {
        **{f"{name}, %": percent(getattr(total, name)) for name in ("hit_5", "recall_10", "ndcg_10")},
        "confidence of the first hit, mean difference": f"{fmean(apart):.3f}",
        "… at most 0.05, % of questions": percent(fmean(one <= 0.05 for one in apart)),
        "prompts that are told nothing": f"{len(silent)}",
        "… told something with a root alone": f"{len(was - silent)}",
    }


if __name__ == "__main__":
    main()
