"""memoryd: one memory for every agent on a machine."""

__version__ = "0.2.0"
