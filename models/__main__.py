"""`python -m memoryd.models list|pull|import|path|embed`: list, install and run models in a process of its own.

The daemon runs `pull` to fetch a missing model in the background; memctl runs all commands. They print one JSON
document on stdout (`embed`: the vectors of the texts that stdin lists); `path`, and `pull` and `import` without --json,
print a path instead. Progress is written to stderr: a bar on a terminal, else one short JSON object per line. If a
command fails, it prints one sentence on stderr and exits with 1.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from memoryd.models.catalog import CATALOG, DEFAULT, ModelSpec
from memoryd.models.embedder import load
from memoryd.models.errors import ModelError
from memoryd.models.folder import Manifest, default_models_dir, installed
from memoryd.models.install import import_directory, pull

BAR_WIDTH = 30
REPORT_INTERVAL_S = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _make_parser().parse_args(arguments)
    try:
        result = COMMANDS[options.command](options)
    except ModelError as error:
        print(f"memctl: {error}" if sys.stderr.isatty() else error, file=sys.stderr)  # a user sees it there
        return 1
    if isinstance(result, Path):
        result = msgspec.json.encode({"name": result.name, "path": str(result)}).decode() if options.json else result
        print(result)
    else:
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    return 0


def _list_models(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the models of the catalog and those installed from elsewhere.

    An empty list of languages means about a hundred of them, null that they are unknown.
    """
    there = installed(options.dir)
    known = [
        _describe(spec, spec.name in there, spec.size_mb, spec.licence, spec.description) for spec in CATALOG.values()
    ]
    for name, manifest in there.items():
        if name not in CATALOG:
            size_mb = round(sum(record.size_bytes for record in manifest.files.values()) / 1e6)
            known.append(_describe(manifest, True, size_mb, "", f"Imported: {manifest.source}"))
    return known


def _describe(
    model: ModelSpec | Manifest, is_installed: bool, size_mb: int, licence: str, description: str
) -> dict[str, Any]:
    return {
        "name": model.name,
        "installed": is_installed,
        "default": isinstance(model, ModelSpec) and model.name == DEFAULT,
        "dimensions": model.dimensions,
        "max_tokens": model.max_tokens,
        "languages": model.languages if isinstance(model, ModelSpec) else None,
        "size_mb": size_mb,
        "licence": licence,
        "description": description,
    }


def _embed(options: argparse.Namespace) -> list[list[float]]:
    """Return the vectors of stored texts."""
    texts = msgspec.json.decode(sys.stdin.buffer.read(), type=list[str])
    embedder = load(options.name, options.dir)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(lambda text: embedder.embed_texts([text])[0].tolist(), texts))


COMMANDS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "list": _list_models,
    "pull": lambda options: pull(options.name, options.dir, Reporter(), options.force),
    "import": lambda options: import_directory(options.source, options.dir, options.name, Reporter()),
    "path": lambda options: options.dir,
    "embed": _embed,
}


class Reporter:
    """Shows progress on stderr, a few times a second at most."""

    def __init__(self) -> None:
        """Check whether stderr is a terminal."""
        self._terminal = sys.stderr.isatty()
        self._stage, self._next = "", 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show one report; skip it if another one of the same stage was just shown."""
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


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memoryd.models", description="Install models.")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(command)
        sub.add_argument("--dir", type=Path, default=default_models_dir())
        sub.add_argument("--json", action="store_true", help="print one JSON document on stdout")
        if command == "pull":
            sub.add_argument("name", nargs="?", default=DEFAULT)
            sub.add_argument("--force", action="store_true", help="fetch again even when installed")
        if command == "embed":
            sub.add_argument("name")
        if command == "import":
            sub.add_argument("source", type=Path)
            sub.add_argument("--name")
    return parser


if __name__ == "__main__":
    sys.exit(main())
