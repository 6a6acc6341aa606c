"""`python -m memoryd.models pull NAME [--dir DIR]`: install a model in a process of its own.

The daemon runs this to fetch a missing model in the background. Progress goes to stderr: a bar on a terminal, else one
short JSON object per line. Exit code 1 with one sentence on stderr when it fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from memoryd.models.bench import measure
from memoryd.models.errors import ModelError
from memoryd.models.folder import default_models_dir
from memoryd.models.install import pull

BAR_WIDTH = 30
REPORT_INTERVAL_S = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "pull":
            print(pull(options.name, options.dir, Reporter(), options.force))
        else:
            sys.stdout.buffer.write(msgspec.json.encode(measure(options.name, options.dir)) + b"\n")
    except ModelError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


class Reporter:
    """Shows progress on stderr, a few times a second at most."""

    def __init__(self) -> None:
        """Find out whether a person is watching."""
        self._terminal = sys.stderr.isatty()
        self._stage, self._next = "", 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Take one report; skip it when the last of the same stage was just shown."""
        now = time.monotonic()
        if stage == self._stage and now < self._next and done < total:
            return
        if self._terminal:
            self._draw(stage, done, total)
        else:
            print(json.dumps({"stage": stage, "done": done, "total": total}), file=sys.stderr, flush=True)
        self._stage, self._next = stage, now + REPORT_INTERVAL_S

    def _draw(self, stage: str, done: int, total: int) -> None:
        start = "\n" if self._stage and stage != self._stage else "\r"
        filled = BAR_WIDTH * min(done, total) // max(total, 1)
        end = "\n" if stage == "ready" else ""
        print(f"{start}{stage:9}[{'#' * filled:{BAR_WIDTH}}]", end=end, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memoryd.models", description="Install and measure models.")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("pull", "bench"):
        sub = commands.add_parser(command)
        sub.add_argument("name")
        sub.add_argument("--dir", type=Path, default=default_models_dir())
        if command == "pull":
            sub.add_argument("--force", action="store_true", help="fetch again even when installed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
