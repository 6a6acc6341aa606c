"""Choose one sentence to represent a text: the one that shares most words with the others. Pure functions."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from math import hypot, sqrt

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import rating
from memoryd.daemon.language.sentences import split_sentences
from memoryd.daemon.store.stopwords import STOP_WORDS

MAX_SENTENCES = 10  # considered, from the beginning, which usually has the main point
MAX_CHARS = 300  # of the result
_MIN_WORDS, _MIN_UNSPACED = 3, 6  # of a sentence: words, or characters of a script without blanks
_UNSPACED = compile_late(r"[\u3040-\u30ff\u3400-\u9fff]")
_WORD = compile_late(r"[^\W_]{2,}")
_SPEAKER = compile_late(r"^(?:User|Assistant):\s*")


def list_telling(text: str, limit: int = MAX_SENTENCES) -> list[str]:
    """Return the first sentences of a text with enough words, as written, without bullets, speakers and code."""
    found = (_SPEAKER.sub("", sentence) for sentence in split_sentences(text))
    telling = (one for one in found if len(one.split()) >= _MIN_WORDS or len(_UNSPACED.findall(one)) >= _MIN_UNSPACED)
    return list(islice(telling, limit))


def find_central(sentences: Sequence[str]) -> str:
    """Return the sentence whose words are most similar to those of all; statements are preferred."""
    weights = [rating.importance(sentence) for sentence in sentences]
    near = measure_centrality([find_words(sentence) for sentence in sentences], weights)
    scores = [centrality + 0.25 * weight for centrality, weight in zip(near, weights, strict=True)]
    sentence = sentences[scores.index(max(scores))]
    return sentence if len(sentence) <= MAX_CHARS else sentence[: MAX_CHARS - 1].rsplit(" ", 1)[0] + "…"


def find_words(sentence: str) -> frozenset[str]:
    """Return the words of a sentence without stop words."""
    return frozenset(word.casefold() for word in _WORD.findall(sentence)) - STOP_WORDS


def measure_centrality(said: Sequence[frozenset[str]], weights: Sequence[float]) -> list[float]:
    """Return the cosine between the words of each sentence and the weighted words of all."""
    total: dict[str, float] = defaultdict(float)
    for words, weight in zip(said, weights, strict=True):
        for word in words:
            total[word] += weight
    length = hypot(*total.values()) or 1.0
    return [sum(total[word] for word in words) / (length * sqrt(len(words) or 1)) for words in said]
