"""What the sentences of a turn do: some state something, others ask, order, guess, or take back what was guessed.

Nothing here decides what is stored or found. It holds back what comes up though nobody asked: there a guess that was
refuted a minute later costs more than a statement that is missing. English, German, French, Chinese; in another
language only questions are known. Pure functions; the time taken is linear in the text.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from memoryd.client.patterns import compile_late
from memoryd.daemon.agreement import reading, statements
from memoryd.daemon.language import condensing, rating

READ_CHARS = 8_000
_KEPT = 256  # texts of which the words are known: some are compared with many others
_FENCED = compile_late(r"```.*?(?:```|\Z)", 16)  # re.DOTALL
_BOUNDARY = compile_late(r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\]])\s+|(?<=[。！？])|\n+")
_LEAD = compile_late(r"^(?:[-*•>#]+|\d{1,2}[.)])\s+")
# A point after these ends no sentence.
_ABBREVIATED = compile_late(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|approx|Mr|Mrs|Ms|Dr|St|Nr|No|z\.\s?B|d\.\s?h|u\.\s?a|ca|bzw|usw|ggf|inkl|p\.\s?ex"
    r"|cf|env|\d{1,2}|[A-Za-z])\.$"
)
# A line that is no sentence: a heading, also one in bold, or the row of a table.
_LABEL = compile_late(r"#{1,6}\s.*|\|.*\||\*\*[^*]+\*\*:?|__[^_]+__:?")
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
# How a message begins that takes back what was said before; "no then", "no problem" agree to it.
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
# What a sentence has that says what is still to be done.
_OPEN = compile_late(
    r"\b(?:open|to ?do|pending|outstanding|not (?:yet|done|finished)|yet to|still (?:to|missing|needs?|open|fails?)"
    r"|remain(?:s|ing)?|left to|(?:is|are) left|next(?: step)?|offen|noch (?:nicht|zu|offen)|reste|pendiente)\b",
    2,
)
# How a sentence begins that says that something was not there or not known, which it soon may be.
_NOT_YET = compile_late(
    r"^(?:(?:so far|currently|at the moment|right now|bisher|derzeit|aktuell|pour l'instant)[, ]+)?"
    r"(?:there (?:is|are|was|were|isn'?t|aren'?t) (?:no\b|none|nothing|not? any|any)|none\b|nothing\b|not yet\b"
    r"|no\b[^.;:!?]*\byet\b"
    r"|i (?:do not|don'?t|did not|didn'?t|could not|couldn'?t|cannot|can'?t) (?:see|find|know|have)\b"
    r"|(?:hier )?(?:es )?(?:gibt|ist) (?:es )?(?:hier )?(?:noch )?(?:kein\w*|nichts)\b"
    r"|noch (?:nicht|kein\w*)\b|nichts\b"
    r"|il n'y a (?:pas|aucune?|rien)\b|pas encore\b|rien\b|还没|尚未|目前没有|暂时没有)",
    2,
)
_DENIAL_CHARS = 160  # of a message's beginning
_TAKEN_BACK_WITHIN = 2  # messages after it
_REPEATED_WORDS, _REPEATED = 2, 0.3  # of a user's sentence that an agent takes up, in number and as a share
_LEAST_CHARS = 12  # of what is worth a line


def split_sentences(text: str) -> list[str]:
    """Return the whole sentences of a text as written, without bullets; fenced code is left out."""
    pieces: list[str] = []
    joined = ""
    for part in _BOUNDARY.split(_FENCED.sub("\n", text[:READ_CHARS])):
        piece = f"{joined} {part}".strip() if joined else part.strip()
        if _ABBREVIATED.search(piece) and not _LEAD.fullmatch(f"{piece} "):
            joined = piece
            continue
        joined = ""
        piece = _LEAD.sub("", piece)
        if piece and not _LEAD.fullmatch(f"{piece} "):
            pieces.append(piece)
    if joined:
        pieces.append(joined)
    return pieces


def is_question(sentence: str) -> bool:
    """Return whether a sentence asks; many people leave out the question mark."""
    return sentence.rstrip("\"')] ").endswith(("?", "？")) or bool(_ASKED.match(sentence))


def is_order(sentence: str) -> bool:
    """Return whether a sentence of a user tells the agent to do something."""
    return bool(_ORDERED.match(sentence) or _PLEASE.search(sentence))


def is_guess(text: str) -> bool:
    """Return whether a text says that it is not sure, or does not know."""
    return _GUESSED.search(text[:READ_CHARS]) is not None


def is_asking(sentence: str) -> bool:
    """Return whether a sentence asks, orders or guesses, so that it states nothing."""
    return is_question(sentence) or is_order(sentence) or is_guess(sentence)


def is_denial(text: str) -> bool:
    """Return whether a message begins by taking back, or contradicting, what was said before it."""
    return _DENIED.search(text[:_DENIAL_CHARS].strip()) is not None


def is_whole(sentence: str) -> bool:
    """Return whether a sentence can stand by itself: it says something, and announces nothing that follows."""
    return len(sentence.encode()) >= _LEAST_CHARS and not sentence.rstrip().endswith(_OPEN_ENDS)


def list_statements(role: str, text: str) -> list[str]:
    """Return the sentences of a turn that state something, each paragraph and point of a list judged by itself.

    One that asks or guesses states nothing, nor does a heading or a row of a table; of a user's turn nothing does if a
    sentence asks or orders. Who takes back what was said may guess beside that, in other sentences.
    """
    if role not in ("user", "assistant"):
        return []
    paragraphs = [
        split_sentences(line)
        for line in _FENCED.sub("\n", text[:READ_CHARS]).splitlines()
        if not _LABEL.fullmatch(line.strip())
    ]
    if role == "user" and any(is_question(one) or is_order(one) for part in paragraphs for one in part):
        return []
    takes_back = is_denial(text)
    return [sentence for part in paragraphs for sentence in _select_stated(part, takes_back)]


def list_taken_up(text: str, reply: str) -> list[str]:
    """Return the sentences of a user's turn that lay something down: the agent's reply takes them up."""
    if is_denial(reply):
        return []
    repeated = find_stems(" ".join(list_statements("assistant", reply)))
    sentences = [one for one in split_sentences(text) if is_whole(one)]
    return [one for one in sentences if not is_asking(one) and _is_among(find_stems(one), repeated)]


@lru_cache(_KEPT)
def find_stems(text: str) -> frozenset[str]:
    """Return the words of a sentence that carry meaning, without their endings."""
    return frozenset(map(reading.stem, condensing.find_words(text)))


def is_open(sentence: str) -> bool:
    """Return whether a sentence says that something is still to be done."""
    return bool(_OPEN.search(sentence))


def list_changes(sentences: Iterable[str]) -> list[str]:
    """Return the sentences which state that something changed: few, where each of many is compared with them."""
    return [one for one in sentences if statements.announces_change(one)]


def is_changed(sentence: str, changes: Sequence[str]) -> bool:
    """Return whether one of some later sentences that tell a change tells it of what a sentence says."""
    words = find_stems(sentence) if changes else frozenset[str]()
    return any(_is_among(words, find_stems(one)) and statements.tells_change(sentence, one) for one in changes)


def _is_among(words: frozenset[str], others: frozenset[str]) -> bool:
    common = len(words & others)
    return common >= _REPEATED_WORDS and common >= _REPEATED * len(words)


def _select_stated(sentences: Sequence[str], takes_back: bool) -> list[str]:
    """Return the sentences of a paragraph that state something."""
    if any(one.rstrip("\"')] ").endswith(("?", "？")) for one in sentences) or all(map(_is_courtesy, sentences)):
        return []
    if any(map(is_guess, sentences)) and not takes_back:
        return []
    return [one for one in sentences if is_whole(one) and not is_guess(one) and not _NOT_YET.search(one)]


def _is_courtesy(sentence: str) -> bool:
    return rating.importance(sentence) <= rating.SMALL_TALK


def is_taken_back(following: Sequence[tuple[str, str]]) -> bool:
    """Return whether one of the next messages, given as role and text, takes back what was said before them.

    What follows a question answers that one.
    """
    for at, (role, text) in enumerate(following[:_TAKEN_BACK_WITHIN]):
        asked = at > 0 and following[at - 1][0] != role and any(map(is_question, split_sentences(following[at - 1][1])))
        if is_denial(text) and not asked:
            return True
    return False
