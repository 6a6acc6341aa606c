"""Replace the labels of nodes by those of a language model, in the background.

The model is asked once for each node; the label is kept, also by rebuilds, while the members' texts are unchanged. If
the model cannot be reached it is asked again later; if its answer is unusable it is not asked again for these members.
In both cases the label made by rules stays.

Threads: the extraction worker's. Labels are derived data, so they are not recorded as operations.
"""

import logging
import re
from collections.abc import Sequence

from msgspec import Struct

from memoryd.daemon.core.core import Core
from memoryd.daemon.llm.chat import Chat
from memoryd.daemon.llm.llm import DATA, MAX_TEXT_CHARS, cut
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.topics.tables import graph

BATCH = 8  # nodes per request
_PAUSE_S = 600.0  # after a failure
_TEXTS, _CHARS = 8, 400  # texts per node, and characters of each

_LABEL = (
    "You give groups of notes a label each, for a list in which people look for a subject. A label names what the "
    "notes of a group have in common in two to six plain words, in their language, with the names that tell it from "
    "other groups; no sentence, no quotation marks, no numbering. Give the labels in the order of the groups, one for "
    f"each. {DATA}"
)
_LABEL_CHARS = 60
_NO_LABEL = re.compile(r"[\x00-\x1f\x7f<>`\[\]{}|#*\"“”„]+")

log = logging.getLogger(__name__)


class Naming:
    """Labels nodes in small batches, as idle work of the extraction worker."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._not_before = 0.0

    def step(self) -> bool:
        """Label one batch of nodes; return whether there was one."""
        core, chat = self._core, self._core.cognition.provider.chat
        if chat is None or self.wait_s():
            return False
        with core.store.reading() as connection:
            nodes = graph.read_unnamed(connection, BATCH)
            texts = [graph.read_member_texts(connection, node, _CHARS) for node in nodes]
        if not nodes:
            return False
        labels = self._ask(chat, [found[:: max(1, len(found) // _TEXTS)][:_TEXTS] for found in texts])
        if labels is None:
            return False

        def write(transaction: Transaction) -> None:
            for node, label in zip(nodes, labels, strict=True):
                graph.label_node(transaction.connection, node, label, chat.config.model)

        core.store.write(write).result()
        return True

    def wait_s(self) -> float | None:
        """Return how long to wait after a failure, None if there was none."""
        left = self._not_before - self._core.clock()
        return left if 0 < left <= _PAUSE_S else None  # more: the clock was set back

    def _ask(self, chat: Chat, groups: Sequence[Sequence[str]]) -> list[str] | None:
        """Return labels, empty ones if the answer is unusable, None if there was no answer."""
        before = self._count_spent()
        try:
            return ask_labels(chat, groups)
        except Exception as error:
            log.warning("%s could not label nodes; they keep the labels made by rules: %s", chat.config.model, error)
        self._not_before = self._core.clock() + _PAUSE_S
        return [""] * len(groups) if self._count_spent() > before else None

    def _count_spent(self) -> int:
        usage = self._core.cognition.report_usage()
        return usage.tokens_in + usage.tokens_out if usage else 0


class Labels(Struct):
    """A label for each group, in their order."""

    labels: list[str]


def ask_labels(chat: Chat, groups: Sequence[Sequence[str]]) -> list[str]:
    """Ask for a label for each group of texts, in one request; reject the answer if one is missing."""
    listed = [{"number": number, "notes": _cut_notes(texts)} for number, texts in enumerate(groups, 1)]
    found = [_shorten(label) for label in chat.ask(_LABEL, {"groups": listed}, Labels).labels]
    if len(found) != len(groups) or not all(found):
        raise chat.reject(f"The model gave {sum(map(bool, found))} labels for {len(groups)} groups.")
    return found


def _shorten(label: str) -> str:
    """Return a label as inert text on one line, cut at a word; empty if it has no letters or digits."""
    line = " ".join("".join(c for c in _NO_LABEL.sub(" ", label) if c.isprintable()).split()).strip(" .,:;-'’")
    if len(line) > _LABEL_CHARS:
        line = line[:_LABEL_CHARS].rsplit(" ", 1)[0].rstrip(" .,:;-")
    return line if any(character.isalnum() for character in line) else ""


def _cut_notes(texts: Sequence[str]) -> list[str]:
    """Return excerpts of the texts to send, in total no longer than `MAX_TEXT_CHARS`."""
    sent, rest = [], MAX_TEXT_CHARS
    for text in texts:
        if rest > 0:
            sent.append(cut(" ".join(text.split()))[:rest])
            rest -= len(sent[-1])
    return sent
