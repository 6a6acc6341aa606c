"""Upkeep: verify, copy and tidy the database (`housekeeping`, `trim`) and, if necessary, replace it.

A replacement (restore, recovery, reset) is made in `next.part` by a separate process (`rescue`; `salvage` reads a
damaged database), checked, and renamed to `next`. A process that holds the lock of the data directory puts it in place;
the daemon does so before it opens anything (`swap`). `examine` reads a file for `memctl doctor`.
"""
