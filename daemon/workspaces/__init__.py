"""Workspaces: folders of Markdown files that the daemon indexes, watches and writes into."""
