"""Facts of a conversation by rules: sentences that decide, correct, prefer, fix a date, set a rule or teach something.

Two things are looked at: the marks of each kind, and whether its turn is nearer in meaning to examples of what lasts or
of what passes. Without a model the marks decide alone, which finds fewer. What only asks, wavers or will be over by
tomorrow is left out. What an assistant says counts less, and
only a user corrects or prefers; nothing is taken from tools. Pure functions, linear in the text.

The nearness of a turn to the examples is that of the means of the `_NEAREST` most similar ones of each sort, on a scale
on which the examples themselves, each compared with the others, are on average at 1 and -1: so it means the same with
every model.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import condensing, marks, rating
from memoryd.daemon.language.marks import ASSISTANT, FACT, KINDS, USER, Kind
from memoryd.daemon.store.stopwords import STOP_WORDS

MAX_CHARS = 400  # of a fact
MAX_SENTENCES = 40  # of a turn
_MIN_WORDS = 4
_SHORT_CHARS = 250
_HASTY_CHARS = 80
_WHOLE_WORDS = 7  # of a sentence that says something whole
_SAME_WORDS = 0.6  # share of the shorter one's words that two facts have in common when they say the same
_PLAIN = 0.67  # confidence of a user's statement without a mark, before its meaning is looked at
# Weighed on conversations of eight subjects, each compared with examples of the others alone.
_NEARNESS_GAIN, _SHIFT = 0.15, 0.1
_NEAREST, _LEAST_SPREAD = 8, 1e-6
_AT_LEAST, _TURNS_PER_FACT = 4, 2  # facts of a conversation that are no whole turns

Vectors = NDArray[np.float32]


class Fact(NamedTuple):
    """One thing worth keeping: its type, how sure it is (0 to 1), and the turns that say it, by index."""

    text: str
    type: str
    confidence: float
    turns: tuple[int, ...]


class Statement(NamedTuple):
    """A sentence that states something: who says it in which turn, what it is by its marks (None: it has none)."""

    text: str
    role: str
    turn: int
    kind: Kind | None
    confidence: float  # by its marks


class _Said(NamedTuple):
    """The words of a fact that carry meaning, and those of them with a digit."""

    words: frozenset[str]
    figures: frozenset[str]


_MARKED = {feature.name: feature.pattern for feature in rating.FEATURES}
_CONCRETE = ("number", "date", "code", "name")
_WEIGHTY = ("decision", "rule", "lesson", "plan")
_WORD = compile_late(r"[^\W_]+(?:['’.:/-][^\W_]+)*")
_FENCE = compile_late(r"```[\s\S]*?(?:```|\Z)|^[ \t]*>.*$", re.MULTILINE)  # code, and what is quoted
_LARGE_PENALTY, _PENALTY, _SMALL_PENALTY, _ASSISTANT_PENALTY, _CONCRETE_GAIN = 0.4, 0.25, 0.15, 0.12, 0.05


class Examples:
    """The vectors of both sorts, shape (n, dimensions), each with more than `_NEAREST` rows."""

    def __init__(self, lasting: Vectors, passing: Vectors) -> None:
        self._lasting, self._passing = lasting, passing
        high = float(np.mean(self._margins(lasting, own=1, other=0)))
        low = float(np.mean(self._margins(passing, own=0, other=1)))
        self._middle, self._half = (high + low) / 2, max((high - low) / 2, _LEAST_SPREAD)

    def nearness(self, vectors: Vectors) -> Vectors:
        """Return for each vector how much nearer it is to what lasts: about 1 for what does, -1 for what passes."""
        if not len(vectors):
            return np.zeros(0, np.float32)
        made: Vectors = (self._margins(vectors, 0, 0) - self._middle) / self._half
        return made

    def _margins(self, vectors: Vectors, own: int, other: int) -> Vectors:
        """Return the differences of similarity; `own` and `other`: how many of the nearest of each are left out."""
        margins: Vectors = _mean(vectors @ self._lasting.T, own) - _mean(vectors @ self._passing.T, other)
        return margins


def _mean(similarities: Vectors, without: int) -> Vectors:
    """Return the mean of the highest of each row, the very highest left out where they are the row itself."""
    ordered = -np.sort(-similarities, axis=1)
    mean: Vectors = ordered[:, without : without + _NEAREST].mean(axis=1)
    return mean


def extract_by_marks(found: Iterable[Statement]) -> list[Fact]:
    """Return the statements that have the mark of a kind, as facts."""
    return [
        Fact(one.text, one.kind.type, round(one.confidence, 3), (one.turn,)) for one in found if one.kind is not None
    ]


def extract_by_meaning(found: Sequence[Statement], vectors: Vectors, examples: Examples) -> list[Fact]:
    """Return statements as facts, the surer the nearer they are to examples of what lasts."""
    made = []
    for one, nearness in zip(found, examples.nearness(vectors).tolist(), strict=True):
        sure = one.confidence + _NEARNESS_GAIN * nearness + (_SHIFT if one.role == USER else 0.0)
        kind = one.kind.type if one.kind else FACT
        made.append(Fact(one.text, kind, round(min(1.0, max(0.0, sure)), 3), (one.turn,)))
    return made


def extract_from_turn(role: str, content: str, index: int) -> list[Statement]:
    """Return what one turn states. What an assistant states without a mark of a kind is left out.

    Of a user's short turn without a mark, and of an assistant's short turn, only one sentence alone is taken, as it is
    written: it has a vector already.
    """
    if role not in (USER, ASSISTANT):
        return []
    made: list[Statement] = []
    before = ""
    for sentence in _split_sentences(_FENCE.sub("\n", content)):
        if len(sentence) > MAX_CHARS:  # no fact, and patterns would take their time on it
            before = ""
            continue
        text, resolved = _resolve(sentence, before)
        before = sentence
        kind = _kind_of(role, marks.QUOTED.sub(" ", sentence))
        if _is_asking(sentence) or len(text) > MAX_CHARS or len(text.split()) < _MIN_WORDS:
            continue
        if (kind is None or role == ASSISTANT) and len(content) <= _SHORT_CHARS:
            if sentence != content:
                continue
            text = content
        if kind is not None or role == USER:
            confidence = _confidence(kind, role, sentence, text, resolved)
            made.append(Statement(text, role, index, kind, confidence))
    return made


def merge(found: Iterable[Fact]) -> list[Fact]:
    """Return facts without those that others say as well: a user's precedes an assistant's echo of it."""
    kept: list[tuple[Fact, _Said]] = []
    for fact in found:
        said = _read_words(fact.text)
        at = next((i for i, (_, known) in enumerate(kept) if _is_same(said, known)), None)
        if at is None:
            kept.append((fact, said))
            continue
        other, known = kept[at]
        turns = tuple(sorted({*other.turns, *fact.turns}))
        better = fact if fact.confidence > other.confidence else other
        kept[at] = (better._replace(turns=turns), said if better is fact else known)
    return [fact for fact, _ in kept]


def choose_surest(facts: Sequence[Fact], contents: Sequence[str]) -> list[Fact]:
    """Return the facts that are whole turns, and the surest others, about one for two turns: each takes an embedding.

    Nothing is lost: a sentence that becomes no fact is found as part of its turn.
    """
    whole = {at for at, fact in enumerate(facts) if any(fact.text == contents[turn] for turn in fact.turns)}
    others = sorted(set(range(len(facts))) - whole, key=lambda at: (-facts[at].confidence, at))
    chosen = whole.union(others[: max(_AT_LEAST, len(contents) // _TURNS_PER_FACT)])
    return [fact for at, fact in enumerate(facts) if at in chosen]


def is_lasting(role: str, sentence: str) -> bool:
    """Return whether a sentence is about more than the moment and the speaker's own doing."""
    return not marks.PASSING.search(sentence) and not (role == ASSISTANT and marks.DOING.match(sentence))


