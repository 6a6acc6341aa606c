"""How much a turn matters, by rules: a start value, and a weight for each kind of thing that it says.

A plain statement is on the line of 0.5, so that nothing is dropped for being said simply; small talk and bare requests
fall below it. Each feature counts once, however often it occurs. Pure functions; the time taken is linear in the text,
of which the beginning is read.
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


_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
# What adds to the importance, and how much; each once, however often it occurs.
FEATURES = (
    # A decision, a rule, a preference, a lesson: what holds for long.
    (
        0.25,
        compile_late(
            r"\b(?:decided|decision|agreed|chosen?|settled on|go(?:ing)? with|will use|are using"
            r"|(?:switch|migrat)(?:e|ed|ing) (?:to|from|over)|instead of|rather than|no longer|from now on|deprecated"
            r"|replaced|approved|rejected|must|never|always|require[sd]?|forbidden|(?:not|only) allowed|may only"
            r"|policy|rules?|convention|make sure|ensure|do not|don't|avoid|remember (?:to|that)|note that|important"
            r"|by default|should(?:n't)?|prefer(?:s|red)?|favou?rite|I (?:really |also )?like|likes|loves?|enjoys?"
            r"|hates?|allergic|vegan"
            r"|root cause|turn(?:s|ed) out|caused by|because|(?:the )?fix(?:ed)? (?:is|was|by)|workaround|lesson"
            r"|learn(?:ed|t)|mistake|regression|due to|(?:fails?|breaks?) (?:when|if|on|unless))\b"
            r"|\b(?:use|run|keep) \S+, not\b"
            r"|(?:^|[.!:;]\s+)(?:use|set|run|add|remove|keep|put|store|call|write|name|pin|wrap|enable|disable|deploy"
            r"|commit|push|stick|treat|return|log|test|replace|rename|install)\s",
            re.IGNORECASE,
        ),
    ),
    # Who and what belongs to the speaker, what happened to them.
    (
        0.2,
        compile_late(
            r"\bmy [a-z]+ (?:is|are|was|starts?)\b|\bI've\b|\bwe have\b"
            r"|\bI (?:am|was|have|had|(?:just |recently |also )?(?:live|work|own|bought|got|mov|met|went|start|finish"
            r"|join|visit|made|lost|won|earn|read|tri|spent|paid|order|sign)\w*)\b"
            r"|\bI'm (?:an?|the|from|based|married|born|working|living|using|learning)\b",
            re.IGNORECASE,
        ),
    ),
    # A date, a time, what is planned.
    (
        0.15,
        compile_late(
            r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|today|yesterday|tomorrow"
            r"|(?:last|next) (?:week|month|year)|"
            + _MONTH
            + r" \d{1,2}|\d{1,2} (?:of )?"
            + _MONTH
            + r"|\d{4}-\d\d|\d{1,2}:\d\d|\d{1,2} ?[ap]m"
            r"|(?:in|since|of) (?:19|20)\d\d|deadline|due (?:on|by)|schedule[ds]?|meeting|appointment|release|planned"
            r"|will be|until|every (?:day|week|month|year|night|morning))\b",
            re.IGNORECASE,
        ),
    ),
    # A path, an address, a call, a version, an option, an identifier, `quoted`.
    (
        0.15,
        compile_late(
            r"`[^`\n]+`|\w_\w|\b[a-z]+[A-Z]|\w\(\)|(?<!\w)--[a-z]|://|(?<![\w.])[~.]?/[\w.-]+/"
            r"|\w@\w+\.\w|\b\w+\.[a-z]{2,4}\b",
            re.NOFLAG,
        ),
    ),
    # A number, a name.
    (
        0.1,
        compile_late(
            r"\d|[$€£]|\b(?:two|three|four|five|six|seven|eight|nine|ten|[Tt]welve|twenty|hundred|thousand"
            r"|half|twice|dozen)\b"
            r"|(?<=[a-z,;] )(?!I\b|I')[A-Z]|\b[A-Z]{2,}|\b[A-Z][a-z]+[A-Z]",
            re.NOFLAG,
        ),
    ),
)

_WORD = compile_late(r"[^\W_]+(?:['’][^\W_]+)?")
_REQUEST = compile_late(
    r"^(?:(?:and|so|but|also|then|ok|okay|great|thanks|sure|hey|hi|please)[,!]? +)*"
    r"(?:please\b(?! (?:remember|note|keep in mind|bear in mind)\b)|(?:can|could|would|will) you\b|"
    r"(?:can|could|may|shall) (?:i|we)\b|do you (?:know|have|think)\b|let me\b|let's see\b|tell me\b|show me\b|"
    r"help me\b|give me\b|give it\b|explain\b|continue\b|go on\b|try (?:again|it)\b|"
    r"I(?:'ll| will) (?:look|take a look|check|see|start by)\b|"
    r"I(?:'m| am) (?:looking (?:at|into)|checking|going to look|happy to)\b|now (?:let me|I'll)\b|"
    r"take a look\b|have a look\b|rewrite\b|"
    r"summari[sz]e\b|(?:what|how|why|when|where|who|which|is|are|do|does|did|should|any)\b[^.!]*\?)",
    re.IGNORECASE,
)


def importance(text: str) -> float:
    """Return how much a turn matters, 0 to 1: 0.5 and more is kept."""
    read = text[:READ_CHARS]
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(read)]
    if not words:
        return 0.0
    if COURTESY.issuperset(words):
        return SMALL_TALK
    asked = is_only_request(read)
    start = QUESTION if asked else FRAGMENT if len(words) < _ENOUGH_WORDS and _is_latin(read) else STATEMENT
    gained = 0.0
    for weight, pattern in FEATURES:
        if gained < 1 - STATEMENT and pattern.search(read):
            gained += weight
    return round(min(1.0, start + (gained / 2 if asked else gained)), 3)


def is_request(sentence: str) -> bool:
    """Return whether a sentence is a question or a request to the listener."""
    return ends_with_question(sentence) or bool(_REQUEST.match(sentence))


def is_only_request(text: str) -> bool:
    """Return whether each sentence that is more than courtesy is a question or a request to the listener."""
    telling = [sentence for sentence in split_sentences(text) if not _is_courteous(sentence)]
    return bool(telling) and all(is_request(sentence) for sentence in telling)


def _is_courteous(sentence: str) -> bool:
    return COURTESY.issuperset(word.casefold().replace("’", "'") for word in _WORD.findall(sentence))


def _is_latin(text: str) -> bool:
    """Return whether words are separated by blanks: a short Chinese or Japanese sentence is one word here."""
    return text[:200].isascii() or not any("\u3040" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7af" for c in text[:200])
