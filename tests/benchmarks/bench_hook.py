"""Hooks of coding agents: wall time of a whole `memctl hook EVENT` on a warm daemon, beside `memctl search` and Python.

The runs alternate, so that a busy moment of the machine falls on all of them alike. Each prompt is a new question, in a
session of its own each time, so that it is answered with a context and noted as a turn. The agent works in a checkout.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import corpus
from harness import Report, median, percentile, running

from memoryd.client.programs.hooks.hosts import EVENTS, HOSTS, PROMPT, START, TOOL

MEMORIES = 10_000
AGENT = "claude-code"


def main() -> None:
    """Run each event in turn."""
    report = Report(__doc__)
    rounds = 10 if report.quick else 30
    memctl = str(Path(sys.executable).with_name("memctl"))
    commands = {"python -c pass": [sys.executable, "-c", "pass"], "memctl search": [memctl, "search"]}
    commands |= {f"memctl hook {event}": [memctl, "hook", event, "--agent", AGENT] for event in EVENTS}
    times: dict[str, list[float]] = {name: [] for name in commands}
    with running(MEMORIES) as daemon, daemon.client() as client, TemporaryDirectory() as folder:
        checkout = _checkout(Path(folder))
        questions = iter(corpus.questions(12 * rounds + 20, MEMORIES))
        for _ in range(10):
            client.search(next(questions))
        for number in range(rounds):
            for name, command in commands.items():
                question = next(questions) if name.endswith((PROMPT, "search")) else "none"
                words = [question] if name == "memctl search" else []
                given = _given(name.rpartition(" ")[2], number, question, checkout)
                times[name].append(_run([*command, *words], given, daemon.environment))
    least = median(times["python -c pass"])
    rows = [
        {"command": name, "p50 ms": median(found), "p95 ms": percentile(found, 95), "× python": median(found) / least}
        for name, found in times.items()
    ]
    report.table(f"{rounds} alternating runs, {MEMORIES:,} memories", rows)
    report.close()


def _checkout(folder: Path) -> str:
    """Make what a hook reads of a checkout."""
    (folder / "code" / ".git").mkdir(parents=True)
    (folder / "code" / ".git" / "config").write_text('[remote "origin"]\n\turl = git@example.org:acme/code.git\n')
    return str(folder / "code")


def _given(event: str, number: int, question: str, checkout: str) -> bytes:
    """Return what the agent hands to the hook."""
    fields: dict[str, Any] = {"session_id": f"bench-{number}", "cwd": checkout, "prompt": question}
    fields["last_assistant_message"] = f"Answer {number}: the cache of the ledger was moved to port {4000 + number}."
    if event == START:
        fields["source"] = "startup"
    if event == TOOL:
        fields["tool_input"] = {"file_path": "/code/main.py"}
    named = HOSTS[AGENT].events.get(event)
    return json.dumps({"hook_event_name": named.name if named else "", **fields}).encode()


def _run(command: list[str], given: bytes, environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, input=given, env=environment, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
