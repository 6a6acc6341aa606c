"""Replace each credential in texts and JSON values by `[secret: KIND]`."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from memoryd.client.credentials.named import find_named
from memoryd.client.credentials.rules import CredentialMatch, find_formats
from memoryd.client.credentials.secret_names import find_name, is_user, kind_of
from memoryd.client.credentials.secret_values import QUOTED, is_credential, is_made
from memoryd.client.credentials.views import TextView, view_visible
from memoryd.client.patterns import compile_late

MIN_CHARS = 10  # the shortest text with a credential: `pwd=` and six characters
_MOST_BEFORE = 120  # characters at the end of a line that may be part of a broken key
_LINE_END = compile_late(r"(?P<run>[A-Za-z0-9_+/=.-]{12,100}+)[ \t]{0,4}\\?\r?\Z")
_NEXT_LINE = compile_late(r"\n[ \t]{0,16}(?P<run>[A-Za-z0-9_+/.-]{6,400}+={0,2}+)")
_REST_OF_LINE = compile_late(r"[\\\"',;]{0,3}[ \t]{0,4}(?:\r?\n|\Z)")
_AWS_SECRET = 40  # characters of a secret access key; half of one may be letters only
_MANIFEST = compile_late(r"^[ \t]{0,8}kind:[ \t]{0,4}[\"']?secret\b", re.MULTILINE | re.IGNORECASE)
_DATA = compile_late(r"^[ \t]{0,8}data:[ \t]*\r?\n", re.MULTILINE)
_KEY = r"[\w.-]{1,80}+:[ \t]{0,40}+"
_ENTRY = compile_late(
    rf"[ \t]{{1,40}}+(?:#[^\n]{{0,400}}+|{_KEY}[|>]?[-+]?|(?:{_KEY})?[\"']?"
    r"(?P<secret>(?=[^\s\"'=]{0,9000}[A-Z0-9])[A-Za-z0-9+/]{10,9000}+={0,2})[\"']?)[ \t]{0,40}+(?:\r?\n|\Z)"
)

Allowed = re.Pattern[str]


def allow_list(patterns: Sequence[str]) -> Allowed | None:
    """Return one pattern for all exceptions, None without any; raise `re.error` for an invalid pattern."""
    for pattern in patterns:
        re.compile(pattern)
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None


def find(text: str, allowed: Allowed | None = None) -> list[CredentialMatch]:
    """Return the likely credentials of a text in order, except those that `allowed` matches completely."""
    if len(text) < MIN_CHARS:
        return []
    if visible := view_visible(text):
        return [visible.locate(one) for one in find(visible.text, allowed)]
    lowered = _lower(text)
    found = [*find_formats(text, lowered)]
    found += _find_broken(text, {one.end for one in found})
    found += find_named(text, lowered)
    found += _find_manifest(text)
    return [one for one in _join_overlaps(found) if not (allowed and allowed.fullmatch(text, one.start, one.end))]


def _lower(text: str) -> str:
    """Return a text in lower case with the same length, although one character becomes two in lower case."""
    return text.replace("\u0130", "I").lower()


def _find_broken(text: str, ends: set[int]) -> Iterator[CredentialMatch]:
    """Yield the keys that are broken over lines, except those that end at the end of a line (`ends`)."""
    for lines in _join_lines(text, ends):
        whole = lines if _REST_OF_LINE.match(text, lines[-1][1]) else lines[:-1]
        made = all(is_made(text[slice(*line)]) for line in whole[1:])
        end = whole[-1][1]
        joined, named = (
            TextView(text, lines),
            TextView(text, [*whole, (end, min(end + 1, len(text)))]),
        )  # with its end mark
        found = [joined.locate(one) for one in find_formats(joined.text, _lower(joined.text))]
        for one in find_named(named.text, _lower(named.text)) if len(whole) > 1 else ():
            if one.kind != "password" and (made or one.end - one.start == _AWS_SECRET):
                found.append(named.locate(one))
        yield from (one for one in found if "\n" in text[one.start : one.end])


def _join_lines(text: str, ends: set[int]) -> Iterator[list[tuple[int, int]]]:
    """Yield the spans of lines that may contain a broken key: a line that ends in a run of characters, and the next."""
    lines: list[tuple[int, int]] = []
    for match in _NEXT_LINE.finditer(text):
        before = _LINE_END.search(text, max(0, match.start() - _MOST_BEFORE), match.start())
        if before is None or before.end("run") in ends:
            continue
        if not lines or lines[-1][1] != before.end("run"):
            if lines:
                yield lines
            begin = max(text.rfind("\n", 0, before.start()) + 1, before.start() - _MOST_BEFORE)
            lines = [(begin, before.end("run"))]
        lines.append(match.span("run"))
    if lines:
        yield lines


def _find_manifest(text: str) -> Iterator[CredentialMatch]:
    """Yield the values of Kubernetes Secrets: the entries below `data:` in a manifest of that kind."""
    if "data:" not in text or not _MANIFEST.search(text):
        return
    for match in _DATA.finditer(text):
        at = match.end()
        while entry := _ENTRY.match(text, at):
            at = entry.end()
            if entry["secret"]:
                yield CredentialMatch("Kubernetes secret", *entry.span("secret"))


def _join_overlaps(found: list[CredentialMatch]) -> list[CredentialMatch]:
    """Return the credentials in order; two that overlap become one, of the kind of the first."""
    kept: list[CredentialMatch] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
        elif one.end > kept[-1].end:
            kept[-1] = kept[-1]._replace(end=one.end)
    return kept


def redact(
    text: str, kinds: Counter[str] | None = None, allowed: Allowed | None = None, keep_lines: bool = False
) -> str:
    """Return a text without its credentials, and count these by kind; `keep_lines` keeps the number of lines."""
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
    """Return a JSON value without credentials in its texts and keys; `key` is its name."""
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
    """Return the name of an item; `pass` next to a user is a password."""
    return "password" if has_user and name.lower() == "pass" else name


def _redact_named(value: str, kinds: Counter[str], allowed: Allowed | None, key: str) -> str:
    name = find_name(key) if key else None
    if name and is_credential(name, value, QUOTED) and not (allowed and allowed.fullmatch(value)):
        shaped = find(value, allowed)
        whole = shaped[0].kind if len(shaped) == 1 and (shaped[0].start, shaped[0].end) == (0, len(value)) else ""
        kind = whole or kind_of(name)
        kinds[kind] += 1
        return f"[secret: {kind}]"
    return redact(value, kinds, allowed)


def describe_kinds(kinds: dict[str, int]) -> str:
    """Return the kinds found as text, such as `2 AWS access keys, 1 password`."""
    return ", ".join(f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in sorted(kinds.items()))
