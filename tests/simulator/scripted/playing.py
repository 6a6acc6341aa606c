"""Plays a scripted year on a daemon whose clock we set: each event as the agent of its namespace would call it."""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from memoryd.client.errors import MemorydError, TimedOut
from memoryd.client.memctl.private import PrivateDaemon
from memoryd.client.protocol import NewTurn
from memoryd.client.transport.sync import Client
from scripted.events import Ask, Edit, Event, Forget, Note, Share, TakeBack, Talk

JOBS = ("promote", "sweep", "caps", "expire", "cluster")
REST_LIMIT_S = 60.0


class Player:
    """The agents of a year, one connection for each namespace; `root` sees everything."""

    def __init__(self, daemon: PrivateDaemon, clock: Path, model: bool) -> None:
        self._daemon, self._clock, self._model = daemon, clock, model
        self._clients: dict[str, Client] = {}
        self._latest: dict[str, list[int]] = {}  # operations that may be taken back
        self._questions = 0
        self.root = self.client("")
        self.deleted = 0  # memories whose time was over

    def client(self, namespace: str) -> Client:
        """Return the connection of a namespace."""
        if namespace not in self._clients:
            self._clients[namespace] = self._daemon.client(namespace)
        return self._clients[namespace]

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def go_to(self, at: float) -> None:
        """Set the daemon's clock (UTC seconds)."""
        os.utime(self._clock, (at, at))

    def play(self, events: Iterable[Event]) -> None:
        """Carry out events, each at its time; what names something that is gone is left out."""
        for event in events:
            self.go_to(event.at)
            try:
                self._carry_out(event)
            except MemorydError as error:
                if error.code not in ("not_found", "conflict", "invalid"):
                    raise

    def maintain(self) -> None:
        """Let the daemon come to rest, then run the jobs that its scheduler would have run."""
        self.rest()
        for name in JOBS:
            run = self.root.run_job(name)
            if name == "expire":
                self.deleted += run.counts.get("deleted", 0)
        self.rest()

    def rest(self) -> None:
        """Wait until everything is judged and, if there is a model, embedded."""
        give_up_at = time.monotonic() + REST_LIMIT_S
        while self._waiting():
            if time.monotonic() > give_up_at:
                raise TimedOut(f"The temporary daemon did not come to rest within {REST_LIMIT_S:g} s.")
            time.sleep(0.002)

    def _waiting(self) -> bool:
        judged = self.root.tiers().waiting
        if not self._model:
            return bool(judged.get("rate"))
        return any(judged.values()) or self.root.status().pending_embeddings > 0

    # Events ----------------------------------------------------------------------------------------------------------

    def _carry_out(self, event: Event) -> None:
        client = self.client(event.namespace)
        match event:
            case Talk():
                turns = [NewTurn(role=say.role, content=say.text, id=say.id) for say in event.turns]
                client.observe(turns, session=event.session)
            case Note():
                self._add(client, event)
            case Ask():
                self._ask(client, event)
            case TakeBack():
                if self._latest.get(event.namespace):
                    client.undo(self._latest[event.namespace].pop())
            case Share():
                self._of_chosen(event, lambda id: client.share(id, to=event.to, move=event.move))
            case Edit():
                fields = {"content": event.content} if event.content else {"expires_at": event.expires_at}
                self._of_chosen(event, lambda id: client.update(id, **fields))
            case Forget():
                self._of_chosen(event, client.delete)

    def _add(self, client: Client, event: Note) -> None:
        client.call(event.make_call())

    def _ask(self, client: Client, event: Ask) -> None:
        hits = client.search(event.question, session=event.session, limit=event.limit)
        if event.repeats and hits:
            client.observe([NewTurn(role="assistant", content=hits[0].content)], session=event.session)

    def _of_chosen(self, event: Edit | Forget | Share, change: Callable[[str], Any]) -> None:
        """Change the note that an event names, or one of the memories that conversations left."""
        id = event.id
        if id is None:
            found = self.client(event.namespace).list(type="turn", reach="exact", limit=50)
            if not found:
                return
            id = found[int(event.which * len(found))].id
        self._remember(event, change(id))

    def _remember(self, event: Event, changed: Any) -> None:
        self._latest.setdefault(event.namespace, []).append(changed.operation)
