"""The room `context`: its calls."""

from memoryd.daemon.context import counting, given, preparing
from memoryd.daemon.rooms import Room

ROOM = Room(handlers=(counting, given, preparing))
