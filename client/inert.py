"""Stored text made inert: on one line, without marks that a prompt could take for its own structure."""

import re
import unicodedata

_JOINERS = "\u200c\u200d"  # within words of some scripts, and within emoji
_ROLE_MARK = re.compile(r"\[(/?\s*(?:INST|SYS|system|user|assistant)\s*)\]", re.IGNORECASE)


def inert(text: str) -> str:
    """Return a text on one line, so that it opens no heading, list, fence or speaker's turn, and closes no tag.

    Control, direction and invisible characters go; `<` becomes `&lt;`, which no tag and no special token survives.
    """
    line = " ".join(text.split())
    if not line.isprintable():  # rare, and slow to mend
        line = " ".join("".join(filter(_visible, line)).split())
    return _ROLE_MARK.sub(r"(\1)", line.replace("<", "&lt;"))


def _visible(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co")
