"""What to do where a part of memoryd is not installed: one sentence for all who miss one."""

from collections.abc import Iterator
from contextlib import contextmanager


def advise(extra: str) -> str:
    """Return how an installation gets an extra, whatever it was made from: a wheel, an archive, a checkout."""
    return f"install memoryd again with the extra {extra}: pip install 'FILE.whl[{extra}]'"


@contextmanager
def named_extra(extra: str) -> Iterator[None]:
    """Name the extra in the error of an import that needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.msg}; {advise(extra)}", name=error.name, path=error.path) from None
