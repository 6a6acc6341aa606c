"""The room `dreams`: tables, a job, and the call that runs a dream on request."""

from memoryd.daemon.dreams import job
from memoryd.daemon.dreams.tables import dreams
from memoryd.daemon.jobs.table import DAY, MIN, JobRow
from memoryd.daemon.rooms import Room

_DREAM = "Tidy MEMORY.md of workspaces that allow it, by daily files."

ROOM = Room(
    handlers=(job,),
    tables=dreams.TABLES,
    jobs={"dream": JobRow(DAY, 10 * MIN, _DREAM, job.DREAM)},
)
