"""What the sentences of a turn do: some state something, others ask, order, guess, or take back what was guessed.

Nothing here decides what is stored or found. It holds back what comes up though nobody asked: there a guess that was
refuted a minute later costs more than a statement that is missing. English, German, French, Chinese; in another
language only questions are known. Pure functions; the time taken is linear in the text.
"""

from collections.abc import Sequence
from functools import lru_cache

from memoryd.client.patterns import compile_late
from memoryd.daemon.agreement import parsing
from memoryd.daemon.language import condensing, rating
from memoryd.daemon.language.sentences import FENCED, ends_with_question
from memoryd.daemon.language.sentences import READ_CHARS as READ_CHARS
from memoryd.daemon.language.sentences import is_asking as is_asking
from memoryd.daemon.language.sentences import is_denial as is_denial
from memoryd.daemon.language.sentences import is_guess as is_guess
from memoryd.daemon.language.sentences import is_order as is_order
from memoryd.daemon.language.sentences import is_question as is_question
from memoryd.daemon.language.sentences import is_whole as is_whole
from memoryd.daemon.language.sentences import split_sentences as split_sentences

_KEPT = 256  # texts of which the words are known: some are compared with many others
# A line that is no sentence: a heading, also one in bold, or the row of a table.
_LABEL = compile_late(r"#{1,6}\s.*|\|.*\||\*\*[^*]+\*\*:?|__[^_]+__:?")
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
_TAKEN_BACK_WITHIN = 2  # messages after it


def list_statements(role: str, text: str) -> list[str]:
    """Return the sentences of a turn that state something, each paragraph and point of a list judged by itself.

    One that asks or guesses states nothing, nor does a heading or a row of a table; of a user's turn nothing does if a
    sentence asks or orders. Who takes back what was said may guess beside that, in other sentences.
    """
    if role not in ("user", "assistant"):
        return []
    paragraphs = [
        split_sentences(line)
        for line in FENCED.sub("\n", text[:READ_CHARS]).splitlines()
        if not _LABEL.fullmatch(line.strip())
    ]
    if role == "user" and any(is_question(one) or is_order(one) for part in paragraphs for one in part):
        return []
    takes_back = is_denial(text)
    return [sentence for part in paragraphs for sentence in _select_stated(part, takes_back)]


@lru_cache(_KEPT)
def find_stems(text: str) -> frozenset[str]:
    """Return the words of a sentence that carry meaning, without their endings."""
    return frozenset(map(parsing.stem, condensing.find_words(text)))


def is_open(sentence: str) -> bool:
    """Return whether a sentence says that something is still to be done."""
    return bool(_OPEN.search(sentence))


def _select_stated(sentences: Sequence[str], takes_back: bool) -> list[str]:
    """Return the sentences of a paragraph that state something."""
    if any(map(ends_with_question, sentences)) or all(map(_is_courtesy, sentences)):
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
