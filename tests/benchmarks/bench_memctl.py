"""The command line: wall time of a whole `memctl search` on a warm daemon, beside what Python itself costs.

The runs alternate, so that a busy moment of the machine falls on all of them alike. Each search asks a new question.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import corpus
from harness import Report, median, percentile, running

MEMORIES = 10_000


def main() -> None:
    """Run each command in turn."""
    report = Report(__doc__)
    rounds = 10 if report.quick else 30
    memctl = [str(Path(sys.executable).with_name("memctl"))]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        'python -c "import msgspec, argparse"': [sys.executable, "-c", "import msgspec, argparse"],
        "memctl search": [*memctl, "search"],
        "memctl search --json": [*memctl, "--json", "search"],
        "memctl status": [*memctl, "status"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    in_daemon: list[float] = []
    with running(MEMORIES) as daemon, daemon.client() as client:
        questions = iter(corpus.questions(3 * rounds + 20, MEMORIES))
        for _ in range(10):
            client.search(next(questions))
        for _ in range(rounds):
            for name, command in commands.items():
                asked = [next(questions)] if "search" in name else []
                times[name].append(_run([*command, *asked], daemon.environment))
            in_daemon.append(client.search(next(questions)).took_ms)
    least = median(times["python -c pass"])
    rows = [
        {"command": name, "p50 ms": median(found), "p95 ms": percentile(found, 95), "× python": median(found) / least}
        for name, found in times.items()
    ]
    report.table(f"{rounds} alternating runs, {MEMORIES:,} memories", rows)
    report.note(f"Of a search, {median(in_daemon):.1f} ms are the daemon's.")
    report.close()


def _run(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