def find_content_words(text: str) -> frozenset[str]:
    """Return the words of a text that carry meaning."""
    return frozenset(word.casefold().replace("’", "'") for word in _WORD.findall(text)) - STOP_WORDS


def _split_sentences(content: str) -> list[str]:
    """Return the sentences of a turn; one of short pieces alone, as people type in haste, is one sentence."""
    found = condensing.split_sentences(content, MAX_SENTENCES)
    whole = " ".join(content.split())
    short = len(whole) <= _HASTY_CHARS and not any(len(sentence.split()) >= _MIN_WORDS for sentence in found)
    return [whole] if short and "?" not in whole else found


def _read_words(text: str) -> _Said:
    words = find_content_words(text)
    return _Said(words, frozenset(word for word in words if any(character.isdigit() for character in word)))


def _is_same(one: _Said, other: _Said) -> bool:
    """Return whether two facts say the same; figures that differ make them two."""
    if one.figures != other.figures:
        return False
    shorter = min(len(one.words), len(other.words))
    return shorter > 0 and len(one.words & other.words) >= max(2, _SAME_WORDS * shorter)


def _kind_of(role: str, sentence: str) -> Kind | None:
    if role == ASSISTANT and marks.DOING.match(sentence):
        return None
    for kind in KINDS:
        if role in kind.roles and kind.mark.search(sentence) and _has(kind, sentence):
            return kind
    return None


