"""Once the model is there no process of memoryd looks up or contacts anything: daemon, jobs, hooks, memctl, mcp.

Attempts are counted, since one that fails is as bad: by strace, else by the counters of an empty network namespace.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

DAY = Path(__file__).with_name("quiet_day.py")
LIMIT_S = 300
TRACED = "connect,sendto,sendmsg,sendmmsg,open,openat"
OUTWARD = re.compile(r"AF_INET6?\b|AF_PACKET|/etc/resolv\.conf")
COUNTERS = "cat /proc/net/snmp /proc/net/snmp6"
COUNTED = ("OutRequests", "OutNoRoutes")  # of a namespace without a route: what was sent, what was to be sent


def run(home: Path, model_dir: Path, prefix: list[str]) -> str:
    """Run the day with a home and an environment of its own; return what it printed."""
    environment = {
        "HOME": str(home),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "XDG_RUNTIME_DIR": str(home / "run"),
        "MEMORYD_MODEL_DIR": str(model_dir),
        "PYTHONPATH": str(DAY.parents[1]),
    }
    command = [*prefix, sys.executable, str(DAY), str(home)]
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_strace(home: Path, model_dir: Path) -> list[str]:
    """Return the calls of the system that went outward or were to."""
    trace = home / "trace"
    run(
        home,
        model_dir,
        ["strace", "-f", "-qq", "--seccomp-bpf", "-s", "200", "-e", f"trace={TRACED}", "-o", str(trace)],
    )
    return [line for line in trace.read_text(errors="replace").splitlines() if OUTWARD.search(line)]


def by_namespace(home: Path, model_dir: Path) -> list[str]:
    """Return the counters of an empty network namespace that are not 0 after the day."""
    apart = ["unshare", "--map-root-user", "--net", "sh", "-c", f'"$@" && {COUNTERS}', "sh"]
    told = run(home, model_dir, apart).splitlines()
    names, values = (line.split() for line in told if line.startswith("Ip:"))
    counters = dict(zip(names, values, strict=True)) | dict(line.split() for line in told if line.startswith("Ip6"))
    return [f"{name} {value}" for name, value in counters.items() if name.endswith(COUNTED) and value != "0"]


def works(*command: str) -> bool:
    return shutil.which(command[0]) is not None and subprocess.run(command, capture_output=True).returncode == 0


def way() -> Callable[[Path, Path], list[str]]:
    """Return how attempts are counted here."""
    if works("strace", "-f", "-qq", "--seccomp-bpf", "-o", os.devnull, "true"):
        return by_strace
    if works("unshare", "--map-root-user", "--net", "true"):
        return by_namespace
    pytest.skip("neither strace nor a network namespace (unshare) can be had here")


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 20)
def test_in_a_whole_day_nothing_is_looked_up_or_contacted(folder: Path, model_dir: Path) -> None:
    assert way()(folder, model_dir) == []
    assert list(folder.rglob("*deviceid*")) == []
