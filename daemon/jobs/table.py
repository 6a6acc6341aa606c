"""The table of background jobs: what runs how often, for how long at most, and how.

To add a job: a module with its `Work` in the package that it works on, and a row here.
"""

from typing import NamedTuple

from memoryd.client.errors import Invalid
from memoryd.daemon.config import JobsConfig
from memoryd.daemon.conversations import promoting
from memoryd.daemon.core.work import Work
from memoryd.daemon.graph import clustering
from memoryd.daemon.jobs import caps, expiring, redacting, rule_facts, scanning, sweeping, trim, upkeep
from memoryd.daemon.workspaces.dreams import job as dream_job

_MIN, _HOUR, _DAY = 60.0, 3600.0, 86400.0  # seconds


class Row(NamedTuple):
    """A job: seconds between runs, seconds after which a run is interrupted, one sentence for people, what it does."""

    every_s: float
    deadline_s: float
    about: str
    work: Work


JOBS: dict[str, Row] = {
    "promote": Row(_HOUR, 2 * _MIN, "Empty L0 of the namespaces that have been quiet for long.", promoting.PROMOTE),
    "sweep": Row(5 * _MIN, 5 * _MIN, "Move memories that were not used for long from L1 to L2.", sweeping.SWEEP),
    "caps": Row(5 * _MIN, 5 * _MIN, "Bring L1 and L2 of each namespace below their limits.", caps.CAPS),
    "expire": Row(_HOUR, 5 * _MIN, "Delete memories whose time was over long ago.", expiring.EXPIRE),
    "cluster": Row(5 * _MIN, 10 * _MIN, "Put memories of L2 into nodes; split, merge, name these.", clustering.CLUSTER),
    "embed": Row(5 * _MIN, _MIN, "Try again to embed memories that have no vector.", upkeep.EMBED),
    "workspaces": Row(10 * _MIN, 5 * _MIN, "Look at all files of the workspaces, as a safety net.", scanning.SCAN),
    "dream": Row(_DAY, 10 * _MIN, "Tidy MEMORY.md of workspaces that allow it, by daily files.", dream_job.DREAM),
    "checkpoint": Row(5 * _MIN, _MIN, "Fold the write-ahead log into the database file.", upkeep.CHECKPOINT),
    "optimize": Row(_HOUR, 2 * _MIN, "Merge the segments of the full-text index.", upkeep.OPTIMIZE),
    "release": Row(5 * _MIN, _MIN, "Give memory that was freed back to the system.", upkeep.RELEASE),
    "redact": Row(_HOUR, 10 * _MIN, "Redact kept conversations by new rules of credentials.", redacting.REDACT),
    "rule-facts": Row(_DAY, 10 * _MIN, "Delete the facts that rules made in former versions.", rule_facts.RULE_FACTS),
    "trim": Row(_DAY, 5 * _MIN, "Forget old runs, skipped turns, undone history and unused vectors.", trim.TRIM),
    "backup": Row(_DAY, 10 * _MIN, "Copy the database into the folder of backups, if it changed.", upkeep.BACKUP),
}


def check(settings: JobsConfig) -> None:
    """Raise `Invalid` when the settings name a job that is not in the table."""
    if unknown := sorted(settings.every_s.keys() - JOBS.keys()):
        raise Invalid(f"There is no job {unknown[0]!r} - at `$.jobs.every_s`; there are {', '.join(JOBS)}.")
