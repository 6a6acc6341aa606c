"""What agents said in sessions that were given memories, until the extraction worker checks whether they cite them.

Bounded in RAM, lost at a crash: these are habits, not memories. Threads: `note` by any, `take` by that worker.
"""

from collections import deque
from typing import NamedTuple

MAX_WAITING = 1000


class AgentTurn(NamedTuple):
    """A turn of an agent: where and in which session, as whom the agent counts, the text."""

    namespace: str
    session: str
    by: str
    text: str


class Citations:
    """A queue; past its limit the oldest turns are not looked at."""

    def __init__(self) -> None:
        self._waiting: deque[AgentTurn] = deque(maxlen=MAX_WAITING)

    def note(self, said: AgentTurn) -> None:
        """Have a turn looked at later."""
        self._waiting.append(said)

    def take(self, count: int) -> list[AgentTurn]:
        """Take the oldest turns out."""
        return [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
