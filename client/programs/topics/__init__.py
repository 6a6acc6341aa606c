"""Topics for clients: calls on the graph of L2, and their commands in memctl."""
