"""What is shown automatically brings its calls to the kernel."""

from memoryd.daemon.rooms import Room
from memoryd.daemon.unasked import unasked, usefulness

ROOM = Room(handlers=(unasked, usefulness))
