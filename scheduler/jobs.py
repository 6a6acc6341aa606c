"""The table of background jobs: what runs how often, and for how long at most.

What a job does is in the daemon (`memoryd.daemon.jobs.table`); the daemon refuses to start while the tables differ.
"""

from typing import NamedTuple

_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86400.0


class Row(NamedTuple):
    """A job: seconds between runs, seconds after which a run is interrupted, one sentence for people."""

    every_s: float
    deadline_s: float
    about: str


JOBS: dict[str, Row] = {
    "promote": Row(_HOUR_S, 2 * _MINUTE_S, "Empty L0 of the namespaces that have been quiet for long."),
    "sweep": Row(5 * _MINUTE_S, 5 * _MINUTE_S, "Move memories that were not used for long from L1 to L2."),
    "caps": Row(5 * _MINUTE_S, 5 * _MINUTE_S, "Bring L1 and L2 of each namespace below their limits."),
    "expire": Row(_HOUR_S, 5 * _MINUTE_S, "Delete memories whose time was over long ago."),
    "cluster": Row(5 * _MINUTE_S, 10 * _MINUTE_S, "Put memories of L2 into nodes; split, merge, name these."),
    "embed": Row(5 * _MINUTE_S, _MINUTE_S, "Try again to embed memories that have no vector."),
    "workspaces": Row(10 * _MINUTE_S, 5 * _MINUTE_S, "Look at all files of the workspaces, as a safety net."),
    "dream": Row(_DAY_S, 10 * _MINUTE_S, "Put MEMORY.md of workspaces in order with their daily files."),
    "checkpoint": Row(5 * _MINUTE_S, _MINUTE_S, "Fold the write-ahead log into the database file."),
    "optimize": Row(_HOUR_S, 2 * _MINUTE_S, "Merge the segments of the full-text index."),
    "release": Row(5 * _MINUTE_S, _MINUTE_S, "Give memory that was freed back to the system."),
    "trim": Row(_DAY_S, 5 * _MINUTE_S, "Forget old runs, skipped turns, undone history and unused vectors."),
    "backup": Row(_DAY_S, 10 * _MINUTE_S, "Copy the database into the folder of backups, if it changed."),
}
