"""Where a text says given words: in any case, with any white space between them, with any of the usual hyphens."""

import re

from memoryd.client.patterns import compile_late

_SPACE = r"\s+"
_HYPHEN = r"[-\u2010-\u2013\u2212]"  # the plain one, hyphen, unbroken, figure dash, en dash, minus
_SPACES, _HYPHENS = compile_late(_SPACE), compile_late(_HYPHEN)
_IN_JSON = r"(?:\s|\\[bfnrt])+"


class Wording:
    """Words that are looked for. `is_json`: in texts that are JSON, which writes line ends and quotes otherwise."""

    def __init__(self, words: str, *, is_json: bool = False) -> None:
        self._pattern = re.compile(
            (_IN_JSON if is_json else _SPACE).join(
                _HYPHEN.join(re.escape(_quote(part) if is_json else part) for part in _HYPHENS.split(word))
                for word in _SPACES.split((words.strip() or words).casefold())
            )
        )

    def find(self, text: str) -> tuple[int, int] | None:
        """Return where a text says it first: from which character to which."""
        match = self._pattern.search(text.casefold())
        return match.span() if match else None

    def is_in(self, text: str) -> bool:
        """Return whether a text says it."""
        return self.find(text) is not None


def _quote(text: str) -> str:
    from msgspec import json

    return json.encode(text).decode()[1:-1].casefold()
