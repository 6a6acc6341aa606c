"""Workspaces for clients: calls, commands, checks of doctor, what they bring to the page."""
