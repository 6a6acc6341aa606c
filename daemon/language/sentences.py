"""Split texts into sentences, and recognise questions, requests, guesses and corrections by lists of words.

English, German, French and Chinese; in other languages only questions, by their mark. Pure functions, linear in the
length of the text.
"""

from memoryd.client.patterns import compile_late

READ_CHARS = 8_000
_LEAST_CHARS = 12  # of a sentence worth a line
_WORD = compile_late(r"[^\W_]+(?:['’][^\W_]+)?")
_DENIAL_CHARS = 160  # of a message's beginning
FENCED = compile_late(r"```.*?(?:```|\Z)", 16)  # re.DOTALL
BOUNDARY = compile_late(r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\]])\s+|(?<=[。！？])|\n+")
_LEAD = compile_late(r"^(?:[-*•>#]+|\d{1,2}[.)])\s+")
# Abbreviations: a full stop after these does not end a sentence.
_ABBREVIATED = compile_late(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|approx|Mr|Mrs|Ms|Dr|St|Nr|z\.\s?B|d\.\s?h|u\.\s?a|ca|bzw|usw|ggf|inkl|p\.\s?ex"
    r"|cf|env|[A-Za-z])\.$"
)
_ORDINAL = compile_late(r"(?:^|\s)\d{1,2}\.$")  # of a date, where a month or a small letter follows: am 3. Mai
_AFTER_ORDINAL = compile_late(r"[a-zäöü]|(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")
_QUESTION_MARK = compile_late(r"(?:\?|？|か[。.]?|吗[。.]?|呢[。.]?|嗎[。.]?|っけ[。.]?)[\s\"'”’»)\]*_`]*$")
_MARK_CHARS = 40  # at the end of a text that are examined
_OPEN_ENDS = (":", "：", ",", "…", "...", "-", "–", "(")
_ASKED = compile_late(
    r"(?:^|[.,;:]\s+|\b(?:and|but|so|also|ok|hm|btw|right|good|und|aber|et|mais)[,.]?\s+)"
    r"(?:what(?:'?s)?|how|why|when|where|who(?:'?s)?|which|whats|is|are|do|does|did|should|can|could|would|shall|will"
    r"|was|wie|warum|wieso|weshalb|wann|wo|wer|welche\w*|soll(?:en|te)?|"
    r"comment|pourquoi|quand|où|qui|quel\w*|combien|est-ce)\b"
    r"(?! (?:needed|said|i (?:said|meant)))",
    2,  # re.IGNORECASE
)
_ORDERED = compile_late(
    r"^(?:(?:ok(?:ay)?|right|good|great|nice|perfect|wow|yes|ja|oui|so|now|next|and|then|also|und|dann|et|puis|hm+|thx"
    r"|thanks|gut|super|parfait|nickel|top|go|pls|please|bitte|just|first|for now)[,.!:]?\s+)*"
    r"(?:add|apply|ajoute|ask|backport|build|bump|call|change|check|clean|close|commit|continue|copy|create|delete"
    r"|deploy|do (?:it|that|this)|draft|enable|explain|exclude|fais|find|fix|flash|format|generate|give|go on|install"
    r"|investigate|join|lance|let'?s|list|look|mach|make|mark|merge|move|open|planifie|post|prepare|print|prove|publish"
    r"|push|put|read|rebase|refactor|regarde|remove|rename|replace|restart|revert|review|roll|run|schreib|see|send|set"
    r"|ship|show|squash|start|stop|summari[sz]e|switch|tag|take|tell|test|try|undo|unlock|update|upgrade|use|write|zeig)"
    r"\b(?!\s*:)",
    2,
)
_PLEASE = compile_late(r"\b(?:please|pls|plz|bitte|s'il (?:te|vous) pla[iî]t|stp|svp)\b|请|帮我|麻烦", 2)
_GUESSED = compile_late(
    r"\b(?:probably|perhaps|maybe|presumably|possibly|apparently|likely|i (?:think|believe|suspect|assume|guess|suppose"
    r"|bet|expect|fear)|i(?:'d| would) (?:guess|say|suspect|bet|take|look|try|blame|start|check)|my (?:guess|bet|money)"
    r"|looks? like|seems?|smells? (?:of|like)|sounds? like|might|may (?:be|have)|could be|must be|should (?:do|be|cure"
    r"|help|listen|work)|not sure|suspect|hunch|in all likelihood|i (?:do not|don'?t) (?:know|remember)|no idea"
    r"|i (?:cannot|can'?t) (?:see|tell|say|find))\b"
    r"|\b(?:vermut\w*|wahrscheinlich|vielleicht|möglicherweise|womöglich|vermeintlich|offenbar|anscheinend|wohl"
    r"|scheint|klingt nach|riecht nach|sieht (?:so )?aus|sieht nach|ich (?:glaube|denke|tippe|nehme an|schätze)"
    r"|(?:dürfte|sollte)n?|ich weiß (?:es )?nicht|keine ahnung)\b"
    r"|\b(?:probable(?:ment)?|peut[- ]être|sans doute|je (?:pense|crois|suppose|soupçonne|parie|dirais|mettrais)"
    r"|semble(?:rait)?|on dirait|doit être|devrait|ça ressemble|à mon avis|il se peut"
    r"|je ne sais pas|aucune idée)\b"
    r"|可能|应该是|也许|大概|或许|估计|我猜|我想|看起来|好像|似乎|恐怕|多半|八成|怀疑|不知道|不清楚",
    2,
)
# Beginnings of messages that correct the message before; "no then" and "no problem" agree with it.
_DENIED = compile_late(
    r"^(?:(?:ah|oh|hm+|argh|ok(?:ay)?|well|yes|so|then|also|right|agreed|you(?:'re| are) right|ja|dann|doch|oui"
    r"|bon|alors)[,.!:]?\s+)*"
    r"(?:no\b(?! (?:then|need|problem|worries|objections?|thanks)\b)|nope"
    r"|not\b(?! (?:today|now|yet|known|sure))|it(?:'s| is| was)(?:n't| not)\b"
    r"|that(?:'s| is| was)(?:n't| not| wrong)\b|thats not\b"
    r"|(?:so )?(?:it|that) (?:isn't|wasn't|is not|was not)\b|there (?:is|was|are) no\b|wrong\b|i was wrong\b"
    r"|[\w.'’ -]{1,40} (?:is|are|was|were) (?:fine|innocent|not (?:it|the (?:cause|problem|reason)))\b"
    r"|nein\b(?! (?:dann|danke)\b)"
    r"|nicht|kein\w*|doch nicht|ist es nicht|es (?:ist|war|liegt) nicht|[\w. -]{1,40} (?:ist|war) es nicht\b"
    r"|das (?:ist|war|stimmt) (?:es )?nicht|non\b|ce n'est (?:pas|plus)|ce n'était pas|pas (?:du|de|la|le|l')|faux\b"
    r"|不是|不对|没有|跟.{1,12}无关|与.{1,12}无关|猜错)"
    r"|(?:刚才|之前).{0,8}(?:不对|猜错|错)|\bthat was (?:wrong|a mistake)\b|\bgeirrt\b|\bje me suis trompée?\b",
    2,
)
# Fillers; together with stop words alone they have no content.
FILLERS = frozenset(
    "ok okay k yes yeah yep yup no nope nah hm hmm hi hey hello thanks thank thx ty please sure cool fine alright right"
    " i me my mine we us our ah oh uh um well now go yay lol haha i'm it's that's let's don't i'll".split()
)
# Courtesies consist of these and the words above.
COURTESY = FILLERS | frozenset(
    """
    a about again aha all am an and any anytime are awesome bad be best bit brilliant but bye can care cheers clear
    come could course day definitely did do doing done else enjoy evening everything exactly excellent fair
    fantastic feel for free fun glad going good goodbye got great ha happy have heh help helpful hope how i'd i've
    if in indeed interesting is it it'd its just kind know later let long look looks lot lovely makes many maybe
    mind moment morning much need never nice night not nothing of off on once one perfect pleased pleasure problem
    questions quite really roger same say see sense sir so some soon sorry sounds still stuff super take talk that
    that'd the then there these they thing things think this time to too totally tried try understand understood up
    very was way weekend welcome what what's whatever whenever will wonderful worries would wow ya yet you you'd
    you'll you're you've your yours
    """.split()
)


