"""Completion in real shells, typed at a pseudo-terminal."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_daemon import FakeDaemon
from figures import counted

from memoryd.client.protocol import GetStats

LIMIT_S = 30.0
MARK = "READY>"
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOAD = {
    "bash": f"bind 'set bell-style none'; source <(memctl completion bash); PS1='{MARK}'",
    "zsh": f"autoload -U compinit; compinit -u -D; source <(memctl completion zsh); PS1='{MARK}'",
    "fish": f"memctl completion fish | source; function fish_prompt; echo -n '{MARK}'; end",
}
CONTROL = re.compile(r"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b[()=>][A-Z0-9]?|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|[\r\x07\x08]")


class Shell:
    """A shell at a terminal."""

    def __init__(self, name: str, folder: Path) -> None:
        self._person, terminal = pty.openpty()
        environment = {
            **os.environ,
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_DATA_HOME": str(folder / "share"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TERM": "dumb",
            "COLUMNS": "200",
        }
        self._child = subprocess.Popen(
            ["setsid", "--ctty", *START[name]],  # fish runs at no terminal but its own
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment,
            cwd=folder,
        )
        os.close(terminal)
        self.type(f"{LOAD[name]}\n")
        self._until(lambda text: text.rstrip().endswith(MARK) and len(text.split(MARK)) > 2)

    def type(self, text: str) -> None:
        os.write(self._person, text.encode())

    def completed(self, typed: str, expected: str) -> str:
        """Type words and TAB; return what the terminal shows once `expected` is on the line, and clear the line."""
        self.type(f"{typed}\t")
        shown = self._until(lambda text: expected in text)
        self.type("\x15")
        return shown

    def _until(self, fits: Callable[[str], bool]) -> str:
        shown, give_up_at = "", time.monotonic() + LIMIT_S
        while time.monotonic() < give_up_at:
            if select.select([self._person], [], [], 0.1)[0]:
                shown = CONTROL.sub("", shown + os.read(self._person, 65536).decode("utf-8", "replace"))
            if fits(shown):
                return shown
        raise AssertionError(f"the shell showed only: {shown!r}")

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._person)


@pytest.fixture(params=sorted(START))
def shell(request: pytest.FixtureRequest, folder: Path, fake: FakeDaemon) -> Iterator[Shell]:
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed; its package would make this run")
    fake.replies[GetStats] = counted(by_namespace={"acme/api": 2})
    (folder / "notes-of-today.md").touch()
    (folder / "notes-folder").mkdir()
    running = Shell(request.param, folder)
    yield running
    running.close()


def test_a_shell_completes_memctl(shell: Shell) -> None:
    shell.completed("memctl doc", "doctor")
    shell.completed("memctl workspace sta", "workspace status")
    shell.completed("memctl search --rea", "--reach")
    shell.completed("memctl search --reach vi", "--reach visible")
    shell.completed("memctl search --reach=vi", "--reach=visible")
    shell.completed("memctl --namespace ac", "acme/api")
    shell.completed("memctl import notes-of", "notes-of-today.md")
    shell.completed("memctl export --markdown notes", "notes-folder/")
