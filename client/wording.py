"""Where a text says given words: in any case, with any white space, hyphens or underscores between them."""

import re

from memoryd.client.patterns import compile_late

_BETWEEN = r"\s_\u2010-\u2013\u2212-"  # hyphens: hyphen, unbroken, figure dash, en dash, minus, the plain one
_GAP, _GAP_IN_JSON = f"[{_BETWEEN}]+", rf"(?:[{_BETWEEN}]|\\[bfnrt])+"
_GAPS = compile_late(f"(?<=[^{_BETWEEN}]){_GAP}(?=[^{_BETWEEN}])")


class Wording:
    """Words that are looked for. `is_json`: in texts that are JSON, which writes line ends and quotes otherwise."""

    def __init__(self, words: str, *, is_json: bool = False) -> None:
        self._pattern = re.compile(
            (_GAP_IN_JSON if is_json else _GAP).join(
                re.escape(_quote(word) if is_json else word) for word in split_wording(words)
            )
        )

    def find(self, text: str) -> tuple[int, int] | None:
        """Return where a text says it first: from which character to which."""
        match = self._pattern.search(text.casefold())
        return match.span() if match else None

    def is_in(self, text: str) -> bool:
        """Return whether a text says it."""
        return self.find(text) is not None


def split_wording(words: str) -> list[str]:
    """Return what is between white space, hyphens and underscores, casefolded."""
    return _GAPS.split((words.strip() or words).casefold())


def _quote(text: str) -> str:
    from msgspec import json

    return json.encode(text).decode()[1:-1].casefold()
