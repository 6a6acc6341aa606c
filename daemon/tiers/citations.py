"""Queue of agents' turns in which the extraction worker looks for citations of memories that the session was shown.

Bounded, in RAM only, and lost in a crash, since it only affects ranking. Threads: `note` by any, `take` by that worker.
"""

from collections import deque
from typing import NamedTuple

MAX_WAITING = 1000


class AgentTurn(NamedTuple):
    """A turn of an agent: namespace, session, the agent's name and the text."""

    namespace: str
    session: str
    by: str
    text: str


class Citations:
    """A queue that drops the oldest turns at its limit."""

    def __init__(self) -> None:
        self._waiting: deque[AgentTurn] = deque(maxlen=MAX_WAITING)

    def note(self, said: AgentTurn) -> None:
        """Add a turn."""
        self._waiting.append(said)

    def take(self, count: int) -> list[AgentTurn]:
        """Remove and return the oldest turns."""
        return [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
