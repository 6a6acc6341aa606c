"""A coding agent as far as hooks see it: it runs `memctl hook` with its JSON on stdin, and takes the answer."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.programs.hooks.hosts import HOSTS

OURS = ("HOME", "MEMORYD_NAMESPACE", "MEMORYD_TOKEN", "XDG_DATA_HOME")


class Answered(NamedTuple):
    """What a hook left behind."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def said(self) -> str:
        """What goes into the agent's context."""
        answer = json.loads(self.out or "{}")
        return str(
            answer.get("additional_context")
            or answer.get("additionalContext")
            or answer.get("hookSpecificOutput", {}).get("additionalContext", "")
        )


class Agent:
    """One session of an agent in a project."""

    def __init__(self, name: str, folder: Path, project: Path, session: str = "5d0e8f0e-session") -> None:
        self.name, self.project, self.session = name, project, session
        kept = {key: value for key, value in os.environ.items() if key not in OURS}
        (folder / "data").mkdir(mode=0o700, exist_ok=True)  # as an installation of hooks does
        self.environment = {
            **kept,
            "HOME": str(folder),
            "MEMORYD_SOCKET": str(folder / "s"),
            "MEMORYD_DATA_DIR": str(folder / "data"),
            "MEMORYD_CONFIG": str(folder / "config.toml"),
        }

    def given(self, event: str, **fields: Any) -> dict[str, Any]:
        """Return what the agent hands to a hook."""
        common: dict[str, Any] = {"hook_event_name": HOSTS[self.name].events[event].name}
        if self.name == "cursor":
            roots = [str(self.project)]
            common |= {"conversation_id": self.session, "generation_id": "g1", "workspace_roots": roots}
        else:
            common |= {"session_id": self.session, "cwd": str(self.project), "transcript_path": "/none.jsonl"}
        return {**common, **fields}

    def hook(self, event: str, **fields: Any) -> Answered:
        """Run a hook as the installed command does."""
        return self.run(event, json.dumps(self.given(event, **fields)).encode())

    def run(self, event: str, data: bytes) -> Answered:
        """Run a hook on these bytes."""
        began = time.monotonic()
        done = subprocess.run(self.command(event), input=data, capture_output=True, env=self.environment, timeout=60)
        return Answered(done.returncode, done.stdout.decode(), done.stderr.decode(), time.monotonic() - began)

    def command(self, event: str) -> list[str]:
        """Return the words of the installed command."""
        return [sys.executable, "-P", "-m", "memoryd.client.programs.memctl", "hook", event, "--agent", self.name]
