"""Do two near-duplicates say the same? The guard between a high cosine and overwriting a memory.

Embeddings hardly see numbers, names, negations or who does what to whom: "allowed" and "not allowed" score 0.97. So
texts agree only when everything they say can be matched: `wording` folds spelling and form, and what is left must be
the same sequence, but for one phrase moved to the other end, a "X is Y" turned round, or a typing mistake that is no
other word. Everything else disagrees, on purpose: keeping a rephrasing twice costs little, merging look-alikes
destroys knowledge. Symmetric, reflexive, total and linear in the length. Pure functions; called on `add`.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from memoryd.daemon.language import lexicon
from memoryd.daemon.language.tokens import Token
from memoryd.daemon.language.wording import keys, wordings

MAX_CHARACTERS = 16_000
"""Longer texts agree only when they are equal; models read less than this anyway."""
_MOVABLE_TOKENS = 60  # of a sentence; moving a phrase in a longer text is not looked for
_TYPOS = 2
_SHOWN = 4


def disagreement(old: str, new: str) -> str | None:
    """Return why two similar texts must both be kept, None when the new one may replace the old one."""
    if _plain(old) == _plain(new):
        return None
    if max(len(old), len(new)) > MAX_CHARACTERS:
        return "long texts differ"
    first, second, english = wordings(old, new)
    if not first or not second:
        return "one is empty"
    if keys(first) == keys(second):
        return None if _same_pauses(first, second) else "the punctuation differs"
    if english and (
        _mistyped(first, second) or _moved(first, second) or _turned(first, second) or _listed(first, second)
    ):
        return None
    return _reason(first, second)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


# What may differ ----------------------------------------------------------------------------------------------------


def _same_pauses(first: Sequence[Token], second: Sequence[Token]) -> bool:
    """Tell whether one text merely leaves out commas: "pardon, impossible to" is not "pardon impossible, to"."""
    one, other = _pauses(first), _pauses(second)
    return one <= other or other <= one


def _pauses(tokens: Sequence[Token]) -> set[int]:
    return {index for index, token in enumerate(tokens[:-1], 1) if token.pause}


def _mistyped(first: Sequence[Token], second: Sequence[Token]) -> bool:
    """Tell whether only a word or two differ, each by a typing mistake."""
    if len(first) != len(second) or not _same_pauses(first, second) or lexicon.NAMED & set(keys(first)):
        return False
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a.key != b.key]
    return len(pairs) <= _TYPOS and all(a.kind == b.kind == "word" and _typo(a.key, b.key) for a, b in pairs)


def _typo(one: str, other: str) -> bool:
    """Tell whether two words differ by letters swapped or doubled, in a way that gives no other English word.

    A missing or wrong letter is not enough: "deleted" and "depleted", "restated" and "restarted" are that close.
    """
    short, long = sorted((one, other), key=len)
    if len(short) < 7 or not (one.isascii() and other.isascii()) or {one, other} & lexicon.REAL_SWAPS:
        return False
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) == len(long):
        return 0 < start < len(long) - 2 and short[:start] + long[start : start + 2][::-1] + long[start + 2 :] == short
    doubled = start < len(long) - 1 and long[start] == long[start - 1] and long[start] not in "aeious"
    suffix = long[start + 1 :].startswith(("e", "i", "y"))
    return doubled and not suffix and short[:start] + long[start] + short[start:] == long


def _moved(first: Sequence[Token], second: Sequence[Token]) -> bool:
    """Tell whether a phrase of time, place or condition went from one end of the sentence to the other."""
    if len(first) != len(second) or len(first) > _MOVABLE_TOKENS:
        return False
    return _fronted(first, second) or _fronted(second, first)


def _fronted(front: Sequence[Token], back: Sequence[Token]) -> bool:
    """Tell whether `front` begins with the phrase that ends `back`."""
    if not _opens_phrase(keys(front[:2])):
        return False
    for size in range(1, len(front)):
        phrase, rest = front[:size], front[size:]
        if keys([*rest, *phrase]) == keys(back):
            pauses = _pauses(front) <= {size} and _pauses(back) <= {len(rest)}
            return pauses and _bounded(phrase, rest[0]) and _independent(keys(phrase), keys(rest))
    return False


def _bounded(phrase: Sequence[Token], first: Token) -> bool:
    """Tell whether the phrase visibly ends where it does: "every night, shifts …" is not "every night shift …"."""
    return phrase[-1].pause or first.article or first.kind == "name" or first.key in lexicon.SUBJECTS


def _opens_phrase(start: list[str]) -> bool:
    relative = start[0] in ("this", "next", "last") and not lexicon.PERIODS.isdisjoint(start[1:])
    return relative or start[0] in lexicon.HEADS or start[0].startswith("~")


def _independent(phrase: list[str], rest: list[str]) -> bool:
    """Tell whether the phrase can only belong to the whole of the rest."""
    words = set(rest)
    negated = bool((words | set(phrase)) & lexicon.NEGATIONS)
    if negated and phrase[0] in ("for", "every", "with"):
        return False
    if phrase[0] in words or (phrase[0].startswith("~") and any(key.startswith("~") for key in rest)):
        return False
    inside = set(phrase[1:]) - {"and", "or"}
    return not (words | inside) & (lexicon.ANCHORS | {"?"})


def _turned(first: Sequence[Token], second: Sequence[Token]) -> bool:
    """Tell whether "the owner of billing is Alice" became "Alice is the owner of billing"."""
    for one, other in ((first, second), (second, first)):
        verbs = [index for index, token in enumerate(one) if token.key == "be"]
        if len(verbs) != 1 or verbs[0] != len(one) - 2 or _pauses(one) or _pauses(other):
            continue
        singular = one[-2].text.casefold() == "is" and one[-1].kind in ("name", "number", "identifier")
        plain = not {token.key for token in one} & (lexicon.NEGATIONS | lexicon.ANCHORS)
        if singular and plain and keys([one[-1], one[-2], *one[:-2]]) == keys(other):
            return True
    return False


def _listed(first: Sequence[Token], second: Sequence[Token]) -> bool:
    """Tell whether "Alice and Bob" became "Bob and Alice", with nothing else that could go with one of them."""
    joins = [index for index, token in enumerate(first) if token.key in ("and", "or")]
    if len(joins) != 1 or len(first) != len(second) or _pauses(first) or _pauses(second):
        return False
    left, right = joins[0] - 1, joins[0] + 1
    if left < 0 or right >= len(first) or (left > 0 and right < len(first) - 1):
        return False
    swapped = list(keys(first))
    swapped[left], swapped[right] = swapped[right], swapped[left]
    return swapped == keys(second) and _bare(first, left, right) and _bare(second, left, right)


def _bare(tokens: Sequence[Token], left: int, right: int) -> bool:
    """Tell whether two tokens are the only names in a text that knows no order."""
    others = [token for index, token in enumerate(tokens[1:], 1) if index not in (left, right)]
    named = tokens[right].kind in _NAMES and (not left or tokens[left].kind in _NAMES)
    plain = all(token.kind == "word" and "'" not in token.key for token in others)
    return named and plain and not {token.key for token in tokens} & (lexicon.ORDERS | lexicon.ANCHORS - {"and", "or"})


_NAMES = ("name", "identifier")


# Reasons ------------------------------------------------------------------------------------------------------------


def _reason(first: Sequence[Token], second: Sequence[Token]) -> str:
    """Say in a few words what differs, the most telling difference first."""
    old, new = _exclusive(first, second), _exclusive(second, first)
    for label, wanted in _LABELS:
        left, right = ([token for token in side if wanted(token)] for side in (old, new))
        if left and right:
            return f"{label} differ: {_shown(left)} / {_shown(right)}"
        if (left or right) and label == "negations":
            return f"one is negated: {_shown(left or right)}"
        if left or right:
            return f"only the {'old' if left else 'new'} one says {_shown(left or right)}"
    if old and new:
        return f"'{_shown(old)}' became '{_shown(new)}'"
    if old or new:
        return f"only the {'old' if old else 'new'} one says '{_shown(old or new)}'"
    return "the order differs"


def _exclusive(tokens: Sequence[Token], others: Sequence[Token]) -> list[Token]:
    """Return the tokens that the other text does not have."""
    left = Counter(keys(tokens)) - Counter(keys(others))
    found = []
    for token in tokens:
        if left[token.key] > 0:
            left[token.key] -= 1
            found.append(token)
    return found


def _shown(tokens: Sequence[Token]) -> str:
    more = " …" if len(tokens) > _SHOWN else ""
    return " ".join(token.text for token in tokens[:_SHOWN]) + more


_LABELS: tuple[tuple[str, Callable[[Token], bool]], ...] = (
    ("numbers", lambda token: token.kind == "number"),
    ("negations", lambda token: token.key in lexicon.NEGATIONS),
    ("names", lambda token: token.kind in _NAMES),
)
