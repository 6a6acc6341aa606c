"""Split texts into words and stems, as the full-text index does.

Chinese, Japanese and Thai have no spaces between words, and Korean words have endings. The index keeps a run of such
characters as one term; each pair of neighbouring characters in it counts as a word ("打印机": 打印, 印机).
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import apsw

from memoryd.daemon.store.stopwords import STOP_WORDS

# Thai and Lao, Burmese, Khmer; kana, Chinese characters, Hangul.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)


def split_words(connection: apsw.Connection, text: str) -> list[str]:
    """Return the distinct words of a text in order, split as the index splits them, without stop words."""
    distinct = dict.fromkeys(_tokenize(connection.fts5_tokenizer("unicode61", []), text))
    return [word for word in distinct if word not in STOP_WORDS]


def stem_words(connection: apsw.Connection, text: str) -> list[str]:
    """Return the stems of all words of a text in order, as the index keeps them."""
    return _tokenize(connection.fts5_tokenizer("porter", ["unicode61"]), text)


def build_stemmer(connection: apsw.Connection) -> Callable[[str], list[str]]:
    """Return a function from a word to its stems."""
    porter = connection.fts5_tokenizer("porter", ["unicode61"])
    return lambda word: _tokenize(porter, word)


def is_part(stem: str) -> bool:
    """Return whether a stem is a part of the terms of the index: a pair of characters, or a single one."""
    return len(stem) <= 2 and _UNSPACED.match(stem) is not None


def count_tokens(connection: apsw.Connection, text: str) -> int:
    """Return the length of a text in words as the index counts them."""
    tokenizer = connection.fts5_tokenizer("unicode61", [])
    tokens: Any = tokenizer(
        text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return len(tokens)


def _tokenize(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
    words: Any = tokenizer(
        text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
    )
    return list(words) if text.isascii() else [part for token in words for part in _split_pairs(token)]


def _split_pairs(token: str) -> Iterator[str]:
    """Yield the pairs of characters of a term in such a script, each once; any other term as it is."""
    runs = _UNSPACED.findall(token)
    if not runs:
        yield token
        return
    pairs = (run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1)))
    yield from dict.fromkeys(pairs)
