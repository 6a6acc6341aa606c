"""The SQL and the tables of the backfill."""
