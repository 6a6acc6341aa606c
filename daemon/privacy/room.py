"""What privacy brings to the kernel: each call passes it, and the job that applies new rules."""

from typing import Any, TypeVar

from memoryd.client.protocol import Call, Redacted
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.table import HOUR, MIN, JobRow
from memoryd.daemon.privacy import redacting
from memoryd.daemon.privacy.privacy import find_privacy
from memoryd.daemon.rooms import Room

_REDACT = "Redact kept conversations by new rules of credentials."

C = TypeVar("C", bound=Call[Any])


def _clean(core: Core, call: C) -> tuple[C, Redacted]:
    return find_privacy(core).clean(call)


ROOM = Room(clean=_clean, jobs={"redact": JobRow(HOUR, 10 * MIN, _REDACT, redacting.REDACT)})
