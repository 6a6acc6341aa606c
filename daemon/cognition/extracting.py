"""Facts of a conversation by rules: sentences that decide, correct, prefer, fix a date, set a rule or teach something.

Precise rather than complete, as the turns themselves are kept as well: a sentence needs a mark of its kind, and what
names nothing concrete, only asks, wavers or will be over by tomorrow is left out. What an assistant says counts less, and
only a user corrects or prefers; nothing is taken from tools. Pure functions, linear in the text.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memoryd.daemon.cognition import condensing, rating
from memoryd.daemon.store.stopwords import STOP_WORDS

USER, ASSISTANT = "user", "assistant"
CORRECTION, DECISION, PREFERENCE, DEADLINE = "correction", "decision", "preference", "deadline"
RULE, LESSON, FACT = "rule", "lesson", "fact"
TYPES = (CORRECTION, DECISION, PREFERENCE, DEADLINE, RULE, LESSON, FACT)
MAX_CHARS = 400  # of a fact
MAX_SENTENCES = 40  # of a turn
_MIN_WORDS = 4
_SAME_WORDS = 0.6  # share of the shorter one's words that two facts have in common when they say the same
_COVERED = 0.8


class Fact(NamedTuple):
    """One thing worth keeping: its type, how sure it is (0 to 1), and the turns that say it, by index."""

    text: str
    type: str
    confidence: float
    turns: tuple[int, ...]


class Kind(NamedTuple):
    """A kind of fact: how sure a sentence with its mark is, and who may say it."""

    type: str
    confidence: float
    mark: re.Pattern[str]
    roles: tuple[str, ...] = (USER, ASSISTANT)
    needs: str = ""  # names of rating's features, one of which must be there


def _kind(type: str, confidence: float, mark: str, **options: object) -> Kind:
    return Kind(type, confidence, re.compile(mark, re.IGNORECASE), **options)  # type: ignore[arg-type]


_MARKED = {feature.name: feature.pattern for feature in rating.FEATURES}
_CONCRETE = ("number", "date", "code", "name")
_WEIGHTY = ("decision", "rule", "lesson", "plan")
_WE = r"(?:we|I|they|the (?:team|board|group|committee|client|customer))"

# In the order in which they are asked; the first that fits names the type.
KINDS: tuple[Kind, ...] = (
    _kind(
        CORRECTION,
        0.8,
        r"\bcorrection\b|\bI (?:was wrong|misspoke|got that wrong|made a mistake|meant)\b|\bscratch that\b"
        r"|\b(?:that|this|it|which) (?:is|was|'s)(?: just| simply)? (?:wrong|incorrect|outdated|out of date|not right|"
        r"not correct|not true)\b|\byou (?:got|have|had) (?:it|that|this) wrong\b|\bnot what I (?:said|asked|meant)\b"
        r"|\b(?:that|this) (?:has )?changed\b|\bI told you\b|\byou keep\b|\b(?:stop|quit) \w+ing\b"
        r"|\b(?:has|have|had|was|were|been|is|got) (?:been )?(?:moved|changed|pushed|postponed|brought forward|renamed)"
        r"\b.*\b(?:to|from|back|by)\b",
        roles=(USER,),
        needs="number date code name rule decision",
    ),
    _kind(
        CORRECTION,
        0.8,
        r"^(?:(?:oh|sorry|hm+|ah|well|but)[,.]? )*(?:no|nope|wait|actually|not quite)\b[,.:;!]? ",
        roles=(USER,),
        needs="number date code rule decision",
    ),
    _kind(
        DECISION,
        0.75,
        r"\b(?:decided|decision)\b|" + rf"\b{_WE}(?:'ve| have| had)?(?: all| just| finally| now)? (?:agreed|settled on|"
        r"chose|chosen|opted|picked|signed off|approved|voted|switched|migrated|dropped|booked|hired)\b"
        rf"|\b{_WE}(?:'ll| will|'re going to| are going to|'re| are)(?: now| all| only)? (?:use|using|go with|"
        r"going with|keep|keeping|stay(?:ing)? with|stick(?:ing)? (?:to|with)|switch(?:ing)?|mov(?:e|ing) to|"
        r"migrat(?:e|ing)|drop(?:ping)?|host(?:ing)?|adopt(?:ing)?|replac(?:e|ing)|standardi[sz](?:e|ing))\b"
        r"|\blet's (?:go with|use|stick|stay|settle|keep|drop|switch|take|make it|do it)\b|\b(?:go|going) with\b"
        r"|\bfrom now on\b|\bno longer\b|\b(?:was|were|is|are|been) (?:approved|rejected|signed off|deprecated|dropped|"
        r"chosen|replaced)\b|\b(?:use|run|keep|take) [^,.]{2,40}, not\b|\binstead of\b|\brather than\b",
    ),
    _kind(
        PREFERENCE,
        0.76,
        r"\bI(?:'d|'ll| would|'m)?(?: really| also| usually| always| much| strongly| generally| personally)* "
        r"(?:prefer|rather|hate|dislike|can't stand|cannot stand|allergic|vegetarian|vegan)\b"
        r"|\bI(?: do not| don't)(?: really)? (?:like|want|eat|drink|use|need)\b(?! (?:that|this|it)\b)"
        r"|\bmy (?:favou?rite|preferred|preference)\b|\ballergic to\b|\bcall me\b"
        r"|\bI(?: really| always)? (?:like|love|want) (?!(?:it|that|this|them|those|these|you|to|the|him|her|how|what)\b)\w"
        r"|\bplease (?:always|never|keep|write|use|answer|reply|do not|don't)\b|\bprefers?\b",
        roles=(USER,),
    ),
    _kind(
        DEADLINE,
        0.78,
        r"\b(?:deadline|due|launch(?:es|ed|ing)?|releas(?:e|es|ed|ing)|ships?|go(?:es)? live|demo|freeze|expires?|"
        r"ends?|starts?|begins?|opens?|closes?|submit(?:ted)?|deliver(?:y|ed|s)?|until|no later than|by|before|review|"
        r"audit|meeting|appointment|takes place|happens?|is on|are on|scheduled|planned|must be|has to be|"
        r"have to be|needs? to be|ready|arrives?|every|meets?)\b",
        needs="date",
    ),
    _kind(
        RULE,
        0.74,
        r"\b(?:must(?: not)?|mustn't|never|always|mandatory|forbidden|not allowed|may only|only allowed|prohibited|"
        r"policy|convention|make sure|under no circumstances|requires?|required|do not|don't(?: you)? ever|"
        r"may not|is limited to|at most|at least|no more than)\b|\b(?:is|are) (?:only )?allowed\b|\bmay be \w+ed (?:only|"
        r"before|until|without)\b",
    ),
    _kind(
        LESSON,
        0.74,
        r"\b(?:root cause|turn(?:s|ed) out|caused by|lesson|we (?:learned|learnt)|the (?:fix|cause|trick|workaround|"
        r"reason|culprit) (?:is|was)|fixed by|solved by|workaround|works? only|only works?|fail(?:s|ed) (?:when|if|"
        r"on|unless|because)|(?:breaks?|broke) (?:when|if|on|because))\b",
    ),
    _kind(
        FACT,
        0.66,
        r"\b(?:our|my|the|their|his|her|its) [\w' -]{2,50}?\b(?:is|are|was|has|have|uses?|runs?|lives?|costs?|sits?|"
        r"holds?|belongs?|needs?|listens?|stays?|comes?|goes|rotates?|contains?|allows?|counts?)\b"
        r"|\b(?:is|are) (?:called|named|located|owned|responsible|in charge)\b"
        r"|(?-i:^[A-Z][a-z]+ [A-Z][a-z]+ (?:is|has|[a-z]+s)\b)"
        r"|\bI(?:'m| am) (?:a|an|the|from|based|responsible|in charge)\b|\bI (?:work|live|run|lead|manage|own)\b",
        needs="number date code name",
    ),
    # Any other statement: what it has of names, figures, dates and reasons decides.
    _kind(FACT, 0.62, r"", roles=(USER,), needs="number date code name"),
)

_HEDGED = re.compile(
    r"\b(?:maybe|perhaps|might|not sure|unsure|wondering|could be|I think|I guess|I suppose|probably|possibly|"
    r"no idea|let me know|considering|thinking (?:about|of)|should we|what if|would be nice|one day|some ?day|kind of|"
    r"sort of|I wish|hopefully|I hope|we'll see|depends)\b",
    re.IGNORECASE,
)
# Over by tomorrow, or talk that passes the time.
_PASSING = re.compile(
    r"\b(?:this (?:morning|afternoon|evening)|last night|tonight|yesterday|right now|just now|at the moment|"
    r"a (?:minute|moment|second)|hold on|brb|be right back|lunch|coffee|tea|breakfast|dinner|weather|rain(?:s|ed|ing)?|"
    r"snow(?:s|ed|ing)?|sunny|traffic|weekend|movie|tired|slept|hungry|funny|joke|cake|haha|lol|sigh|wish me luck|see you|thanks|thank you|"
    r"good (?:morning|evening|night|luck)|bye|goodbye)\b",
    re.IGNORECASE,
)
# What an assistant says of its own doing.
_DOING = re.compile(
    r"^(?:(?:sure|okay|ok|done|great|good|yes|alright|perfect|certainly|of course|happy to|got it|noted|understood|"
    r"will do|makes sense|thanks|sounds good|agreed|no problem|absolutely|right|fair enough|glad)\b|"
    r"(?:I|I've|I'll|I'm|let me|here(?:'s| is| are)|you (?:can|could|may|might|should|will|need)|shall|would you|"
    r"do you|if you|feel free)\b)",
    re.IGNORECASE,
)
# A request that holds from now on, not for the next answer alone.
_STANDING = re.compile(r"^(?:please )?(?:always|never|keep (?:your|the|all)|from now on|don't|do not)\b", re.IGNORECASE)
_LEAD = re.compile(
    r"^(?:(?:ok(?:ay)?|so|well|also|and|but|oh|ah|hm+|yes|yeah|yep|yup|right|sure|great|cool|good|nice|perfect|sorry|"
    r"thanks|thank you|by the way|btw|fyi|one more thing|another thing|one thing|just so you know|for the record|"
    r"heads[ -]up|quick note|side note|reminder|to be clear|just to be clear|please (?:remember|note)(?: that)?|"
    r"remember(?: that)?|keep in mind(?: that)?|note(?: that)?|important|correction|no|nope|wait|actually|anyway|"
    r"good (?:point|question)|before I forget|last thing|in any case|speaking of which)(?:[,:;.!]+ *| +[-–—] *| +(?="
    r"(?:we|I|the|our|my|it|from|for|all|please|by|let's|that|this|there|you|never|always|do|use|so|and|that)\b)))+",
    re.IGNORECASE,
)
_ANAPHORA = re.compile(
    r"^(?:it|it's|that|that's|this|these|those|they|they're|he|she|he's|she's|its|their|because|which|then|there|both|"
    r"the (?:latter|former|other|same)|instead|otherwise)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['’.:/-][^\W_]+)*")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_PENALTY, _SMALL_PENALTY, _ASSISTANT_PENALTY, _CONCRETE_GAIN = 0.25, 0.15, 0.12, 0.05


def facts(turns: Sequence[tuple[str, str]]) -> list[Fact]:
    """Return the facts of turns (role, content), in their order; what several say is one fact."""
    found: list[Fact] = []
    for index, (role, content) in enumerate(turns):
        found += of_turn(role, content, index)
    return merged(found)


def of_turn(role: str, content: str, index: int) -> list[Fact]:
    """Return what one turn states."""
    if role not in (USER, ASSISTANT):
        return []
    made: list[Fact] = []
    before = ""
    for sentence in condensing.sentences(_FENCE.sub("\n", content), MAX_SENTENCES):
        if len(sentence) > MAX_CHARS:  # no fact, and patterns would take their time on it
            before = ""
            continue
        text, resolved = _self_contained(sentence, before)
        before = sentence
        kind = _kind_of(role, sentence)
        if kind is None or _asks(sentence) or len(text) > MAX_CHARS or len(text.split()) < _MIN_WORDS:
            continue
        confidence = round(_confidence(kind, role, sentence, text, resolved), 3)
        made.append(Fact(text, kind.type, confidence, (index,)))
    return made


def merged(found: Iterable[Fact]) -> list[Fact]:
    """Return facts without those that others say as well: a user's goes before an assistant's echo of it."""
    kept: list[tuple[Fact, frozenset[str]]] = []
    for fact in found:
        words = content_words(fact.text)
        at = next((i for i, (_, known) in enumerate(kept) if _same(words, known)), None)
        if at is None:
            kept.append((fact, words))
            continue
        other, known = kept[at]
        turns = tuple(sorted({*other.turns, *fact.turns}))
        better = fact if fact.confidence > other.confidence else other
        kept[at] = (better._replace(turns=turns), words if better is fact else known)
    return [fact for fact, _ in kept]


def covered(text: str, said: Iterable[str]) -> bool:
    """Tell whether facts say all that a text says: nearly all of its words."""
    words = content_words(" ".join(map(_plain, condensing.sentences(text, MAX_SENTENCES))))
    known = frozenset().union(*(content_words(one) for one in said))
    return bool(words) and len(words & known) >= _COVERED * len(words) and _figures(text) <= known


def lasts(role: str, sentence: str) -> bool:
    """Tell whether a sentence is about more than the moment and the speaker's own doing."""
    return not _PASSING.search(sentence) and not (role == ASSISTANT and _DOING.match(sentence))


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that carry meaning."""
    return frozenset(word.casefold().replace("’", "'") for word in _WORD.findall(text)) - STOP_WORDS


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two facts say the same; figures that differ make them two."""
    if _digits(one) != _digits(other):
        return False
    shorter = min(len(one), len(other))
    return shorter > 0 and len(one & other) >= max(2, _SAME_WORDS * shorter)


