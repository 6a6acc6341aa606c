"""Whether a turn of talk, or a memory that was saved later, changes what a saved memory says.

A sentence of it tells of the change: that what the memory names is over (`we dropped Redis`, `from 15 to 7 days`), or
another value of what the memory is about. It is about the same by the words that both have, and by how near the turn,
with what was said just before it, is to the memory. What asks, guesses, proposes, quotes, tells of the past, of a
single exception, or of another component or environment changes nothing. English; the commonest words of German,
French, Spanish and Japanese. Pure functions of some 0.2 ms; what is long is read up to `READ_CHARS`.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence, Set
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from memoryd.client.patterns import compile_late
from memoryd.daemon.agreement import claims, statements, words
from memoryd.daemon.agreement.reading import has_digit, stem

READ_CHARS = 4_000
NEAR = 0.25  # cosine of a turn, or of it with what was said before it, to what it may change
_FAR, _CLEARLY_NEAR, _VERY_NEAR, _SURELY_NEAR = 0.15, 0.4, 0.5, 0.6
_OFTEN_SAID, _OFTEN_SHARE = 3, 0.02  # memories with a word, from which on it says little
_BEGINNING = 24  # characters by which a sentence is found in its text
_KEPT = 512  # texts that are read once


class Change(NamedTuple):
    """Where a text tells of a change, in characters, and how sure that is: 0 to 1."""

    start: int
    size: int
    sure: float


class _Clause(NamedTuple):
    tokens: tuple[str, ...]  # casefolded, with marks between
    stems: tuple[str, ...]  # of each token; empty: it is no word of content


class _Sentence(NamedTuple):
    """A sentence without what it quotes, and where it is in its text."""

    text: str
    start: int
    clauses: tuple[_Clause, ...]
    stems: frozenset[str]
    names: frozenset[str]
    short: frozenset[str]  # names of capitals alone
    values: tuple["_Value", ...]


class _Value(NamedTuple):
    """A number, date, day or name that a text gives, and of what kind it is."""

    kind: str
    value: str


# Reading -------------------------------------------------------------------------------------------------------------

_QUOTED = compile_late(
    r"""^>[^\n]*|"[^"\n]{12,400}"|“[^“”\n]{12,400}”|„[^„“”"\n]{12,400}[“”"]|«[^«»\n]{12,400}»|「[^「」\n]{4,400}」""",
    re.M,
)
_FENCED = compile_late(r"```.*?(?:```|\Z)", re.DOTALL)
_TOKEN = compile_late(r"[^\W_][\w@/.:'’+-]*[^\W_]%?|[^\W_]%?|[#_@]\w+|→|->|[,;:()—–!?.]")
_CJK = compile_late(r"[㐀-鿿ァ-ヿー]+")
_BETWEEN = frozenset(",;:()—–!?.")
_PIECES = compile_late(r"[/_.:@'’-]+|(?<=[a-z0-9])(?=[A-Z])")
# Words that say nothing of what a memory is about, or stand in any.
_COMMON = frozenset(
    """
    use used using uses usage run runs running go goes going went make makes made new old one ones thing stuff way
    everything anything nothing something more less than no not never only instead longer anymore now today also still
    please ok yes yeah yep want need like just time first last next same other others all both each every any our we
    per nur mehr nicht kein keine ab jetzt alle alles wir ist sind le la les on en que tout est une un des du el los se
    lo por para con
    """.split()
)
_UNITS = {
    "minute": "minute min mins minutes minuten minutos",
    "second": "second seconds sec secs s sekunden secondes segundos",
    "hour": "hour hours h hrs stunden heures horas",
    "day": "day days d tage tagen jours días",
    "week": "week weeks wochen semaines semanas",
    "month": "month months monate monaten mois meses",
    "year": "year years jahre jahren ans años",
    "percent": "% percent prozent",
    "size": "kb mb gb tb kib mib gib",
    "money": "€ $ £ euro euros dollar dollars eur usd",
    "rate": "hz khz mhz ghz fps ticks baud rpm",
    "length": "px pt mm cm m km inch inches points",
    "charge": "mah ah",
    "weight": "g kg",
    "degree": "°c °f degrees grad",
    "inches": "インチ 型",
}
_UNIT = {word: kind for kind, unit in _UNITS.items() for word in unit.split()}
_UNIT_STEMS = frozenset(map(stem, _UNIT))
# Half an hour and 20 minutes are of one kind, two weeks and 30 days of another.
_SPANS = dict.fromkeys(("second", "minute", "hour"), "clock time") | dict.fromkeys(
    ("day", "week", "month", "year"), "calendar time"
)
_MEASURED = frozenset((*_UNITS, *_SPANS.values(), "weekday", "often", "date", "clock", "language"))
_DAYS = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag"
    " sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado"
    " domingo".split()
)
_MONTHS = frozenset(
    "january february march april june july august september october november december januar februar märz april juni"
    " juli oktober dezember jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
_OFTEN = frozenset(
    "hourly daily nightly weekly biweekly fortnightly monthly quarterly yearly annually night täglich wöchentlich"
    " monatlich".split()
)
_LANGUAGES = frozenset(
    "english german french spanish dutch italian japanese chinese polish portuguese american british englisch deutsch"
    " französisch spanisch anglais allemand français espagnol inglés alemán".split()
)
_NUMERAL = compile_late(r"[0-9][\W0-9]*$")
_GERMAN = compile_late(r"\b(?:der|das|ist|und|nicht|wir|eine?|auf|für|wird|werden|mit)\b")
_NUMBER_UNIT = compile_late(r"([0-9][0-9.,:]*)-?([a-z%°€$£]*)")
_CLOCK = compile_late(r"[0-2]?[0-9](?::[0-5][0-9]|h[0-5]?[0-9]?|[ap]m)?$")


@lru_cache(_KEPT)
def _read(text: str) -> tuple[_Sentence, ...]:
    """Return the sentences of a text."""
    bare = text[:READ_CHARS]
    for left_out in (_FENCED, _QUOTED):
        bare = left_out.sub(lambda match: " " * len(match[0]), bare)  # so that places stay
    found: list[_Sentence] = []
    end = 0
    for sentence in claims.split_sentences(bare):
        start = max(bare.find(sentence[:_BEGINNING], end), end)
        found.append(_read_sentence(sentence, start))
        end = start + len(sentence)
    return tuple(found)


def _read_sentence(sentence: str, start: int = 0) -> _Sentence:
    clauses: list[_Clause] = []
    tokens: list[str] = []
    names: set[str] = set()
    short: set[str] = set()
    previous, is_german = ".", bool(_GERMAN.search(sentence))  # which writes all nouns large
    for match in _TOKEN.finditer(sentence):
        token = match[0]
        if token in _BETWEEN and token != ":":
            clauses.append(_clause(tokens))
            tokens = []
        else:
            tokens.append(token)
            if _is_name(token, previous, is_german):
                names.add(stem(token.casefold()))
                short |= {stem(token.casefold())} if token.isupper() else set()
        previous = " " if token == "." and previous.casefold() in _TITLES else token
    clauses.append(_clause(tokens))
    stems = frozenset(one for clause in clauses for part in clause.stems for one in part.split())
    values = tuple(_find_values([token for clause in clauses for token in (*clause.tokens, "")]))
    return _Sentence(
        sentence, start, tuple(one for one in clauses if one.tokens), stems, frozenset(names), frozenset(short), values
    )


def _clause(tokens: Sequence[str]) -> _Clause:
    return _Clause(
        tuple(token.casefold() for token in tokens), tuple(" ".join(sorted(_stems_of(token))) for token in tokens)
    )


def _is_name(token: str, previous: str, is_german: bool) -> bool:
    """Return whether a word is a name: an identifier, or written large within a sentence."""
    folded = token.casefold()
    if folded in _UNIT or folded.removesuffix("s") in _DAYS or folded in _MONTHS or folded in _LANGUAGES:
        return False
    if has_digit(token) and not token[0].isdigit():
        return True
    inner = token[1:]
    if any(mark in inner for mark in "/_@.") or any(char.isupper() for char in inner) or token[0] in "#_@":
        return True
    return token[0].isupper() and previous not in ".!?:" and len(token) > 1 and not is_german


@lru_cache(4 * _KEPT)
def _stems_of(token: str) -> frozenset[str]:
    """Return the stems of a word and of its parts, none of one that has no content."""
    folded = token.casefold()
    if not folded[0].isascii() and _CJK.search(folded):
        return frozenset(_CJK.findall(folded))
    whole = folded.removesuffix("'s").removesuffix("’s")
    parts = {whole} if _NUMERAL.match(whole) else {whole, *(part.casefold() for part in _PIECES.split(token))}
    kept = {words.NUMBERS.get(part, part) for part in parts if part and part not in words.STOP and part not in _COMMON}
    return frozenset(stem(part) for part in kept if len(part) > 1 or part.isdigit())


def _find_values(tokens: Sequence[str]) -> list[_Value]:
    """Return what a text gives as values, each with its kind."""
    found: list[_Value] = []
    for at, token in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else ""
        before = tokens[at - 1] if at else ""
        bare = token.removesuffix("s") if token.removesuffix("s") in _DAYS else token
        number = words.NUMBERS.get(token, token)
        if bare in _DAYS:
            found.append(_Value("weekday", bare))
        elif token in _OFTEN or (token in ("every", "each") and after.removesuffix("s") in _DAYS | {"night", "day"}):
            found.append(_Value("often", after if token in ("every", "each") else token))
        elif token in _LANGUAGES:
            found.append(_Value("language", token))
        elif token in _MONTHS or (token == "may" and (before[:1].isdigit() or after[:1].isdigit())):
            day = before if before[:1].isdigit() else after if after[:1].isdigit() else ""
            found.append(_Value("date", f"{token[:3]} {day.rstrip('stndrh')}"))
        elif _CLOCK.match(number) and (not number.isdigit() or (before in ("at", "um", "à") and after not in _UNIT)):
            found.append(_Value("clock", number))
        elif number[:1].isdigit() and (match := _NUMBER_UNIT.match(number)):
            unit = _UNIT.get(match[2] or after, "")
            nouns = [word for word in tokens[at + 1 : at + 3] if word and _stems_of(word)]
            unit = _SPANS.get(unit, unit)
            kinds = [unit] if unit else [*(f"of {stem(word)}" for word in nouns), ""]
            if before.isalpha() and not unit and _stems_of(before):
                kinds.append(f"after {stem(before)}")
            if len(number) > 2:
                kinds.append(f"shape {_shape(number)}")
            found += [_Value(kind, match[1]) for kind in kinds]
    return found


def _shape(number: str) -> str:
    return "".join("9" if char.isdigit() else char for char in number)


# What tells of a change ----------------------------------------------------------------------------------------------

# In these patterns § stands for a word that the memory has as well. Up to some words between, within a clause.
_FEW = (
    r"(?: (?!(?:from|in|on|of|to|for|with|by|at|into|and|or|but|because|since|so|when|if|as|than|that|which|after"
    r"|before|during|until|under|about)\b)[^ §]+)"
)
_VERBS = (
    r"(?:drop(?:s|ped|ping)?|remov(?:e|es|ed|ing)|delet(?:e|es|ed|ing)|kill(?:s|ed|ing)?|ditch(?:ed|ing)?"
    r"|retir(?:e|ed|ing)|scrap(?:ped|ping)?|abandon(?:ed|ing)?|cancel(?:l?ed|l?ing)?|uninstall(?:ed|ing)?"
    r"|replac(?:e|es|ed|ing)|swap(?:ped|ping)?|leaving|sold|sell(?:ing)?|quitt(?:é|e|er|ons)|laiss(?:é|e)|(?:has"
    r"|have|we|i) left|quit|stop(?:ped|s|ping)?|ended|decommission(?:ed)?|disabl(?:e|ed)|ripp?(?:ed|ing)? out"
    r"|g[eo]t(?:ting)? rid of|thr[oe]wn?(?: out| away)?|turn(?:ed|ing)? off|shut(?:ting)? (?:off|down)"
    r"|switch(?:ed|ing)? (?:off|from|away from)|g[ai]v(?:e|en|ing) up(?: on)?|t[ao]o?k(?:e|en)? out"
    r"|goodbye(?: to)?|farewell(?: to)?|done with|through with|finished with|instead of|rather than|away from"
    r"|moved (?:off|on from)|migrated (?:off|from)|no more|no need for|lift(?:ed)?|ersetz(?:t|en)|statt"
    r"|anstelle von|anstatt|remplac\w+|au lieu d[eu]|à la place d[eu]|en lugar de|en vez de|reemplaz\w+"
    r"|quit(?:amos|é|ar)|supprim\w+|abandonn\w+|arrêt\w+|dej(?:amos|é|ar) de|kündig\w+|abgeschafft)"
)
_GONE = (
    r"(?:gone|dead|over|history|removed|dropped|deleted|replaced|retired|cancell?ed|wiped|scrapped|killed"
    r"|deprecated|obsolete|abolished|lifted|abandoned|no more|a thing of the past|behind us|overkill|disabled"
    r"|superseded|moved|migrated|converted|ported|archived|switched|swapped|sold|closed|shut|taken|passé)"
)
# Said of nearly nothing else, wherever in a clause it is.
_CEASED = (
    r"\b(?:abolish\w*|axed|nixed|binned|chucked|tossed|dumped|shelved|mothballed|outgrew|outgrown|terminated"
    r"|withdrawn|rip|so long|bye|moved on from|in (?:place|lieu) of|in favou?r of|replacement for|successor (?:of"
    r"|to)|tak(?:es|en) over from|took over from|tak(?:es|en) the place of|took the place of|stepp?(?:ed"
    r"|ing) down|fliegt raus|raus mit|schluss mit|ausgedient|adieu|adiós|se acabó|abandon\w*|ditch\w*|scrap(?:ped"
    r"|ping)|retired|unplugged|forget(?: about)?|supersed\w*"
    r"|swapp(?:ed|ing)|obsolete|deprecated|decommission\w*|discontinu\w*|phas(?:ed|ing) out|sunset|sold out"
    r"|pulled the plug|shut down|closed down|gets? closed|goodbye|farewell|off the (?:menu|table|list)"
    r"|out of the (?:question|picture|game)|(?:ported|convert(?:ed|ing)|migrat(?:ed|ing)) (?:all|the|every|our"
    r"|everything)|(?:switch|mov|migrat|chang)(?:ed|ing|e)? (?:away )?from|abgeschafft|abgelöst|ersetzt|gekündigt"
    r"|umgestellt|eingestellt|gilt nicht|passé|vorbei|remplacée?s?|abandonnée?s?|supprimée?s?|terminée?s?|fini"
    r"|plus d[e']|reemplaza\w+|eliminad\w+|quitad\w+|dejamos|ya no|cambiad\w+)\b"
)
_CARRIES = (
    r"\b(?:transfer|cop(?:y|ied)|sen[dt]|import|export|download|deploy|read|fetch|pull|push|forward|link|ride"
    r"|drive|travel|train|translat|runs?)"
)
_OVER = compile_late(
    rf"\b{_VERBS}{_FEW}{{0,3}} §"
    rf"|§(?:{_FEW}| and| of){{0,6}} (?:is|are|isn't|was|were|gets?|got|been|be|being|'s|s)(?: \w+){{0,2}} {_GONE}\b"
    rf"|§{_FEW}{{0,2}} (?:is|are|was|were) out\b|\b(?:bump|upgrad|downgrad|updat|renam|convert"
    rf"|chang)\w{{0,3}}{_FEW}{{0,2}}(?: §)?"
    rf" § (?:to|auf|zu) \S{{0,9}}[0-9]|§{_FEW}{{0,3}} ist (?:in rente|weg|raus|tot|zu|geschlossen)\b"
    rf"|§{_FEW}{{0,2}} (?:goes|leaves|left the|retires|becomes?|became|ends (?:with|in|on|at|today|now)|ended|died"
    rf"|turned into|stops|stopped|out$)\b"
    rf"|§{_FEW}{{0,3}} only (?:stays?|remains?|until|till)\b|§ (?:→|->)"
    rf"|^(?!.*{_CARRIES}).*\bfrom{_FEW}{{0,3}} §.{{0,40}}? (?:to|→)\b"
    rf"|§.{{0,60}}{_CEASED}|{_CEASED}.{{0,60}}§"
    r"|\b(?:no longer|not|don't|dont|doesn't|isn't|aren't|won't|never|we're not|nothing|nobody|nicht|kein\w*|ne"
    r"|plus|ya no)\b.{0,40}?§.{0,30}? (?:any ?more|any longer|after all|mehr|plus)\b"
    rf"|\bno longer\b{_FEW}{{0,3}} §|§{_FEW}{{0,4}} no longer\b|§.{{0,30}}\bnicht mehr\b|§.{{0,30}} (?:any ?more"
    rf"|any longer)$"
    rf"|\bno(?:thing)?\b{_FEW}{{0,3}} §.{{0,30}} (?:any ?more|after all|left)\b|\bnothing left{_FEW}{{0,1}} (?:in"
    rf"|on|of|at) §"
    rf"|\b(?:do not|don't|dont|not|never) (?:use|do|need|want|have|run|support|going for|(?:imported|exported"
    rf"|transferred|copied) (?:in)?to|going with|doing"
    rf"|using){_FEW}{{0,2}} §"
    rf"|\b(?:nothing|nobody|none|no one){_FEW}{{0,3}} (?:uses?|imports?|needs?|reads?|writes?|runs?"
    rf"|depends on){_FEW}{{0,2}} §"
    r"|^not §|\b(?:mov|migrat|port|switch|convert|chang)(?:ed|ing) .{0,40}(?:off|out of|away from"
    r"|over from) (?:the )?§|§.{0,40}\bwas (?:an? (?:guess|mistake|bad|pain|disaster|nightmare|experiment|dead"
    r"|stopgap)|wrong|too)\b|\b(?:t[ao]o?ken?|took|moved|pulled|cut|ripped|threw"
    r"|thrown)(?: \S+){0,2} §(?: \S+){0,3} out\b|\b\w+(?:ed|ing)\b.{0,30} out of (?:the |our )?§|\b(?:turn|switch"
    r"|shut|pull)\w* (?:the |our )?§(?: \w+){0,2} (?:off|down|out)\b|\b(?:was|were|used to be|formerly|previously"
    r"|until now) §(?:.{0,30}\b(?:now|these days)\b| (?:until|till|before)\b)|\bya no\b.{0,40}§|\bn'est plus\b"
    r"|§.{0,20}やめ"
    r"|§.{0,20}(?:から|ではなく)"
)
# Said without what was before.
_TOO = compile_late(
    r"§ (?:\S+ )?(?:is|are|was|were) (?:\w+ )?too \w+|^§ (?:was|were) (?:\w+ )?(?:confusing|annoying|terrible"
    r"|awful|bad|slow|ugly|wrong)"
)
_FROM_NOW = compile_late(
    r"\b(?:from (?:now|here|today|tomorrow|monday|tuesday|wednesday|thursday|friday|next \w+|this \w+"
    r"|the \w+) on(?:wards?)?|from today|from monday|starting (?:today|tomorrow|monday|next \w+|with)"
    r"|as of (?:now|today|\w+day)|new (?:rule|policy|plan|limit)|no longer|going forward|for good|after all"
    r"|ab (?:sofort|heute|jetzt|morgen|montag)|künftig|in zukunft|nur noch|désormais|dorénavant|à partir d"
    r"|maintenant|a partir de|ahora|de ahora en adelante|ya no|今後|今日から|これから)"
)
_NOW = compile_late(
    r"\b(?:now|switched|moved|moves?|mov(?:e|ing)|migrated|chang(?:ed|ing)|becomes?|became|instead|converted"
    r"|rewrote|rewritten|replaced|ported|going to|goes? to|(?:raise|raised|lower|lowered|cut|bump|bumped|increase"
    r"|increased|reduce|reduced|shorten|shortened|extend|extended|set|reset|turn|turned|push|pushed|pull|pulled"
    r"|postponed?|delayed) (?:\S+ ){1,6}to|since (?:yesterday|last|monday|today|we|the)|went (?:back )?to"
    r"|going with|it is|(?:will|shall) be|then$|jetzt|nun|seit|passe|passons|on va|pasamos|cambi\w+|umgestellt"
    r"|gewechselt)\b|変え|変更|切り替え|に替え|移行"
)
_ASKS = compile_late(
    r"[?？]\W{0,5}$|^¿|^(?:is|are|do|does|did|was|have|has|wo)n't (?:it|they|we|you|he|she|that|there)\b", re.I
)
_DO = compile_late(r"^(?:do|did) (?:it|that|this|not|n't)\b|^what (?:i|we)\b", re.I)
_SUPPOSED = compile_late(
    r"\b(?:would|could|might|(?:i|we|you|they)'d(?! (?:like|rather|better))|what if|maybe|perhaps|propos\w+"
    r"|suggest\w*|options?|consider\w*|thinking (?:about|of)|thought about|wondering|wish|imagine|suppose"
    r"|pros and cons|wants? (?:us|me|graphql|the team|everyone)|asked (?:us|for|whether|if)|idea|shall (?:i|we)"
    r"|should (?:i|we)|for instance|e\.g|könnte\w*|würde\w*|vielleicht|vorschl\w+|sollen wir|pourrait|pourrions"
    r"|peut-être|propos\w+|podría\w*|quizás?|si (?:on|nous))\b",
    re.I,
)
_IF = compile_late(r"\bif (?:we|i|you|it|they|someone|that)\b|\bwenn (?:wir|ich)\b", re.I)
_WANTED = compile_late(
    r"\b(?:guys|they|she|he|team|client|customer|boss|manager|publisher|designer|marketing|legal|sales) (?:want"
    r"|ask|would|propose|suggest)\w*",
    re.I,
)
_ONCE = compile_late(
    r"\b(?:this|that) (?:one|once|time|single)\b|\b(?:just|only|except) (?:this|that|here|once|today|tonight)\b"
    r"|(?<!from )(?<!with )(?<!of )(?<!since )(?<!in )(?<!by )(?<!after )\bthis (?!(?:project|repo|app|product"
    r"|rule|is|was|morning|afternoon|week|month|year|and|means|way|evening|weekend|summer|spring|autumn|winter"
    r"|quarter|to|we|i|from|in|on|now|codebase|team|company)\b)\w+|\bone-?off\b|\bfor once\b|\bexception\w*"
    r"|\beven though\b|\bthough it'?s\b|\b(?:till|until|for)(?: \w+)? tonight\b|\bas an? (?:favou?r|special)"
    r"|\b(?:skip|leave out)\b.{0,40}\b(?:this|that|today|tomorrow|the next)|\bthat (?:file|page|commit|mail|email"
    r"|letter|report|drawing|pr)\b|\bjust (?:the|that|this)\b|\bonly the\b|\bausnahmsweise\b|\bnur (?:dieses?"
    r"|diese[rsmn]?|hier|einmal|heute)\b|\bdieses? (?:eine|mal)\b|\bhier (?:eine?|mal)\b|\b(?:cette|une) fois\b"
    r"|\bexceptionnellement\b|\b(?:esta|una) vez\b|今回|今日だけ|一回だけ",
    re.I,
)
_THEN = compile_late(
    r"\b(?:someone|somebody|no idea who)\b|\bback (?:then|in"
    r"|when)\b|\bat first\b|\boriginally\b"
    r"|\binitially\b|\b(?:at|in|with|for) (?:my|his|her|their) (?:last|previous|old|former|earlier) \w+"
    r"|\bin the \w+ties\b|\b(?:my|our|his|her|their|the|an?) (?:last|previous|old|former|earlier) (?:job|company"
    r"|project|game|team|employer|supplier|agency|client|school|lab|boss|firm|office|house|place|group)\b"
    r"|\bfor a while\b|\b(?:in|until|since before) (?:19|20)[0-9][0-9]\b(?!-)|\byears? ago\b"
    r"|(?<!is )(?<!are )\bhistory\b|\bthose days\b|\bin the (?:past|beginning|early)\b|\bwe started (?:with"
    r"|out)\b|\bbefore (?:we|i|that) (?:had|were|was|moved|used)\b|\bdamals\b|\bfrüher\b|\bursprünglich\b"
    r"|\bà l'époque\b|\bau début\b|\bantes\b|\bal principio\b|昔|当時",
    re.I,
)
_USED_TO, _NOWADAYS = compile_late(r"\bused to\b", re.I), compile_late(r"\b(?:now|these days|no longer)\b", re.I)
_TOLD = compile_late(
    r"\b(?:article|page|guidelines?|supplier|vendor|competitors?|book|paper|mail|email|letter|post|changelog"
    r"|press|flyer|blog|they|he|she|it|author|others?|newspaper|magazine|ad|review|wiki|manual|standard|rfc"
    r"|readme of \w+)(?:'s \w+)? (?:says?|said|writes?|wrote|claims?|claimed|reads?|states?|stated|announced?"
    r"|reports?|reported|recommends?)\b|\bsteht (?:da|dort|in)\b|\bin ihren \w+|\btranslate (?:this|that|it)\b"
    r"|\bquot(?:e|es|ing)\b|\baccording to\b",
    re.I,
)
_MAY_I = compile_late(
    r"\b(?:may|can|must|shall|should|do|does) (?:i|we)\b|^(?:\w+ )?what(?:s|'s)?\b(?! (?:i|we)\b)|\bwhether\b"
    r"|\bwhat(?:'?s| is| are) (?:our|the|my|your|it)\b",
    re.I,
)
_REFUSES = compile_late(
    r"(?:(?:ok(?:ay)?|hm+|yeah|yes|well|ah|oh|lol|haha)[,.!]* )*(?:no\b(?! (?:problem|worries|need|longer|more))"
    r"|nope|nah|never mind|not (?:now|this|yet|going)|forget (?:it|that)|leave (?:it|that)|keep (?:it|ours|that"
    r"|the)|we(?:'ll)? (?:stay|keep)|i(?:'d)? (?:told|rather not)|told (?:her|him|them) no|(?:costs?|too) \w+"
    r"|voted down|rejected|declined|closing it|nein|nee|lieber nicht|doch nicht|lass (?:das|mal)|bleibt|non\b"
    r"|laisse|no,|déjalo|mejor no)",
    re.I,
)
_STAYS = compile_late(
    r"\b(?:still|(?<!only )stays?|(?<!only )remains?|unchanged|as (?:before|always|usual|ever|is)|keep(?:s"
    r"|ing)? (?:it|ours|using|the)|(?:has|have)(?:n't| not) (?:been )?changed?|nothing (?:has )?(?:moved|changed)"
    r"|bleibt|bleiben|weiterhin|reste(?:nt)?|sigue|queda)\b",
    re.I,
)
_ANOTHERS = compile_late(r"\bthe (\w+) ones?\b|\b(?:for|on|at) (?:the|our|their) (\w+(?: \w+)?)|^(\w+):")
# How a sentence begins that does not name what it is about: it was named before.
_OPEN = compile_late(
    r"^(?:(?:yes|yep|yeah|ok|okay|right|no|so|then|and|ja|oui|sí)[,.]? )*(?:it|its|it's|they|they're|both|that"
    r"|that's|thats|these|those|at|on|to|with|in|the [0-9]\S* one|set|raise|lower|make|put|use|cut|bump|change"
    r"|move|needs?|[0-9#]|every|each|nightly|daily|weekly|monthly|hourly|(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)days?|auf|mach|setz|pon|mets)\b",
    re.I,
)
_FILE = compile_late(r"/|\.(?:py|js|ts|md|ya?ml|json|toml|html|css|txt|pdf|csv|sh|sql)$|^_?[a-z_]+\(\)$")
_THIS_TIME = compile_late(
    r"(?<!from )(?<!starting )(?<!of )\b(?:(?:this|next) (?:week|month|time|\w+day)|tomorrow|because of (?:the|a"
    r"|an)|on (?:mon|tues|wednes|thurs|fri|satur|sun)day(?! on\b))\b|\bdiese woche\b",
    re.I,
)
_CASE = compile_late(
    r"\bago\b|^there (?:is|are|was|were)\b|\bso far\b|\b(?:last|latest|previous) \w+ (?:was|ran|took)\b", re.I
)
_LIMITS = compile_late(
    r"\b(?:up to|at (?:most|least)|max(?:imum)?|min(?:imum)?|limit(?:ed|s)?|no more than|within|below|above)\b", re.I
)
_RESTRICTS = compile_late(
    r"\b(?:not|never|only|don't|no|must|always|before|ask|by hand|frozen|forbidden|nobody|without|manual(?:ly)?"
    r"|nicht|nie|kein\w*|nur|jamais|nunca|solo)\b",
    re.I,
)
_PERMITS = compile_late(
    r"\b(?:feel free|(?-i:may)(?! not| i\b| we\b)|you can|can be|allowed|fine (?:for|to|again|with)|okay? to"
    r"|no need to|nobody (?:has|needs) to|no one (?:has|needs) to|welcome|(?:is|are|was"
    r"|were) (?:now )?(?:accepted|allowed|permitted|lifted|open|automatic)|on your own|automatically|darfst"
    r"|dürfen|peux|pouvez|puedes)\b",
    re.I,
)
_IT = compile_late(
    rf"\b{_VERBS} (?:it|them|that)\b|\b(?:l'|on l'|la |le |les )(?:arrêt|remplac|supprim|abandonn)|\blo (?:quit"
    rf"|dej|reemplaz)|\bersetzen (?:es|sie|ihn)\b",
    re.I,
)
_CHANGED = compile_late(r"変え|切り替え|に替え|乗り換え|移行し")
_WHOLE = frozenset(
    "project app repo team whole product company future next release rest first second moment record site web"
    " time same new old others code beginning start end house road go side week month year day weekend"
    " last other entire long main".split()
)
_ARTICLES = frozenset("the our their its for in on of die der das la le el".split())
_SITES = words.PLACES | frozenset(
    "iphone ipad tablet mobile phone website landing garage desktop sandbox preprod canary".split()
)
_SAME_SITE = (
    {"production", "prod", "live"},
    {"dev", "development"},
    {"test", "testing", "qa"},
    {"mac", "macos"},
    {"ios", "iphone", "ipad"},
    {"mobile", "phone"},
)
_NEW_ONE, _OLD_ONE = (
    compile_late(r"^(?:in |for |at )?(?:the )?new \w+(?: |:)", re.I),
    compile_late(r"^(?:the |our )?old \w", re.I),
)
_FROM_TO = compile_late(r"\bfrom ([0-9][0-9.,:]{0,15})\S{0,8}(?: \w{1,20})? to\b")
_LEAST_STEMS = 2
_IS = compile_late(r"\b(?:is|are|ist|sind|est|sont|es|son)\b")
_TITLES = frozenset("mr mrs ms dr prof st herr frau".split())
_SHORT = 5  # words of an answer that is a value
_HEADS = 4  # words of content that may say what a memory is about, from its beginning


def find_change(
    saved: str, said: str, before: Sequence[str] = (), near: float = 0.0, role: str = "", common: Set[str] = frozenset()
) -> Change | None:
    """Return what a text says that changes a saved memory, None if nothing does.

    `before` are the texts said just before it in its session, the latest last; `near` is the cosine between the memory
    and the text, or the one before it, whichever is larger; `role` who says it, empty for a memory; `common`
    are the words that many memories of the place have.
    """
    memory = _read_whole(saved)
    heard = frozenset(one for text in before for sentence in _read(text) for one in sentence.stems)
    asked = bool(before) and bool(_ASKS.search(before[-1].strip()) and _SUPPOSED.search(before[-1]))
    best: Change | None = None
    question = _read(before[-1])[-1:] if before else ()
    about = question and _ASKS.search(question[0].text) and _list_heads(memory).keys() & question[0].stems
    for at, sentence in enumerate(_read(said)):
        is_answer = bool(about) and at == 0 and role != "assistant"
        talk = _Talk(heard, near, role == "assistant", asked, is_answer, common, not role)
        sure = _rate(saved, memory, sentence, talk)
        if sure and (best is None or sure > best.sure):
            best = Change(sentence.start, len(sentence.text), sure)
    return best


def find_common(texts: Collection[str]) -> frozenset[str]:
    """Return the words that so many of some memories have that they say little of what one is about."""
    counts = Counter(word for text in texts for word in _read_whole(text).stems)
    least = max(_OFTEN_SAID, _OFTEN_SHARE * len(texts))
    return frozenset(word for word, count in counts.items() if count >= least)


def find_words(saved: str) -> frozenset[str]:
    """Return the words of a memory by which `find_change` knows what it is about."""
    return _read_whole(saved).stems


def is_refusal(text: str) -> bool:
    """Return whether a person's turn begins by refusing what was proposed."""
    return bool(_REFUSES.match(text.strip()))


class _Talk(NamedTuple):
    """What a sentence is part of."""

    heard: frozenset[str]  # the stems of what was said before it
    near: float
    is_agents: bool
    is_supposed: bool  # it answers what would be
    is_answer: bool  # it begins what a person answers to a question about the same
    common: Set[str]
    is_saved: bool = False  # it is a memory, whose contradictions were found when it was added


@lru_cache(_KEPT)
def _read_whole(text: str) -> _Sentence:
    """Return a saved memory as one sentence."""
    return _read_sentence(" ".join(text[:READ_CHARS].split()))


def _rate(saved: str, memory: _Sentence, sentence: _Sentence, talk: _Talk) -> float:
    text, near = sentence.text, talk.near
    shared = memory.stems & sentence.stems
    about = len(shared) + 0.5 * len(memory.stems & talk.heard - shared)
    if _IT.search(text) and memory.names & talk.heard and sentence.names - memory.stems and not _is_withheld(text):
        return 0.7
    if near < (NEAR if about < 2 else _FAR) or _is_withheld(text) or _is_elsewhere(memory, sentence):
        return 0.0
    telling = (shared - talk.common) | (shared & memory.names)
    folded = [_mask(clause, telling) for clause in sentence.clauses]
    if telling and any(_OVER.search(clause) and not _STAYS.search(clause) for clause in folded):
        return 0.9
    if telling and not talk.is_agents and any(_TOO.search(clause) for clause in folded):
        return 0.7
    if _stays(text) or talk.is_supposed:
        return 0.0
    low = text.casefold()
    if _FROM_NOW.search(low) and (len(shared) >= 2 or (shared and near >= _CLEARLY_NEAR)):
        return 0.8
    if (
        not (talk.is_agents or talk.is_saved)
        and near >= _CLEARLY_NEAR
        and (len(sentence.stems) > _LEAST_STEMS or _IS.search(low))
        and not _THIS_TIME.search(text)
        and len(saved) <= statements.MAX_CHARS
        and not {value for _, value in memory.values} & {value for _, value in sentence.values}
        and statements.find_contradiction(saved, text) in ("value", "polarity")
    ):
        return 0.8
    if _RESTRICTS.search(saved) and _PERMITS.search(text) and near >= (NEAR if shared else _CLEARLY_NEAR - 0.08):
        return 0.6
    if talk.is_answer and _starts_with_other(memory, sentence):
        return 0.6
    tells = _tells(text)
    if tells and near >= NEAR and _names_both(memory, sentence, shared):
        return 0.7
    if not talk.is_agents and near >= _CLEARLY_NEAR and _puts_in_place(memory, sentence):
        return 0.6
    if _CHANGED.search(low) and (about or near >= _CLEARLY_NEAR) and (sentence.names or sentence.values):
        return 0.6
    solid = {one for one in shared if not one.isdigit() and one not in _UNIT_STEMS}
    return 0.6 if _is_other(saved, memory, sentence, talk, len(solid), tells) else 0.0


@lru_cache(_KEPT)
def _tells(text: str) -> bool:
    """Return whether a sentence has a word of change."""
    return bool(_NOW.search(text.casefold()))


@lru_cache(_KEPT)
def _stays(text: str) -> bool:
    return bool(_STAYS.search(text))


def _names_both(memory: _Sentence, sentence: _Sentence, shared: frozenset[str]) -> bool:
    """Return whether a clause names what the memory names, and something else beside it."""
    named = (shared - set(list(_list_heads(memory))[:2])) | (shared & memory.names)
    others = _list_other_names(memory, sentence)
    for clause in sentence.clauses:
        stems = {one for part in clause.stems for one in part.split()}
        if not named.isdisjoint(stems) and not others.isdisjoint(stems):
            return True
    return False


def _puts_in_place(memory: _Sentence, sentence: _Sentence) -> bool:
    """Return whether a sentence has a name of the memory in one clause, and a new name, no abbreviation, in another."""
    others = {name for name in _list_other_names(memory, sentence) if name.isalpha() and name not in sentence.short}
    clauses = [{one for part in clause.stems for one in part.split()} for clause in sentence.clauses]
    former = [at for at, stems in enumerate(clauses) if not memory.names.isdisjoint(stems)]
    return bool(former) and any(at not in former and not others.isdisjoint(stems) for at, stems in enumerate(clauses))


def _list_other_names(memory: _Sentence, sentence: _Sentence) -> set[str]:
    return {
        name
        for name in sentence.names - memory.stems
        if not _FILE.search(name) and memory.stems.isdisjoint(_stems_of(name))
    }


def _is_other(saved: str, memory: _Sentence, sentence: _Sentence, talk: _Talk, shared: int, tells: bool) -> bool:
    """Return whether a sentence gives another value of what the memory gives a value of."""
    is_open = bool(_OPEN.search(sentence.text))
    if _THIS_TIME.search(sentence.text) or (talk.is_agents and _CASE.search(sentence.text)):
        return False
    is_open = is_open and not talk.is_agents
    is_near = talk.near >= (_CLEARLY_NEAR if is_open else _VERY_NEAR)
    weight = shared + tells + is_near
    if (kind := _find_other(memory, sentence)) is not None:
        is_measured = kind in _MEASURED and shared >= 2
        if (
            is_open
            or is_measured
            or (kind in _MEASURED and shared and is_near)
            or _names_subject(memory, sentence, kind)
        ):
            least = 2 if talk.is_agents or not kind or kind.startswith("of ") else 1
            least_shared = {"after": 2, "of": 3}.get(kind.partition(" ")[0])
            is_exact = shared >= least_shared if least_shared else talk.near >= _SURELY_NEAR and kind in _MEASURED
            if talk.is_agents and _LIMITS.search(saved) and not (tells or _LIMITS.search(sentence.text)):
                return False  # what is within a limit
            if talk.is_agents and not (tells or is_exact or (kind.startswith("shape ") and is_near)):
                return False  # it tells what it was told
            return weight + _starts_with_value(sentence, kind) >= least
    is_stated = tells or shared > 2 or (not talk.is_agents and talk.near >= _CLEARLY_NEAR)
    return is_stated and shared + is_near >= 2 and _has_other_name(memory, sentence)


def _starts_with_other(memory: _Sentence, sentence: _Sentence) -> bool:
    """Return whether a sentence begins with a value or a name that the memory has not."""
    first = next(iter(sentence.clauses), None)
    if first is None or not 0 < len(first.tokens) <= _SHORT or memory.stems & sentence.stems:
        return False
    return (sentence.text[0].isupper() and first.stems[0] != "") or bool(_find_values((*first.tokens, "")))


def _starts_with_value(sentence: _Sentence, kind: str) -> bool:
    return any(other == kind for other, _ in _find_values((*sentence.clauses[0].tokens[:1], "")))


def _mask(clause: _Clause, shared: frozenset[str]) -> str:
    """Return a clause with § in place of each word that the memory has."""
    return " ".join(
        "§" if stems and not shared.isdisjoint(stems.split()) else token
        for token, stems in zip(clause.tokens, clause.stems, strict=True)
    )


@lru_cache(_KEPT)
def _is_withheld(text: str) -> bool:
    """Return whether a sentence tells of no change: it asks, supposes, quotes, is of a single time or the past."""
    if _ASKS.search(text) or (claims.is_question(text) and not _DO.search(text)):
        return True
    if _MAY_I.search(text):
        return True
    if _IF.search(text) and not _PERMITS.search(text):
        return True
    if (former := _USED_TO.search(text)) and not _NOWADAYS.search(text, former.end()):
        return True
    return any(one.search(text) for one in (_SUPPOSED, _WANTED, _ONCE, _THEN, _TOLD))


def _is_elsewhere(memory: _Sentence, sentence: _Sentence) -> bool:
    """Return whether a sentence is about another component or environment than the memory."""
    keys, others = ({token for clause in one.clauses for token in clause.tokens} for one in (memory, sentence))
    places, theirs = keys & _SITES, others & _SITES
    if places and theirs and not _overlap(places, theirs):
        return True
    if _NEW_ONE.search(sentence.text) and _OLD_ONE.search(" ".join(memory.clauses[0].tokens if memory.clauses else ())):
        return True
    numbers = {value.value for value in memory.values}
    if numbers and (match := _FROM_TO.search(sentence.text)) and match[1] not in numbers:
        return True
    heads = _list_heads(memory)
    if _has_other_modifier(memory, sentence, heads):
        return True
    for head, number in heads.items():
        if number and (their := _number_of(sentence, head)) and their != number:
            return True
    if not heads.keys() & sentence.stems:
        for match in _ANOTHERS.finditer(sentence.text.casefold()):
            named = {stem(word) for word in next(filter(None, match.groups())).split()}
            if not named & (_WHOLE | memory.stems) and not any(one[:1].isdigit() for one in named):
                return True
    return False


def _has_other_modifier(memory: _Sentence, sentence: _Sentence, heads: dict[str, str]) -> bool:
    """Return whether a sentence is about the marketing mart where the memory is about the finance mart."""
    for clause in memory.clauses[:1]:
        for first, second in pairwise(clause.stems):
            if first and not first.isdigit() and second in heads and not sentence.stems & set(first.split()):
                for theirs in sentence.clauses:
                    for at, (one, other) in enumerate(pairwise(theirs.stems)):
                        is_thing = at == 0 or theirs.tokens[at - 1] in _ARTICLES
                        if (
                            other == second
                            and one
                            and not one.isdigit()
                            and is_thing
                            and not memory.stems & set(one.split())
                        ):
                            return True
    return False


def _overlap(places: set[str], theirs: set[str]) -> bool:
    return bool(places & theirs) or any(places & same and theirs & same for same in _SAME_SITE)


def _list_heads(memory: _Sentence) -> dict[str, str]:
    """Return what a memory may be about: its first words of content, each with the number that follows it directly."""
    heads: dict[str, str] = {}
    for clause in memory.clauses:
        for at, part in enumerate(clause.stems):
            after = clause.tokens[at + 1] if at + 1 < len(clause.tokens) else ""
            for one in part.split():
                heads.setdefault(one, after if at < 2 and _is_number(after) else "")
            if len(heads) >= _HEADS:
                return heads
    return heads


def _is_number(token: str) -> bool:
    """Return whether a word is the number or the letter of a thing."""
    return token.isdigit() or (len(token) == 1 and token.isalpha() and token not in words.STOP)


def _number_of(sentence: _Sentence, head: str) -> str:
    for clause in sentence.clauses:
        for at, part in enumerate(clause.stems[:-1]):
            if head in part.split() and _is_number(clause.tokens[at + 1]):
                return clause.tokens[at + 1]
    return ""


def _find_other(memory: _Sentence, sentence: _Sentence) -> str | None:
    """Return the kind of a value that both give, where none of the sentence's is the memory's own; else None."""
    for kind in sorted({kind for kind, _ in memory.values}, key=lambda kind: (not kind, kind)):
        theirs = {value for other, value in sentence.values if other == kind}
        is_range = kind == "weekday" and len(theirs) > 1
        if theirs and not is_range and theirs.isdisjoint(value for other, value in memory.values if other == kind):
            return kind
    return None


def _has_other_name(memory: _Sentence, sentence: _Sentence) -> bool:
    """Return whether a sentence has a name that the memory has not, and not what the memory ends with."""
    last = next((stem(token) for clause in memory.clauses[::-1] for token in clause.tokens[::-1]), "")
    is_said = any(name in sentence.stems or len(_stems_of(name) & sentence.stems) > 1 for name in (*memory.names, last))
    return any(not _FILE.search(name) for name in sentence.names - memory.stems) and not is_said


def _names_subject(memory: _Sentence, sentence: _Sentence, kind: str) -> bool:
    """Return whether a sentence, or its clause with a value, is about what the memory is about."""
    if next(iter(_list_heads(memory)), "") in sentence.stems:
        return True
    for clause in sentence.clauses:
        values = _find_values((*clause.tokens, ""))
        first = next((part for part in clause.stems if part and not part.isdigit()), "")
        if any(other == kind for other, _ in values) and not memory.stems.isdisjoint(first.split()):
            return True
    return False
