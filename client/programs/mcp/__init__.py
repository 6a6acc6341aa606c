"""mcp: the memory for agents that speak the Model Context Protocol, over standard input and output or over HTTP.

The protocol is the official SDK's, which is an extra and is imported when the command runs. `schemas` says what the
tools take and return, `tools` what they do, `resources` what can be read, `prompts` what a host shows its user,
`answers` fits answers into a budget of tokens, `session` is the way to the daemon, `server` brings them together,
`http` serves them on a port.
"""
