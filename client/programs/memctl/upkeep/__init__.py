"""Looking after the database: copies, restoring, checking, repairing, starting again."""
