"""The room `context`: its calls, and the table of what sessions were given."""

from memoryd.daemon.context import given, preparing
from memoryd.daemon.context.tables import given as tables
from memoryd.daemon.rooms import Room

ROOM = Room(handlers=(given, preparing), tables=tables.TABLES, erase=tables.erase)
