"""Dreams for clients: the call, and its command in memctl."""
