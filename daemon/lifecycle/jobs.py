"""The table of implementations: one row per job, with the names of `memoryd.scheduler.jobs.JOBS`.

To add a job: its module beside this one, a row here, a row in `JOBS`. A difference between the tables stops the start.
"""

from memoryd.daemon.lifecycle.work import Work

WORK: dict[str, Work] = {}
