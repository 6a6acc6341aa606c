"""Advice for an optional part of memoryd that is not installed, in the same words everywhere."""

from collections.abc import Iterator
from contextlib import contextmanager


def advise(extra: str) -> str:
    """Return how to install an extra; the words fit a wheel, an archive and a checkout."""
    return f"install memoryd again with the extra {extra}: pip install 'FILE.whl[{extra}]'"


@contextmanager
def named_extra(extra: str) -> Iterator[None]:
    """If an import fails, add to its error which extra must be installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.msg}; {advise(extra)}", name=error.name, path=error.path) from None
