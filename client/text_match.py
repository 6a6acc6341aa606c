"""Finding words in a text, in any case and form of Unicode, with any white space, hyphens or underscores between."""

import re
from bisect import bisect_left, bisect_right
from unicodedata import normalize

from memoryd.client.patterns import compile_late

_BETWEEN = r"\s_\u2010-\u2013\u2212-"  # hyphens: hyphen, unbroken, figure dash, en dash, minus, the plain one
_GAP, _GAP_IN_JSON = f"[{_BETWEEN}]+", rf"(?:[{_BETWEEN}]|\\[bfnrt])+"
_GAPS = compile_late(f"(?<=[^{_BETWEEN}]){_GAP}(?=[^{_BETWEEN}])")


class Wording:
    """Words to find. `is_json`: the texts are JSON, in which line ends and quotes are escaped."""

    def __init__(self, words: str, *, is_json: bool = False) -> None:
        self._pattern = re.compile(
            (_GAP_IN_JSON if is_json else _GAP).join(
                re.escape(_quote(word) if is_json else word) for word in _GAPS.split(_fold(words.strip() or words))
            )
        )

    def find(self, text: str) -> tuple[int, int] | None:
        """Return where the words first occur in a text: the start and the end in characters."""
        match = self._pattern.search(folded := _fold(text))
        if match is None or len(folded) == len(text):
            return match and match.span()
        # Folding changed the length, so search for the places whose preceding text is as long when it is folded.
        places = range(len(text) + 1)
        begin = bisect_right(places, match.start(), key=lambda place: len(_fold(text[:place]))) - 1
        return begin, bisect_left(places, match.end(), key=lambda place: len(_fold(text[:place])))

    def is_in(self, text: str) -> bool:
        """Return whether the words occur in a text."""
        return self._pattern.search(_fold(text)) is not None


def _fold(text: str) -> str:
    return text.casefold() if text.isascii() else normalize("NFC", normalize("NFC", text).casefold())


def _quote(text: str) -> str:
    from msgspec import json

    return _fold(json.encode(text).decode()[1:-1])
