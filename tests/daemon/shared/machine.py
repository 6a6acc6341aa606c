"""A machine of its own: a real daemon with its configuration, and memctl beside it."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from joined import MEMCTL, wait_until_sent

from configs import NO_MODEL
from memoryd.client.protocol import Add, AddToken, List, NewMemory
from workbench import Process

ROOT = """
[shared.acme]
server = "ssh://place"
memctl = "{memctl}"
auto = "all"
"""


class Machine:
    """A daemon with its configuration, and memctl beside it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self.folder = folder
        self.process = Process(folder, NO_MODEL, {"HOME": str(folder)}).start()
        self.config = folder / "config.toml"
        names = ("MEMORYD_SOCKET", "MEMORYD_DATA_DIR", "MEMORYD_CONFIG")
        self.memctl = " ".join([*(f"{name}={self.process.environment[name]}" for name in names), MEMCTL])

    def run(self, *words: str, folder: Path | None = None, **given: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memoryd.client.programs.memctl", *words]
        given = given or {"stdin": subprocess.DEVNULL}
        environment, place = self.process.environment, folder or self.folder
        return subprocess.run(command, env=environment, cwd=place, capture_output=True, text=True, **given)

    def say(self, *words: str, folder: Path | None = None) -> str:
        done = self.run(*words, folder=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def confirm(self, answer: str, *words: str) -> str:
        """Run a command on a terminal, on which a person types an answer if it asks."""
        ours, theirs = os.openpty()
        os.write(ours, f"{answer}\n".encode())
        try:
            done = self.run(*words, stdin=theirs)
        finally:
            os.close(ours)
            os.close(theirs)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refuse(self, *words: str) -> str:
        before = self.config.read_text()
        done = self.run(*words)
        assert done.returncode, done.stdout
        assert "Traceback" not in done.stderr
        assert self.config.read_text() == before
        return done.stderr

    def check_roots(self) -> dict[str, str]:
        """Return what doctor finds of the roots."""
        findings: list[dict[str, str]] = json.loads(self.run("doctor", "--json").stdout)
        return next(finding for finding in findings if finding["name"] == "shared-roots")

    def checkout(self, name: str, remote: str) -> Path:
        folder = self.folder / "src" / name
        (folder / ".git").mkdir(parents=True, exist_ok=True)
        (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
        return folder

    def meet(self, folder: Path) -> str:
        """Have an agent's hook meet a folder."""
        code = f"from memoryd.client.projects.project import project_namespace as n; print(n({str(folder)!r}))"
        command, environment = [sys.executable, "-c", code], self.process.environment
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    def list_texts(self, namespace: str = "", **filters: Any) -> list[str]:
        with self.process.client() as client:
            page = client.call(List(namespace=namespace, reach="subtree", limit=100, **filters))
        return sorted(memory.content for memory in page)

    def add(self, content: str, namespace: str, type: str = "decision") -> Any:
        with self.process.client() as client:
            return client.call(Add(memory=NewMemory(content=content, type=type), namespace=namespace))


class Pair:
    """The place and a daemon joined to it, both real processes."""

    def __init__(self, folder: Path, wrap: str = "") -> None:
        self.place = Process(_make(folder / "there"), NO_MODEL).start()
        with self.place.client() as owner:
            owner.call(AddToken(name="acme", namespace="acme"))
        memctl = f"{wrap}MEMORYD_SOCKET={self.place.socket} MEMORYD_DATA_DIR={self.place.data} {MEMCTL}"
        self.config = f"{NO_MODEL}\n{ROOT.format(memctl=memctl)}"
        self.here = Process(_make(folder / "here"), self.config).start()

    def stop(self) -> None:
        for one in (self.here, self.place):
            if one.child and one.child.poll() is None:
                with suppress(ProcessLookupError):
                    one.child.send_signal(signal.SIGCONT)
            one.stop()

    def list_there(self) -> list[str]:
        with self.place.client() as owner:
            pages = [owner.call(List(limit=1000, offset=offset)).memories for offset in range(0, 10_000, 1000)]
            return sorted(memory.content for page in pages for memory in page)

    def wait_until_sent(self) -> None:
        with self.here.client() as client:
            wait_until_sent(client, 120)


def _make(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder
