"""The SQL of the backfill; it has no tables of its own."""
