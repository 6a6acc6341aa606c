"""The soak of `tests/benchmarks/soak.py`, scaled to a minute and without a model."""

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parent.parent / "benchmarks" / "soak.py"


@pytest.mark.slow
def test_after_many_mixed_calls_the_daemon_is_hardly_larger_than_when_it_was_warm() -> None:
    command = [sys.executable, str(SOAK), "--no-model", "--calls", "8000", "--memories", "400", "--warm", "0.4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RSS" in done.stdout.splitlines()[-1]
