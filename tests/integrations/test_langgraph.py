"""The adapter for LangGraph against the packages of PyPI: its page, and LangGraph's own tests of stores.

The packages and their source distributions, which hold the tests, are fetched when these tests run; nothing of them is
in the project. Where they cannot be had the tests are skipped with the reason.
"""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ["langgraph-checkpoint", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres"]
HELPERS = ["langchain-core", "psycopg[binary,pool]", "pytest-mock", "pytest-retry"]
# Tests of how the other stores keep things, not of what a store does.
INTERNAL = {
    "langgraph_checkpoint_sqlite": {
        "test_vector_store_initialization": "looks for its tables in SQLite",
    },
    "langgraph_checkpoint_postgres": {
        "test_abatch_uses_single_pool_checkout": "counts connections to PostgreSQL",
        "test_omit_expired_filters_read_paths": "sets times with SQL",
        "test_omit_expired_refresh_ttl_only_refreshes_live_rows": "sets times with SQL",
        "test_omit_expired_search_pagination": "sets times with SQL",
    },
}
SUITES = {
    "langgraph_checkpoint": ["tests/test_store.py"],
    "langgraph_checkpoint_sqlite": ["tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py"],
    "langgraph_checkpoint_postgres": ["tests/test_store.py", "tests/test_async_store.py"],
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetch the packages and unpack their source distributions."""
    where = tmp_path_factory.mktemp("langgraph")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    only_source = [word for name in PACKAGES for word in ("--no-binary", name)]
    for words in (
        ["install", "--target", str(where / "packages"), *PACKAGES, *HELPERS],
        ["download", "--no-deps", *only_source, "--dest", str(where / "source"), *PACKAGES],
    ):
        done = subprocess.run([*pip, *words], capture_output=True, text=True, timeout=900)
        if done.returncode:
            pytest.skip(f"the packages cannot be had: {done.stderr.strip().splitlines()[-1]}")
    for archive in (where / "source").glob("*.tar.gz"):
        with tarfile.open(archive) as opened:
            opened.extractall(where / "source", filter="data")
    return where


def environment(packages: Path, *further: Path) -> dict[str, str]:
    path = os.pathsep.join(map(str, (*further, packages / "packages", CHECKOUT / "src")))
    return {**os.environ, "PYTHONPATH": path}


@pytest.mark.parametrize("name", SUITES)
def test_langgraphs_own_tests_of_stores_pass(packages: Path, name: str) -> None:
    [source] = (path for path in (packages / "source").glob(f"{name}-*") if path.is_dir())
    tests = CHECKOUT / "tests"
    command = [sys.executable, "-m", "pytest", "-p", "langgraph_plugin", "-q", "-o", "addopts=", "--tb=line", "-rf"]
    done = subprocess.run(
        [*command, "-W", "ignore", *SUITES[name]],
        cwd=source,
        capture_output=True,
        text=True,
        env=environment(packages, tests / "integrations", tests),
        timeout=1200,
    )
    failed = set(re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE))
    assert failed == set(INTERNAL.get(name, ())), done.stdout[-4000:]
    assert re.search(r"\d+ passed", done.stdout), done.stdout[-4000:]
