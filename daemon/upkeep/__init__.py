"""Upkeep: the database is verified, copied, tidied (`housekeeping`, `trim`) and, when it has to be, replaced.

Another database in place of the present one (restore, recovery, reset) is made in `next.part` by a process of its own
(`rescue`, with `salvage` for a damaged one), checked, and renamed to `next`. A process that holds the lock of the data
directory puts it in place, the daemon before it opens anything (`swap`). `examine` reads a file for `memctl doctor`.
"""
