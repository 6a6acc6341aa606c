"""Which turns say nothing that lasts beyond their facts, so that they may fade with their conversation. Pure functions.

In doubt a turn stays: long ones, code, addresses, other languages than the rules can read, and whatever is nearly sure
enough to be a fact.
"""

import re
from collections.abc import Iterable, Sequence

from memoryd.daemon.language import extracting
from memoryd.daemon.language.extracting import Fact, Statement
from memoryd.daemon.language.marks import ASSISTANT, USER
from memoryd.daemon.language.rating import COURTESY
from memoryd.daemon.store.stopwords import STOP_WORDS

# Confidence from which a statement that is no fact keeps its turn; chosen like that of facts.
DOUBTFUL = {USER: 0.65, ASSISTANT: 0.7}
# Characters from which a turn stays: people tell of themselves at length, an answer may be needed again.
_LONG = {USER: 200, ASSISTANT: 300}
# Of the words of an English sentence are at least so common; an answer is held to less.
_KNOWN_SHARE = {USER: 0.2, ASSISTANT: 0.1}
_FEW_WORDS = 4
_COMMON = STOP_WORDS | COURTESY | frozenset("my me we our us".split())
_MATERIAL = re.compile(r"```|`[^`\n]+`|https?://|\b[\w.+-]+@\w[\w-]*\.\w|^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def fading(
    turns: Sequence[tuple[str, str]], weighed: Iterable[tuple[Statement, float]], facts: Sequence[Fact]
) -> set[int]:
    """Return the turns, by index, whose statements are facts or surely pass; `weighed`: what they state, how sure."""
    doubtful = {one.turn for one, sure in weighed if sure >= DOUBTFUL[one.role] and not _is_told(one, facts)}
    return {index for index, turn in enumerate(turns) if index not in doubtful and _is_readable(*turn)}


def _is_told(one: Statement, facts: Sequence[Fact]) -> bool:
    return any(one.turn in fact.turns and extracting.same(one.text, fact.text) for fact in facts)


def _is_readable(role: str, content: str) -> bool:
    """Tell whether the rules can say what a turn is: short, of a person or an assistant, in plain English."""
    if len(content) > _LONG.get(role, 0) or (role == ASSISTANT and _MATERIAL.search(content)) or "```" in content:
        return False
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(content)]
    known = sum(word in _COMMON for word in words)
    return (content.isascii() and len(words) < _FEW_WORDS) or known >= max(1.0, _KNOWN_SHARE[role] * len(words))
