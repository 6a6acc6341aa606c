"""Importing this module imports every module that registers handlers."""

from memoryd.daemon.jobs import calls as jobs_calls
from memoryd.daemon.jobs import tier_report
from memoryd.daemon.memories import (
    adding,
    adding_many,
    changing,
    deleting,
    feedback,
    keyed,
    keyed_many,
    reading,
    settling,
    sharing,
    transfer,
)
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.search import pipeline, whynot
from memoryd.daemon.server import administration

list_rooms()