def _digits(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(character.isdigit() for character in word))


def _figures(text: str) -> frozenset[str]:
    return _digits(content_words(text))


def _kind_of(role: str, sentence: str) -> Kind | None:
    if role == ASSISTANT and _DOING.match(sentence):
        return None
    for kind in KINDS:
        if role in kind.roles and kind.mark.search(sentence) and _has(kind, sentence):
            return kind
    return None


def _asks(sentence: str) -> bool:
    return rating.asks(sentence) and (sentence.rstrip().endswith(("?", "？")) or not _STANDING.match(_plain(sentence)))


def _has(kind: Kind, sentence: str) -> bool:
    return not kind.needs or any(_MARKED[name].search(sentence) for name in kind.needs.split())


def _confidence(kind: Kind, role: str, sentence: str, text: str, resolved: bool) -> float:
    concrete = sum(bool(_MARKED[name].search(text)) for name in _CONCRETE)
    sure = kind.confidence + _CONCRETE_GAIN * min(3, concrete)
    if kind.type == FACT:
        sure += _CONCRETE_GAIN * any(_MARKED[name].search(text) for name in _WEIGHTY)
    if _HEDGED.search(sentence):
        sure -= _PENALTY
    if _PASSING.search(sentence):
        sure -= _PENALTY
    if not resolved:
        sure -= _SMALL_PENALTY
    if role == ASSISTANT:
        sure -= _ASSISTANT_PENALTY
    return min(1.0, max(0.0, sure))


def _self_contained(sentence: str, before: str) -> tuple[str, bool]:
    """Return a sentence as it can stand alone, with the one before it where it refers to that; tell whether it can."""
    text = _plain(sentence)
    if not _ANAPHORA.match(text):
        return text, True
    if before and not before.rstrip().endswith(("?", "？")) and len(before) + len(text) < MAX_CHARS:
        return f"{_plain(before)} {text}", not _ANAPHORA.match(_plain(before))
    return text, False


def _plain(sentence: str) -> str:
    stripped = _LEAD.sub("", sentence.strip())
    return stripped[:1].upper() + stripped[1:] if stripped else sentence
