"""Durable storage: one SQLite file. All SQL is here; nothing else opens SQLite.

`rows` reads and writes memories, `queries` finds them by what they hold, `aging` finds those that leave a tier; `links`
joins them. A function is named by what it reads or writes, and takes the connection: a reader's, or that of the writer.

`memories` holds the rows. `memories_fts` (kept in step by triggers), `vec_embeddings` and the index in RAM are derived
from it. A vector belongs to (model, SHA-256 of the text), so `vec_embeddings` is the durable copy and the embedding
cache in one. It is a plain table of float32 blobs in sqlite-vec's format: vec0 takes 180 µs to read one vector by key,
this takes 1 µs, and each search rescores its best 40. `codes` keeps the index in RAM on disk from the end of one daemon
to the start of the next. What is kept in RAM by position is in `daemon/arrays`: the index, columns, postings.

A short text may have a second vector, made of the text between its neighbours (`contexts`): searches use it, while
duplicates are found by the text's own. A long text has vectors of its parts (`text_parts`).

`operations` and `history` keep the former rows of every change, and who made it (`actor`); undo puts them back.
`flows` counts turns that came, were skipped, dropped or promoted, by triggers, so that `verify` can check the account.

**The writer** (`writer`) is the only connection that writes. It takes all waiting jobs into one transaction: one
fsync for all. Where there are several, each runs in a savepoint. Its changes in RAM follow the commit.

Copies (`copies`) get their name once they are checked. Another database in place of the present one is made by
`daemon/upkeep`.

A memory is **superseded** as long as a successor of it exists and has not expired (`successors`). `filters.ALIVE` and
the masks of `arrays/columns` alone decide that; a deleted successor is kept in `deleted_successors` as a link.
"""
