"""What a text says, as a sequence of tokens in which spelling no longer matters: 30 s, thirty seconds and 30-second.

`wordings` reads two texts together, because whether a capital at the start of a sentence is a name, or "using" is a
form of "use", shows in the other text. Only what cannot change a fact is folded; identifiers, versions and names stay
as written. Texts without an English word are only split. Pure functions; called by `agreement`.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from memoryd.daemon.language import lexicon
from memoryd.daemon.language.figures import figures
from memoryd.daemon.language.tokens import Token, split


class Wordings(NamedTuple):
    """Two texts, read in the light of each other."""

    old: list[Token]
    new: list[Token]
    english: bool


Pass = Callable[[list[Token]], list[Token]]


def wordings(old: str, new: str) -> Wordings:
    """Read two texts; equal sequences of keys mean the same apart from pauses."""
    first, second = split(old), split(new)
    both = [*first, *second]
    if not any(token.key in lexicon.ENGLISH for token in both):
        return Wordings(_strict(first), _strict(second), False)
    known = {stem(token.key) for token in both if token.kind == "word"}
    negated = any(token.key in lexicon.NEGATIONS for token in both)
    return Wordings(_canonical(first, known, negated), _canonical(second, known, negated), True)


def _strict(tokens: list[Token]) -> list[Token]:
    inner = [token._replace(key=token.text + "," * token.pause) for token in tokens[:-1]]
    return inner + [token._replace(key=token.text) for token in tokens[-1:]]


def stem(word: str) -> str:
    """Return a word without plural or third person s and in American spelling."""
    if word.endswith("s") and len(word) > 3 and word not in lexicon.NOT_PLURAL:
        word = _singular(word)
    if len(word) > 5:
        word = re.sub(r"our$", "or", re.sub(r"is(e|ation|ed|er|ing)$", r"iz\1", word))
    if len(word) > 4:
        word = re.sub(r"(?<=ch|sh|ss)e$|(?<=[xz])e$", "", re.sub(r"ie$", "y", word))
    return word


def _singular(word: str) -> str:
    if word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if re.search(r"(ch|sh|ss|[xz])es$", word) else word[:-1]


_ROOTS = {stem(word): equal for word, equal in lexicon.SAME.items()}


# Folding ------------------------------------------------------------------------------------------------------------


def _canonical(tokens: list[Token], known: set[str], negated: bool) -> list[Token]:
    """Fold everything that cannot change a fact."""
    passes: tuple[Pass, ...] = (
        _commands,
        lambda found: figures(found, negated),
        _verbatim,
        lambda found: [_same(token, known) for token in found],
        lambda found: _progressive(found, known),
        _articles,
        _phrases,
        _frequencies,
    )
    for fold in passes:
        tokens = fold(tokens)
    return tokens


def _commands(tokens: list[Token]) -> list[Token]:
    """Keep the comma in "no, deploys"."""
    found: list[Token] = []
    for index, token in enumerate(tokens):
        found.append(token)
        if token.pause and token.key in lexicon.COMMANDS and index + 1 < len(tokens):
            found.append(Token(",", ",", "sign"))
    return found


def _verbatim(tokens: list[Token]) -> list[Token]:
    """Take what is called something as it is written: orders is not order, DEBUG not debug."""
    found = list(tokens)
    for index, token in enumerate(tokens):
        before = [other.key for other in tokens[max(0, index - 2) : index] if other.key not in ("is", "the", "a")]
        if before and before[-1] in lexicon.NAMED and (before[-1] in ("called", "named") or _is_form(token)):
            found[index] = token._replace(key="=" + token.text)
    return found


def _is_form(token: Token) -> bool:
    root = stem(token.key)
    return token.text.isupper() or (token.kind == "word" and root != token.key and root not in _ROOTS)


def _same(token: Token, known: set[str]) -> Token:
    """Replace a word by the one that stands for all its spellings and forms."""
    if token.key.startswith("="):
        return token
    written = lexicon.MISSPELT.get(token.key, token.key)
    root = stem(written)
    if token.kind == "name" and not token.text.isupper():
        return token._replace(key=lexicon.PRODUCTS.get(written, written))
    if written in lexicon.SAME:
        return token._replace(key=lexicon.SAME[written])
    if token.kind == "word" or (token.kind == "start" and root in known):
        return token._replace(key=_ROOTS.get(root, root))
    if token.kind == "part" and not written.endswith("s"):
        return token._replace(key=root)
    return token._replace(key=written)


def _progressive(tokens: list[Token], known: set[str]) -> list[Token]:
    """Read "is using" as "uses" when the other text has that verb."""
    verbs = {_ROOTS.get(root, root) for root in known}
    found: list[Token] = []
    for token in tokens:
        at = len(found) - (2 if found and found[-1].key == "not" else 1)
        candidates = _verbs(token.key) if token.kind == "word" and at >= 0 and found[at].key == "be" else []
        verb = next((key for key in candidates if key in verbs), None)
        if verb:
            del found[at]
            token = token._replace(key=verb)
        found.append(token)
    return found


def _verbs(word: str) -> list[str]:
    """Return what a word in -ing may be a form of."""
    root = word.removesuffix("ing")
    if root == word or len(root) < 2:
        return []
    if re.search(r"([bdgmnprt])\1$", root):
        roots = [root[:-1]]
    elif re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", root):
        roots = [root + "e"]
    else:
        roots = [root, root + "e"]
    return [_ROOTS.get(stem(form), stem(form)) for form in roots]


def _articles(tokens: list[Token]) -> list[Token]:
    """Drop articles and fillers; "a" stays in "plan A" and "a few", and is "every" in "twice a day"."""
    found: list[Token] = []
    article = False
    for token, following in zip(tokens, [*tokens[1:], None], strict=False):
        if token.key in ("a", "an", "per") and following and found and _is_rate(found[-1], following):
            found.append(token._replace(key="every"))
        elif _is_article(token, following):
            article = True
            if found and found[-1].key == "'s":
                found[-1] = found[-1]._replace(key="be")  # Kim's the owner
        elif token.key not in lexicon.DROPPED or token.kind == "name":
            found.append(token._replace(article=article))
            article = False
    return found


def _is_article(token: Token, following: Token | None) -> bool:
    if token.key == "the" or not following:
        return token.key == "the" and token.kind != "name"
    single = token.key in ("a", "an") and token.kind != "name" and not token.pause
    return single and following.kind != "sign" and following.key not in ("few", "little", "lot", "bit", "be")


def _is_rate(before: Token, following: Token) -> bool:
    return following.key in lexicon.PERIODS and (before.kind == "number" or before.key in ("once", "twice", "time"))


def _phrases(tokens: list[Token]) -> list[Token]:
    """Replace phrases by shorter ones of the same meaning."""
    found: list[Token] = []
    for token in tokens:
        found.append(token)
        for length in (4, 3, 2):
            tail = found[-length:]
            if any(part.pause for part in tail[:-1]):
                continue
            shorter = lexicon.PHRASES.get(tuple(keys(tail)))
            if shorter is not None:
                texts = [part.text for part in tail]
                texts = texts if len(shorter) == length else [" ".join(texts)] * len(shorter)
                found[-length:] = [Token(word, text) for word, text in zip(shorter, texts, strict=True)]
                if shorter:
                    found[-1] = found[-1]._replace(pause=token.pause)
                break
    return found


def _frequencies(tokens: list[Token]) -> list[Token]:
    """Read daily as every day."""
    found: list[Token] = []
    for token in tokens:
        period = lexicon.FREQUENCIES.get(token.key)
        found += [Token("every", token.text), token._replace(key=period)] if period else [token]
    return found


def keys(tokens: Iterable[Token]) -> list[str]:
    """Return what is compared."""
    return [token.key for token in tokens]
