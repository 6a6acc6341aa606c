"""What a conversation came to, by rules: its main sentences, whole and in their order, one a line. Pure functions.

Left out are questions and requests, what is over soon, what the speaker is about to do, and guesses, which a later turn
may refute; of tools nothing is taken. What an assistant stated last is kept before all else: it says what is left open.
"""

import re
from collections.abc import Iterator, Sequence
from math import sqrt

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import condensing, rating

MAX_SENTENCES = 80  # compared with each other: the latest
MAX_CHARS = 400  # of a sentence; a longer one is left out, never cut
_CHARS_PER_TOKEN = 4
_ALIKE = 0.8  # cosine of words from which a sentence says what a chosen one said
_FAILED = 0.25  # more weight for what was learned or decided
_MIN_IMPORTANCE = 0.66  # more than a plain statement, or one with a date alone
_TOLD = {"decision", "rule", "preference", "personal", "lesson", "plan"}  # features of what a user states
_CODE = compile_late(r"```[\s\S]*?(?:```|\Z)|^[ \t]*>.*$", re.MULTILINE)  # and what is quoted
# Over by tomorrow.
_PASSING = compile_late(
    r"\b(?:this (?:morning|afternoon|evening)|last night|tonight|yesterday|right now|just now|at the moment|"
    r"(?:in|just|wait|for|give me) a (?:minute|moment|second)|one (?:moment|second|sec)|hold on|brb|be right back|"
    r"tired|slept|hungry|haha|lol|sigh|ugh|"
    r"wish me (?:the )?luck|bear with me|(?:I've|I have) (?:got )?to (?:run|go)|must go|see you|thanks|thank you|"
    r"good (?:morning|evening|night|luck)|bye|goodbye|once upon a time)\b",
    re.IGNORECASE,
)
# What an assistant is about to do, or offers.
_INTENT = compile_late(
    r"^(?:(?:sure|okay|ok|great|good|yes|alright|perfect|certainly|of course|happy to|got it|noted|understood|"
    r"will do|makes sense|thanks|sounds good|agreed|no problem|absolutely|fair enough|glad)\b|I'll\b|I will\b|I'm\b|"
    r"I am\b|let me\b|here(?:'s| is| are)\b|you (?:can|could|may|might|should|will|need)\b|shall\b|would you\b|"
    r"do you\b|if you\b|feel free\b)",
    re.IGNORECASE,
)
_GUESS = compile_late(
    r"\b(?:maybe|perhaps|probably|possibly|presumably|likely|not sure|unsure|no idea|I (?:think|believe|guess|suppose|"
    r"assume|suspect|don't know|can't tell)|seems?|(?:looks?|sounds?|smells?) (?:like|of)|might|could be|may be|"
    r"vielleicht|wahrscheinlich|vermut\w+|möglicherweise|glaube?|(?:klingt|sieht|riecht) nach|könnte|dürfte|"
    r"probablement|peut-être|sans doute|je (?:pense|crois|suppose)|on dirait|semble|pourrait|"
    r"probablemente|quizás?|tal vez|creo que|parece|podría)\b"
    r"|应该|可能|也许|大概|估计|猜|好像|看起来|多分|おそらく|かもしれ|でしょう|だろう|と思い",
    re.IGNORECASE,
)
_DENIED = compile_late(  # the word after a denial
    r"(?:\b(?:not|isn't|wasn't|nicht|kein\w*|n'est pas|n'était pas) "
    r"(?:(?:the|on|in|a|der|die|das|dem|den|le|la|les) |l')?|不是 ?)([^\W_]{4,})",
    re.IGNORECASE,
)
_ADVICE = compile_late(r"\b(?:should|would|could)\b", re.IGNORECASE)  # of an assistant


def summary(turns: Sequence[tuple[str, str]], previous: str, max_tokens: int) -> str:
    """Return the sentences that matter most within about so many tokens, one a line; empty when none does."""
    said = _leave_out_denied(turns)
    end = next((sentence for role, sentence in reversed(said) if role == "assistant"), "")
    worth = [sentence for _, sentence in said if sentence == end or rating.importance(sentence) >= _MIN_IMPORTANCE]
    sentences = list(dict.fromkeys([*previous.splitlines(), *worth]))[-MAX_SENTENCES:]
    weights = [_weigh(sentence) for sentence in sentences]
    words = [condensing.find_words(sentence) for sentence in sentences]
    near = condensing.measure_centrality(words, weights)
    order = sorted(range(len(sentences)), key=lambda at: (sentences[at] != end, -weights[at] - near[at]))
    return "\n".join(sentences[at] for at in sorted(_choose(sentences, order, words, max_tokens * _CHARS_PER_TOKEN)))


def _leave_out_denied(turns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the statements of turns without those that hold what a later turn says it is not."""
    kept: list[tuple[str, str]] = []
    denied: set[str] = set()
    for role, content in reversed(turns):
        stated = [one for one in _list_statements(role, content) if denied.isdisjoint(condensing.find_words(one))]
        kept[:0] = [(role, sentence) for sentence in stated]
        if role != "tool":
            denied.update(word.casefold() for word in _DENIED.findall(content))
    return kept


def _list_statements(role: str, content: str) -> Iterator[str]:
    """Yield the sentences of a turn that state something for longer."""
    if role not in ("user", "assistant"):
        return
    for sentence in condensing.split_sentences(_CODE.sub("\n", content), MAX_SENTENCES):
        if len(sentence) > MAX_CHARS or rating.is_request(sentence):
            continue
        if _PASSING.search(sentence) or _GUESS.search(sentence):
            continue
        if _TOLD.intersection(rating.list_features(sentence)) if role == "user" else not _is_doing(sentence):
            yield sentence


def _is_doing(sentence: str) -> bool:
    return bool(_INTENT.match(sentence) or _ADVICE.search(sentence))


def _weigh(sentence: str) -> float:
    what = set(rating.list_features(sentence))
    return rating.importance(sentence) + (_FAILED if what & {"lesson", "decision"} else 0.0)


def _choose(sentences: Sequence[str], order: Sequence[int], words: Sequence[frozenset[str]], chars: int) -> list[int]:
    """Return the best sentences that fit, none that says what a better one said."""
    chosen: list[int] = []
    for at in order:
        if len(sentences[at]) + 1 > chars or any(_is_alike(words[at], words[other]) for other in chosen):
            continue
        chosen.append(at)
        chars -= len(sentences[at]) + 1
    return chosen


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _ALIKE * sqrt(len(one) * len(other)) and _find_digits(one) == _find_digits(other)


def _find_digits(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(character.isdigit() for character in word))
