"""Reading pickles of others without running anything of theirs.

Every class and function that a pickle names becomes an inert stand-in that only keeps what it is given. Plain values
(numbers, texts, lists, dictionaries) come out as they are.
"""

import io
import pickle
from typing import Any

MAX_BYTES = 1024 * 1024 * 1024


class Inert:
    """Replaces an object of any class: its state becomes attributes, calls and items are taken and forgotten."""

    def __new__(cls, *given: Any, **named: Any) -> "Inert":
        """Take whatever a constructor would."""
        return super().__new__(cls)

    def __init__(self, *given: Any, **named: Any) -> None:
        """Keep nothing of it."""

    def __setstate__(self, state: Any) -> None:
        """Keep the attributes that the object had."""
        fields = state[0] if isinstance(state, tuple) and state and isinstance(state[0], dict) else state
        if isinstance(fields, dict):
            inner = fields.get("__dict__", fields)  # pydantic keeps the fields one level down
            self.__dict__.update({str(name): value for name, value in dict(inner or {}).items()})

    def append(self, value: Any) -> None:
        """Forget an item."""

    def extend(self, values: Any) -> None:
        """Forget items."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Forget an entry."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Give the stand-in for everything."""
        return Inert

    def persistent_load(self, key: Any) -> Any:
        """Give nothing for what is outside."""
        return None


def load_plain(data: bytes) -> Any:
    """Return what a pickle holds; raise `ValueError` when it is none."""
    if len(data) > MAX_BYTES:
        raise ValueError("it is above 1 GiB")
    try:
        return _Plain(io.BytesIO(data)).load()
    except Exception as error:  # a broken pickle raises whatever its broken orders lead to
        raise ValueError(f"it is no pickle that can be read ({type(error).__name__})") from None
