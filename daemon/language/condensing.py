"""One sentence for a text: the one that shares most words with the others. Pure functions."""

from collections import defaultdict
from collections.abc import Sequence
from math import hypot, sqrt

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import rating
from memoryd.daemon.store.stopwords import STOP_WORDS

MAX_SENTENCES = 10  # looked at: those of the beginning, where people say what they mean
MAX_CHARS = 300  # of the result
_READ_CHARS = 8_000
_MIN_WORDS, _MIN_UNSPACED = 3, 6  # of a sentence: words, or characters of a script without blanks
_UNSPACED = compile_late(r"[\u3040-\u30ff\u3400-\u9fff]")
_MONTHS = "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"  # am 3. Mai
_BOUNDARY = compile_late(
    r"(?<=[.!?…])(?<!\.\.)[\"')\]]*\s+(?!(?<=[0-9]\.\s)(?:" + _MONTHS + r")\b)(?=[\"'(\[]*[A-Z0-9ÄÖÜÉÀ])"
    r"|(?<=[。！？])|\n+"
)
_LEAD = compile_late(r"^(?:[-*•>#]+|\d+[.)]|User:|Assistant:)\s*")
_WORD = compile_late(r"[^\W_]{2,}")
_ABBREVIATED = compile_late(r"\b(?:e\.g|i\.e|etc|vs|approx|Mr|Mrs|Ms|Dr|St)\.$")


def split_sentences(text: str, limit: int = MAX_SENTENCES) -> list[str]:
    """Return the first sentences of a text as written, without bullets and speakers; code lines are left out."""
    pieces: list[str] = []
    joined = ""
    for part in _BOUNDARY.split(text[:_READ_CHARS].replace("```", "\n")):
        piece = f"{joined} {part}".strip() if joined else _LEAD.sub("", part.strip())
        joined = piece if _ABBREVIATED.search(piece) else ""
        if not joined and (len(piece.split()) >= _MIN_WORDS or len(_UNSPACED.findall(piece)) >= _MIN_UNSPACED):
            pieces.append(piece)
    if joined:
        pieces.append(joined)
    return pieces[:limit]


def find_central(sentences: Sequence[str]) -> str:
    """Return the sentence whose words are nearest to those of all; what informs precedes what does not."""
    weights = [rating.importance(sentence) for sentence in sentences]
    near = measure_centrality([find_words(sentence) for sentence in sentences], weights)
    scores = [centrality + 0.25 * weight for centrality, weight in zip(near, weights, strict=True)]
    sentence = sentences[scores.index(max(scores))]
    return sentence if len(sentence) <= MAX_CHARS else sentence[: MAX_CHARS - 1].rsplit(" ", 1)[0] + "…"


def find_words(sentence: str) -> frozenset[str]:
    """Return the words of a sentence that carry meaning."""
    return frozenset(word.casefold() for word in _WORD.findall(sentence)) - STOP_WORDS


def measure_centrality(said: Sequence[frozenset[str]], weights: Sequence[float]) -> list[float]:
    """Return the cosine of the words of each sentence with those of all, each sentence with its weight."""
    total: dict[str, float] = defaultdict(float)
    for words, weight in zip(said, weights, strict=True):
        for word in words:
            total[word] += weight
    length = hypot(*total.values()) or 1.0
    return [sum(total[word] for word in words) / (length * sqrt(len(words) or 1)) for words in said]
