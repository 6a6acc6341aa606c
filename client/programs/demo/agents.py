"""Start the processes of the demo's agents, send them orders, read their answers, and end them."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.local import environment

AGENT_PROCESS = "memoryd.client.programs.demo.agent_process"
END_LIMIT_S = 5.0


class Agent:
    """One client process."""

    def __init__(self, name: str, socket: Path) -> None:
        self.name = name
        self.namespace = f"demo/{name}"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", AGENT_PROCESS, str(socket), self.namespace],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            start_new_session=True,  # so that Ctrl-C interrupts memctl alone; the agent ends with its input
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def order(self, **order: Any) -> None:
        """Send an order without waiting for the answer, so that agents work at the same time."""
        assert self._process.stdin
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return the answer to the oldest order; raise an error if the agent reports one or has ended."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        reply: dict[str, Any] = msgspec.json.decode(line) if line else {"error": f"Agent {self.name} has died."}
        if "error" in reply:
            raise MemorydError(reply["error"])
        return reply

    def send(self, **order: Any) -> dict[str, Any]:
        """Send an order and return the answer."""
        self.order(**order)
        return self.answer()

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.close()
            self._process.wait(END_LIMIT_S)
        except (subprocess.TimeoutExpired, OSError):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@contextmanager
def run_agents(names: Sequence[str], socket: Path) -> Iterator[list[Agent]]:
    """Run one process per name and end them all afterwards."""
    running: list[Agent] = []
    try:
        for name in names:
            running.append(Agent(name, socket))
        yield running
    finally:
        for agent in running:
            agent.end()
