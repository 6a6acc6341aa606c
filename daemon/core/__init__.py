"""The core of one data directory, without sockets: server, jobs and tests all drive it through calls.

`core` combines store, arrays, embedder, tiers and caches; `events` publishes events; `background` runs long calls.
"""
