"""What the operating system says and is asked for: clock, log, process, service manager, HTTP.

**Time** (`timekeeper`): `core.clock()` dates memories, and they expire by it; the `now` of a job's plan is
`.read_settled()`, which follows a jump of the clock a day later. A jump is a difference between wall clock and boot
clock since the last look.

**Files**: temporary files of SQLite, Python and child processes are in `tmp` beside the database, which the daemon
empties at its start (`process`); its working directory is `/`. A log file (`log_lines`) is exchanged at 5 MB, with
stderr.

**Threads** of their own run under `supervisor`: one that raises is started again after a pause; `status` counts how
often.
"""
