"""What the backfill of past sessions, and listening to those that go on, bring to the kernel: calls and tables."""

from memoryd.daemon.backfill import listening, taking
from memoryd.daemon.backfill.tables import transcripts
from memoryd.daemon.rooms import Room

ROOM = Room(handlers=(taking, listening), tables=transcripts.TABLES, erase=transcripts.erase)
