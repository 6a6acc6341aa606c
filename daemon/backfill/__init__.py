"""Backfill: turns of past sessions become memories at once, within one operation.

`client/programs/backfill` says why and how.

`planning` looks at the turns of one session, without the database; `taking` compares and stores them part by part.
"""
