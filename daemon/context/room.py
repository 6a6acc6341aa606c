"""The room `context`: its calls."""

from memoryd.daemon.context import given, preparing
from memoryd.daemon.rooms import Room

ROOM = Room(handlers=(given, preparing))
