"""Run every benchmark, one after the other, and print their tables: `make bench`.

python tests/benchmarks/all.py [--quick] [--json FOLDER] [NAME …]
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

# Cheap ones first. Each is a command of its own and runs alone too.
BENCHMARKS = (
    "bench_embed",
    "bench_memctl",
    "bench_hook",
    "bench_web",
    "bench_rpc",
    "bench_start",
    "bench_search",
    "bench_add",
    "bench_context",
    "bench_shared",
    "bench_interference",
    "bench_bulk",
    "bench_backfill",
    "bench_jobs",
    "bench_peers",
)
_WITHOUT_OPTIONS = {"bench_embed"}
_HERE = Path(__file__).parent


def main() -> int:
    """Run the named benchmarks, by default all; return how many failed."""
    parser = argparse.ArgumentParser(description="Run every benchmark.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, at most 10,000 memories")
    parser.add_argument("--json", type=Path, metavar="FOLDER", help="write each benchmark's figures into a folder")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, like bench_search")
    given = parser.parse_args()
    if given.json:
        given.json.mkdir(parents=True, exist_ok=True)
    names = [name for name in given.names or BENCHMARKS if (_HERE / f"{name}.py").exists()]
    return sum(not _run(name, given.quick, given.json) for name in names)


def _run(name: str, quick: bool, folder: Path | None) -> bool:
    began = time.monotonic()
    options = ["--quick"] * quick + (["--json", str(folder / f"{name}.json")] if folder else [])
    if name in _WITHOUT_OPTIONS:
        options = []
    done = subprocess.run([sys.executable, str(_HERE / f"{name}.py"), *options], check=False)
    ended = "done" if done.returncode == 0 else f"FAILED with {done.returncode}"
    print(f"{name}: {ended} after {time.monotonic() - began:.0f} s\n", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
