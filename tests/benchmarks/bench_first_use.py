"""From `pip install` to the first recall in a coding agent: each step that a new user takes, and its seconds.

Everything is new: the virtual environment, the home folder, the model. The agent's part is played by the payloads that
Claude Code hands to its hooks: a session in which something is decided, and a question about it in the next one. It
needs the package index, and the model from wherever the daemon fetches it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import Report

CHECKOUT = Path(__file__).parents[2]
DECIDED = "We decided to cache sessions in Valkey, not in Redis. Please update the compose file."
ASKED = "which cache do we use for sessions?"
LIMIT_S = 120.0


def main() -> None:
    """Take the steps one after the other."""
    report = Report(__doc__)
    with TemporaryDirectory(prefix="first-") as folder:
        user = User(Path(folder))
        steps = {
            "pip install 'memoryd[daemon,mcp,web]'": user.install,
            "memctl hooks install claude-code": lambda: user.memctl("hooks", "install", "claude-code"),
            "first session: it starts the daemon, a decision is said": user.decide,
            "next session: the prompt comes with that decision": user.ask,
            "found by meaning too: the model is there": user.wait_for_model,
        }
        try:
            rows = [{"step": name, "seconds": measure(step)} for name, step in steps.items()]
        finally:
            user.memctl("down")
    report.table("from pip install to the first recall", [*rows, {"step": "in all", "seconds": total(rows)}])
    report.close()


def measure(step: Callable[[], object]) -> float:
    """Return how many seconds a step takes."""
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def total(rows: list[dict[str, object]]) -> float:
    """Return the seconds of all steps."""
    return sum(float(str(row["seconds"])) for row in rows)


class User:
    """A new user, with a home folder and a checkout of a project."""

    def __init__(self, folder: Path) -> None:
        self.venv, self.project, home = folder / "venv", folder / "project", folder / "home"
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith("MEMORYD_")}
        self.environment |= {"HOME": str(home), "XDG_RUNTIME_DIR": str(folder / "run"), "PWD": str(self.project)}
        for name in ("CONFIG", "DATA", "CACHE", "STATE"):
            self.environment[f"XDG_{name}_HOME"] = str(home / name.lower())
        for path in (self.project / ".git", home, folder / "run"):
            path.mkdir(parents=True, mode=0o700)

    def install(self) -> None:
        """Install a wheel of this checkout, with all that the daemon needs."""
        subprocess.run([sys.executable, "-m", "venv", self.venv], check=True)
        pip = [self.venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"memoryd[daemon,mcp,web] @ {CHECKOUT.as_uri()}"], check=True, capture_output=True)

    def memctl(self, *words: str, given: str = "") -> str:
        """Run memctl in the project and return what it prints."""
        command = [self.venv / "bin" / "memctl", *words]
        options = {"cwd": self.project, "env": self.environment, "input": given, "text": True}
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options).stdout  # type: ignore[call-overload, no-any-return]

    def hook(self, event: str, session: str, **fields: str) -> str:
        """Hand an event to a hook as Claude Code does; return what it adds to the session."""
        given = {"session_id": session, "cwd": str(self.project), **fields}
        return self.memctl("hook", event, "--agent", "claude-code", given=json.dumps(given))

    def decide(self) -> None:
        """Have a session in which something is decided."""
        self.hook("session-start", "one", source="startup")
        self.hook("prompt", "one", prompt=DECIDED)
        self.hook("session-end", "one", reason="exit")

    def ask(self) -> None:
        """Ask about it in another session until the hook answers with it."""
        self.hook("session-start", "two", source="startup")
        self._poll(lambda: "Valkey" in self.hook("prompt", "two", prompt=ASKED))

    def wait_for_model(self) -> None:
        """Wait until searches are by meaning."""
        self._poll(lambda: json.loads(self.memctl("status", "--json"))["model"]["state"] == "ready")

    def _poll(self, condition: Callable[[], bool]) -> None:
        give_up_at = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > give_up_at:
                sys.exit("The first recall did not come.")
            time.sleep(0.2)


if __name__ == "__main__":
    main()
