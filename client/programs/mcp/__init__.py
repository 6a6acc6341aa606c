"""The command `mcp`: a server for the Model Context Protocol, on standard input and output or over HTTP.

It uses the official SDK, which is an extra and is imported when the command runs. `schemas` defines the arguments and
results of the tools. `tools`, `resources` and `prompts` are the tables of what the server offers. `answers` fits
answers into a budget of tokens, `session` sends calls to the daemon, `server` connects everything to the SDK, and
`http` serves it on a port.
"""
