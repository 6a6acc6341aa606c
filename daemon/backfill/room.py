"""The room `backfill`: the calls `backfill` and `listen`, and their tables."""

from memoryd.daemon.backfill import listening, taking
from memoryd.daemon.backfill.tables import transcripts
from memoryd.daemon.rooms import Room

ROOM = Room(handlers=(taking, listening), tables=transcripts.TABLES, erase=transcripts.erase)
