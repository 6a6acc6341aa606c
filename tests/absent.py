"""Which tests are left out where a capability is not there: the files that import it, themselves or by another one."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from imports import CHECKOUT, list_imports
from memoryd.client.capabilities import CAPABILITIES

TESTS = Path(__file__).parent
_THERE = {name for name in CAPABILITIES if any((CHECKOUT / side / name).is_dir() for side in ("daemon", "client"))}
ABSENT = [name for name, listed in CAPABILITIES.items() if not _THERE.issuperset((name, *listed.needs))]


def needs(*capabilities: str) -> pytest.MarkDecorator:
    """Mark a test that is skipped where one of some capabilities is not there; none named: where any is not."""
    missing = [name for name in ABSENT if name in (capabilities or ABSENT)]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not there")


def find_ignored() -> list[str]:
    """Return the files of tests that cannot be imported."""
    if not ABSENT:
        return []
    imported = {path: set(list_imports(path)) for path in TESTS.rglob("*.py")}
    gone = tuple(f"memoryd.{side}.{name}" for side in ("daemon", "client") for name in ABSENT)
    ignored: set[Path] = set()
    while new := [path for path, names in imported.items() if path not in ignored and _is_any_in(names, gone)]:
        ignored |= set(new)
        gone += tuple(path.stem for path in new)  # what tests share is imported by its bare name
    return sorted(map(str, ignored))


def _is_any_in(names: Iterable[str], modules: tuple[str, ...]) -> bool:
    return any(f"{name}.".startswith(f"{module}.") for name in names for module in modules)
