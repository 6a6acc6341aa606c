"""The lines of a private key in its armour: after `-----BEGIN … PRIVATE KEY-----` come headers, then lines of base64.

Read line by line, since a pattern for all of it would try every way to divide headers from lines.
"""

from memoryd.client.patterns import compile_late

_SPACE = r"(?: |%20)"
BEGIN = rf"-----BEGIN{_SPACE}(?:[A-Z0-9]+{_SPACE}){{0,3}}PRIVATE{_SPACE}KEY(?:{_SPACE}BLOCK)?-----"
_GAP = r"(?:\s|\\{1,4}[nr]|%0[AD]|[\"'+,>|→]|(?<![\w+/=])\d{1,5}(?=[\s:|→]))"  # also numbers of lines
_BASE64 = r"(?:[A-Za-z0-9+/=]|%2[BF]|%3D)"
_HEADER = compile_late(rf"{_GAP}{{0,16}}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): ?")
_END_OF_HEADER = compile_late(rf"[\n\\]|{BEGIN}|\Z")
_LINE = compile_late(rf"{_BASE64}{{16,}}+")
_LINES = compile_late(
    rf"(?:{_GAP}{{0,16}}{_BASE64}{{16,}})+(?:{_GAP}{{0,16}}{_BASE64}{{1,15}}(?={_GAP}{{0,16}}-----))?"
)


def end_of_key(text: str, start: int) -> int:
    """Return where the lines end that follow the first line of a key at `start`, and `start` where there are none."""
    at = start
    values: list[tuple[int, int]] = []
    while header := _HEADER.match(text, at):
        end = _END_OF_HEADER.search(text, header.end())
        assert end is not None
        at = end.start()
        values.append((header.end(), at))
        if text[at : at + 1] not in ("\n", "\\"):
            break
    if lines := _LINES.match(text, at):
        return lines.end()
    for value in reversed(values):  # the lines of the key were joined with that of a header
        if runs := list(_LINE.finditer(text, *value)):
            lines = _LINES.match(text, runs[-1].start())
            return lines.end() if lines else start
    return start
