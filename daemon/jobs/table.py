"""The table of background jobs: interval, deadline, description and function.

To add a job, write a module with its `Work` in the package that it works on, and add a row here or in its room.
"""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from memoryd.client.errors import Invalid
from memoryd.daemon.config import JobsConfig
from memoryd.daemon.core.work import Work
from memoryd.daemon.jobs import caps, expiring, sweeping
from memoryd.daemon.rooms import list_rooms

MIN, HOUR, DAY = 60.0, 3600.0, 86400.0  # seconds


class JobRow(NamedTuple):
    """A job: seconds between runs, seconds after which a run is interrupted, a description, and its work."""

    every_s: float
    deadline_s: float
    about: str
    work: Work


_KERNEL: dict[str, JobRow] = {
    "sweep": JobRow(5 * MIN, 5 * MIN, "Move memories that were not used for long from L1 to L2.", sweeping.SWEEP),
    "caps": JobRow(5 * MIN, 5 * MIN, "Bring L1 and L2 of each namespace below their limits.", caps.CAPS),
    "expire": JobRow(HOUR, 5 * MIN, "Delete memories whose time was over long ago.", expiring.EXPIRE),
}


@cache
def list_jobs() -> Mapping[str, JobRow]:
    """Return all jobs by name: those of the kernel, then those of each room."""
    return _KERNEL | {name: row for room in list_rooms() for name, row in room.jobs.items()}


def check(settings: JobsConfig) -> None:
    """Raise `Invalid` when the settings name a job that is not in the table."""
    unknown = sorted(settings.every_s.keys() - list_jobs().keys())
    if unknown:
        raise Invalid(f"There is no job {unknown[0]!r} - at `$.jobs.every_s`; there are {', '.join(list_jobs())}.")
