"""The SQL of roots in PostgreSQL."""
