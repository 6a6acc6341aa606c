"""The table of implementations: one row per job, with the names of `memoryd.scheduler.jobs.JOBS`.

To add a job: its module beside this one, a row here, a row in `JOBS`. A difference between the tables stops the start.
"""

from collections.abc import Iterable

from memoryd.daemon.conversations import promoting
from memoryd.daemon.core.work import Work
from memoryd.daemon.graph import clustering
from memoryd.daemon.jobs import caps, expiring, releasing, scanning, sweeping, trim, upkeep
from memoryd.daemon.workspaces.dreams import job as dream_job
from memoryd.scheduler.jobs import JOBS

WORK: dict[str, Work] = {
    "promote": promoting.PROMOTE,
    "sweep": sweeping.SWEEP,
    "caps": caps.CAPS,
    "expire": expiring.EXPIRE,
    "cluster": clustering.CLUSTER,
    "embed": upkeep.EMBED,
    "workspaces": scanning.SCAN,
    "dream": dream_job.DREAM,
    "checkpoint": upkeep.CHECKPOINT,
    "optimize": upkeep.OPTIMIZE,
    "release": releasing.RELEASE,
    "trim": trim.TRIM,
    "backup": upkeep.BACKUP,
}


def check(work: Iterable[str] = WORK, table: Iterable[str] = JOBS) -> None:
    """Refuse to start while a job lacks its implementation, or an implementation its job."""
    if odd := sorted(set(work) ^ set(table)):
        raise RuntimeError(f"scheduler/jobs.py and daemon/jobs/table.py differ in: {', '.join(odd)}")
