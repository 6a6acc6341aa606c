"""The room `erasing`: its call."""

from memoryd.daemon.erasing import erasing
from memoryd.daemon.rooms import Room

ROOM = Room(handlers=(erasing,))
