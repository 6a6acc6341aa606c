"""Connect to the daemon: sockets, frames, replies, autostart.

Framing and replies (`frames`, `exchange`) do no I/O and are shared by both clients.
"""
