"""`make demo-team`: it shows what it says, over ssh or without, and leaves nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).with_name("demo.py")


@pytest.mark.slow
@pytest.mark.parametrize("has_ssh", [True, False])
def test_the_demo_of_a_team_ends_well_and_leaves_nothing(folder: Path, has_ssh: bool) -> None:
    (folder / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    if not has_ssh:
        environment["PATH"] = str(folder / "bin")
        (folder / "bin").mkdir()
        for name in ("cat", "rm", "sleep"):
            (folder / "bin" / name).symlink_to(str(shutil.which(name)))
    done = subprocess.run([sys.executable, DEMO], env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert ("NOT ssh" in done.stdout) == (not has_ssh)
    assert "home has it, once: yes" in done.stdout
    assert list((folder / "tmp").iterdir()) == []
