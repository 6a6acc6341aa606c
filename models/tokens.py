"""Convert texts to token ids; safe for many threads.

Wraps a `tokenizer.json`. Truncation and padding written in that file are switched off, because published files often
cut at the wrong length and pad every text; this module cuts at the model's own limit. Nothing is changed after
construction, so one instance serves all threads. A long text is tokenised without holding the GIL.
"""

import os
from pathlib import Path

from tokenizers import Encoding, Tokenizer

from memoryd.models.errors import ModelBroken

# A text is cut to this many characters per token of the model's limit before it is tokenised, so that a megabyte of
# text costs no more than its first pages.
CHARACTERS_PER_TOKEN = 64

# Only calls for many texts release the interpreter's lock; for a short text they take longer.
_LONG_CHARACTERS = 2_000
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # such a call starts no threads of its own


class Tokens:
    """The tokenizer of one model."""

    def __init__(self, path: Path, max_tokens: int, special: bool) -> None:
        """Read `path`; with `special`, ids begin and end with the tokens that the model was trained to see there."""
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ModelBroken(f"{path.name} cannot be read as a tokenizer ({error}).") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._begin, self._end = self._find_frame() if special else ([], [])
        self._room = max_tokens - len(self._begin) - len(self._end)
        self._limit_characters = max_tokens * CHARACTERS_PER_TOKEN

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text, cut to the model's limit."""
        body: list[int] = self._encode(text[: self._limit_characters]).ids
        return [*self._begin, *body[: self._room], *self._end]

    def count(self, text: str) -> int:
        """Return the number of tokens in a text, without regard to the limit, and without special tokens."""
        return len(self._encode(text))

    def _encode(self, text: str) -> Encoding:
        # Lone surrogates cannot be written as UTF-8, which the tokenizer works on.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        if len(clean) < _LONG_CHARACTERS:
            return self._tokenizer.encode(clean, add_special_tokens=False)
        [encoding] = self._tokenizer.encode_batch_fast([clean], add_special_tokens=False)
        return encoding

    def _find_frame(self) -> tuple[list[int], list[int]]:
        """Find the special ids before and after a text by comparing a word with and without them."""
        bare: list[int] = self._encode("word").ids
        full: list[int] = self._tokenizer.encode("word", add_special_tokens=True).ids
        extra = len(full) - len(bare)
        for start in range(extra + 1):
            if full[start : start + len(bare)] == bare:
                return full[:start], full[start + len(bare) :]
        return [], []
