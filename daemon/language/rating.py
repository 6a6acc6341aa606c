"""How much a turn matters, by rules: does it tell what lasts, of its speaker, of something specific, or does it ask?

A plain statement is on the line of 0.5, so that nothing is dropped for being said simply; small talk and bare requests
fall below it. Each kind of thing counts once, however often it occurs. Pure functions; the time taken is linear in the
text, of which the beginning is read.
"""

import re

from memoryd.client.patterns import compile_late
from memoryd.daemon.language.sentences import COURTESY, ends_with_question, split_sentences

READ_CHARS = 1_500  # people and models say first what they mean; more would hold up other threads
STATEMENT = 0.5  # the start of a text that states something
QUESTION = 0.34  # the start of a text that only asks or requests
SMALL_TALK = 0.15  # a text with nothing but courtesies
FRAGMENT = 0.4  # fewer than four words
_ENOUGH_WORDS = 4
# What adds to the importance, and how much.
FEATURES = (
    (  # a decision, a rule, a preference, a lesson: what holds for long
        0.25,
        compile_late(
            r"\b(?:decided|decision|agreed|chosen?|go(?:ing)? with|switch\w*|migrat\w+|instead of|no longer|from now on"
            r"|deprecated|approved|rejected|must|never|always|allowed|ensure|make sure|don't|do not|avoid"
            r"|remember (?:to|that)|use|by default|should|prefers?|favou?rite|I (?:really )?like|likes|loves?|hates?"
            r"|allergic|because|caused?|turn(?:s|ed) out|fix\w*|workaround|lesson|fails?|due)\b",
            re.IGNORECASE,
        ),
    ),
    (0.2, compile_late(r"\b(?:my|I'm|I've|I (?:am|was|have|had|live|work|own|bought|got|went))\b", re.IGNORECASE)),
    (  # a number, a name, a path, code, a day
        0.1,
        compile_late(
            r"\d|[`$€£@/]|\w[_.]\w|\w\(\)|(?<=[a-z,;] )(?!I\b|I')[A-Z]|\b[A-Z]{2,}|[a-z][A-Z]|yesterday|tomorrow",
            re.NOFLAG,
        ),
    ),
)
_WORD = compile_late(r"[^\W_]+(?:['’][^\W_]+)?")
_REQUEST = compile_late(
    r"(?:(?:and|so|but|also|then|ok|okay|great|thanks|sure|hey|hi|please)[,!]? +)*"
    r"(?:please\b(?! (?:remember|note|keep)\b)|(?:can|could|would|will) you\b|let me\b|(?:tell|show|help|give) me\b"
    r"|explain\b|continue\b|go on\b|try again\b|rewrite\b|summari[sz]e\b|take a look\b"
    r"|I(?:'ll| will) (?:look|take|check|see)\b|I(?:'m| am) (?:looking|checking|happy to)\b)",
    re.IGNORECASE,
)


def importance(text: str) -> float:
    """Return how much a turn matters, 0 to 1: 0.5 and more is kept."""
    read = text[:READ_CHARS]
    words = _split_words(read)
    if not words:
        return 0.0
    if COURTESY.issuperset(words):
        return SMALL_TALK
    gained = min(1 - STATEMENT, sum(weight for weight, pattern in FEATURES if pattern.search(read)))
    if is_only_request(read):
        return round(QUESTION + gained / 2, 3)
    is_fragment = len(words) < _ENOUGH_WORDS and max(read) < "\u3000"  # from there on words are not separated by blanks
    return round((FRAGMENT if is_fragment else STATEMENT) + gained, 3)


def is_only_request(text: str) -> bool:
    """Return whether each sentence that is more than courtesy is a question or a request to the listener."""
    telling = [one for one in split_sentences(text) if not COURTESY.issuperset(_split_words(one))]
    return bool(telling) and all(ends_with_question(one) or _REQUEST.match(one) for one in telling)


def _split_words(text: str) -> list[str]:
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
