"""Whether what a language model says is supported by the texts that it was given: nothing of its own gets in.

What is specific has to be in the texts as it is: numbers, addresses, paths, commands and code. A text that was meant to
talk the model into something else shows in words that nobody said.
"""

from collections.abc import Sequence

from memoryd.client.patterns import compile_late

_WORD = compile_late(r"\w+")
_SPECIFIC = compile_late(r"\d|://|[/\\$@`|_]|\w\.\w")
_LEAST = 0.4  # of the words of a fact
_STEM, _SHORTEST = 4, 4  # characters: of a word that count, of a word that is looked at


def is_supported(text: str, sources: Sequence[str]) -> bool:
    """Return whether all that is specific in a text is in the texts given."""
    there = {word for one in sources for word in _WORD.findall(one.casefold())}
    specific = (word for word in text.casefold().split() if _SPECIFIC.search(word))
    return all(there.issuperset(_WORD.findall(word)) for word in specific)


def is_told(text: str, sources: Sequence[str]) -> bool:
    """Return whether the texts given also have enough of its words to say what it says."""
    there = {stem for one in sources for stem in _read_stems(one)}
    stems = _read_stems(text)
    return is_supported(text, sources) and (not stems or len(stems & there) >= _LEAST * len(stems))


def _read_stems(text: str) -> set[str]:
    """Return the beginnings of words; scripts without blanks are compared by pairs of characters."""
    stems: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if word.isascii() or not any(character > "\u2e7f" for character in word):
            stems |= {word[:_STEM]} if len(word) >= _SHORTEST else set()
        else:
            stems |= {word[at : at + 2] for at in range(len(word) - 1)}
    return stems
