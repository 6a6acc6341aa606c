"""Each adapter's page: its lines run as they are, against the package of PyPI, and print what the page shows.

The package is fetched when the test runs; where it cannot be had the test is skipped with the reason.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import wait_until
from workbench import Process

CHECKOUT = Path(__file__).parents[2]
PACKAGES = {"langgraph": "langgraph", "openai-agents": "openai-agents", "anthropic": "anthropic"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", PACKAGES)
def test_what_a_page_shows_is_what_comes_out(name: str, folder: Path, model_dir: Path, tmp_path: Path) -> None:
    page = (CHECKOUT / "docs" / f"{name}.md").read_text()
    programs = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", page, re.DOTALL)
    assert len(programs) == page.count("```python\n") > 0
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--target", str(tmp_path)]
    fetched = subprocess.run([*pip, PACKAGES[name]], capture_output=True, text=True, timeout=600)
    if fetched.returncode:
        pytest.skip(f"{PACKAGES[name]} cannot be had: {fetched.stderr.strip().splitlines()[-1]}")
    process = Process(folder, environment={"MEMORYD_MODEL_DIR": str(model_dir)}).start()
    try:
        with process.client() as client:
            wait_until(lambda: client.status().model.state == "ready")
        path = os.pathsep.join([str(tmp_path), str(CHECKOUT / "src")])
        given = {**os.environ, "PYTHONPATH": path, "MEMORYD_SOCKET": str(process.socket)}
        for code, shown in programs:
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=given, timeout=120)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout == shown
    finally:
        process.stop()
