"""What a conversation came to, by rules: its most central and important sentences, in their order. Pure functions."""

import re
from collections.abc import Iterator, Sequence
from math import sqrt

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import condensing, rating

MAX_SENTENCES = 80  # compared with each other: the latest
_CHARS_PER_TOKEN = 4
_LONGEST = 400  # characters of a sentence
_ALIKE = 0.8  # cosine of words from which a sentence says what a chosen one said
_FAILED = 0.25  # more weight for what was learned or decided
_MIN_IMPORTANCE = 0.66  # more than a plain statement, or one with a date alone

# Over by tomorrow.
_PASSING = compile_late(
    r"\b(?:this (?:morning|afternoon|evening)|last night|tonight|yesterday|right now|just now|at the moment|"
    r"(?:in|just|wait|for|give me) a (?:minute|moment|second)|one (?:moment|second|sec)|hold on|brb|be right back|"
    r"tired|slept|hungry|haha|lol|sigh|ugh|"
    r"wish me (?:the )?luck|bear with me|(?:I've|I have) (?:got )?to (?:run|go)|must go|see you|thanks|thank you|"
    r"good (?:morning|evening|night|luck)|bye|goodbye|once upon a time)\b",
    re.IGNORECASE,
)
# What an assistant says of its own doing.
_DOING = compile_late(
    r"^(?:(?:sure|okay|ok|done|great|good|yes|alright|perfect|certainly|of course|happy to|got it|noted|understood|"
    r"will do|makes sense|thanks|sounds good|agreed|no problem|absolutely|right|fair enough|glad)\b|"
    r"(?:(?:I|I've|I have)(?! (?:found|noticed|measured|traced|discovered)\b)|I'll|I'm|let me|"
    r"here(?:'s| is| are)|you (?:can|could|may|might|should|will|need)|shall|would you|"
    r"do you|if you|feel free)\b)|.*\b(?:is|are) (?:now )?(?:set|done|saved|noted|added|updated|running)[.!]?$",
    re.IGNORECASE,
)


def summary(turns: Sequence[tuple[str, str]], previous: str, max_tokens: int) -> str:
    """Return the sentences that matter most within about so many tokens; empty when none does."""
    found = [*previous.splitlines(), *(line for role, content in turns for line in _weigh(role, content))]
    found = list(dict.fromkeys(found))[-MAX_SENTENCES:]
    weights = [_weight(sentence) for sentence in found]
    words = [condensing.find_words(sentence) for sentence in found]
    near = condensing.measure_centrality(words, weights)
    order = sorted(range(len(found)), key=lambda at: -weights[at] - near[at])
    return "\n".join(found[at] for at in sorted(_choose(found, order, words, max_tokens * _CHARS_PER_TOKEN)))


def _weigh(role: str, content: str) -> Iterator[str]:
    for sentence in condensing.split_sentences(content, MAX_SENTENCES):
        if len(sentence) > _LONGEST:
            continue
        said = _is_lasting(role, sentence) and not rating.is_request(sentence)
        if said and rating.importance(sentence) >= _MIN_IMPORTANCE:
            yield sentence


def _is_lasting(role: str, sentence: str) -> bool:
    """Return whether a sentence is about more than the moment and the speaker's own doing."""
    return not _PASSING.search(sentence) and not (role == "assistant" and _DOING.match(sentence))


def _weight(sentence: str) -> float:
    what = set(rating.list_features(sentence))
    return rating.importance(sentence) + (_FAILED if what & {"lesson", "decision"} else 0.0)


def _choose(found: Sequence[str], order: Sequence[int], words: Sequence[frozenset[str]], chars: int) -> list[int]:
    """Return the best sentences that fit, none that says what a better one said."""
    chosen: list[int] = []
    for at in order:
        if len(found[at]) + 1 > chars or any(_is_alike(words[at], words[other]) for other in chosen):
            continue
        chosen.append(at)
        chars -= len(found[at]) + 1
    return chosen


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _ALIKE * sqrt(len(one) * len(other)) and _find_digits(one) == _find_digits(other)


def _find_digits(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(character.isdigit() for character in word))
