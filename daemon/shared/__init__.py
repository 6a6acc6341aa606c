"""L3: memories of chosen namespaces in PostgreSQL, shared by several machines, of which each daemon is the cache.

What is shared is a root (a first-level namespace) with the namespaces in it that a person named. Writes are
acknowledged here and pushed later (`store/shared` keeps the outbox), searches are local, everything works offline.

- `changes`: what a version is, which one descends from which, what may leave this machine. Pure functions.
- `session`, `applying`, `pushing`: one transaction of SQLite; versions of the server applied here, conflicts found;
  what is changed here made ready to be pushed.
- `exchange`: the statements of push, pull and comparison. `server`: the connection, its deadline, its errors.
- `engine`: the exchange of one root, in a thread of its own. `sharing`: all roots of a daemon.
- `vectors`, `backfill`: vectors on the server, who makes them. `room`: what a machine that holds a part keeps.
  `reader`: searches of the rest, in a thread of its own.
- `schema`: the tables on the server, roles and policies; its owner runs it.

Invariants: every version that was live stays live or becomes a sibling that is named a conflict. Observed turns, and
what was drawn from them, leave only where a person said so. No clock decides anything. Nothing that a client waits for
waits for the server, but a search until its deadline. Without a shared root there is no thread here, and
psycopg is not imported.
"""
