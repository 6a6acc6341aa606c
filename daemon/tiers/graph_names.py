"""Names of nodes from the words of their memories, where no language model names them.

A term counts for a node by the share of its memories that hold it, times how rare it is elsewhere: the logarithm of one
over the larger of its share of all memories and its share of a sample of the namespace (tf-idf, Spärck Jones 1972).
Terms are compared by the stem that full text uses and shown as the whole word that is commonest in the node.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import apsw

from memoryd.daemon.store.stopwords import STOP_WORDS

# What names nodes: the texts of each node's members → a label each.
Namer = Callable[[Sequence[Sequence[str]]], list[str]]
Stemmer = Callable[[str], list[str]]

FIRST_CHARS = 80
_TERMS = 4
_SAMPLE = 256  # memories of the namespace that stand for all of it
_KEPT = 50_000  # words whose stem and rarity are kept
LONGEST = 2000  # characters of a memory that are looked at
_WORD = re.compile(r"[^\W\d_][\w.+#'-]*", re.UNICODE)
_FILLERS = frozenset(
    "i me my mine we us our ours myself user assistant yes yeah okay hello hi thanks thank please sure well really "
    "like would use used using make made need good great help one two may don't i'm it's i've that's here's "
    "way thing things lot etc via per also new time day".split()
)
_IGNORED = STOP_WORDS | _FILLERS


def first_words(text: str) -> str:
    """Return the beginning of a node's first member, its label until it is named."""
    return " ".join(text[: 4 * FIRST_CHARS].split())[:FIRST_CHARS].strip()


class Names:
    """Names nodes by their terms. What it knows of a namespace is kept until that has grown by a tenth."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Terms]] = {}

    def namer(self, connection: apsw.Connection, namespace: int) -> Namer:
        """Return a function that names nodes of a namespace; it works on this connection."""
        last: Any = connection.execute("SELECT max(row) FROM memories").get
        since, terms = self._known.get(namespace, (-1, None))
        if terms is None or last > 1.1 * since:
            terms = Terms(connection, namespace)
            self._known[namespace] = (last or 0, terms)
        known = terms
        return lambda groups: [known.label(connection, texts) for texts in groups]


class Terms:
    """How common stems are in a namespace and everywhere."""

    def __init__(self, connection: apsw.Connection, namespace: int) -> None:
        self._stems: dict[str, str] = {}
        self._shares: dict[str, float] = {}
        total: Any = connection.execute("SELECT count(*) FROM memories").get
        self._total = int(total)
        sample = _sample(connection, namespace)
        stemmer = _stemmer(connection)
        self._sampled = Counter(stem for text in sample for stem in self._words(stemmer, text))
        self._sample_size = len(sample)

    def label(self, connection: apsw.Connection, texts: Sequence[str]) -> str:
        """Return the most distinctive terms of some texts; the beginning of the text if there is one only."""
        if len(texts) < 2:
            return first_words(texts[0]) if texts else ""
        stemmer = _stemmer(connection)
        found = [self._words(stemmer, text) for text in texts]
        counts = Counter(stem for words in found for stem in words)
        shared = [stem for stem, count in counts.items() if count > 1] or list(counts)
        best = sorted(shared, key=lambda stem: (-counts[stem] * self._rarity(connection, stem), stem))[:_TERMS]
        return ", ".join(_commonest(stem, found) for stem in best) or first_words(texts[0])

    def _words(self, stemmer: Stemmer, text: str) -> dict[str, list[str]]:
        """Return the whole words of a text under their stems."""
        words: defaultdict[str, list[str]] = defaultdict(list)
        for match in _WORD.finditer(text[:LONGEST]):
            word = match[0].rstrip(".'-")
            plain = word.casefold()
            if len(word) > 2 and plain not in _IGNORED:
                words[self._stem(stemmer, plain)].append(word)
        return words

    def _stem(self, stemmer: Stemmer, word: str) -> str:
        known = self._stems.get(word)
        if known is None:
            if len(self._stems) >= _KEPT:
                self._stems.clear()
            stems = stemmer(word)
            known = self._stems[word] = stems[0] if len(stems) == 1 else word
        return known

    def _rarity(self, connection: apsw.Connection, stem: str) -> float:
        share = self._shares.get(stem)
        if share is None:
            if len(self._shares) >= _KEPT:
                self._shares.clear()
            documents: Any = connection.execute("SELECT doc FROM memories_terms WHERE term = ?", (stem,)).get
            everywhere = (documents or 1) / max(1, self._total)
            here = self._sampled[stem] / max(1, self._sample_size)
            share = self._shares[stem] = max(everywhere, here)
        return math.log(1.5 / min(1.0, share))


def _stemmer(connection: apsw.Connection) -> Stemmer:
    """Return the stemmer of full text."""
    tokenizer = connection.fts5_tokenizer("porter", ["unicode61"])

    def stems(word: str) -> list[str]:
        found: Any = tokenizer(
            word.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )
        return list(found)

    return stems


def _commonest(stem: str, found: Sequence[dict[str, list[str]]]) -> str:
    forms = Counter(form for words in found for form in words.get(stem, []))
    return min(forms, key=lambda form: (-forms[form], len(form), form))


def _sample(connection: apsw.Connection, namespace: int) -> list[str]:
    """Return texts of memories spread evenly over a namespace."""
    rows: list[int] = [
        row for (row,) in connection.execute("SELECT row FROM memories WHERE namespace = ? ORDER BY row", (namespace,))
    ]
    chosen = rows[:: max(1, len(rows) // _SAMPLE)][:_SAMPLE]
    found = connection.execute(f"SELECT content FROM memories WHERE row IN ({', '.join(map(str, chosen))})")
    return [str(content) for (content,) in found]
