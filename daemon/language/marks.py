"""The marks by which the rules know what a sentence is: one row for each kind of fact, and what speaks against one.

Each pattern is given one sentence of bounded length. English; other languages are left to meaning and to models.
"""

import re
from typing import NamedTuple

from memoryd.client.patterns import compile_late

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
    return Kind(type, confidence, compile_late(mark, re.IGNORECASE), **options)  # type: ignore[arg-type]


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
        r"^(?:(?:oh|sorry|hm+|ah|well|but)[,.]? )*(?:(?:no|nope)(?:[,.:;!]+ | (?:it|we|that|this|the|not|I)\b)|"
        r"(?:wait|actually|not quite)\b[,.:;!]? )",
        roles=(USER,),
        needs="number date code rule decision",
    ),
    _kind(
        CORRECTION,
        0.8,
        r"(?<!\bI )(?<!\bwe )\b(?:moved|slips|slipped|postponed|delayed|shifted|rescheduled|brought forward|"
        r"pushed back)\b",
        roles=(USER,),
        needs="date",
    ),
    _kind(
        DECISION,
        0.75,
        r"\b(?:decided|decision)\b|\bmade up (?:my|our) minds?\b"
        r"|\b(?:it|that|this)(?:'s| is| has been)(?: now| all)? (?:settled|decided|final|confirmed)\b|"
        + rf"\b{_WE}(?:'ve| have| had)?(?: all| just| finally| now)? (?:agreed|settled on|"
        r"chose|chosen|opted|picked|signed off|approved|voted|switched|migrated|moved (?:over )?to|dropped|booked|"
        r"hired|cut|reduced|raised|lowered|limited|extended|went (?:for|with)|decide)\b"
        rf"|\b{_WE}(?:'ll| will|'re going to| are going to|'re| are)(?: now| all| only)? (?:use|using|go with|"
        r"going with|keep|keeping|stay(?:ing)? with|stick(?:ing)? (?:to|with)|switch(?:ing)?|mov(?:e|ing) to|"
        r"migrat(?:e|ing)|drop(?:ping)?|cut(?:ting)?|host(?:ing)?|adopt(?:ing)?|replac(?:e|ing)|standardi[sz](?:e|ing))\b"
        r"|\blet's (?:go with|use|stick|stay|settle|keep|drop|switch|take|make it|do it)\b|\b(?:go|going) with\b"
        r"|\bfrom now on\b|\bno longer\b|\b(?:was|were|is|are|been) (?:approved|rejected|signed off|deprecated|dropped|"
        r"chosen|replaced)\b|\b(?:use|run|keep|take) [^,.]{2,40}, not\b|\binstead of\b|\brather than\b",
    ),
    _kind(
        PREFERENCE,
        0.76,
        r"\bI(?:'d|'ll| would|'m)?(?: really| also| usually| always| much| strongly| generally| personally)* "
        r"(?:prefer|rather|hate|dislike|can't stand|cannot stand|allergic|vegetarian|vegan|"
        r"only (?:buy|use|eat|drink|read|take))\b"
        r"|\bI(?: do not| don't| can't| cannot|'m not allowed to)(?: really)? "
        r"(?:like|want|eat|drink|use|need|tolerate)\b(?! (?:that|this|it)\b)"
        r"|\bmy (?:favou?rite|preferred|preference)\b|\ballerg(?:ic to|y)\b|\bcall me\b"
        r"|\bI(?: really| always)? (?:like|love|want) "
        r"(?!(?:it|that|this|them|those|these|you|to|the|him|her|how|what)\b)\w"
        r"|\bplease (?:always|never|keep(?! in mind)|write|use|answer|reply|do not|don't)\b(?!,)|\bprefers?\b",
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
        r"\b(?:must(?! (?:admit|say|confess|go|run|leave|be off)\b)(?: not)?|mustn't|"
        r"(?<!\bI )(?:never|always)|mandatory|forbidden|not allowed|may only|only allowed|prohibited|"
        r"policy|convention|make sure|under no circumstances|requires?|required|do not|don't(?: you)? ever|"
        r"may not|is limited to|at most|at least|no (?:more|longer|later) than|"
        r"we (?:don't|do not|won't|only)|only [\w. ]{2,40} may)\b|\b(?:is|are) (?:only )?allowed\b"
        r"|(?:^|\band |, |- )no \w+(?: \w+)? (?:on|in|at|after|before|during|between|without|until)\b|\bpermitted\b"
        r"|\bmay be \w+ed (?:only|before|until|without)\b",
    ),
    _kind(
        LESSON,
        0.74,
        r"\b(?:root cause|turn(?:s|ed) out|caused by|lesson|we (?:learned|learnt)|the (?:fix|cause|trick|workaround|"
        r"reason|culprit) (?:is|was)|(?:cause|reason|culprit)(?=:)|"
        r"c[ao]me from|comes from|due to|because of|fixed by|solved by|workaround|"
        r"next time|works? only|only works?|fail(?:s|ed) (?:when|if|on|unless|because)|"
        r"(?:breaks?|broke) (?:when|if|on|because))\b",
    ),
    _kind(LESSON, 0.7, r"\b(?:was|were|is|are|failed|broke|died|dragged|happen(?:s|ed)|kept \w+ing)\b.*\bbecause\b"),
    _kind(
        FACT,
        0.66,
        r"\b(?:our|my|the|their|his|her|its) [\w' -]{2,50}?\b(?:is|are|was|has|have|uses?|runs?|lives?|costs?|sits?|"
        r"holds?|belongs?|needs?|listens?|stays?|comes?|goes|rotates?|contains?|allows?|counts?)\b"
        r"|\b(?:is|are) (?:called|named|located|owned|responsible|in charge)\b"
        r"|(?-i:^[A-Z][a-z]+ [A-Z][a-z]+ (?:is|has|[a-z]+s)\b)|\b(?:is|are) (?-i:[A-Z][a-z]+ [A-Z][a-z]+)"
        r"|\bI(?:'m| am) (?:a|an|the|from|based|responsible|in charge)\b|\bI (?:work|live|run|lead|manage|own)\b",
        needs="number date code name",
    ),
    _kind(FACT, 0.74, r"\b(?:name|title|codename|motto|password|address|number|topic)(?: will be\b|:)", roles=(USER,)),
    # What is said to be remembered.
    _kind(
        FACT,
        0.74,
        r"^(?:please )?(?:(?:remember|note|keep in mind|bear in mind|don't forget)(?: that\b|:)|for future reference\b"
        r"|note to self\b|make a note\b)",
        roles=(USER,),
    ),
    # Any other statement: what it has of names, figures, dates and reasons decides.
    _kind(FACT, 0.62, r"", roles=(USER,), needs="number date code name"),
)

