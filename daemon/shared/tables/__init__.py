"""The SQL of shared roots: what waits to be sent."""
