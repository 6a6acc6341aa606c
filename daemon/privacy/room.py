"""The room of privacy: the function that cleans each call, and the job that applies new rules to stored texts."""

from typing import Any, TypeVar

from memoryd.client.protocol import Call, Redacted
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.table import HOUR, MIN, JobRow
from memoryd.daemon.privacy import redacting
from memoryd.daemon.privacy.privacy import find_privacy
from memoryd.daemon.rooms import Room

_REDACT = "Remove credentials from stored conversations by new rules."

C = TypeVar("C", bound=Call[Any])


def _clean(core: Core, call: C) -> tuple[C, Redacted]:
    return find_privacy(core).clean(call)


ROOM = Room(clean=_clean, jobs={"redact": JobRow(HOUR, 10 * MIN, _REDACT, redacting.REDACT)})
