"""Maintenance of the database: backups, restoring, verifying, repairing, resetting."""
