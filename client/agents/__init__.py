"""Coding agents: hooks and the MCP server."""
