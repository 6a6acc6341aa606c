"""Each adapter on the package of PyPI: the tests of `on_packages/`, and the lines of its page, whose output it shows.

They run in processes that have the package. It is fetched when the tests run; where it cannot be had they are skipped
with the reason.
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
TESTS = {
    "langgraph": "langgraph_store",
    "openai-agents": "openai_session",
    "anthropic": "anthropic_tool",
    "hermes-agent": "hermes_provider",
}
PAGES = [(name, name) for name in TESTS if name != "hermes-agent"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Fetch a package; return the environment of a process that has it."""
    place = tmp_path_factory.mktemp(request.param)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--target", str(place)]
    fetched = subprocess.run([*pip, request.param], capture_output=True, text=True, timeout=600)
    if fetched.returncode:
        pytest.skip(f"{request.param} cannot be had: {fetched.stderr.strip().splitlines()[-1]}")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(CHECKOUT / "src")])}


@pytest.mark.parametrize(("package", "name"), TESTS.items(), indirect=["package"], ids=TESTS, scope="module")
def test_an_adapter_keeps_what_its_framework_expects(package: dict[str, str], name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", f"tests/integrations/on_packages/{name}.py"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, env=package, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


@pytest.mark.parametrize(("package", "name"), PAGES, indirect=["package"], scope="module")
def test_what_a_page_shows_is_what_comes_out(package: dict[str, str], name: str, folder: Path, model_dir: Path) -> None:
    page = (CHECKOUT / "docs" / f"{name}.md").read_text()
    programs = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", page, re.DOTALL)
    assert len(programs) == page.count("```python\n") > 0
    process = Process(folder, environment={"MEMORYD_MODEL_DIR": str(model_dir)}).start()
    try:
        with process.client() as client:
            wait_until(lambda: client.status().model.state == "ready")
        for code, shown in programs:
            given = {**package, "MEMORYD_SOCKET": str(process.socket)}
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=given, timeout=120)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout == shown
    finally:
        process.stop()
