"""Looking after the database: copies, restoring, checking, repairing, beginning anew."""
