"""Names of nodes from the words of their memories, where no language model names them.

A term counts for a node by the number of its memories that hold it, times how rare it is in the namespace: the
logarithm of one over its share of a sample of it (tf-idf, Spärck Jones 1972). Other namespaces have no say, so that a
label says nothing about them.
Terms are compared by the stem that full text uses and shown as the whole word that is commonest in the node.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from memoryd.daemon.store import tokenizer
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.stopwords import STOP_WORDS
from memoryd.daemon.topics.tables import graph_names

# What names nodes: the texts of each node's members → a label each. The connection is there to ask what is known.
Namer = Callable[[Connection, Sequence[Sequence[str]]], list[str]]
Stemmer = Callable[[str], list[str]]

FIRST_CHARS = 80
_TERMS = 4
_SAMPLE = 512  # memories of the namespace that stand for all of it
_KEPT = 50_000  # words whose stem is kept
LONGEST = 2000  # characters of a memory that are looked at
_WORD = re.compile(r"[^\W\d_][\w.+#'-]*", re.UNICODE)
_FILLERS = frozenset(
    "i me my mine we us our ours myself user assistant yes yeah okay hello hi thanks thank please sure well really "
    "like would use used using make made need good great help one two may don't i'm it's i've that's here's "
    "way thing things lot etc via per also new time day".split()
)
# The commonest words of German, French, Spanish, Italian, Portuguese and Dutch that name nothing in English.
_FOREIGN = frozenset(
    """
der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind waren wird werden wurde
wurden haben hatte ich wir ihr sie mir mich uns euch sich sein seine ihre unser unsere mit von vom zum zur aus bei nach
für über unter auf als wie wenn dann weil dass daß auch nur noch schon sehr mehr was wer kann muss soll hier dort diese
dieser dieses mal man durch gegen ohne bis seit immer beim ins
les des une aux est sont était ont avec pour par sur dans sans sous qui que quoi dont pas plus cette ces nous vous ils
elle elles leur leurs notre votre mais comme être avoir fait très aussi donc quand tout tous
los las una unos unas del con por para sin sobre que como pero más muy este esta estos estas ese esa está han hay ser
tiene cuando donde desde hasta también porque nos sus
gli della delle degli dei nel nella con per non che chi come più anche sono era essere hanno questo questa quando dove
dos das uma não com para por mais mas seu sua são foi ser está quando também pelo pela isso esta este
het een van voor met niet zijn wordt worden werd heeft hebben dat deze dit die naar door maar ook nog als aan bij uit
""".split()
)
_IGNORED = STOP_WORDS | _FILLERS | _FOREIGN


def take_first_words(text: str) -> str:
    """Return the beginning of a node's first member, its label until it is named."""
    line = " ".join(text[: 4 * FIRST_CHARS].split())
    if len(line) <= FIRST_CHARS:
        return line
    cut = line[: FIRST_CHARS + 1]
    return cut.rpartition(" ")[0] or cut[:FIRST_CHARS]


class NodeNamer:
    """Names nodes by their terms. What it knows of a namespace serves for some nodes, the more the larger that is."""

    def __init__(self) -> None:
        self._known: dict[int, StemFrequencies] = {}

    def build_namer(self, connection: Connection, namespace: int) -> Namer:
        """Return a function that names nodes of a namespace."""
        terms = self._known.get(namespace)
        if terms is None or terms.is_stale():
            terms = self._known[namespace] = StemFrequencies(connection, namespace)
        return terms.label_groups


class StemFrequencies:
    """How common stems are in a namespace."""

    def __init__(self, connection: Connection, namespace: int) -> None:
        self._stems: dict[str, str] = {}
        sample = graph_names.sample_texts(connection, namespace, _SAMPLE)
        stemmer = tokenizer.build_stemmer(connection)
        self._sampled = Counter(stem for text in sample for stem in self._find_words(stemmer, text))
        self._sample_size = len(sample)
        self._named = 0

    def is_stale(self) -> bool:
        """Return whether so many nodes were named that the namespace may be another one by now."""
        return 2 * self._named > self._sample_size

    def label_groups(self, connection: Connection, groups: Sequence[Sequence[str]]) -> list[str]:
        """Return a label for each group of texts."""
        self._named += len(groups)
        return [self.label(connection, texts) for texts in groups]

    def label(self, connection: Connection, texts: Sequence[str]) -> str:
        """Return the most distinctive terms of some texts; the beginning of the text if there is one only."""
        if len(texts) < 2:
            return take_first_words(texts[0]) if texts else ""
        stemmer = tokenizer.build_stemmer(connection)
        found = [self._find_words(stemmer, text) for text in texts]
        counts = Counter(stem for words in found for stem in words)
        shared = [stem for stem, count in counts.items() if count > 1] or list(counts)
        whole, sampled = self._sample_size + 1.5, self._sampled
        rarity = {stem: math.log(whole / (sampled[stem] + 0.5)) for stem in shared}
        best = sorted(shared, key=lambda stem: (-counts[stem] * rarity[stem], stem))[:_TERMS]
        return ", ".join(_find_commonest(stem, found) for stem in best) or take_first_words(texts[0])

    def _find_words(self, stemmer: Stemmer, text: str) -> dict[str, list[str]]:
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


def _find_commonest(stem: str, found: Sequence[dict[str, list[str]]]) -> str:
    forms = Counter(form for words in found for form in words.get(stem, []))
    return min(forms, key=lambda form: (-forms[form], len(form), form))