HEDGED = compile_late(
    r"\b(?:maybe|perhaps|might|not sure|unsure|wondering|could be|I think|I guess|I suppose|probably|possibly|"
    r"no idea|let me know|considering|thinking (?:about|of)|should we|what if|one day|some ?day|kind of|"
    r"sort of|I wish|hopefully|I hope|we'll see|we see|depends|"
    r"could we|just (?:a )?(?:thought|thinking|curious|kidding|joking)|thought experiment|in theory|"
    r"hypothetical(?:ly)?|fingers crossed)\b",
    re.IGNORECASE,
)
# What is only imagined.
SUPPOSED = compile_late(
    r"\b(?:would|could|might|'d) be (?:so |very |really )?(?:nice|cool|fun|funny|great|lovely|hilarious|amazing)\b"
    r"|^(?:imagine|suppose|picture this|in a perfect world|in another life)\b|\b(?:can you imagine|, imagine)\b"
    r"|\bif (?:I|we|you|he|she|they|it|my [\w ]+|the [\w ]+|somebody|someone)"
    r" (?:won|had|were|was|knew|could|saw|see|gave|lost|found)\b.*\b(?:would|could|'d|might)\b"
    r"|\bif (?:\w+ ){1,3}(?:didn't|weren't|wasn't|did not)\b.*\b(?:would|could|'d)\b"
    r"|\b(?:would|could|'d|might)\b.* if (?:I|we|you|he|she|they|it) (?:won|had|were|was|knew|could|saw|gave|lost)\b",
    re.IGNORECASE,
)
# What others say or have written somewhere.
QUOTED = compile_late(r"\"[^\"\n]{3,}\"|“[^”\n]{3,}”|«[^»\n]{3,}»|„[^“\n]{3,}“")
# Over by tomorrow.
PASSING = compile_late(
    r"\b(?:this (?:morning|afternoon|evening)|last night|tonight|yesterday|right now|just now|at the moment|"
    r"(?:in|just|wait|for|give me) a (?:minute|moment|second)|one (?:moment|second|sec)|hold on|brb|be right back|"
    r"tired|slept|hungry|haha|lol|sigh|ugh|"
    r"wish me (?:the )?luck|bear with me|(?:I've|I have) (?:got )?to (?:run|go)|must go|see you|thanks|thank you|"
    r"good (?:morning|evening|night|luck)|bye|goodbye|once upon a time)\b",
    re.IGNORECASE,
)
# Talk that passes the time: it says nothing against a sentence with the mark of a kind.
CHATTER = compile_late(
    r"\b(?:lunch|coffee|tea|breakfast|dinner|weather|rain(?:s|ed|ing)?|snow(?:s|ed|ing)?|sunny|traffic|weekends?|movie|"
    r"funny|jokes?|cake|again|still|today|wow|gosh|omg|hilarious|honestly|crazy|insane|oops|the classic|"
    r"smells?|tastes?|spooky|creepy|exciting|excited)\b|!$",
    re.IGNORECASE,
)
# What once happened to the speaker.
EPISODE = compile_late(
    r"\bI (?:just |also |even |almost )?(?:\w+ed|saw|went|had|got|was|did|met|made|took|came|bought|ate|drank|slept|"
    r"spent|told|heard|read|thought|felt|ran)\b|^(?:took|got|had|been|was|exactly)\b",
    re.IGNORECASE,
)
# What once happened to somebody or something else, with nothing that says it continues.
TALE = compile_late(
    r"\b(?:once|ago|last (?:time|week|month|year|summer|winter)|used to|remember (?:the|when|that time))\b"
    r"|^(?:and |but |so )?(?:my|our|the|that|this|his|her|a|an|one|some\w*|every\w*|he|she|it|they|two|three) "
    r"(?:[\w'-]+ ){0,4}?"
    r"(?:ran|ate|went|told|said|asked|saw|took|fell|stole|"
    r"walked|looked|called|cried|laughed|scratched|yelled|drank|slept|forgot|jumped|stopped)\b",
    re.IGNORECASE,
)
# A question without its mark, as people type it.
ASKING = compile_late(
    r"^I(?:'d| would) (?:like|love|want) to (?:go|talk|speak|discuss|start|begin|ask|know|see|hear|show|run|work)\b|"
    r"^(?:and |so |but |ok |okay |hey |hm+ |ah )*(?:(?:what|who|whom|where|when|why|how|which)"
    r"(?:'s|(?: \w+){0,2}? (?:is|are|was|were|does|do|did|would|should|can|could|will|has|have|you say)) ?(?:\w|$)"
    r"|(?:is|are|was|were|does|did|can|could|would|should) (?:it|this|that|there|we|you|they|I|he|she|an?|the|"
    r"my|your|our|any\w*|some\w*)\b|(?:what|who) \w+s\b(?!.*\b(?:is|are|was|were|will|must|should)\b)"
    r"|(?:what|how|why) (?:about|if|come|not)\b)"
    r"|[,;] (?:who|what|why|when|where|how) (?:is|was|did|does|do|would|could|wrote|said|did)\b[^,.]*$"
    r"|^(?:tell|show|play|read|write|give|explain|check|turn (?:on|off)|switch (?:on|off))(?: \w+){0,3}$",
    re.IGNORECASE,
)
# What an assistant says of its own doing.
DOING = compile_late(
    r"^(?:(?:sure|okay|ok|done|great|good|yes|alright|perfect|certainly|of course|happy to|got it|noted|understood|"
    r"will do|makes sense|thanks|sounds good|agreed|no problem|absolutely|right|fair enough|glad)\b|"
    r"(?:(?:I|I've|I have)(?! (?:found|noticed|measured|traced|discovered)\b)|I'll|I'm|let me|"
    r"here(?:'s| is| are)|you (?:can|could|may|might|should|will|need)|shall|would you|"
    r"do you|if you|feel free)\b)|.*\b(?:is|are) (?:now )?(?:set|done|saved|noted|added|updated|running)[.!]?$",
    re.IGNORECASE,
)
# A request that holds from now on, not for the next answer alone.
STANDING = compile_late(
    r"^(?:please )?(?:(?:always|never|keep (?:your|the|all)|from now on|don't|do not|"
    r"stop (?:using|adding|writing|putting))\b|"
    r"(?:give|write|use|show|send|answer|reply|talk|speak)\b.* in (?:inches|feet|miles|metres|meters|kilomet\w+|metric|"
    r"imperial|celsius|fahrenheit|euros|dollars|pounds|UTC|markdown|british|american|english|german|french|spanish)\b)",
    re.IGNORECASE,
)
LEAD = compile_late(
    r"^(?:(?:ok(?:ay)?|so|well|also|and|but|oh|ah|hm+|yes|yeah|yep|yup|right|sure|great|cool|good|nice|perfect|sorry|"
    r"thanks|thank you|by the way|btw|fyi|one more thing|another thing|one thing|just so you know|for the record|"
    r"heads[ -]up|quick note|side note|reminder|update|one more|one change|good news|bad news|anyways?|"
    r"last thing(?: for (?:today|tonight|now))?|to be clear|just to be clear|first(?: of all)?|second|finally|"
    r"please (?:remember|note|keep in mind|bear in mind)(?: that)?|"
    r"remember(?: that)?|keep in mind(?: that)?|note(?: that)?|important|correction|no|nope|wait|actually|anyway|"
    r"good (?:point|question)|before I forget|last thing|in any case|speaking of which)(?:[,:;.!]+ *| +[-–—] *| +(?="
    r"(?:we|I|the|our|my|it|from|for|all|please|by|let's|that|this|there|you|never|always|do|use|so|and|that)\b)))+",
    re.IGNORECASE,
)
ANAPHORA = compile_late(
    r"^(?:(?:that|this|these|those)(?:'s|$| (?:is|are|was|were|has|have|had|will|would|can|could|must|should|may|"
    r"means?|makes?|works?|needs?|looks?|sounds?|helps?|one|ones|way)\b)"
    r"|(?:it|it's|they|they're|he|she|he's|she's|its|their|because|which|then|there|both)\b|"
    r"the (?:latter|former|other|same)\b|(?:instead|otherwise)\b)",
    re.IGNORECASE,
)