def split_sentences(text: str) -> list[str]:
    """Return the whole sentences of a text as written, without bullets; fenced code is left out."""
    pieces: list[str] = []
    joined = ""
    parts = BOUNDARY.split(FENCED.sub("\n", text[:READ_CHARS]))
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        piece = f"{joined} {part}".strip() if joined else part.strip()
        goes_on = _ABBREVIATED.search(piece) or (_ORDINAL.search(piece) and _AFTER_ORDINAL.match(following))
        if goes_on and not _LEAD.fullmatch(f"{piece} "):
            joined = piece
            continue
        joined = ""
        piece = _LEAD.sub("", piece)
        if piece and not _LEAD.fullmatch(f"{piece} "):
            pieces.append(piece)
    if joined:
        pieces.append(joined)
    return pieces


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text)]


def ends_with_question(text: str) -> bool:
    """Return whether a text ends with a question mark, or with an interrogative particle (Chinese, Japanese)."""
    return bool(_QUESTION_MARK.search(text[-_MARK_CHARS:]))


def is_question(sentence: str) -> bool:
    """Return whether a sentence is a question, also without a question mark."""
    return ends_with_question(sentence) or bool(_ASKED.match(sentence))


def is_order(sentence: str) -> bool:
    """Return whether a sentence of a user is a request to the agent."""
    return bool(_ORDERED.match(sentence) or _PLEASE.search(sentence))


def is_guess(text: str) -> bool:
    """Return whether a text expresses doubt or ignorance."""
    return _GUESSED.search(text[:READ_CHARS]) is not None


def is_denial(text: str) -> bool:
    """Return whether a message begins by correcting or contradicting the message before it."""
    return _DENIED.search(text[:_DENIAL_CHARS].strip()) is not None


def is_whole(sentence: str) -> bool:
    """Return whether a sentence makes sense by itself: it has content, and does not introduce the next one."""
    return len(sentence.encode()) >= _LEAST_CHARS and not sentence.rstrip().endswith(_OPEN_ENDS)
