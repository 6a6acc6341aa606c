"""Turns of sessions, from the files that hosts keep of them: of past ones, and of those that go on.

`client/programs/backfill` says why and how past ones are taken in: they become memories at once, within one operation.
`planning` looks at the turns of one session, without the database; `taking` compares and stores them part by part.

`listening` takes in what is said in a session while it goes on, as turns that are observed; `opening` says which files
it may read.
"""
