"""Many processes at once on the real daemon: every reply is right and no acknowledged write is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

from workbench import Process

WORKER = Path(__file__).parent / "mixed_calls.py"
PROCESSES, CALLS = 16, 500


@pytest.mark.slow
def test_sixteen_processes_with_mixed_calls_each_find_exactly_what_they_did(process: "Process") -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), f"team/agent{number}", str(number), str(CALLS)],
            env=process.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    spoken = [worker.communicate(timeout=110)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * PROCESSES, "\n".join(spoken)
    kept = {f"team/agent{number}": int(words.split()[-1]) for number, words in enumerate(spoken)}
    with process.client() as client:
        stats = client.stats()
        assert {name: count for name, count in stats.by_namespace.items() if count} == kept
        assert sum(method.errors for method in stats.methods.values()) == 0
        assert sum(method.calls for method in stats.methods.values()) >= PROCESSES * CALLS
    process.kill()
    with process.start().client() as client:
        assert {name: count for name, count in client.stats().by_namespace.items() if count} == kept
