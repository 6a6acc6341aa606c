"""Texts on which a regular expression that can backtrack far does so, made from the expression itself.

For each repetition of a pattern: a text that leads up to it, then many times a text that it or what surrounds it can
take, then something that makes the match fail. `re._parser` is CPython's own parser of patterns, the same from 3.11 on.
"""

import random
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

Node = tuple[Any, Any]
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_FAR = 16  # how often a repetition must be allowed to be worth an attack
_CANDIDATES = "a1 .:-_/\"'\n\tZ[](){}<>,;|\\=+*#~^%@!?`xé中\0"
_ENDS = ("", "\0", "\n\0", " !", "?", " x")
_GENERIC = (
    ".",
    ":",
    " ",
    "1",
    "a",
    "A",
    "-",
    "_",
    "/",
    "\n",
    "a ",
    "a.",
    "1.",
    ". ",
    "\n ",
    "a:1 ",
    "(",
    "[",
    '"',
    "`",
)
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    sre.CATEGORY_NOT_DIGIT: lambda char: not char.isdigit(),
    sre.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    sre.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}


class _Plain(random.Random):
    """Chooses what comes first, so that texts are as plain as a pattern allows."""

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def randrange(self, *args: Any) -> int:
        return 0


class Attack(NamedTuple):
    """A text of any length: a beginning, what is repeated, an end."""

    beginning: str
    pump: str
    end: str

    def text(self, length: int) -> str:
        return self.beginning + self.pump * (length // len(self.pump)) + self.end


def attacks(pattern: re.Pattern[str], rounds: int = 1) -> Iterator[Attack]:
    """Yield attacks on a pattern, each once and always the same; more rounds, more of them."""
    tree = list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    ends = [*_ENDS, *(char for char in sorted(_refused(tree)) if char not in _ENDS)]
    seen: set[Attack] = set()
    for chance in (_Plain(), *(random.Random(f"{number}{pattern.pattern}") for number in range(rounds))):
        whole = [_sample(tree, chance, {}) for _ in range(3)]
        for beginning, pumps in [("", {*_GENERIC, *whole}), *_repetitions(tree, "", [""], chance)]:
            made = {Attack(beginning, pump, end) for pump in pumps - {""} for end in ends} - seen
            yield from sorted(made)
            seen |= made


def _repetitions(
    nodes: list[Node], before: str, after: list[str], chance: random.Random
) -> Iterator[tuple[str, set[str]]]:
    """Yield each repetition below some nodes: what leads up to it, and what to repeat there."""
    for at, node in enumerate(nodes):
        following = [_sample(nodes[at + 1 :], chance, {}), *after]
        for inner in _bodies(node):
            yield from _repetitions(inner, before, following, chance)
        if node[0] in _REPEATS and node[1][1] >= _FAR:
            yield before, set(_pumps(list(node[1][2]), before, following, chance))
        before += _sample([node], chance, {})


def _bodies(node: Node) -> list[list[Node]]:
    kind, value = node
    if kind in _REPEATS:
        return [list(value[2])]
    if kind is sre.SUBPATTERN:
        return [list(value[3])]
    if kind is sre.ATOMIC_GROUP:
        return [list(value)]
    if kind in (sre.ASSERT, sre.ASSERT_NOT):
        return [list(value[1])] if value[0] > 0 else []
    if kind is sre.BRANCH:
        return [list(branch) for branch in value[1]]
    return []


def _refused(nodes: Iterable[Node]) -> set[str]:
    """Return for each class of all but some characters one that is not in it."""
    found: set[str] = set()
    for node in nodes:
        if node[0] is sre.IN and node[1][0][0] is sre.NEGATE:
            found.add(next(char for char in "x" + _CANDIDATES + "b" if not _takes(node, char)))
        for inner in _bodies(node):
            found |= _refused(inner)
    return found


def _pumps(body: list[Node], before: str, following: list[str], chance: random.Random) -> Iterator[str]:
    samples = [_sample(body, chance, {}) for _ in range(3)]
    yield from samples
    yield from (samples[0] + text for text in following[:2])
    yield from (text for text in following[:2] if text)
    yield before + samples[1]
    yield before + samples[1] + following[0]
    if len(body) == 1 and body[0][0] in (sre.IN, sre.ANY, sre.NOT_LITERAL):
        taken = [char for char in _alphabet(following) if _takes(body[0], char)]
        yield from taken[:6]
        if before:  # many beginnings, each with a boundary before it
            yield from (before + char for char in [char for char in taken if not char.isalnum()][:4])


def _alphabet(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*(text[0] for text in texts if text), *_CANDIDATES]))


def _sample(nodes: Iterable[Node], chance: random.Random, groups: dict[int, str]) -> str:
    """Return a text that nodes match, most likely; assertions are not looked at."""
    return "".join(_one(kind, value, chance, groups) for kind, value in nodes)


def _one(kind: Any, value: Any, chance: random.Random, groups: dict[int, str]) -> str:
    if kind is sre.LITERAL:
        return chr(value)
    if kind in (sre.IN, sre.ANY, sre.NOT_LITERAL):
        return chance.choice(_fitting(kind, tuple(value) if kind is sre.IN else value))
    if kind in _REPEATS:
        low, high, inner = value
        return "".join(_sample(inner, chance, groups) for _ in range(min(high, low + chance.randrange(2))))
    if kind is sre.SUBPATTERN:
        text = _sample(value[3], chance, groups)
        if value[0] is not None:
            groups[value[0]] = text
        return text
    if kind is sre.ATOMIC_GROUP:
        return _sample(value, chance, groups)
    if kind is sre.BRANCH:
        return _sample(chance.choice(value[1]), chance, groups)
    return groups.get(value, "") if kind is sre.GROUPREF else ""


@cache
def _fitting(kind: Any, value: Any) -> list[str]:
    """Return some characters that a node takes, a letter first where it takes one."""
    listed = [chr(item[1]) for item in value if item[0] is sre.LITERAL] if kind is sre.IN else []
    ranges = [chr(item[1][0]) for item in value if item[0] is sre.RANGE] if kind is sre.IN else []
    return [char for char in ["a", *listed, *ranges, *_CANDIDATES] if _takes((kind, value), char)][:12] or ["a"]


def _takes(node: Node, char: str) -> bool:
    """Tell whether a node for one character takes this one."""
    kind, value = node
    if kind is sre.ANY:
        return char != "\n"
    if kind is sre.NOT_LITERAL:
        return char != chr(value)
    negated = value[0][0] is sre.NEGATE
    return any(_is_in(item, char) for item in value) != negated


def _is_in(item: Node, char: str) -> bool:
    kind, value = item
    if kind is sre.LITERAL:
        return chr(value) == char
    if kind is sre.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return kind is sre.CATEGORY and bool(_CATEGORIES[value](char))
