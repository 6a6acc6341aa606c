"""Rate the importance of a turn by rules: a start value, plus a weight for each feature of the text.

A plain statement is rated 0.5, the threshold for keeping a turn; small talk and bare requests are below it. Each
feature counts once, however often it occurs. Only the beginning of a text is read. Pure functions, in linear time.
"""

import re

from memoryd.client.patterns import compile_late
from memoryd.daemon.language.sentences import COURTESY, ends_with_question, split_sentences, split_words

READ_CHARS = 1_500  # the main point comes first, and more would block other threads
STATEMENT = 0.5  # the start of a text that states something
QUESTION = 0.34  # the start of a text that only asks or requests
SMALL_TALK = 0.15  # a text that consists of courtesies
FRAGMENT = 0.4  # fewer than four words
_ENOUGH_WORDS = 4
# Features and their weights.
FEATURES = (
    (  # a decision, a rule, a preference, a lesson
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
_REQUEST = compile_late(
    r"(?:(?:and|so|but|also|then|ok|okay|great|thanks|sure|hey|hi|please)[,!]? +)*"
    r"(?:please\b(?! (?:remember|note|keep)\b)|(?:can|could|would|will) you\b|let me\b|(?:tell|show|help|give) me\b"
    r"|explain\b|continue\b|go on\b|try again\b|rewrite\b|summari[sz]e\b|take a look\b"
    r"|I(?:'ll| will) (?:look|take|check|see)\b|I(?:'m| am) (?:looking|checking|happy to)\b)",
    re.IGNORECASE,
)


def importance(text: str) -> float:
    """Return the importance of a turn, 0 to 1; turns from 0.5 on are kept."""
    read = text[:READ_CHARS]
    words = split_words(read)
    if not words:
        return 0.0
    if COURTESY.issuperset(words):
        return SMALL_TALK
    gained = min(1 - STATEMENT, sum(weight for weight, pattern in FEATURES if pattern.search(read)))
    if is_only_request(read):
        return round(QUESTION + gained / 2, 3)
    is_fragment = len(words) < _ENOUGH_WORDS and max(read) < "\u3000"  # later characters are of scripts without blanks
    return round((FRAGMENT if is_fragment else STATEMENT) + gained, 3)


def is_only_request(text: str) -> bool:
    """Return whether all sentences except courtesies are questions or requests to the listener."""
    telling = [one for one in split_sentences(text) if not COURTESY.issuperset(split_words(one))]
    return bool(telling) and all(ends_with_question(one) or _REQUEST.match(one) for one in telling)
