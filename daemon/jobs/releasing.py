"""The job that gives memory back: what was freed stays with the C library's allocator until it has to return it."""

from collections.abc import Iterator

from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Check, Step, Work
from memoryd.daemon.system import process

LEAST_BYTES = 8 * 1024 * 1024  # less is soon used again


def plan(core: Core, now: float) -> Iterator[Step]:
    """See how much the allocator has free."""
    kept = process.measure_free_bytes()
    if kept >= LEAST_BYTES:
        yield Step("release", "memory", f"the allocator has {kept / 1e6:.0f} MB free, some of which may still be held")


def release(core: Core, step: Step, check: Check) -> dict[str, int]:
    """Give back the whole pages among it."""
    before = process.rss_bytes()
    process.return_memory()
    return {"released kB": max(0, before - process.rss_bytes()) // 1000}


RELEASE = Work(plan, alone=release, at_limit=True)
