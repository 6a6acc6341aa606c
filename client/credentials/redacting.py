"""Taking credentials out of text and of trees of values: each becomes `[secret: WHAT IT WAS]`, the rest stays."""

import itertools
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from memoryd.client.credentials.assigned import find_assigned
from memoryd.client.credentials.formats import FORMATS, MIN_RUN, RUN_CHARS, Format
from memoryd.client.credentials.invisible import Visible, has_invisible
from memoryd.client.credentials.names import is_user, kind_of, name_in
from memoryd.client.credentials.usage import find_manifest
from memoryd.client.credentials.values import is_credential, is_made, is_placeholder
from memoryd.client.patterns import compile_late

MIN_CHARS = 10  # the shortest is `pwd=` and six characters
_FEW = 6  # a key of fewer different characters than that is a placeholder
_LOOSE = [(shape, anchor, shape.folded) for shape in FORMATS if shape.loose for anchor in shape.anchors]
_IN_RUNS = [(shape, anchor, shape.folded) for shape in FORMATS if not shape.loose for anchor in shape.anchors]
_RUN = compile_late(f"[{re.escape(RUN_CHARS)}]{{{MIN_RUN},}}")
_CLASSES = bytes(ord("w") if chr(byte) in RUN_CHARS else ord(" ") for byte in range(256))
_LONG = b"w" * MIN_RUN
_MOST_BEFORE = 120  # characters of a line that are looked at before its end
_KEY_CHARS = r"[A-Za-z0-9_+/=.-]"
_NEXT_LINE = compile_late(rf"\n[ \t]{{0,16}}(?P<run>{_KEY_CHARS}{{6,400}})")
_LINE_END = compile_late(rf"(?P<run>{_KEY_CHARS}{{12,100}}+)[ \t]{{0,4}}\\?\r?\Z")
_REST_OF_LINE = compile_late(r"[\\\"',;]{0,3}[ \t]{0,4}(?:\r?\n|\Z)")
_AWS_SECRET = 40  # characters of a secret access key, of which half a line may be letters alone
_DIGITS = frozenset("0123456789")


class Found(NamedTuple):
    """A credential in a text: what it is, and where it begins and ends."""

    kind: str
    start: int
    end: int


Allowed = re.Pattern[str]


def allow_list(patterns: Sequence[str]) -> Allowed | None:
    """Return one pattern for what is let through, None for nothing; raise `re.error` for a pattern that is none."""
    for pattern in patterns:
        re.compile(pattern)
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None


def find(text: str, allowed: Allowed | None = None) -> list[Found]:
    """Return the likely credentials of a text in their order; `allowed` lets those through that it matches whole."""
    if len(text) < MIN_CHARS:
        return []
    if has_invisible(text):
        visible = Visible(text)
        return [Found(one.kind, *visible.locate(one.start, one.end)) for one in find(visible.text, allowed)]
    lowered = text.lower()
    if len(lowered) != len(text):  # one character has a lower form of two
        lowered = text.replace("\u0130", "I").lower()
    found = [*_find_shaped(text, lowered)]
    found += _find_broken(text, {one.end for one in found})
    found += [Found(one.kind, one.start, one.end) for one in find_assigned(text, lowered)]
    found += [Found("Kubernetes secret", start, end) for start, end in find_manifest(text, lowered)]
    if not found:
        return found
    return [one for one in _drop_overlaps(found) if not (allowed and allowed.fullmatch(text, one.start, one.end))]


def _find_shaped(text: str, lowered: str) -> Iterator[Found]:
    for shape, anchor in _candidates(text, lowered):
        for match in _matches(shape, anchor, text, lowered if shape.folded else text):
            start, end = shape.span(text, match)
            if start < end and not _is_example(shape.name, text[start:end]):
                yield Found(shape.name, start, end)


def _find_broken(text: str, ends: set[int]) -> Iterator[Found]:
    """Yield the long keys that are broken over lines, apart from those that end where a line does (`ends`)."""
    for spans in _join_lines(text, ends):
        whole, joined = "".join(text[start:end] for start, end in spans), _Joined(spans)
        if _DIGITS.isdisjoint(whole):
            continue
        for shape, anchor in _candidates(whole, whole.lower()):
            for match in (
                () if shape.loose else _matches(shape, anchor, whole, whole.lower() if shape.folded else whole)
            ):
                start, end = shape.span(whole, match)
                first, last = joined.place(start), joined.place(end - 1)
                if "\n" in text[first:last] and not _is_example(shape.name, whole[start:end]):
                    yield Found(shape.name, first, last + 1)
        yield from _find_named_broken(text, spans)


def _find_named_broken(text: str, spans: list[tuple[int, int]]) -> Iterator[Found]:
    """Yield the keys beside a telling name that go on in whole lines."""
    rest = [*itertools.takewhile(lambda span: _is_whole_line(text, *span), spans[1:])]
    if not rest:
        return
    begin = max(text.rfind("\n", 0, spans[0][0]) + 1, spans[0][0] - _MOST_BEFORE)
    first, end = (begin, spans[0][1]), rest[-1][1]
    line = "".join(text[slice(*span)] for span in (first, *rest, (end, end + 1)))  # with the mark that closes it
    made = all(is_made(text[slice(*span)]) for span in rest)
    for one in find_assigned(line, line.lower()):
        whole = made or one.end - one.start == _AWS_SECRET
        if whole and one.kind != "password" and one.start < first[1] - begin < one.end:
            yield Found(one.kind, begin + one.start, _Joined([first, *rest]).place(one.end - 1) + 1)


