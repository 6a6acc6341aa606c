"""Arrays in RAM with an entry for every memory, by position (`positions`): row numbers are never reused and would grow.

`columns` has the fields that filters compare, so that filtering needs no SQL. `postings` has the occurrences of words
that searches asked for, and `lexical` ranks by them. `vector_index` has int8 codes of the vectors in a rotated basis
(`basis`), of which a search scans a third of the dimensions (`scan`); the caller rescores the best with the float32
vectors in the database. `daemon/store/codes` stores the codes on disk between two runs of the daemon.
"""
