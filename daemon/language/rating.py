"""How much a turn matters, by rules: a start value, and a weight for each kind of thing that it says.

A plain statement is on the line of 0.5, so that nothing is dropped for being said simply; small talk and bare requests
fall below it. Each feature counts once, however often it occurs. Pure functions; the time taken is linear in the text,
of which the beginning is read.
"""

import re
from typing import NamedTuple

from memoryd.client.patterns import compile_late

READ_CHARS = 1_500  # people and models say first what they mean; more would hold up other threads

STATEMENT = 0.5  # the start of a text that states something
QUESTION = 0.34  # the start of a text that only asks or requests
SMALL_TALK = 0.15  # a text with nothing but courtesies
FRAGMENT = 0.4  # fewer than four words
_ENOUGH_WORDS = 4


class Feature(NamedTuple):
    """A kind of thing that a text may say, and what it adds to the importance."""

    name: str
    weight: float
    pattern: re.Pattern[str]


def _build_feature(name: str, weight: float, pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> Feature:
    return Feature(name, weight, compile_late(pattern, flags))


_MONTHS = "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
_MONTHS += "|nov(?:ember)?|dec(?:ember)?"
_DAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"

FEATURES: tuple[Feature, ...] = (
    # A choice that was made, and what it replaces.
    _build_feature(
        "decision",
        0.3,
        r"\b(?:decided|decision|agreed|chose|chosen|settled on|opted for|going with|go with|will use|are using|"
        r"switch(?:ed|ing) (?:to|from|over)|migrat(?:e|ed|ing) (?:to|from)|instead of|rather than|no longer|"
        r"from now on|deprecated|replaced|signed off|approved|rejected|final(?:ised|ized)?)\b"
        r"|\b(?:use|run|keep) \S+, not\b",
    ),
    # What must or must not be done, again and again.
    _build_feature(
        "rule",
        0.25,
        r"\b(?:must|never|always|required?|requires|mandatory|forbidden|not allowed|may only|only allowed|policy|"
        r"rules?|convention|make sure|ensure|do not|don't|avoid|remember (?:to|that)|note that|"
        r"keep in mind|important|"
        r"by default|should(?: not|n't)?)\b",
    ),
    _build_feature(
        "preference",
        0.25,
        r"\bI(?:'d| would)? (?:really |also |usually |always |much )?"
        r"(?:prefer|like|love|enjoy|hate|dislike|want|can't stand)\b"
        r"|\b(?:favou?rite|preferred|allergic|vegetarian|vegan|prefers|likes|loves|hates|enjoys)\b",
    ),
    # Who and what belongs to the speaker, what happened to them.
    _build_feature(
        "personal",
        0.2,
        r"\bmy (?:name|wife|husband|partner|son|daughter|mother|father|mom|dad|brother|sister|cousin|niece|nephew|"
        r"friend|boss|team|company|job|birthday|address|phone|email|doctor|dog|cat|car|house|home|[a-z]+ is)\b"
        r"|\bI(?:'m| am| was) (?:a|an|the|from|based|married|born|working|living|allergic|using|learning)\b"
        r"|\bI (?:just |recently |actually |already |once |also |finally )?(?:live|lived|work|worked|own|bought|got|"
        r"moved|met|went|started|finished|graduated|joined|attended|visited|made|sold|lost|won|earned|redeemed|"
        r"collected|read|watched|tried|spent|paid|ordered|signed|have|had|'ve)\b|\bI've\b|\bwe have\b",
    ),
    _build_feature(
        "lesson",
        0.25,
        r"\b(?:root cause|turns out|turned out|caused by|because|"
        r"the (?:fix|problem|issue|cause|bug|reason|trick|answer) (?:is|was)|fixed by|solved by|"
        r"workaround|lesson|learned|learnt|mistake|regression|due to|works? only|"
        r"fails? (?:when|if|on|unless)|breaks? (?:when|if|on))\b",
    ),
    _build_feature(
        "plan",
        0.15,
        r"\b(?:deadline|due (?:on|by)|schedule[ds]?|meeting|appointment|release|deploy(?:s|ed|ment|ments)?|launch|"
        r"milestone|plan(?:s|ned|ning)? (?:to|for|on|a)|will be|by (?:end of|next|the end)|until|every (?:day|week|"
        r"month|year|night|morning|" + _DAYS + r"))\b",
    ),
    _build_feature(
        "date",
        0.15,
        r"\b(?:"
        + _DAYS
        + r"|today|yesterday|tomorrow|last (?:week|month|year|night)|next (?:week|month|year)|noon|midnight"
        r"|(?:" + _MONTHS + r")\.? \d{1,2}|\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:" + _MONTHS + r")|"
        r"in (?:" + _MONTHS + r")"
        r"|\d{4}-\d{2}(?:-\d{2})?|\d{1,2}[:.]\d{2}(?: ?[ap]m)?|\d{1,2} ?[ap]m|(?:in|since|of) (?:19|20)\d{2})\b",
    ),
    _build_feature(
        "number",
        0.1,
        r"\d|[$€£]|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|fifty|hundred|"
        r"thousand|million|half|"
        r"twice|dozen|percent)\b",
    ),
    # A path, an address, a call, a version, an option, snake_case, camelCase, CONSTANT_CASE, `quoted`.
    _build_feature(
        "code",
        0.15,
        r"`[^`\n]+`|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\(\)|(?<!\w)--[a-z][\w-]+|"
        r"\bv?\d+\.\d+(?:\.\d+)?\b|https?://\S+"
        r"|(?<![\w.])[~.]?/[\w.-]+/[\w./-]+|\b[\w-]+\.(?:py|js|ts|go|rs|java|md|toml|ya?ml|json|sql|sh|cfg|txt|db)\b"
        r"|\b\w+@\w+\.\w+",
        re.NOFLAG,
    ),
    # A name: a capital inside a sentence, an abbreviation.
    _build_feature(
        "name", 0.1, r"(?<=[a-z,;] )(?!I\b|I')[A-Z][\w&+-]*|\b[A-Z]{2,}[a-z]?\b|\b[A-Z][a-z]+[A-Z]\w*", re.NOFLAG
    ),
    # The order of somebody who sets how things are done; requests to the listener are `_REQUEST`.
    _build_feature(
        "imperative",
        0.1,
        r"(?:^|[.!:;]\s+)(?:use|set|run|add|remove|keep|put|store|call|write|name|pin|check|update|"
        r"avoid|prefer|enable|"
        r"disable|start|stop|deploy|commit|push|remember|note|stick|treat|return|log|test|wrap|"
        r"replace|rename|install)\s",
    ),
)

_SENTENCE = compile_late(r"[^.!?。！？\n]+(?:[.!?。！？]+|\n|$)")
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
COURTESY = frozenset(
    """
    a about again ah aha all alright am an and any anytime are awesome bad be best bit brilliant but bye can
    care cheers clear come cool could course day definitely did do doing done else enjoy evening everything
    exactly excellent fair fantastic feel fine for free fun glad go going good goodbye got great ha haha happy
    have heh hello help helpful hey hi hm hmm hope how i i'd i'll i'm i've if in indeed interesting is it it'd
    it's its just kind know later let lol long look looks lot lovely makes many maybe me mind moment morning
    much my need never nice night no nope not nothing now of off oh ok okay on once one perfect please pleased
    pleasure problem questions quite really right roger same say see sense sir so some soon sorry sounds still
    stuff super sure take talk thank thanks that that'd that's the then there these they thing things think
    this time to too totally tried try understand understood up very was way weekend welcome well what what's
    whatever whenever will wonderful worries would wow ya yay yeah yep yes yet you you'd you'll you're you've
    your yours
    """.split()
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
    for feature in FEATURES:
        if gained < 1 - STATEMENT and feature.pattern.search(read):
            gained += feature.weight
    return round(min(1.0, start + (gained / 2 if asked else gained)), 3)


def is_request(sentence: str) -> bool:
    """Return whether a sentence is a question or a request to the listener."""
    return sentence.rstrip().endswith(("?", "？")) or bool(_REQUEST.match(sentence))


def is_only_request(text: str) -> bool:
    """Return whether each sentence that is more than courtesy is a question or a request to the listener."""
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text)]
    telling = [sentence for sentence in sentences if sentence and not _is_courteous(sentence)]
    return bool(telling) and all(is_request(sentence) for sentence in telling)


def _is_courteous(sentence: str) -> bool:
    return COURTESY.issuperset(word.casefold().replace("’", "'") for word in _WORD.findall(sentence))


def _is_latin(text: str) -> bool:
    """Return whether words are separated by blanks: a short Chinese or Japanese sentence is one word here."""
    return text[:200].isascii() or not any("\u3040" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7af" for c in text[:200])
