"""Libraries report nothing to their makers."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
SOURCES = ("client", "daemon", "models", "scheduler", "systemd", "tests")


def in_a_new_process(code: str, home: Path, **variables: str) -> str:
    """Run code with a home and an environment of its own: some libraries report nothing where they see a CI's."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", **variables}
    return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)


def modules_that_import(name: str) -> Iterator[str]:
    for path in (path for folder in SOURCES for path in (CHECKOUT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            named += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            if any(one.split(".")[0] == name for one in named):
                yield str(path.relative_to(CHECKOUT))


def test_one_module_imports_onnx_runtime() -> None:
    assert list(modules_that_import("onnxruntime")) == ["models/session.py"]


@pytest.mark.parametrize("before", [{}, {"ORT_DISABLE_TELEMETRY": "0"}], ids=["unset", "zero"])
def test_onnx_runtime_writes_no_device_id(before: dict[str, str], tmp_path: Path) -> None:
    in_a_new_process("import memoryd.models.session", tmp_path, **before)
    assert list(tmp_path.rglob("*")) == []


def test_the_client_of_the_hub_reports_nothing(tmp_path: Path) -> None:
    code = "import memoryd.models, huggingface_hub.constants as hub; print(hub.HF_HUB_DISABLE_TELEMETRY)"
    assert in_a_new_process(code, tmp_path, HF_HUB_DISABLE_TELEMETRY="0") == "True\n"
