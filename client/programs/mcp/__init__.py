"""mcp: the server for agents that speak the Model Context Protocol, over standard input and output or over HTTP.

It uses the official SDK, an extra that is imported when the command runs. `schemas` defines arguments and results of
the tools, `tools`, `resources` and `prompts` implement these, `answers` fits answers into a budget of tokens, `session`
sends calls to the daemon, `server` connects everything to the SDK, and `http` serves it on a port.
"""
