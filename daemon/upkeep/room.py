"""The room `upkeep`: calls that verify and copy the database, and the jobs that maintain it."""

from memoryd.daemon.jobs.table import DAY, MIN, JobRow
from memoryd.daemon.rooms import Room
from memoryd.daemon.upkeep import calls, housekeeping, trim

_EMBED = "Try again to embed memories that have no vector."
_MAINTAIN = "Fold the write-ahead log in, merge full text, give freed memory back."
_TRIM = "Forget old runs, skipped turns, undone history and unused vectors."
_BACKUP = "Copy the database into the folder of backups, if it changed."

ROOM = Room(
    handlers=(calls,),
    jobs={
        "embed": JobRow(5 * MIN, MIN, _EMBED, housekeeping.EMBED),
        "maintain": JobRow(5 * MIN, 2 * MIN, _MAINTAIN, housekeeping.MAINTAIN),
        "trim": JobRow(DAY, 5 * MIN, _TRIM, trim.TRIM),
        "backup": JobRow(DAY, 10 * MIN, _BACKUP, housekeeping.BACKUP),
    },
)
