"""On a system that is not Linux: one sentence, no traceback. A child process of this Linux takes itself for another.

It shows what our own code does there, not that Python, msgspec or a socket work as here.
"""

import subprocess
import sys

import pytest

from each import each

# What is imported before is the standard library's way on Linux; after it our modules see another system.
PRETEND = """
import sys, asyncio, subprocess, tempfile, pathlib, socket, select, shutil, argparse, typing, msgspec, os, time, signal
import logging.handlers, concurrent.futures, webbrowser, importlib.util, faulthandler
system = sys.argv.pop(1)
lacks = {
    "darwin": [(socket, "SO_PEERCRED"), (select, "POLLRDHUP"), (time, "CLOCK_BOOTTIME"), (os, "sched_getaffinity")],
    "win32": [
        (socket, "SO_PEERCRED"), (socket, "AF_UNIX"), (select, "poll"), (select, "POLLRDHUP"), (time, "CLOCK_BOOTTIME"),
        (time, "clock_gettime"), (os, "sched_getaffinity"), (os, "getuid"), (os, "geteuid"), (os, "O_NOFOLLOW"),
        (os, "O_DIRECTORY"), (os, "O_CLOEXEC"), (os, "O_NONBLOCK"), (os, "fork"), (os, "sysconf"), (signal, "SIGHUP"),
    ],
}
for module, name in lacks[system]:
    if hasattr(module, name):
        delattr(module, name)
if system == "win32":
    for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"):
        sys.modules[name] = None
sys.platform = system
"""
RUN = PRETEND + "from memoryd.client.programs.memctl import main; sys.argv[0] = 'memctl'; main()"
DAEMON = PRETEND + "from memoryd.daemon.__main__ import main; sys.exit(main([]))"
CLIENT = (
    PRETEND
    + """
import memoryd.client
from memoryd.client import AsyncClient, Client, Unavailable
for kind in (Client, AsyncClient):
    try:
        kind("acme")
    except Unavailable as error:
        print(error.message)
"""
)
SYSTEMS = {"darwin": "macOS", "win32": "Windows"}


def run(code: str, system: str, *words: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([sys.executable, "-c", code, system, *words], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.slow
@each("system", SYSTEMS)
def test_help_and_version_are_printed(system: str) -> None:
    for words in (["--help"], [], ["--version"]):
        done = run(RUN, system, *words)
        assert (done.returncode, done.stderr) == (0, "")
        assert "mem" in done.stdout


@each("words", [["search", "x"], ["hook", "claude-code", "Stop"], ["mcp"]])
@each("system", SYSTEMS)
def test_a_command_says_in_one_sentence_what_works(system: str, words: list[str]) -> None:
    done = run(RUN, system, *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"memctl: memoryd runs on Linux, not on {SYSTEMS[system]}; use it in ")
    assert done.stderr.count("\n") == 1
    assert "memctl mcp --http" in done.stderr
    assert ("WSL 2" in done.stderr) == (system == "win32")


@pytest.mark.slow
@each("system", SYSTEMS)
def test_the_client_can_be_imported_and_says_the_same_when_it_is_made(system: str) -> None:
    done = run(CLIENT, system)
    assert done.returncode == 0
    assert [line[:24] for line in done.stdout.splitlines()] == ["memoryd runs on Linux, n"] * 2


@each("system", SYSTEMS)
def test_a_daemon_that_is_started_there_says_it_and_ends(system: str) -> None:
    done = run(DAEMON, system)
    assert done.returncode == 1
    assert f"memoryd runs on Linux, not on {SYSTEMS[system]}" in done.stderr
