"""Classify the sentences of a turn: statements, questions, orders, guesses and retractions.

Used only to filter what is shown automatically, where a guess that was refuted a minute later does more harm than a
missing statement; it does not decide what is stored or found. Supports English, German, French and Chinese; in other
languages only questions are recognised. Pure functions that take linear time.
"""

from collections.abc import Sequence
from functools import lru_cache

from memoryd.client.patterns import compile_late
from memoryd.daemon.agreement import parsing
from memoryd.daemon.language import condensing, rating
from memoryd.daemon.language.sentences import (
    FENCED,
    READ_CHARS,
    ends_with_question,
    is_denial,
    is_guess,
    is_order,
    is_question,
    is_whole,
    split_sentences,
)

_CACHED = 256  # texts, since some are compared with many others
_CACHED_TURNS = 1_000  # since the prompts of a session are compared with the same turns
# A line that is no sentence: a heading (also one in bold) or a row of a table.
_LABEL = compile_late(r"#{1,6}\s.*|\|.*\||\*\*[^*]+\*\*:?|__[^_]+__:?")
# Words of a sentence that says what is still to be done.
_OPEN = compile_late(
    r"\b(?:open|to ?do|pending|outstanding|not (?:yet|done|finished)|yet to|still (?:to|missing|needs?|open|fails?)"
    r"|remain(?:s|ing)?|left to|(?:is|are) left|next(?: step)?|offen|noch (?:nicht|zu|offen)|reste|pendiente)\b",
    2,
)
# The beginning of a sentence about something that is missing or unknown, which is soon out of date.
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
_RETRACTED_WITHIN = 2  # messages


@lru_cache(_CACHED_TURNS)
def list_statements(role: str, text: str) -> tuple[str, ...]:
    """Return the sentences of a turn that are statements.

    A paragraph or list item with a question or a guess has none, nor has a user's turn with a question or an order. In
    a turn that retracts something only the guesses themselves are left out.
    """
    if role not in ("user", "assistant"):
        return ()
    paragraphs = [
        split_sentences(line)
        for line in FENCED.sub("\n", text[:READ_CHARS]).splitlines()
        if not _LABEL.fullmatch(line.strip())
    ]
    if role == "user" and any(is_question(one) or is_order(one) for part in paragraphs for one in part):
        return ()
    takes_back = is_denial(text)
    return tuple(sentence for part in paragraphs for sentence in _select_stated(part, takes_back))


@lru_cache(_CACHED)
def find_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words."""
    return frozenset(map(parsing.stem, condensing.find_words(text)))


def is_open(sentence: str) -> bool:
    """Return whether a sentence says that something is still to be done."""
    return bool(_OPEN.search(sentence))


def _select_stated(sentences: Sequence[str], takes_back: bool) -> list[str]:
    """Return the sentences of a paragraph that are statements."""
    if any(map(ends_with_question, sentences)) or all(rating.importance(one) <= rating.SMALL_TALK for one in sentences):
        return []
    if any(map(is_guess, sentences)) and not takes_back:
        return []
    return [one for one in sentences if is_whole(one) and not is_guess(one) and not _NOT_YET.search(one)]


def is_taken_back(following: Sequence[tuple[str, str]]) -> bool:
    """Return whether one of the following messages (role and text) retracts a turn.

    A denial that follows a question is its answer, and retracts nothing.
    """
    for at, (role, text) in enumerate(following[:_RETRACTED_WITHIN]):
        asked = at > 0 and following[at - 1][0] != role and any(map(is_question, split_sentences(following[at - 1][1])))
        if is_denial(text) and not asked:
            return True
    return False
