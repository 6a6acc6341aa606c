"""Characters that nobody sees: a credential is one in spite of a zero-width space, a joiner or a soft hyphen inside."""

from bisect import bisect_right

from memoryd.client.patterns import compile_late

_INVISIBLE = compile_late(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]+"
)


def strip_invisible(text: str) -> str:
    """Return a text without them."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


class Visible:
    """What is seen of a text, and where in the text it is."""

    def __init__(self, text: str) -> None:
        """Leave out what is not seen."""
        self._begins: list[int] = []  # of the parts between, in what is seen
        self._shifts: list[int] = []
        parts, seen, at = [], 0, 0
        for match in _INVISIBLE.finditer(text):
            parts.append(text[at : match.start()])
            seen, at = seen + match.start() - at, match.end()
            self._begins.append(seen)
            self._shifts.append(at - seen)
        self.text = "".join([*parts, text[at:]])

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the whole text a part of what is seen begins and ends."""
        return self._place(start), self._place(end - 1) + 1

    def _place(self, at: int) -> int:
        number = bisect_right(self._begins, at)
        return at + (self._shifts[number - 1] if number else 0)


def has_invisible(text: str) -> bool:
    """Return whether a text has any."""
    return not text.isascii() and bool(_INVISIBLE.search(text))
