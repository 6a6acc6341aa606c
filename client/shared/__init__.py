"""Sharing with other machines, for clients: calls, and their commands in memctl."""
