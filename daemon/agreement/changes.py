"""Estimate whether a turn, or a memory that was saved later, changes a saved memory.

A linear model over features of each sentence, here called signs: what it shares with the memory, what it gives instead
(another value of the same kind, another name), the kind of sentence, and its words and pairs of words. In these, §
stands for a word of the memory, # for a number and X for a name. The weights are in `changes.json`;
`tests/quality/fit_changes.py` fits them and documents the examples. English is covered well; German, French, Spanish
and Japanese by single words. Pure functions that take about 0.3 ms; at most `READ_CHARS` characters are read.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

import msgspec

from memoryd.client.patterns import compile_late
from memoryd.daemon.agreement import words
from memoryd.daemon.agreement.parsing import has_digit, stem
from memoryd.daemon.language.sentences import is_question, split_sentences

READ_CHARS = 4_000
WORDS = "="  # prefix of the signs that are words
_BEGINNING = 24  # characters by which a sentence is located in its text
_CACHED_TEXTS, _CACHED_WORDS = 32, 2_048  # a text takes some 30 kB


class Change(NamedTuple):
    """The place in a text that describes a change, in characters, and the probability of the change."""

    start: int
    size: int
    sure: float


class Said(NamedTuple):
    """A text that may change a memory, the role of its speaker (empty: a saved memory), and the turns before it."""

    text: str
    role: str = ""
    before: tuple[str, ...] = ()


class _Value(NamedTuple):
    """A number, date, weekday or other value in a text, and its kind."""

    kind: str
    value: str


class _Sentence(NamedTuple):
    """A sentence without quotations, and its place in the text. `parts` are the stems of each token."""

    text: str
    start: int
    tokens: tuple[str, ...]  # casefolded, with the marks between
    parts: tuple[frozenset[str], ...]  # empty: it has no content
    stems: frozenset[str]
    names: frozenset[str]
    values: frozenset[_Value]
    own: dict[str, float]  # the signs that do not depend on the memory


# Reading -------------------------------------------------------------------------------------------------------------

_QUOTED = compile_late(
    r"""^>[^\n]*|"[^"\n]{12,400}"|“[^“”\n]{12,400}”|„[^„“”"\n]{12,400}[“”"]|«[^«»\n]{12,400}»|「[^「」\n]{4,400}」""",
    8,  # re.MULTILINE
)
_FENCED = compile_late(r"```.*?(?:```|\Z)", 16)  # re.DOTALL
_TOKEN = compile_late(r"[^\W_][\w@/.:'’+-]*[^\W_]%?|[^\W_]%?|[#_@]\w+|→|->|[,;:()—–!?.]")
_CJK = compile_late(r"[㐀-鿿ァ-ヿー]+")
_MARKS = frozenset(",;()—–!?.")
_INNER_MARKS = frozenset("/_@.")
_PIECES = compile_late(r"[/_.:@'’-]+|(?<=[a-z0-9])(?=[A-Z])")
# Words that do not show what a memory is about.
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
    "clock time": "minute min mins minutes minuten second seconds sec secs s sekunden hour hours h hrs stunden heures",
    "calendar time": "day days d tage tagen jours días week weeks wochen month months monate mois meses year years ans",
    "percent": "% percent prozent",
    "size": "kb mb gb tb kib mib gib",
    "money": "€ $ £ euro euros dollar dollars eur usd",
    "rate": "hz khz mhz ghz fps ticks baud rpm",
    "length": "px pt mm cm m km inch inches points インチ",
    "charge": "mah ah",
    "weight": "g kg",
    "degree": "°c °f degrees grad",
}
_UNIT = {word: kind for kind, unit in _UNITS.items() for word in unit.split()}
_DAYS = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag"
    " sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado"
    " domingo".split()
)
_MONTHS = frozenset(
    "january february march april june july august september october november december januar februar märz juni juli"
    " oktober dezember jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
_OFTEN = frozenset("hourly daily nightly weekly biweekly monthly quarterly yearly annually täglich monatlich".split())
_LANGUAGES = frozenset(
    "english german french spanish dutch italian japanese chinese polish portuguese american british englisch deutsch"
    " französisch spanisch anglais allemand français espagnol inglés alemán".split()
)
_MEASURED = frozenset((*_UNITS, "weekday", "often", "date", "clock", "language"))
_SITES = words.PLACES | frozenset("iphone ipad tablet mobile phone website landing desktop preprod canary".split())
_TITLES = frozenset("mr mrs ms dr prof st herr frau".split())
_FILE = compile_late(r"/|\.(?:py|js|ts|md|ya?ml|json|toml|html|css|txt|pdf|csv|sh|sql)$|^_?[a-z_]+\(\)$")
_NUMERAL = compile_late(r"[0-9][\W0-9]*$")
_GERMAN = compile_late(r"\b(?:der|das|ist|und|nicht|wir|eine?|auf|für|wird|werden|mit)\b")
_NUMBER_UNIT = compile_late(r"([0-9][0-9.,:]*)-?([a-z%°€$£]*)")
_CLOCK = compile_late(r"[0-2]?[0-9](?::[0-5][0-9]|h[0-5]?[0-9]?|[ap]m)$")


@lru_cache(_CACHED_TEXTS)
def _read(text: str) -> tuple[_Sentence, ...]:
    """Return the sentences of a text."""
    bare = text[:READ_CHARS]
    for left_out in (_FENCED, _QUOTED):
        bare = left_out.sub(lambda match: " " * len(match[0]), bare)  # keeps the offsets
    found: list[_Sentence] = []
    end = 0
    for sentence in split_sentences(bare):
        start = max(bare.find(sentence[:_BEGINNING], end), end)
        signs = {f"({name})": float(bool(pattern.search(sentence))) for name, pattern in _CUE.items()}
        signs["asks"] = float(is_question(sentence))
        signs["length"] = min(len(sentence), 300) / 300
        signs["short"] = float(len(sentence.split()) <= 4)
        found.append(_read_sentence(sentence, start, signs))
        end = start + len(sentence)
    return tuple(found)


@lru_cache(_CACHED_TEXTS)
def _read_whole(text: str) -> _Sentence:
    """Return a saved memory as one sentence."""
    return _read_sentence(" ".join(text[:READ_CHARS].split()), 0, {})  # a memory's own signs count for nothing


def _read_sentence(sentence: str, start: int, own: dict[str, float]) -> _Sentence:
    names: set[str] = set()
    previous, is_german = ".", bool(_GERMAN.search(sentence))  # German capitalises all nouns
    found = _TOKEN.findall(sentence)
    for token in found:
        if token not in _MARKS and _is_name(token, previous, is_german):
            names.add(stem(token.casefold()))
        previous = " " if token == "." and previous.casefold() in _TITLES else token
    tokens = tuple(token.casefold() for token in found)
    parts = tuple(map(_stems_of, found))
    stems, values = frozenset[str]().union(*parts), frozenset(_find_values(tokens))
    return _Sentence(sentence, start, tokens, parts, stems, frozenset(names), values, own)


def _is_name(token: str, previous: str, is_german: bool) -> bool:
    """Return whether a word is a name: an identifier, or capitalised within a sentence."""
    folded = token.casefold()
    if folded in _UNIT or folded.removesuffix("s") in _DAYS or folded in _MONTHS or folded in _LANGUAGES:
        return False
    if has_digit(token) and not token[0].isdigit():
        return True
    inner = token[1:]
    if not _INNER_MARKS.isdisjoint(inner) or inner != inner.lower() or token[0] in "#_@":
        return True
    return token[0].isupper() and previous not in ".!?:" and len(token) > 1 and not is_german


@lru_cache(_CACHED_WORDS)
def _stems_of(token: str) -> frozenset[str]:
    """Return the stems of a word and of its parts; none if it is no content word."""
    folded = token.casefold()
    if not folded[0].isascii() and _CJK.search(folded):
        return frozenset(_CJK.findall(folded))
    whole = folded.removesuffix("'s").removesuffix("’s")
    parts = {whole} if _NUMERAL.match(whole) else {whole, *(part.casefold() for part in _PIECES.split(token))}
    kept = {words.NUMBERS.get(part, part) for part in parts if part and part not in words.STOP and part not in _COMMON}
    return frozenset(stem(part) for part in kept if (len(part) > 1 and part[0].isalnum()) or part.isdigit())


def _find_values(tokens: Sequence[str]) -> list[_Value]:
    """Return the values in a text."""
    found: list[_Value] = []
    for before, token, *following in zip(["", *tokens], tokens, [*tokens[1:], ""], [*tokens[2:], "", ""], strict=False):
        after = following[0]
        day = token.removesuffix("s")
        number = words.NUMBERS.get(token, token)
        if day in _DAYS:
            found.append(_Value("weekday", day))
        elif token in _OFTEN:
            found.append(_Value("often", token))
        elif token in _LANGUAGES:
            found.append(_Value("language", token))
        elif token in _MONTHS or (token == "may" and (before[:1].isdigit() or after[:1].isdigit())):
            day = before if before[:1].isdigit() else after if after[:1].isdigit() else ""
            found.append(_Value("date", f"{token[:3]} {day.rstrip('stndrh')}"))
        elif _CLOCK.match(number):
            found.append(_Value("clock", number))
        elif number[:1].isdigit() and (match := _NUMBER_UNIT.match(number)):
            unit = _UNIT.get(match[2] or after, "")
            nouns = [f"of {stem(word)}" for word in following if word and _stems_of(word)]
            found += [_Value(kind, match[1]) for kind in ([unit] if unit else [*nouns, ""])]
    return found


# Signs ---------------------------------------------------------------------------------------------------------------

# Classes of words. A single word has its own weight only if it occurs in the examples.
_CUES = {
    "ended": r"\b(?:no longer|any ?more|any longer|drop(?:s|ped|ping)?|remov\w+|replac\w+|retir\w+|abandon\w*|scrap\w*"
    r"|cancel\w*|delet\w+|uninstall\w*|ripp?(?:ed|ing)? out|gone|dead|over|history|end(?:s|ed)|stop(?:s|ped|ping)?"
    r"|quit|left|closed|turned off|switched off|shut|thr[eo]wn?|g[eo]t rid|goodbye|out|obsolete|wiped|killed"
    r"|nicht mehr|weg|ersetzt|abgeschafft|gekündigt|n'est plus|remplac\w+|ya no|dej\w+ de|reemplaz\w+)\b"
    r"|もう|やめ|ではなく",
    "changed": r"\b(?:now|instead|switch\w*|mov(?:e|ed|es|ing)|migrat\w+|chang\w+|becom\w+|became|convert\w*"
    r"|port(?:ed|ing)|renam\w+|rewr\w+|raised?|lower\w*|bump\w*|increas\w+|reduc\w+|cut|extend\w*|shorten\w*"
    r"|upgrad\w+|went|go(?:es)? (?:to|through|with)|takes? over|took over|jetzt|nun|umgestellt|gewechselt|maintenant"
    r"|désormais|ahora|cambi\w+|pasa\w*)\b|変え|切り替え|移行|に替え",
    "from now on": r"\bfrom (?:now|today|tomorrow|\w+day|next|this|the \w+) on|\b(?:from (?:today|now)|going forward"
    r"|starting|as of|since (?:yesterday|last|today|the|we|then|\w+day|\w+ber|january|february|march|april|may|june"
    r"|july|august|spring|summer|autumn|winter)|for good|permanently|new rule|these days|already|ab (?:sofort|jetzt"
    r"|heute|\w+tag)|künftig|seit|dorénavant|à partir|depuis|a partir|desde)\b|今後|から",
    "denies": r"\b(?:no|not|\w+n't|dont|isnt|arent|doesnt|never|nothing|nobody|none|without|nicht|kein\w*|ohne|pas"
    r"|jamais|sans|nunca|sin)\b|ない",
    "considers": r"\b(?:would|could|might|should|what if|maybe|perhaps|suppose|propos\w+|suggest\w*|options?"
    r"|consider\w*|think(?:ing)? about|thought about|wonder\w*|wish|idea|if|one day|some ?day|at some point|shall"
    r"|worth|könnte\w*|würde\w*|vielleicht|sollten?|sollen|wenn|pourrait|peut-être|si|podría\w*|quizás?)\b",
    "once": r"\b(?:this \w+|that one|(?:just|only) (?:this|that|here|once|today|tonight|for)|once|exception\w*|today"
    r"|tonight|tomorrow|for (?:now|once|a day)|one-?off|even though|until|ausnahmsweise|nur|diesmal|dieses|heute"
    r"|cette fois|esta vez)\b|今回",
    "told": r"\b(?:says?|said|writes?|wrote|states?|stated|claims?|reports?|quot\w+|translat\w+|according|announce\w*"
    r"|article|blog|press|their|they|competitor\w*|steht|schreib\w*|dit|écri\w+|dice)\b",
    "past": r"\b(?:used to|back (?:then|in)|years? ago|at first|originally|initially|formerly|previously|earlier|before"
    r"|in the (?:past|beginning|first|old)|(?:my|our|his|her|their|the) (?:old|last|previous|former)|was|were|had"
    r"|in (?:19|20)\d\d|damals|früher|ursprünglich|avant|antes)\b|昔",
    "stays": r"\b(?:still|stay(?:s|ing)?|remains?|unchanged|as (?:before|always|usual|ever|is)|keep\w*|kept|leave"
    r"|untouched|same|bleib\w*|weiterhin|reste\w*|toujours|sigue\w*|queda)\b",
    "orders": r"^(?:(?:ok|okay|yes|so|then|and|good|please|pls|right)[,.: ]+)*(?:set|use|make|put|raise|lower|change"
    r"|move|switch|cut|drop|remove|replace|take|turn|let|stop|write|go|convert|bump|give|do|delete|kill)\b",
    "is": r"\b(?:is|are|'s|it's|its|goes|go|runs?|uses?|lives?|sits?|starts?|comes?|gets?|has|have|ist|sind|est|sont"
    r"|es|son)\b",
    "ours": r"\b(?:we|we're|we've|i|i've|i'm|our|my|wir|ich|nous|on|je|nosotros)\b",
    "others'": r"\b(?:they|he|she|them|his|her|customer|client|competitor|someone|somebody|others?|another)\b",
}
_CUE = {name: compile_late(pattern, 2) for name, pattern in _CUES.items()}  # re.IGNORECASE
_QUOTES = frozenset("“„«「")
_GIVEN = frozenset("§#X")


@lru_cache(_CACHED_TEXTS)
def _read_around(said: Said) -> tuple[frozenset[str], dict[str, float]]:
    """Return the stems of a text and of the turns before it, and the signs that all its sentences share."""
    around = [one.stems for text in (said.text, *said.before) for one in _read(text)]
    return frozenset[str]().union(*around), {
        "asked before": float(bool(said.before) and said.before[-1].rstrip().endswith(("?", "？"))),
        "quotes": float(not _QUOTES.isdisjoint(said.text) or said.text.count('"') > 1 or said.text.startswith(">")),
        "agent": float(said.role == "assistant"),
        "sentences": min(len(_read(said.text)), 8) / 8,
    }


def count_sentences(text: str) -> int:
    """Return the number of sentences of a text that are read."""
    return len(_read(text))


def list_signs(saved: str, said: Said, at: int, near: float) -> dict[str, float]:
    """Return the signs of sentence number `at` of a text with regard to a memory; missing ones are 0."""
    memory, sentence = _read_whole(saved), _read(said.text)[at]
    around, general = _read_around(said)
    own = sentence.own
    shared = memory.stems & sentence.stems
    solid = sum(not one.isdigit() for one in shared)
    size = len(memory.stems) or 1
    heads = next(filter(None, memory.parts), frozenset())
    subject = next(filter(None, sentence.parts), frozenset())
    others = {  # the names that the memory does not have, except files
        name
        for name in sentence.names - memory.stems
        if not _FILE.search(name) and memory.stems.isdisjoint(_stems_of(name))
    }
    kind = _find_other(memory, sentence)
    numbers, theirs = ({value for _, value in one.values} for one in (memory, sentence))
    sites, their_sites = _SITES.intersection(memory.tokens), _SITES.intersection(sentence.tokens)
    clauses = _split(sentence, shared)
    beside = [" ".join(clause) for clause in clauses if "§" in clause]
    is_changed = own["(changed)"] or own["(from now on)"]
    signs = {
        "near": near,
        "first": at == 0,
        "length of the memory": min(len(saved), 200) / 200,
        "words shared": min(solid, 4) / 4,
        "a word shared": solid > 0,
        "share of its words": len(shared) / size,
        "share of its words around": len(memory.stems & around) / size,
        "its head": not heads.isdisjoint(sentence.stems),
        "its head around": not heads.isdisjoint(around),
        "its name": not memory.names.isdisjoint(sentence.stems),
        "no name of it around": bool(memory.names) and memory.names.isdisjoint(around),
        "new name": bool(others),
        "new name for a name": bool(others and memory.names),
        "new name, a word shared": bool(others) and solid > 0,
        "new name, changed": bool(others and memory.names and is_changed),
        "new name as subject": not others.isdisjoint(subject),
        "other value": kind is not None,
        "other measure": kind in _MEASURED,
        "other value, a word shared": kind is not None and solid > 0,
        "other value, changed": kind is not None and bool(is_changed),
        "other value, near": near * (kind is not None),
        "its value": not numbers.isdisjoint(theirs),
        "has a value": bool(numbers),
        "new value": bool(theirs - numbers),
        "other site": bool(sites - their_sites and their_sites - sites),
    }
    for name in ("ended", "changed", "denies"):
        signs[f"({name}) beside its word"] = any(map(_CUE[name].search, beside))
    for name in ("ended", "changed", "from now on"):
        signs[f"({name}), near"] = near * own[f"({name})"]
        signs[f"({name}), words shared"] = min(solid, 4) / 4 * own[f"({name})"]
    grams = {f"{WORDS}{gram}": 1.0 for gram in _list_grams(clauses)}
    return {name: float(value) for name, value in (signs | own | general).items() if value} | grams


def _list_grams(clauses: Sequence[Sequence[str]]) -> set[str]:
    """Return the words of a sentence, pairs and some triples, and words in the same clause as a word of the memory."""
    found: set[str] = set()
    for clause in clauses:
        whole = ["^", *clause, "$"]
        found.update(clause)
        found.update(map(" ".join, pairwise(whole)))
        found.update(" ".join(three) for three in zip(whole, whole[1:], whole[2:], strict=False) if _GIVEN & {*three})
        if "§" in clause:
            found.update(f"§ … {word}" for word in clause if word != "§")
    return found


def _split(sentence: _Sentence, shared: frozenset[str]) -> list[list[str]]:
    """Return the words of each clause, with § for words of the memory, # for numbers and X for names."""
    clauses: list[list[str]] = [[]]
    for token, part in zip(sentence.tokens, sentence.parts, strict=True):
        if token in _MARKS:
            clauses.append([])
        elif not shared.isdisjoint(part):
            clauses[-1].append("§")
        elif token[0].isdigit():
            clauses[-1].append("#")
        elif not sentence.names.isdisjoint(part):
            clauses[-1].append("X")
        else:
            clauses[-1].append(stem(token) if part else token)
    return [clause for clause in clauses if clause]


def _find_other(memory: _Sentence, sentence: _Sentence) -> str | None:
    """Return the kind of value for which sentence and memory give different values, None if there is none."""
    for kind in sorted({kind for kind, _ in memory.values}, key=lambda kind: (not kind, kind)):
        theirs = {value for other, value in sentence.values if other == kind}
        if theirs and theirs.isdisjoint(value for other, value in memory.values if other == kind):
            return kind
    return None


# Scores --------------------------------------------------------------------------------------------------------------


class _Table(msgspec.Struct):
    """The fitted model: weights by sign, and the constant."""

    bias: float
    weights: dict[str, float]


@lru_cache(1)
def _load() -> _Table:
    path = files("memoryd.daemon.agreement").joinpath("changes.json")
    return msgspec.json.decode(path.read_bytes(), type=_Table)


def find_change(saved: str, said: Said, near: float, least: float) -> Change | None:
    """Return the sentence of a text that most likely changes a saved memory, None if no probability reaches `least`.

    `near` is the larger of the memory's cosines with the text and with the turn before it.
    """
    table = _load()
    best: Change | None = None
    for at, sentence in enumerate(_read(said.text)):
        signs = list_signs(saved, said, at, near)
        score = table.bias + sum(table.weights.get(name, 0.0) * value for name, value in signs.items())
        sure = 1.0 / (1.0 + math.exp(-score))
        if sure >= (best.sure if best else least):
            best = Change(sentence.start, len(sentence.text), sure)
    return best


def find_words(saved: str) -> frozenset[str]:
    """Return the stems of a memory's content words."""
    return _read_whole(saved).stems
