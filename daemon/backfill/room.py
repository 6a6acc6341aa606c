"""What the backfill of past sessions brings to the kernel: its call."""

from memoryd.daemon.backfill import taking
from memoryd.daemon.rooms import Room

ROOM = Room(handlers=(taking,))
