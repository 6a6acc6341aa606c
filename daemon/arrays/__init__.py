"""The vector index in RAM: which rows are nearest to a query, without SQL.

`vector_index` keeps int8 codes by position, in a basis (`basis`) of which a search scans a third (`scan`); the caller
rescores the best with the float32 vectors of the database. `daemon/store/codes` keeps the codes on disk from the end
of one daemon to the start of the next.
"""
