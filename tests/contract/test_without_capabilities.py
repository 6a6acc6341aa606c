"""Each capability is deleted in a copy: the rest works, and what belonged to it says in a sentence that it is gone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from absent import ABSENT
from imports import CHECKOUT, OURS
from memoryd.client.capabilities import CAPABILITIES, list_modules
from places import make_folder

_LIMIT_S = 3600
pytestmark = [pytest.mark.skipif(bool(ABSENT), reason="one is deleted already"), pytest.mark.timeout(_LIMIT_S)]

# What of the tests is run without a capability: the contract, and what is at the heart of the kernel.
_HEART = [
    *(f"tests/contract/test_{name}.py" for name in ("conventions", "structure", "golden", "protocol_document")),
    "tests/daemon/core",
    "tests/daemon/memories/test_adding.py",
]
_PAGES = ["README", "ARCHITECTURE", "PROTOCOL", "CHANGELOG", "CONTRIBUTING", "PERFORMANCE", "RELIABILITY", "SECURITY"]
_FILES = ["pyproject.toml", "Makefile", "docs", "tests", *(f"{name}.md" for name in _PAGES)]


class Copy:
    """A copy of this checkout without a capability."""

    def __init__(self, folder: Path, capability: str) -> None:
        self.capability, self.folder, self.home = capability, folder / "checkout", folder / "home"
        skipped = shutil.ignore_patterns(".*")
        for name in (*OURS, *_FILES):
            there = CHECKOUT / name
            copy = shutil.copytree if there.is_dir() else shutil.copy
            copy(there, self.folder / name, **({"ignore": skipped} if there.is_dir() else {}))
        package = self.folder / "src" / "memoryd"
        package.mkdir(parents=True)
        for name in OURS:
            (package / name).symlink_to(self.folder / name)
        shutil.copy(CHECKOUT / "src" / "memoryd" / "__init__.py", package)
        for side in ("daemon", "client", "tests/daemon", "tests/client"):
            shutil.rmtree(self.folder / side / capability, ignore_errors=True)
        self.home.mkdir()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run Python on the copy."""
        own = {"PYTHONPATH": str(self.folder / "src"), "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home)}
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={**{name: value for name, value in os.environ.items() if not name.startswith("XDG_")}, **own},
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
        )

    def memctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run memctl of the copy."""
        return self.run("-m", "memoryd.client.memctl", *words)

    def write(self, program: str, file: str) -> None:
        """Write a generated file anew."""
        done = self.run(f"tests/contract/{program}")
        assert done.returncode == 0, done.stderr
        (self.folder / file).write_text(done.stdout)

    def test(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the default tests of some folders, after what is written by `make protocol` was written anew."""
        self.write("protocol_document.py", "PROTOCOL.md")
        self.write("golden.py", "tests/contract/golden.jsonl")
        self.write("client_methods.py", "client/methods.py")
        self.write("readme_document.py", "README.md")
        assert self.run("-m", "ruff", "format", "client/methods.py").returncode == 0
        self.write("settings_document.py", "docs/settings.md")
        self.write("python_document.py", "docs/python.md")
        self.write("mcp_document.py", "docs/mcp.md")
        return self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow and not stress", *words)


@pytest.fixture(params=sorted(CAPABILITIES))
def copy(request: pytest.FixtureRequest) -> Iterator[Copy]:
    folder = make_folder()
    yield Copy(folder, request.param)
    shutil.rmtree(folder, ignore_errors=True)


def list_own_commands(capability: str) -> list[str]:
    module = list_modules("client", "commands").get(capability)
    return [name for rows in import_module(module).GROUPS.values() for name in rows] if module else []


@pytest.mark.slow
def test_without_a_capability_the_daemon_and_memctl_work_and_name_it(copy: Copy) -> None:
    try:
        added = copy.memctl("add", "We use Valkey, not Redis", "--namespace", "/")
        assert added.returncode == 0, added.stderr
        assert "Valkey" in copy.memctl("search", "Valkey", "--all", "--namespace", "/").stdout
        assert copy.memctl("verify").returncode == 0
        assert "Traceback" not in copy.memctl("doctor").stderr
        helped = copy.memctl("--help")
        assert helped.returncode == 0
        for name in list_own_commands(copy.capability):
            assert f"\n  {name} " not in helped.stdout
        for word in CAPABILITIES[copy.capability].commands:
            refused = copy.memctl(word, "x")
            assert refused.returncode == 2
            assert f"is not in this installation: it belongs to {copy.capability}" in refused.stderr
    finally:
        copy.memctl("down")


@pytest.mark.slow
def test_without_a_capability_the_heart_of_the_kernel_passes_its_tests(copy: Copy) -> None:
    done = copy.test(*_HEART)
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.stress
def test_without_a_capability_all_others_pass_their_tests(copy: Copy) -> None:
    done = copy.test("tests")
    assert done.returncode == 0, done.stdout[-6000:]
