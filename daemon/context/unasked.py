"""What may come up though nobody asked for memories: a context at a session's start, or beside a prompt.

It costs the attention of whoever reads it, so it is held to more than what was asked for. Turns of low importance are
left out. A short prompt is like a question, of which each name counts: "PR #414" is not answered by what is known of
PR #421, nor one customer's limit by another's. What it names has to be in a memory, which also needs a share of the
rare words and a cosine well above the model's floor. A long prompt names too much for that.
"""

import re
from collections.abc import Iterator

from memoryd.client.protocol import Hit
from memoryd.daemon.search.retrieval import Retrieval
from memoryd.daemon.store import turns

_SHORT_WORDS = 20
_LEAST_SHARE = 0.4  # of the rare words
_ABOVE_FLOOR = 0.23  # of the way from the floor to 1
_WORD = re.compile(r"[^\W_](?:[\w./-]*\w)?")
_SENTENCE_END = re.compile(r"[.!?:]\s+\Z")


def is_worth(hit: Hit, retrieval: Retrieval, task: str, promote_from: float) -> bool:
    """Return whether a relevant hit is worth to come up unasked."""
    if hit.type == turns.TYPE and hit.importance < promote_from:
        return False
    if len(task.split()) > _SHORT_WORDS:
        return True
    return _is_near(hit, retrieval) and _has_names(hit, names_of(task))


def names_of(text: str) -> Iterator[str]:
    """Yield what a text names: words with figures, identifiers, and capitalised words that begin no sentence."""
    for found in _WORD.finditer(text):
        word = found[0]
        begins = found.start() == 0 or _SENTENCE_END.search(text[: found.start()])
        if any(sign.isdigit() or sign in "./_" for sign in word) or (word[0].isupper() and not begins):
            yield word.casefold()


def _is_near(hit: Hit, retrieval: Retrieval) -> bool:
    if retrieval.share(hit.bm25) < _LEAST_SHARE:
        return False
    if hit.similarity is None or retrieval.generation is None:
        return True
    floor = retrieval.generation.embedder.floors.relevant
    return hit.similarity >= floor + _ABOVE_FLOOR * (1 - floor)


def _has_names(hit: Hit, names: Iterator[str]) -> bool:
    known = [hit.content, *(one.content for one in hit.related), *map(str, hit.metadata.values())]
    text = "\n".join(known).casefold()
    return all(name in text for name in names)
