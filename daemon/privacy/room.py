"""The room of privacy: the function that cleans each call, and the job that applies new rules to stored texts."""

from memoryd.daemon.jobs.table import HOUR, MIN, JobRow
from memoryd.daemon.privacy import redacting
from memoryd.daemon.privacy.privacy import find_privacy
from memoryd.daemon.rooms import Room

_REDACT = "Remove credentials from stored conversations by new rules."

ROOM = Room(
    clean=lambda core, call: find_privacy(core).clean(call),
    jobs={"redact": JobRow(HOUR, 10 * MIN, _REDACT, redacting.REDACT)},
)
