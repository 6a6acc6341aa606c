"""A table of examples as one test, which runs all of them and lists those that fail."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., Any]


def each(names: str | Sequence[str], rows: Iterable[Any], ids: Iterable[str] | None = None) -> Callable[[Test], Test]:
    """Run a test for every row, as `parametrize` does, but as one test: rows share its fixtures."""
    table = list(rows)
    titles = table if ids is None else list(ids)
    assert table, "a table without rows tests nothing"

    def arguments(row: Any) -> dict[str, Any]:
        return {names: row} if isinstance(names, str) else dict(zip(names, row, strict=True))

    def decorate(test: Test) -> Test:
        assert not inspect.iscoroutinefunction(test), "nothing would await its rows"

        @wraps(test)
        def run(**fixtures: Any) -> None:
            misses: list[str] = []
            first: BaseException | None = None
            for title, row in zip(titles, table, strict=True):
                try:
                    test(**fixtures, **arguments(row))
                except (Exception, pytest.fail.Exception) as error:
                    misses.append(f"{str(title)[:200]}: {type(error).__name__}: {error}")
                    first = first or error
            if misses:
                raise AssertionError("\n".join([f"{len(misses)} of {len(table)} rows:", *misses])) from first

        signature = inspect.signature(test)
        given = arguments(table[0])
        run.__signature__ = signature.replace(
            parameters=[one for name, one in signature.parameters.items() if name not in given]
        )
        return run

    return decorate
