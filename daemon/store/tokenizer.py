"""A text as the full-text index splits it: words, and their stems."""

from collections.abc import Callable
from typing import Any

import apsw

from memoryd.daemon.store.stopwords import STOP_WORDS


def words_of(connection: apsw.Connection, text: str) -> list[str]:
    """Return the distinct words of a text in order, split as the index splits them, without stop words.

    If there are only stop words, they are all kept: the question may be about them.
    """
    distinct = list(dict.fromkeys(_tokens(connection.fts5_tokenizer("unicode61", []), text)))
    return [word for word in distinct if word not in STOP_WORDS] or distinct


def stems_of(connection: apsw.Connection, text: str) -> list[str]:
    """Return the stems of all words of a text in order, as the index keeps them."""
    return _tokens(connection.fts5_tokenizer("porter", ["unicode61"]), text)


def stemmer(connection: apsw.Connection) -> Callable[[str], list[str]]:
    """Return a function from a word to its stems."""
    porter = connection.fts5_tokenizer("porter", ["unicode61"])
    return lambda word: _tokens(porter, word)


def _tokens(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
    found: Any = tokenizer(
        text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
    )
    return list(found)
