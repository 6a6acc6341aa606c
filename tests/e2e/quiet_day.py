"""A day of memoryd in a folder: every kind of process that it has, and all background jobs.

python quiet_day.py FOLDER: its home; the model lies where MEMORYD_MODEL_DIR says. Fails when a command does.
"""

import json
import subprocess
import sys
from pathlib import Path

from memoryd.client import Client
from memoryd.client.programs.hooks.hosts import EVENTS
from memoryd.daemon.jobs.table import list_jobs
from waiting import wait_until

MEMCTL = [sys.executable, "-P", "-m", "memoryd.client.programs.memctl"]
EVERY_S = "\n".join(f"{name} = 1.0" for name in list_jobs())
CONFIG = f"[jobs.every_s]\n{EVERY_S}\n"
NOTES = {"MEMORY.md": "# Memory\n\nThe cache is Valkey.\n", "memory/2026-01-05.md": "- The wiki moved to port 8081.\n"}
# The doctor has advice to give; the job that dreams each second may be first to write, once it is allowed to.
MAY_FAIL = ("doctor", "dream notes --allow")
ROUNDS = 12  # of every job by itself: by then whatever reports now and then has had its chance
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "day", "version": "1"}}
ASKED = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "memory_search", "arguments": {"query": "cache"}},
    },
]
MORNING = """
up --wait
status
model list
config show
add We-use-Valkey,-not-Redis,-as-the-session-cache --namespace acme
add The-ledger-closes-on-the-last-Friday --type rule --namespace acme
workspace add notes
remember The-archive-is-in-room-12 --workspace notes
search which-cache-do-we-use
context move-the-session-cache
explain ledger
"""
EVENING = """
consolidate
dream notes --allow
graph rebuild
graph nodes
backup copy.sqlite
verify
repair
up --restart
search ledger
stats
metrics
doctor
project list
project rename notes acme/notes
"""


def memctl(*words: str, given: str = "", codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run([*MEMCTL, *words], input=given, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in codes, f"memctl {' '.join(words)}: {done.stderr}"
    return done.stdout


def run_lines(lines: str) -> None:
    for line in lines.strip().splitlines():
        memctl(*line.split(), codes=(0, 1) if line in MAY_FAIL else (0,))


def all_events(folder: Path) -> None:
    """Have a coding agent's hooks run."""
    common = {"session_id": "day", "cwd": str(folder / "notes"), "prompt": "Which cache do we use for sessions?"}
    common["last_assistant_message"] = "Valkey is the session cache; the ledger closes on the last Friday."
    for event in EVENTS:
        memctl("hook", event, "--agent", "claude-code", given=json.dumps(common))


def all_jobs() -> None:
    """Wait until the scheduler has run every job a few times."""
    with Client(autostart=False) as client:

        def ran(name: str) -> int:
            return sum(run.by == "scheduler" for run in client.jobs(name, limit=500).runs)

        wait_until(lambda: all(ran(name) >= ROUNDS for name in list_jobs()), 120)


def main() -> None:
    folder = Path(sys.argv[1])
    for name, text in NOTES.items():
        (folder / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "notes" / name).write_text(text)
    (folder / ".config/memoryd").mkdir(parents=True)
    (folder / ".config/memoryd/config.toml").write_text(CONFIG)
    try:
        run_lines(MORNING)
        all_events(folder)
        memctl("mcp", given="".join(f"{json.dumps(line)}\n" for line in ASKED))
        all_jobs()
        (folder / "all.jsonl").write_text(memctl("export"))
        memctl("import", "all.jsonl")
        run_lines(EVENING)
    finally:
        memctl("down")


if __name__ == "__main__":
    main()
