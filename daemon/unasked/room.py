"""The room `unasked`: its calls."""

from memoryd.daemon.rooms import Room
from memoryd.daemon.unasked import unasked, usefulness

ROOM = Room(handlers=(unasked, usefulness))
