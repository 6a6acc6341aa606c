"""Tokens used today, kept across restarts."""

import threading
from collections.abc import Callable


class Ledger:
    """The tokens of one UTC day; `known` is the text that `save` was given last."""

    def __init__(self, known: str | None, save: Callable[[str], object]) -> None:
        self._save, self._lock = save, threading.Lock()
        day, _, tokens = (known or "").partition(":")
        self._day, self._tokens = (int(day), int(tokens)) if day.isdecimal() and tokens.isdecimal() else (0, 0)

    def spend(self, day: int, tokens: int) -> int:
        """Add to the tokens of a day (since 1970) and return their sum."""
        with self._lock:
            if day != self._day:
                self._day, self._tokens = day, 0
            self._tokens += tokens
            if tokens:
                self._save(f"{self._day}:{self._tokens}")
            return self._tokens
