"""What is shown automatically brings its call to the kernel."""

from memoryd.daemon.rooms import Room
from memoryd.daemon.unasked import unasked

ROOM = Room(handlers=(unasked,))
