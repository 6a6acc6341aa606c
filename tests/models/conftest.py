from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_bert import write_checkpoint


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder as sentence-transformers lays it out, small enough to convert in milliseconds."""
    return write_checkpoint(tmp_path / "tiny")


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def stages() -> tuple[list[str], Callable[[str, int, int], None]]:
    """A list, and a progress function that writes the stages into it."""
    seen: list[str] = []
    return seen, lambda stage, done, total: seen.append(stage)
