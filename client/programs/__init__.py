"""Programs: memctl, hooks, the MCP server, the page.

The library, which is all else in `client`, imports none of them.
"""
