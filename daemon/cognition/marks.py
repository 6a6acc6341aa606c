"""The marks by which the rules know what a sentence is: one row for each kind of fact, and what speaks against one.

Each pattern is given one sentence of bounded length. English; other languages are left to meaning and to models.
"""

import re
from typing import NamedTuple

USER, ASSISTANT = "user", "assistant"
CORRECTION, DECISION, PREFERENCE, DEADLINE = "correction", "decision", "preference", "deadline"
RULE, LESSON, FACT = "rule", "lesson", "fact"
TYPES = (CORRECTION, DECISION, PREFERENCE, DEADLINE, RULE, LESSON, FACT)


class Kind(NamedTuple):
    """A kind of fact: how sure a sentence with its mark is, and who may say it."""

    type: str
    confidence: float
    mark: re.Pattern[str]
    roles: tuple[str, ...] = (USER, ASSISTANT)
    needs: str = ""  # names of rating's features, one of which must be there


def _kind(type: str, confidence: float, mark: str, **options: object) -> Kind:
    return Kind(type, confidence, re.compile(mark, re.IGNORECASE), **options)  # type: ignore[arg-type]


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
        r"chose|chosen|opted|picked|signed off|approved|voted|switched|migrated|moved (?:over )?to|dropped|booked|"
        r"hired)\b"
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
        r"|\bI(?: really| always)? (?:like|love|want) "
        r"(?!(?:it|that|this|them|those|these|you|to|the|him|her|how|what)\b)\w"
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
        r"may not|is limited to|at most|at least|no (?:more|longer|later) than|"
        r"we (?:don't|do not|won't|only)|only [\w. ]{2,40} may)\b|\b(?:is|are) (?:only )?allowed\b"
        r"|\bmay be \w+ed (?:only|before|until|without)\b",
    ),
    _kind(
        LESSON,
        0.74,
        r"\b(?:root cause|turn(?:s|ed) out|caused by|lesson|we (?:learned|learnt)|the (?:fix|cause|trick|workaround|"
        r"reason|culprit) (?:is|was)|c[ao]me from|comes from|due to|because of|fixed by|solved by|workaround|"
        r"works? only|only works?|fail(?:s|ed) (?:when|if|on|unless|because)|"
        r"(?:breaks?|broke) (?:when|if|on|because))\b",
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

HEDGED = re.compile(
    r"\b(?:maybe|perhaps|might|not sure|unsure|wondering|could be|I think|I guess|I suppose|probably|possibly|"
    r"no idea|let me know|considering|thinking (?:about|of)|should we|what if|would be nice|one day|some ?day|kind of|"
    r"sort of|I wish|hopefully|I hope|we'll see|depends)\b",
    re.IGNORECASE,
)
# Over by tomorrow, or talk that passes the time.
PASSING = re.compile(
    r"\b(?:this (?:morning|afternoon|evening)|last night|tonight|yesterday|right now|just now|at the moment|"
    r"a (?:minute|moment|second)|hold on|brb|be right back|lunch|coffee|tea|breakfast|dinner|weather|rain(?:s|ed|ing)?|"
    r"snow(?:s|ed|ing)?|sunny|traffic|weekend|movie|tired|slept|hungry|funny|joke|cake|haha|lol|sigh|"
    r"wish me luck|see you|thanks|thank you|"
    r"good (?:morning|evening|night|luck)|bye|goodbye)\b",
    re.IGNORECASE,
)
# What once happened to the speaker.
EPISODE = re.compile(
    r"\bI (?:just |also |even |almost )?(?:\w+ed|saw|went|had|got|was|did|met|made|took|came|bought|ate|drank|slept|"
    r"spent|told|heard|read|thought|felt|ran)\b|^(?:took|got|had|been|was|exactly)\b",
    re.IGNORECASE,
)
# What an assistant says of its own doing.
DOING = re.compile(
    r"^(?:(?:sure|okay|ok|done|great|good|yes|alright|perfect|certainly|of course|happy to|got it|noted|understood|"
    r"will do|makes sense|thanks|sounds good|agreed|no problem|absolutely|right|fair enough|glad)\b|"
    r"(?:I|I've|I'll|I'm|let me|here(?:'s| is| are)|you (?:can|could|may|might|should|will|need)|shall|would you|"
    r"do you|if you|feel free)\b)",
    re.IGNORECASE,
)
# A request that holds from now on, not for the next answer alone.
STANDING = re.compile(r"^(?:please )?(?:always|never|keep (?:your|the|all)|from now on|don't|do not)\b", re.IGNORECASE)
LEAD = re.compile(
    r"^(?:(?:ok(?:ay)?|so|well|also|and|but|oh|ah|hm+|yes|yeah|yep|yup|right|sure|great|cool|good|nice|perfect|sorry|"
    r"thanks|thank you|by the way|btw|fyi|one more thing|another thing|one thing|just so you know|for the record|"
    r"heads[ -]up|quick note|side note|reminder|to be clear|just to be clear|first(?: of all)?|second|finally|"
    r"please (?:remember|note)(?: that)?|"
    r"remember(?: that)?|keep in mind(?: that)?|note(?: that)?|important|correction|no|nope|wait|actually|anyway|"
    r"good (?:point|question)|before I forget|last thing|in any case|speaking of which)(?:[,:;.!]+ *| +[-–—] *| +(?="
    r"(?:we|I|the|our|my|it|from|for|all|please|by|let's|that|this|there|you|never|always|do|use|so|and|that)\b)))+",
    re.IGNORECASE,
)
ANAPHORA = re.compile(
    r"^(?:(?:that|this|these|those)(?:'s|$| (?:is|are|was|were|has|have|had|will|would|can|could|must|should|may|"
    r"means?|makes?|works?|needs?|looks?|sounds?|helps?|one|ones|way)\b)"
    r"|(?:it|it's|they|they're|he|she|he's|she's|its|their|because|which|then|there|both)\b|"
    r"the (?:latter|former|other|same)\b|(?:instead|otherwise)\b)",
    re.IGNORECASE,
)
