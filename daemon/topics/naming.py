"""Naming nodes of the graph by a language model, after the rules have named them: nobody waits for it.

Each set of members is named once. What was named is kept by the hash of the members' texts (table `names`), so a node
that is rebuilt from the same memories gets its label back without a question; the label of a deleted memory is deleted
with it. A model that cannot be reached is asked again later; one that answers what cannot be used is not asked
about the same members again. In both cases the rules' label stays.

Threads: the extraction worker's. Labels are derived, so they are no operations.
"""

import hashlib
import logging
from collections.abc import Sequence
from typing import NamedTuple

from memoryd.daemon.core.core import Core
from memoryd.daemon.llm.chat import Chat
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.topics.labels import ask_labels
from memoryd.daemon.topics.tables import graph as stored
from memoryd.daemon.topics.tables import graph_names
from memoryd.daemon.topics.tables.graph_names import Label

BATCH = 8  # nodes of one question
_PAUSE_S = 600.0  # after a failure
_TEXTS, _CHARS = 8, 400  # of each node that are sent
_DAY_S, _KEPT_DAYS = 86_400.0, 90

log = logging.getLogger(__name__)


class Unnamed(NamedTuple):
    """A node with the label of the rules, the hash of its members' texts, and some of these texts."""

    node: int
    label: str
    members: bytes
    texts: list[str]


class Naming:
    """Names a few nodes at a time."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._not_before = 0.0

    def step(self) -> bool:
        """Name some nodes; say whether there were any."""
        core, chat = self._core, self._core.cognition.provider.chat
        if chat is None or self.wait_s():
            return False
        with core.store.reading() as connection:
            unnamed = [_describe(connection, node) for node in stored.read_unnamed(connection, BATCH)]
            made = {one.members: known for one in unnamed if (known := graph_names.find(connection, one.members))}
        new = list({one.members: one for one in unnamed if one.members not in made}.values())
        if new:
            made.update(self._ask(chat, new))
        if not unnamed or not made:
            return False
        core.store.write(lambda transaction: _write(core, transaction, unnamed, made)).result()
        return True

    def wait_s(self) -> float | None:
        """Return how long to leave the model alone, None where nothing is to be tried again."""
        left = self._not_before - self._core.clock()
        return left if 0 < left <= _PAUSE_S else None  # more: the clock was set back

    def _ask(self, chat: Chat, new: Sequence[Unnamed]) -> dict[bytes, Label]:
        before = self._has_spent()
        try:
            labels = ask_labels(chat, [one.texts for one in new])
            return {one.members: Label(label, chat.config.model) for one, label in zip(new, labels, strict=True)}
        except Exception as error:
            log.warning("%s could not name nodes, the names of the rules stay: %s", chat.config.model, error)
        self._not_before = self._core.clock() + _PAUSE_S
        return dict.fromkeys((one.members for one in new), Label("", "")) if self._has_spent() > before else {}

    def _has_spent(self) -> int:
        usage = self._core.cognition.report_usage()
        return usage.tokens_in + usage.tokens_out if usage else 0


def _describe(connection: Connection, node: stored.StoredNode) -> Unnamed:
    """Return a node with its members: those of its clusters for a concept."""
    clusters = [node.id]
    if node.kind == stored.CONCEPT:
        clusters = stored.find_targets(connection, [node.id], stored.ABSTRACTED_FROM).get(node.id, [])
    found = graph_names.read_hashes_and_texts(connection, clusters, _CHARS)
    digest = hashlib.sha256(f"{node.namespace} {node.kind}".encode())
    for text_hash, _ in found:
        digest.update(text_hash)
    spread = found[:: max(1, len(found) // _TEXTS)][:_TEXTS]
    return Unnamed(node.id, node.label, digest.digest(), [text for _, text in spread])


def _write(core: Core, transaction: Transaction, unnamed: Sequence[Unnamed], made: dict[bytes, Label]) -> None:
    connection, now = transaction.connection, core.clock()
    for one in unnamed:
        there = stored.find_node(connection, one.node)
        if one.members not in made or there is None or not there.settled:
            continue
        if _describe(connection, there).members != one.members:
            continue
        label = made[one.members]
        text = label.text or there.label
        graph_names.label_node(connection, one.node, one.members, text, label.by)
        graph_names.forget_old(connection, one.node, one.members, now - _KEPT_DAYS * _DAY_S)
        graph_names.keep(connection, one.node, one.members, label, now)