def _is_asking(sentence: str) -> bool:
    plain = _simplify(sentence)
    if marks.ASKING.search(plain):
        return True
    return rating.is_request(sentence) and (sentence.rstrip().endswith(("?", "？")) or not marks.STANDING.match(plain))


def _has(kind: Kind, sentence: str) -> bool:
    return not kind.needs or any(_MARKED[name].search(sentence) for name in kind.needs.split())


def _confidence(kind: Kind | None, role: str, sentence: str, text: str, resolved: bool) -> float:
    concrete = sum(bool(_MARKED[name].search(text)) for name in _CONCRETE)
    sure = kind.confidence + _CONCRETE_GAIN * min(3, concrete) if kind else _PLAIN
    if kind and kind.type == FACT:
        sure += _CONCRETE_GAIN * any(_MARKED[name].search(text) for name in _WEIGHTY)
        sure += _CONCRETE_GAIN * (len(text.split()) >= _WHOLE_WORDS and not marks.EPISODE.search(text))
    plain = _simplify(sentence)
    sure -= _PENALTY * bool(marks.HEDGED.search(plain)) + _PENALTY * bool(marks.PASSING.search(plain))
    sure -= _LARGE_PENALTY * bool(marks.SUPPOSED.search(plain)) + _SMALL_PENALTY * bool(marks.QUOTED.search(plain))
    is_weak = kind is None or kind.type == FACT
    if is_weak:
        sure -= _SMALL_PENALTY * bool(marks.CHATTER.search(plain) or marks.TALE.search(plain))
    if not resolved:  # what decides or rules names its subject by itself more often
        sure -= _SMALL_PENALTY if is_weak else _SMALL_PENALTY / 2
    if role == ASSISTANT:
        sure -= _ASSISTANT_PENALTY if kind and kind.type != FACT else _PENALTY
    return min(1.0, max(0.0, sure))


def _resolve(sentence: str, before: str) -> tuple[str, bool]:
    """Return a sentence as it can stand alone, with the one before it where it refers to that; say whether it can."""
    text = _simplify(sentence)
    if not marks.ANAPHORA.match(text):
        return text, True
    if before and not before.rstrip().endswith(("?", "？")) and len(before) + len(text) < MAX_CHARS:
        return f"{_simplify(before)} {text}", not marks.ANAPHORA.match(_simplify(before))
    return text, False


def _simplify(sentence: str) -> str:
    stripped = marks.LEAD.sub("", sentence.strip())
    return stripped[:1].upper() + stripped[1:] if stripped else sentence
