"""The SQL of contexts."""
