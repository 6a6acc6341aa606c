"""What is kept in RAM of every memory, by position (`positions`), not by row number, which is never used again.

`columns` holds what filters ask, so that they cost no SQL. `postings` holds where the words are that were asked for,
and `lexical` ranks them. `vector_index` keeps int8 codes of the vectors, in a basis (`basis`) of which a search scans a
third (`scan`); the caller rescores the best with the float32 vectors of the database. `daemon/store/codes` keeps the
codes on disk from the end of one daemon to the start of the next.
"""
