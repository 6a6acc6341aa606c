"""Check that the output of a language model is supported by its input texts.

Numbers, addresses, paths, commands and code must occur in the input literally. Other words of the output must mostly
occur there, too; this detects inventions and the effects of prompt injections.
"""

from collections.abc import Sequence

from memoryd.client.patterns import compile_late

_WORD = compile_late(r"\w+")
_SPECIFIC = compile_late(r"\d|://|[/\\$@`|_]|\w\.\w")
_LEAST = 0.4  # share of the words of a fact
_STEM, _SHORTEST = 4, 4  # characters: compared of a word, and of the shortest word that counts


def is_supported(text: str, sources: Sequence[str]) -> bool:
    """Return whether all numbers, addresses, paths, commands and code of a text are in the given texts."""
    there = {word for one in sources for word in _WORD.findall(one.casefold())}
    specific = (word for word in text.casefold().split() if _SPECIFIC.search(word))
    return all(there.issuperset(_WORD.findall(word)) for word in specific)


def is_told(text: str, sources: Sequence[str]) -> bool:
    """Return whether, in addition, the given texts contain enough of its words."""
    there = {stem for one in sources for stem in _read_stems(one)}
    stems = _read_stems(text)
    return is_supported(text, sources) and (not stems or len(stems & there) >= _LEAST * len(stems))


def _read_stems(text: str) -> set[str]:
    """Return the beginnings of words, or pairs of characters for scripts without spaces."""
    stems: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if word.isascii() or not any(character > "\u2e7f" for character in word):
            stems |= {word[:_STEM]} if len(word) >= _SHORTEST else set()
        else:
            stems |= {word[at : at + 2] for at in range(len(word) - 1)}
    return stems
