"""Estimate how many stored texts are in languages that the embedding model does not support, and suggest another."""

from memoryd.client.protocol import Unread
from memoryd.daemon.language.tongues import LONGEST, count_languages
from memoryd.daemon.store.queries import read_sample
from memoryd.daemon.store.rows import find_last_number
from memoryd.daemon.store.store import Store
from memoryd.daemon.tiers.active import Active
from memoryd.models.catalog import CATALOG

_SAMPLE = 200  # texts
_FEWEST = 3  # texts of such a language
_LEAST = 0.1  # of all
_GROWTH = 50  # the sample is taken again when the number of texts has changed by 1/50


class UnreadSample:
    """Languages in a sample of memories and in L0; the sample is renewed after many additions."""

    def __init__(self, store: Store, active: Active) -> None:
        self._store, self._active = store, active
        self._model, self._size = "", 0
        self._found: Unread | None = None

    def find_unread(self, model: str) -> Unread | None:
        """Return the languages that the model does not support, None if few texts are in one or it is unknown."""
        read = CATALOG[model].languages if model in CATALOG else ()
        if not read:
            return None
        turns = self._active.list_turns(None)
        with self._store.reading() as connection:
            size = find_last_number(connection) + (turns[0].id if turns else 0)
            if model != self._model or abs(size - self._size) > self._size // _GROWTH:
                texts = [*read_sample(connection, _SAMPLE, LONGEST), *(turn.content for turn in turns)]
                self._model, self._size, self._found = model, size, _compare(texts, read)
        return self._found


def _compare(texts: list[str], read: tuple[str, ...]) -> Unread | None:
    counts = count_languages(texts)
    for name in read:
        del counts[name]
    number = counts.total()
    if number < max(_FEWEST, _LEAST * len(texts)):
        return None
    languages = [name for name, _ in counts.most_common()]
    better = next((row.name for row in CATALOG.values() if not row.languages), None)
    return Unread(languages=languages, share=number / len(texts), model=better) if better else None
