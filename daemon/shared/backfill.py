"""Vectors of a root between this machine and the server: what is taken from there, what is made for all."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from memoryd.daemon.core.core import Core
from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.shared import vectors
from memoryd.daemon.shared.messages import RemoteMemory
from memoryd.daemon.shared.server import ServerConnection
from memoryd.daemon.shared.vectors import Unembedded
from memoryd.daemon.store import rows
from memoryd.daemon.store import vectors as stored
from memoryd.daemon.store.vectors import Vector

_LONGEST_S = 1.0  # of one turn: pushes and pulls wait meanwhile
_AGAIN_S = 30.0  # after which the lease is asked for again although nothing changed
_WORTH_ASKING = 20  # texts without a vector: fewer are embedded sooner than they are asked for

Ask = Callable[[Callable[[ServerConnection], Any]], Any]


class SharedBackfill:
    """One root's vectors. One thread."""

    def __init__(self, core: Core, root: str, machine: str) -> None:
        self._core, self._root, self._machine = core, root, machine
        self._done = (-1, "")  # the head of the root and the model for which there was nothing to do
        self._ask_at = 0.0

    def take(self, ask: Ask, coming: Sequence[RemoteMemory]) -> dict[bytes, Vector]:
        """Return the vectors that the server has of memories that came from there, by the hash of their texts."""
        generation = self._core.embedding.active
        ids = [remote.id for remote in coming if not remote.deleted]
        if generation is None or len(ids) < _WORTH_ASKING:
            return {}
        fingerprint, root = generation.embedder.fingerprint, self._root
        found = ask(lambda server: vectors.take(server, root, fingerprint, ids) if server.has_vectors else {})
        length = generation.embedder.dimensions
        return {hash: vector for hash, vector in found.items() if len(vector) == length}

    def work(self, ask: Ask, head: int) -> bool:
        """Make vectors for a while, if this machine has the lease; return whether there is more to do."""
        generation = self._core.embedding.active
        if generation is None:
            return False
        model, length = generation.embedder.fingerprint, generation.embedder.dimensions
        if self._done == (head, model) and time.monotonic() < self._ask_at:
            return False
        give_up_at = time.monotonic() + _LONGEST_S
        while time.monotonic() < give_up_at:
            after = ask(lambda server: vectors.take_lease(server, self._root, model, length, self._machine))
            if after is None:
                self._done = (head, model)
                self._ask_at = time.monotonic() + _AGAIN_S
                return False
            if not ask(lambda server: self._make(server, generation, after)):  # noqa: B023
                return False
        return True

    def _make(self, server: ServerConnection, generation: Generation, after: int) -> bool:
        """Make the vectors of one batch; return whether that went well."""
        feed = vectors.read_feed(server, self._root, after)
        texts = {
            one.id: rows.build_embedded_text(one.content, turns=one.turns) for one in feed if one.content is not None
        }
        keys = {id: stored.text_hash(text) for id, text in texts.items()}
        with self._core.store.reading() as connection:
            known = stored.find(connection, generation.model, list(keys.values()))
        missing = {keys[id]: text for id, text in texts.items() if keys[id] not in known}
        if missing and generation.pending:
            return False  # they are being embedded for this machine itself
        made = self._core.embedding.embed_texts(list(missing.values()))
        known |= {hash: one[1] for hash, one in zip(missing, made, strict=True) if one and one[0] is generation}
        given: list[tuple[Unembedded, bytes, Vector]] = [
            (one, keys[one.id], known[keys[one.id]]) for one in feed if one.id in keys and keys[one.id] in known
        ]
        if feed:
            vectors.put(server, self._root, generation.embedder.fingerprint, given, feed)
        return bool(feed)
