"""The interface to the operating system: clock, log, process, service manager, HTTP.

**Time** (`timekeeper`): `core.clock()` is the time for dates and expiry of memories; the `now` of a job's plan is
`.read_settled()`, which follows a jump of the clock a day later. A jump is a difference between the changes of wall
clock and boot clock.

**Files**: temporary files of SQLite, Python and child processes are in `tmp` next to the database, which the daemon
empties when it starts (`process`). Its working directory is `/`. The log file (`log_lines`) is rotated at 5 MB, and
so is stderr.

**Threads** run under `supervisor`: after an exception a thread continues after a pause; `status` counts failures.
"""
