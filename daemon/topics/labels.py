"""Labels of nodes by a language model."""

import re
from collections.abc import Sequence

from msgspec import Struct

from memoryd.daemon.llm.chat import Chat
from memoryd.daemon.llm.llm import DATA, LONGEST, cut

_LABEL = (
    "You give groups of notes a label each, for a list in which people look for a subject. A label names what the "
    "notes of a group have in common in two to six plain words, in their language, with the names that tell it from "
    "other groups; no sentence, no quotation marks, no numbering. Give the labels in the order of the groups, one for "
    f"each. {DATA}"
)
_LABEL_CHARS = 60
_NO_LABEL = re.compile(r"[\x00-\x1f\x7f<>`\[\]{}|#*\"“”„]+")


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
    """Return excerpts of the texts to send, in total no longer than `LONGEST`."""
    sent, rest = [], LONGEST
    for text in texts:
        if rest > 0:
            sent.append(cut(" ".join(text.split()))[:rest])
            rest -= len(sent[-1])
    return sent
