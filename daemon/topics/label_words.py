"""Labels of nodes made from the words of their memories, without a language model.

A label has up to three terms that occur in at least half of the memories, and in at least two; if there are none, the
label is empty. Terms are ranked by tf-idf (Spärck Jones 1972): the number of memories with the term, times the
logarithm of one over its share in a sample of the namespace. Other namespaces are not used, so that labels reveal
nothing about them. Terms are compared by the stems of full text, and shown as the most common word form in the node.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from memoryd.daemon.store.stopwords import STOP_WORDS

Stemmer = Callable[[str], list[str]]

SAMPLE = 512  # memories that represent the namespace
LONGEST = 2000  # characters read of a memory
_TERMS = 3
_CACHED = 50_000  # words whose stem is cached
_WORD = re.compile(r"[^\W\d_][\w.+#'-]*", re.UNICODE)
_FILLERS = frozenset(
    "i me my mine we us our ours myself user assistant yes yeah okay hello hi thanks thank please sure well really "
    "like would use used using make made need good great help one two may don't i'm it's i've that's here's "
    "way thing things lot etc via per also new time day".split()
)
# The most common words of German, French, Spanish, Italian, Portuguese and Dutch that are no English nouns.
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


class Namer:
    """Makes labels, from the frequencies of stems in a sample of a namespace."""

    def __init__(self, sample: Iterable[str], stemmer: Stemmer) -> None:
        self._stems: dict[str, str] = {}
        found = [self._find_words(stemmer, text) for text in sample]
        self._sample_size, self._sampled = len(found), Counter(stem for words in found for stem in words)

    def label(self, texts: Sequence[str], stemmer: Stemmer) -> str:
        """Return the most distinctive terms that half of the texts have, separated by commas; empty without any."""
        found = [self._find_words(stemmer, text) for text in texts]
        counts = Counter(stem for words in found for stem in words)
        shared = [stem for stem, count in counts.items() if count >= max(2, len(texts) / 2)]
        size = self._sample_size + 1.5
        weights = {stem: counts[stem] * math.log(size / (self._sampled[stem] + 0.5)) for stem in shared}
        best = sorted(shared, key=lambda stem: (-weights[stem], stem))[:_TERMS]
        return ", ".join(_find_commonest(stem, found) for stem in best)

    def _find_words(self, stemmer: Stemmer, text: str) -> dict[str, list[str]]:
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
            if len(self._stems) >= _CACHED:
                self._stems.clear()
            stems = stemmer(word)
            known = self._stems[word] = stems[0] if len(stems) == 1 else word
        return known


def _find_commonest(stem: str, found: Sequence[dict[str, list[str]]]) -> str:
    forms = Counter(form for words in found for form in words.get(stem, []))
    return min(forms, key=lambda form: (-forms[form], len(form), form))
