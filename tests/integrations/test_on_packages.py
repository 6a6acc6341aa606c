"""Each adapter on the package of PyPI: the tests of `on_packages/`, which runs them in a process that has the package.

The package is fetched when the test runs; where it cannot be had the test is skipped with the reason.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TESTS = {
    "langgraph_store": "langgraph-checkpoint",
    "openai_session": "openai-agents",
    "anthropic_tool": "anthropic",
    "hermes_provider": "hermes-agent",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", TESTS)
def test_an_adapter_keeps_what_its_framework_expects(name: str, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--target", str(tmp_path)]
    fetched = subprocess.run([*pip, TESTS[name]], capture_output=True, text=True, timeout=600)
    if fetched.returncode:
        pytest.skip(f"{TESTS[name]} cannot be had: {fetched.stderr.strip().splitlines()[-1]}")
    path = os.pathsep.join([str(tmp_path), str(CHECKOUT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"tests/integrations/on_packages/{name}.py"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
