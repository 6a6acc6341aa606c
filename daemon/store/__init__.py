"""Durable storage: one SQLite file. All SQL is here; nothing else opens SQLite.

`rows` reads and writes memories, `queries` finds them by their content, `aging` finds those that leave a tier, and
`links` connects them. Functions take the connection as a parameter: that of a reader or of the writer.

`memories` contains the rows. `memories_fts` (updated by triggers), `vec_embeddings` and the index in RAM are derived
from it. A vector belongs to a model and the SHA-256 of a text, so `vec_embeddings` is both the durable copy and the
embedding cache. It is a plain table of float32 blobs in sqlite-vec's format: reading one vector by key takes 1 µs, but
180 µs with vec0, and each search rescores its best 40. `codes` keeps the index on disk between the stop of one daemon
and the start of the next. The arrays in RAM (index, columns, postings) are in `daemon/arrays`.

A short text may have a second vector, made of the text with its neighbours (`contexts`): searches use that one, while
duplicates are found by the vector of the text itself. A long text has vectors of its parts (`text_parts`).

`operations` and `history` keep the former rows of every change and its author (`actor`); undo restores these rows.
Triggers count in `flows` how many turns came, were skipped, dropped or promoted, so that `verify` can check the sums.

**The writer** (`writer`) is the only connection that writes. It runs all waiting jobs in one transaction, so that one
fsync is enough; if there are several, each runs in a savepoint. The arrays in RAM are changed after the commit.

Copies (`copies`) get their final name after they are checked. `daemon/upkeep` replaces the database by another one.

A memory is **superseded** as long as a successor of it exists and has not expired (`successors`). `filters.ALIVE` and
the masks of `arrays/columns` alone decide that; a deleted successor is kept in `deleted_successors` as a link.
"""
