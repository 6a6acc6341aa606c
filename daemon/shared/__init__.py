"""L3: memories of chosen namespaces in PostgreSQL, shared by several machines, of which each daemon is the cache.

What is shared is a root (a first-level namespace) with the namespaces in it that a person named. Writes are
acknowledged here and pushed later, searches are local, everything works offline. The server's row is the truth; a
machine has a copy of it and an entry, which says what of it the server has (`tables/shared`).

- `capability`: what the kernel gets of this. `tables`: what this machine knows of what is shared.
- `messages`: what a machine and a server say to each other. `bodies`: what a memory says there.
- `session`, `applying`, `offering`: one transaction of SQLite; rows of the server applied here; what is changed here
  made ready to be offered, and the answers.
- `exchange`: the questions to the server. `server`: the connection, its deadline, its errors.
- `engine`: the exchange of one root. `line`: the thread that drives it. `sharing`: all roots of a daemon.
- `calls`, `conflicts`: handlers.
- `vectors`, `backfill`: vectors on the server, who makes them. `room`: what a machine that holds a part keeps.
  `asking`: the stage of a search for the rest; `questions`: what it asks; `reader`: who asks the server, in a thread.
- `schema`: the tables on the server, who may use them; its owner makes them. `functions`, `judging`: what login roles
  may call there, and the judgement of an offered version, as SQL.

Invariants: every version that was live stays live or becomes a sibling that is named a conflict. Only what has an entry
leaves, and only to its root. Only a tombstone deletes: not that a server lacks something. No clock decides anything.
Nothing that a client waits for waits for the server, but a search until its deadline. Without a shared root there is no
thread here, and psycopg is not imported.
"""
