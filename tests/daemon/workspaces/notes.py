"""Files that tests of workspaces write."""

from pathlib import Path

FILLER = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu " * 9


def write(root: Path, relative: str, text: str) -> Path:
    path = root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def sections(count: int, changed: int = -1, word: str = "changed") -> str:
    """Return a file of so many chunks, one of which may be another."""
    return "\n".join(
        f"# Section {n}\n\nNumber {n} {word if n == changed else 'original'}. {FILLER}\n" for n in range(count)
    )
