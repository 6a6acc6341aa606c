"""The SQL of shared roots: the memories that wait to be sent."""
