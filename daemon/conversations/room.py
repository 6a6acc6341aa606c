"""The room `conversations`: calls on turns and sessions, and the job that empties L0 of quiet namespaces."""

from memoryd.daemon.conversations import (
    consolidating,
    extracting,
    moving,
    observing,
    pausing,
    promoting,
    running_summary,
    session_log,
    tasks,
)
from memoryd.daemon.jobs.table import HOUR, MIN, JobRow
from memoryd.daemon.rooms import Room

_PROMOTE = "Empty L0 of the namespaces that have been quiet for a day."

ROOM = Room(
    find_around=session_log.find_around,
    handlers=(consolidating, extracting, session_log, moving, observing, pausing, running_summary, tasks),
    jobs={"promote": JobRow(HOUR, 2 * MIN, _PROMOTE, promoting.PROMOTE)},
)
