"""The core of one data directory, without sockets: server, jobs and tests all drive it through calls.

`core` joins store, embedder, tiers and caches; `privacy` removes credentials from what calls give to be stored,
before a handler sees them; `events` passes on what happened; `apart` runs what takes long.
"""
