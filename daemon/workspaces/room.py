"""The room `workspaces`: tables, a job, watching threads, and calls on files and folders."""

from memoryd.daemon.jobs.table import MIN, JobRow
from memoryd.daemon.rooms import Room
from memoryd.daemon.workspaces import calls, flushing, linking, writing
from memoryd.daemon.workspaces.tables import workspaces
from memoryd.daemon.workspaces.watching import Watchers

_SCAN = "Compare all files of the workspaces with the index, in case watching has missed a change."

ROOM = Room(
    handlers=(calls, flushing, writing),
    tables=workspaces.TABLES,
    clear=workspaces.read_again,
    erase=workspaces.forget_files,
    show=linking.show,
    start=lambda core: core.state(Watchers, core).start(),
    stop=lambda core: core.state(Watchers, core).close(),
    jobs={"workspaces": JobRow(10 * MIN, 5 * MIN, _SCAN, calls.SCAN)},
)
