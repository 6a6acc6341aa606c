"""Replay what happened to a person (`timeline`), and note what hooks said at the test points.

The daemon is one of its own, whose clock follows the data. Memories are added, those of agents by the MCP server's
`memory_save`; turns and ends of sessions are reported and contexts are asked for by the functions of `hooks.answering`,
from the JSON that Claude Code gives to its hooks: so an output of a tool, which today's hooks do not pass on, is not
passed on, and an end of a session makes a summary. Before each event what would have happened by then comes to its end:
turns are rated, conversations that rest are thought about, and after an hour without an event (`moved_after_s`) the
jobs that move memories have run. A context is asked for at the test points alone, so a session knows no more than these
said; that search gets all the time it needs, since a busy machine must not change what is measured.
"""

import asyncio
import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from temporary import DEFAULTS, POLL_S, STANDSTILL_S, EvaluatedDaemon, list_present, run_daemon, settle
from timeline import MemoryEvent, Prompt, SessionEndEvent, Start, TimelineEvent, TimelineRow, TurnEvent

from memoryd.client.errors import TimedOut
from memoryd.client.programs.hooks import answering, hosts
from memoryd.client.programs.hooks.wire import DaemonLink
from memoryd.client.programs.mcp.answers import ToolResult
from memoryd.client.programs.mcp.schemas import parse_arguments
from memoryd.client.programs.mcp.session import ProjectSession
from memoryd.client.programs.mcp.tools import TOOLS
from memoryd.client.programs.memctl.local import read_output
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.protocol import Memory as StoredMemory
from memoryd.client.transport.sync import Client

AGENT = "claude-code"
SPEAKER = "user"
MOVES = ("promote", "sweep", "caps", "expire", "cluster")  # jobs that decide what a search finds
MOVED_AFTER_S = 3600.0
QUIET_S, SUMMARY_AFTER_S = 30.0, 600.0  # of a conversation, before facts are drawn and before it is summed up
LONGEST_S = 600.0  # one of which facts are drawn is looked at after so long
LONGEST_SUMMARY_S = 3600.0  # a session that never rests is summed up after so long
CALL_S = 600.0
PROBE = "bench-unasked"  # a namespace of no project, and a session in which nothing is said
PROBE_TEXT = "Whether this was found is noted after all that was found before it."


class Rest(NamedTuple):
    """When a conversation is thought about: so long after its last turn (0: never), at most so long after the first."""

    quiet_s: float
    longest_s: float


class Made(NamedTuple):
    """What the daemon made of turns: its text and what it represents."""

    content: str
    refs: frozenset[str]


class Injection(NamedTuple):
    """What a hook gave at a test point. `known`: how many of the rows were there, `made` what the daemon had made."""

    point: Start | Prompt
    text: str
    tokens: int
    known: int
    made: list[Made]


class _Link(DaemonLink):
    """A hook's connection. It keeps how many tokens a context has, and lets its search take the time that it needs."""

    tokens = 0

    def call(self, method: str, **fields: Any) -> dict[str, Any]:
        """Send a call and return its result."""
        if "deadline_ms" in fields:
            fields["deadline_ms"] = int(CALL_S * 1000)
        result = super().call(method, **fields)
        self.tokens += result.get("tokens", 0) if method == "get_unasked" else 0
        return result


@contextmanager
def set_hooks_environment(socket: Path, data_dir: Path) -> Iterator[None]:
    """Give hooks that run in this process the environment of a user with this daemon."""
    former = dict(os.environ)
    for name in [name for name in former if name.startswith("MEMORYD_")]:
        del os.environ[name]
    os.environ |= {"MEMORYD_SOCKET": str(socket), "MEMORYD_DATA_DIR": str(data_dir), "USER": SPEAKER}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(former)


@contextmanager
def replay(
    rows: Sequence[TimelineRow], settings: str = DEFAULTS, moved_after_s: float = MOVED_AFTER_S
) -> Iterator[tuple[EvaluatedDaemon, list[Injection]]]:
    """Replay data on a daemon of its own, which ends with the context; yield it and what hooks gave."""
    began_at = next(row.seconds for row in rows if isinstance(row, TimelineEvent))
    with (
        run_daemon(settings, began_at, ["--seed", "0"]) as (place, daemon),
        set_hooks_environment(daemon.socket, daemon.data_dir),
    ):
        yield place, play(place, rows, _read_rests(daemon.folder / "config.toml"), moved_after_s)


def _read_rests(config: Path) -> dict[str, Rest]:
    """Return when a daemon of these settings thinks about conversations, by what it makes of them."""
    everything = msgspec.json.decode(read_output("memoryd.daemon", ["--print-config", "--config", str(config)]))
    rests = {"summary": Rest(SUMMARY_AFTER_S, LONGEST_SUMMARY_S)}
    if everything["llm"]["url"]:
        rests["extract"] = Rest(QUIET_S, LONGEST_S)
    return rests