def _is_whole_line(text: str, start: int, end: int) -> bool:
    """Return whether a run that begins a line is all of it, and no assignment."""
    return bool(_REST_OF_LINE.match(text, end)) and "=" not in text[start : end - 2]


def _join_lines(text: str, ends: set[int]) -> Iterator[list[tuple[int, int]]]:
    """Yield the spans of runs of characters that end with their line, each with those that continue it."""
    spans: list[tuple[int, int]] = []
    for match in _NEXT_LINE.finditer(text):
        before = _LINE_END.search(text, max(0, match.start() - _MOST_BEFORE), match.start())
        if before is None or before.end("run") in ends:
            continue
        if spans and spans[-1][1] != before.end("run"):
            yield spans
            spans = []
        if not spans:
            spans.append(before.span("run"))
        spans.append(match.span("run"))
    if spans:
        yield spans


class _Joined:
    """Spans of a text, joined."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        self._spans = spans
        self._ends = [*itertools.accumulate(end - start for start, end in spans)]

    def place(self, at: int) -> int:
        """Return where in the text a character of the joined spans is."""
        number = bisect_right(self._ends, at)
        return self._spans[number][1] - self._ends[number] + at


def _candidates(text: str, lowered: str) -> Iterator[tuple[Format, str]]:
    """Yield the shapes that a text may hold, each with the anchor that it has of it."""
    for shape, anchor, is_folded in _LOOSE:
        if anchor in (lowered if is_folded else text):
            yield shape, anchor
    if _LONG not in text.encode("utf-8", "replace").translate(_CLASSES):
        return  # prose: there is no word long enough
    runs = "\n".join(run for run in _RUN.findall(text) if not _DIGITS.isdisjoint(run))
    if not runs:
        return  # names: no key is without a digit
    folded = runs.lower()
    for shape, anchor, is_folded in _IN_RUNS:
        if anchor in (folded if is_folded else runs):
            yield shape, anchor


def _matches(shape: Format, anchor: str, text: str, haystack: str) -> Iterator[re.Match[str]]:
    if shape.free:
        yield from shape.pattern.finditer(text)
        return
    at = haystack.find(anchor)
    while at >= 0:
        match = shape.pattern.match(text, at)
        if match:
            yield match
        at = haystack.find(anchor, match.end() if match and not shape.end_of_rest else at + 1)


def _is_example(name: str, value: str) -> bool:
    if name == "password in a URL":
        return is_placeholder(value) or value[0] in "$%{<[*"
    spelled = name == "private key" or name.startswith("AWS")  # the vendor's own examples end with EXAMPLE
    return len(set(value)) < _FEW or (not spelled and is_placeholder(value))


def _drop_overlaps(found: list[Found]) -> list[Found]:
    """Return what does not overlap, in order; where two do, the one that begins first, or else reaches further."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
        elif one.end > kept[-1].end:  # the end of the other is a part of a credential too
            kept[-1] = kept[-1]._replace(end=one.end)
    return kept


def redact(
    text: str, kinds: Counter[str] | None = None, allowed: Allowed | None = None, keep_lines: bool = False
) -> str:
    """Return a text without its credentials and count them by kind; `keep_lines` keeps the number of its lines."""
    found = find(text, allowed)
    if not found:
        return text
    parts, at = [], 0
    for kind, start, end in found:
        parts += [text[at:start], f"[secret: {kind}]"]
        if keep_lines:
            parts.append("\n" * text.count("\n", start, end))
        at = end
        if kinds is not None:
            kinds[kind] += 1
    return "".join([*parts, text[at:]])


def redact_tree(value: Any, kinds: Counter[str], allowed: Allowed | None = None, key: str = "") -> Any:
    """Return a value as JSON has them without credentials in its texts and keys; `key` is its name."""
    if isinstance(value, str):
        return _redact_named(value, kinds, allowed, key)
    if isinstance(value, dict):
        has_user = any(isinstance(name, str) and is_user(name) for name in value)
        return {
            redact(name, kinds, allowed) if isinstance(name, str) else name: redact_tree(
                item, kinds, allowed, _name_item(name, has_user) if isinstance(name, str) else ""
            )
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [redact_tree(item, kinds, allowed, key) for item in value]
    return value


def _name_item(name: str, has_user: bool) -> str:
    """Return the name of an item: `pass` beside a user is its password."""
    return "password" if has_user and name.lower() == "pass" else name


def _redact_named(value: str, kinds: Counter[str], allowed: Allowed | None, key: str) -> str:
    name = name_in(key) if key else None
    if name and is_credential(name, value, quoted=True) and not (allowed and allowed.fullmatch(value)):
        shaped = find(value, allowed)
        whole = shaped[0].kind if len(shaped) == 1 and (shaped[0].start, shaped[0].end) == (0, len(value)) else ""
        kind = whole or kind_of(name)
        kinds[kind] += 1
        return f"[secret: {kind}]"
    return redact(value, kinds, allowed)


def describe_kinds(kinds: dict[str, int]) -> str:
    """Return what was found in a few words: `2 AWS access keys, 1 password`."""
    return ", ".join(f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in sorted(kinds.items()))
