"""The way to the daemon: sockets, frames, replies, starting it.

Framing and replies (`frames`, `exchange`) are without I/O and shared by both clients.
"""
