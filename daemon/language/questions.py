"""Recognise texts that only ask, or only say that the speaker does not know. Pure functions.

A question mark counts in any language. Without one, a short text is a question if it begins with an interrogative
(English, German) or contains one (Chinese, Japanese). "I do not know" is recognised in English, German, French and
Chinese.
"""

import re

from memoryd.client.patterns import compile_late
from memoryd.daemon.language.sentences import ends_with_question, split_sentences

_MOST_CHARS = 400  # of a text that only asks
_SPEAKER = compile_late(r"[^\W\d_][^\n:?？]{0,39}: ")
_STATED = compile_late(r"\d|\w[/_]\w|\w\.\w")  # a number, a path, the name of a file
_BEGINS = compile_late(
    r"(?:(?:and|so|but|ok(?:ay)?|hey|hi|hm+|wait|sorry|quick question|und|also|na|moin)[,:]? )*"
    r"(?:(?:(?:please |can you |could you )?(?:remind|tell) me(?: again)?"
    r"|any idea|i meant?|i (?:forgot|forget|don't (?:know|remember))"
    r"|sag mir|sag mal|ich meine|weiß nicht mehr)[,:]? )?"
    r"(?:what(?! (?:an?|we|i|you|he|she|they|it|matters)\b)|which(?! (?:is|was|means)\b)|who(?! knows)|whose|why"
    r"|where(?= (?:do|does|did|is|are|was|were|can|should)\b)"
    r"|when(?= (?:do|does|did|is|are|was|were|will)\b)"
    r"|how(?= (?:do|does|did|can|could|should|is|are|was|were|many|much|long|often|old|big|large|far|late|soon)\b)"
    r"|was(?= (?:ist|sind|war|kostet|heißt|haben|hat|macht|steht|soll|muss|gilt)\b)"
    r"|wer|wen|wem|wessen|wohin|woher|wann|warum|wieso|weshalb|welche[rsmn]?|wie ?viele?"
    r"|wie(?= (?:ist|war|sind|waren|heißt|hieß|lang|lange|oft|alt|groß|hoch|teuer|weit|lautet)\b))\b"
    r"(?:[^.!?,;:\d]|\.(?=\w)){0,80}",
    re.IGNORECASE,
)
_HOLDS = compile_late(r"[^。！，、；没都\d]{0,24}(?:什么|哪|多少|几点|几号|何時|どこ|どの)[^。！，、；没都\d]{0,24}")
_CLAUSE = compile_late(r"[.!?…;:,。！，；、\n]+(?=\s|$)|(?<=[。！，；、])|\s+[–—-]+\s+")
# A clause which says that somebody does not know, or that a source does not say it.
_UNKNOWN = compile_late(
    r"(?:(?:sorry|unfortunately|honestly|so|and|leider|hm+|no|non) )*(?:"
    r"(?:i|we) (?:really |still )?(?:(?:do not|don['’]?t) (?:really |actually )?(?:know|remember|recall)"
    r"|(?:cannot|can ?not|can['’]?t|could not|couldn['’]?t) (?:tell|say|find|know)|(?:did not|didn['’]?t) find)"
    r"(?: (?:that|this|it|them|either|yet|anything|the answer|if|whether|wh\w+|how)\b(?:(?! but ).){0,40})?"
    r"|(?:i|we) (?:(?:do not|don['’]?t) have any|have no) information\b(?: (?:on|about) (?:that|this|it))?"
    r"|(?:i|we) (?:found nothing|have not found anything|haven['’]?t found anything)(?: (?:on|about) (?:that|this|it))?"
    r"|(?:i have )?no (?:idea|clue)(?: (?:if|whether|wh\w+|how)\b(?:(?! but ).){0,40})?|no mention of .+"
    r"|nothing (?:in|on|about|of|here|there)\b.* (?:says?|tells?|mentions?|documents?)\b.*"
    r"|(?:it|that|this)(?: is|['’]s) (?:not|nowhere) (?:known|documented|mentioned|written|recorded)\b.{0,40}"
    r"|(?:das |es )?weiß (?:ich|man) (?:es |das )?(?:leider |auch )*nicht|ich weiß (?:es |das )?(?:leider |auch )*nicht"
    r"|keine ahnung|(?:das |es )?steht (?:leider )?(?:nirgends|nirgendwo)\b.{0,40}"
    r"|je (?:ne )?sais pas|aucune idée|我?(?:也|还)?(?:不知道|不清楚))",
    re.IGNORECASE,
)
_FILLER = compile_late(
    r"(?:sorry|unfortunately|honestly|well|hm+|no|leider|tut mir leid|nein|désolée?|non)?", re.IGNORECASE
)
# Beginnings of such texts, a quick test that rules out most others.
_OPENING = compile_late(
    r"\W*(?:sorry|unfortunately|honestly|well|so|and|no|hm|(?:i|we|it)\b|that|this|leider|tut mir|nein|das|es"
    r"|wei(?:ß|ss)|ich|keine|steht|désol|je|aucune|我|也|还|不)",
    re.IGNORECASE,
)
MOST_UNKNOWN_CHARS = 200  # of a text that only says it does not know


def find_label(text: str) -> str:
    """Return the speaker's name at the beginning of a text ("Ada: …"), in lower case, empty if there is none."""
    match = _SPEAKER.match(text)
    return match[0][:-2].casefold() if match else ""


def _drop_label(text: str) -> str:
    """Return a text without a speaker's name at its beginning."""
    match = _SPEAKER.match(text)
    return text[match.end() :] if match else text


def only_asks(text: str) -> bool:
    """Return whether a text only asks: anything besides the question is shorter and contains no number."""
    if len(text) > _MOST_CHARS:
        return False
    text = _drop_label(text.strip())
    if not ends_with_question(text):
        return bool(_BEGINS.fullmatch(text) or (not text.isascii() and _HOLDS.fullmatch(text)))
    stated = "".join(sentence for sentence in split_sentences(text) if not ends_with_question(sentence))
    return 2 * len(stated) < len(text) and not _STATED.search(stated)


def asks(text: str) -> bool:
    """Return whether a text contains a question."""
    return only_asks(text) or any(map(ends_with_question, split_sentences(text)))


def knows_nothing(text: str) -> bool:
    """Return whether a short text only says that somebody does not know."""
    if len(text) > MOST_UNKNOWN_CHARS:
        return False
    text = _drop_label(text.strip())
    if not _OPENING.match(text):
        return False
    is_said = False
    for clause in map(str.strip, _CLAUSE.split(text)):
        if _FILLER.fullmatch(clause):
            continue
        if not _UNKNOWN.fullmatch(clause):
            return False
        is_said = True
    return is_said


def answers_nothing(text: str) -> bool:
    """Return whether a text cannot be an answer: it only asks, or only says that it does not know."""
    return only_asks(text) or knows_nothing(text)
