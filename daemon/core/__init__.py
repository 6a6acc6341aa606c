"""The core of one data directory, without sockets: server, jobs and tests all drive it through calls.

`core` joins store, arrays, embedder, tiers and caches; `events` passes on what happened; `background` runs long calls.
"""
