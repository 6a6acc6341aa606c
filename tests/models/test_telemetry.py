"""Libraries report nothing to their makers."""

import subprocess
import sys
from pathlib import Path

import pytest

from imports import OURS, importers


def in_a_new_process(code: str, home: Path, **variables: str) -> str:
    """Run code with a home and an environment of its own: some libraries report nothing where they see a CI's."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", **variables}
    return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)


@pytest.mark.slow
def test_one_module_imports_onnx_runtime() -> None:
    assert importers("onnxruntime", folders=(*OURS, "tests")) == ["models/session.py"]


@pytest.mark.parametrize("before", [{}, {"ORT_DISABLE_TELEMETRY": "0"}], ids=["unset", "zero"])
def test_onnx_runtime_writes_no_device_id(before: dict[str, str], tmp_path: Path) -> None:
    in_a_new_process("import memoryd.models.session", tmp_path, **before)
    assert list(tmp_path.rglob("*")) == []


def test_the_client_of_the_hub_reports_nothing(tmp_path: Path) -> None:
    code = "import memoryd.models, huggingface_hub.constants as hub; print(hub.HF_HUB_DISABLE_TELEMETRY)"
    assert in_a_new_process(code, tmp_path, HF_HUB_DISABLE_TELEMETRY="0") == "True\n"
