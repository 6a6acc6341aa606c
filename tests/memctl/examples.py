"""Calls of memctl in lines of a shell."""

import shlex
from collections.abc import Iterator


def invocations(text: str) -> Iterator[list[str]]:
    """Return the words of each call of memctl in lines of a shell, also of those in pipes and `$(…)`."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.wordchars += "$%@:,+"
        words: list[str] | None = None
        for token in lexer:
            if set(token) <= set("();<>|&"):
                if words is not None:
                    yield words
                words = None
            elif words is not None:
                words.append(token)
            elif token == "memctl":
                words = []
        if words is not None:
            yield words
