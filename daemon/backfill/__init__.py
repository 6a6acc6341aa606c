"""Import turns from the files in which agents keep their sessions: past sessions, and those that are running.

Turns of past sessions become memories at once, all in one operation; `client/programs/backfill` sends them and says
why. `planning` examines the turns of one session without the database, `taking` compares and stores them in parts.

`listening` reads the file of a running session after each event, and records its turns as `observe` does; `opening`
decides which files may be read.
"""