def play(
    place: EvaluatedDaemon,
    rows: Sequence[TimelineRow],
    rests: Mapping[str, Rest],
    moved_after_s: float = MOVED_AFTER_S,
) -> list[Injection]:
    """Have everything happen, within `set_hooks_environment`; return what the hook gave at each test point.

    `rests` are by what is made of a conversation, as `tiers` names it.
    """
    player = ReplayPlayer(place, rests, moved_after_s)
    found: list[Injection] = []
    try:
        with ProgressBar("replaying", len(rows)) as progress:
            for number, row in enumerate(rows):
                if isinstance(row, TimelineEvent):
                    player.go_to(row.seconds)
                    text, tokens = player.run(row)
                    if isinstance(row, Start | Prompt):
                        found.append(Injection(row, text, tokens, number, player.list_made(row.namespace)))
                progress.update(number + 1)
    finally:
        player.close()
    return found


class ReplayPlayer:
    """Plays one event after the other. Ids follow from those of the data, so that two runs are alike."""

    def __init__(
        self,
        place: EvaluatedDaemon,
        rests: Mapping[str, Rest],
        moved_after_s: float = MOVED_AFTER_S,
        waits_for_counts: bool = True,
    ) -> None:
        self._place, self._rests, self._moved_after_s = place, rests, moved_after_s
        self._waits_for_counts = waits_for_counts  # after a test point: they are written every two seconds
        self._clients: dict[str, Client] = {}
        self._now = 0.0
        self._heard: dict[tuple[str, str], tuple[float, float]] = {}  # first and last turn not thought about, by kind
        self._probes = 0
        self._stored: dict[str, str] = {}  # id of a memory of the data → its id there
        self._refs: dict[str, str] = {}  # the other way round, turns as well

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def go_to(self, now: float) -> None:
        """Let the time pass, with what happens meanwhile."""
        was, self._now = self._now, now
        self._place.set_time(now)
        for (namespace, kind), (first, last) in list(self._heard.items()):
            rest = self._rests[kind]
            if rest.quiet_s and now >= min(last + rest.quiet_s, first + rest.longest_s):
                self._wait_for_thoughts(namespace, kind)
        if was and now - was >= self._moved_after_s:
            client = self._client("/")
            for job in MOVES:
                client.run_job(job)
            settle(client, conversations=False)

    def settle(self, namespace: str) -> None:
        """Wait until nothing of a namespace waits to be judged."""
        settle(self._client(namespace), conversations=False)

    def run(self, row: TimelineEvent) -> tuple[str, int]:
        """Have an event happen; return what a hook says at it, and how many tokens that has."""
        match row:
            case MemoryEvent():
                self._add(row)
            case TurnEvent(role="user"):
                self._report(hosts.PROMPT, row, {"prompt": row.content}, row.id)
            case TurnEvent(role="assistant"):
                self._report(hosts.STOP, row, {"last_assistant_message": row.content}, row.id)
            case TurnEvent():
                used = {"tool_name": "Bash", "tool_input": {}, "tool_response": row.content}
                self._report(hosts.TOOL, row, used, row.id)
            case SessionEndEvent():
                self._report(hosts.END, row, {"reason": "exit"})
                settle(self._client(row.namespace))
                for kind in self._rests:
                    self._heard.pop((row.namespace, kind), None)
            case Start():
                return self._ask(hosts.START, row, {"source": "startup"})
            case Prompt():
                return self._ask(hosts.PROMPT, row, {"prompt": row.content})
        return "", 0

    def list_made(self, namespace: str) -> list[Made]:
        """Return what the daemon has made of turns within reach of a namespace."""
        parts = namespace.strip("/").split("/")
        places = {"/".join(parts[:count]) for count in range(len(parts) + 1)}
        present = [one for place in sorted(places) for one in list_present(self._client(place))]
        return [found for one in present if isinstance(one, StoredMemory) for found in self._read_made(one)]

    def _read_made(self, one: StoredMemory) -> Iterator[Made]:
        turns = one.metadata.get("turns")
        if isinstance(turns, list):
            yield Made(one.content, frozenset(self._refs[id] for id in turns if id in self._refs))
        elif one.source == "session_summary":
            yield Made(one.content, frozenset([f"summary:{one.metadata.get('session')}"]))

    def _client(self, namespace: str) -> Client:
        name = namespace.strip("/")
        if name not in self._clients:
            self._clients[name] = self._place.connect(name)
        return self._clients[name]

    def _add(self, row: MemoryEvent) -> None:
        client = self._client(row.namespace)
        former = self._stored.get(row.supersedes or "")
        if row.saved_by == "agent":
            saved: dict[str, str | None] = {"content": row.content, "kind": row.type, "supersedes": former}
            digits = msgspec.to_builtins(call_tool("memory_save", saved, row.namespace).structured)["id"]
            id = client.get(digits).id
        else:
            importance = {} if row.importance is None else {"importance": row.importance}
            id = client.add(
                row.content,
                type=row.type,
                pinned=row.pinned,
                supersedes=former,
                created_at=row.seconds,
                id=make_id(row.id),
                origin="person",
                **importance,
            ).id
        self._stored[row.id] = id
        self._refs[id] = row.id
        settle(client, conversations=False)

    def _report(self, event: str, row: TurnEvent | SessionEndEvent, given: Mapping[str, Any], id: str = "") -> None:
        """Report an event as a hook does; a turn that is noted gets an id of ours."""
        asked = self._read_event(event, row, given)
        link = _Link(time.monotonic() + CALL_S)
        try:
            for call in answering.list_calls(asked):
                for turn in call.get("turns", ()):
                    turn["id"] = make_id(id)
                    self._refs[turn["id"]] = id
                if link.call(**call).get("accepted"):
                    self._note_heard(row.namespace)
        finally:
            link.close()
        if isinstance(row, TurnEvent):
            settle(self._client(row.namespace), conversations=False)

    def _note_heard(self, namespace: str) -> None:
        for kind in self._rests:
            first, _ = self._heard.get((namespace, kind), (self._now, 0.0))
            self._heard[namespace, kind] = first, self._now

    def _ask(self, event: str, row: Start | Prompt, given: Mapping[str, Any]) -> tuple[str, int]:
        """Return what a hook says at an event, and how many tokens that has."""
        asked = self._read_event(event, row, given)
        link = _Link(time.monotonic() + CALL_S)
        try:
            text = answering.context(link, asked)
        finally:
            link.close()
        if self._waits_for_counts:
            self._wait_for_effects()
        else:
            self.settle(row.namespace)  # all but the counts is noted then
        return text, link.tokens

    def _read_event(
        self, event: str, row: TurnEvent | SessionEndEvent | Start | Prompt, given: Mapping[str, Any]
    ) -> answering.EventContext:
        namespace = row.namespace.strip("/")
        os.environ["MEMORYD_NAMESPACE"] = namespace
        name = hosts.HOSTS[AGENT].events[event].name
        about = {"session_id": row.session, "cwd": f"/{namespace}", "hook_event_name": name}
        asked = answering.read_event(event, AGENT, msgspec.json.encode({**about, **given}))
        return msgspec.structs.replace(asked, at=row.seconds)

    def _wait_for_thoughts(self, namespace: str, kind: str) -> None:
        """Wait until a conversation that has rested long enough was thought about."""
        client = self._client(namespace)
        client.end_session(PROBE)  # nothing ends: the worker looks at the clock
        _wait_until(lambda: not client.tiers(reach="exact").resting.get(kind), f"the {kind} of {namespace}")
        settle(client, conversations=False)
        del self._heard[namespace, kind]

    def _wait_for_effects(self) -> None:
        """Wait until it is noted what was given: what is found after it is noted after it."""
        client = self._client(PROBE)
        if not self._probes:
            client.add(PROBE_TEXT, id=make_id(PROBE))
            settle(client, conversations=False)
        client.search(PROBE_TEXT, limit=1, reach="exact")
        self._probes += 1
        _wait_until(
            lambda: client.list(limit=1, reach="exact").memories[0].access_count >= self._probes,
            "noting what was given",
        )


def call_tool(name: str, arguments: Mapping[str, Any], namespace: str) -> ToolResult:
    """Return what a tool of the MCP server answers to an agent in a project, within `set_hooks_environment`."""

    async def call() -> ToolResult:
        place = Namespace(namespace=namespace, socket=None, timeout=CALL_S, no_autostart=True)
        session = ProjectSession(place)
        try:
            tool = TOOLS[name]
            return await tool.run(session, parse_arguments(tool.takes, arguments))
        finally:
            await session.close()

    return asyncio.run(call())


def _wait_until(is_done: Callable[[], bool], what: str) -> None:
    give_up_at = time.monotonic() + STANDSTILL_S
    while not is_done():
        if time.monotonic() > give_up_at:
            raise TimedOut(f"The daemon did not come to an end within {STANDSTILL_S:g} s: {what}.")
        time.sleep(POLL_S)


def make_id(id: str) -> str:
    """Return the id that a thing of the data gets."""
    return sha256(id.encode()).hexdigest()[:32]
