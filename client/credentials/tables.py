"""Find credentials in tables (Markdown, CSV, output of database clients): below a telling name, or next to one."""

import re
from collections.abc import Iterator, Sequence

from memoryd.client.credentials.rules import CredentialMatch
from memoryd.client.credentials.secret_names import find_name, is_user, kind_of
from memoryd.client.credentials.secret_values import BARE, is_credential
from memoryd.client.patterns import compile_late

# The text after a telling name at the end of a cell.
CELL = compile_late(r"[*_`\"']{0,4}(?:[ \t]{0,200}(?:[|│,;\t\r\n]|\Z)|[ ]{2})")
# Lines before rows of names and values: the head of two columns, and the line of a record that `psql` prints with \x.
_PAIRS = compile_late(
    r"^(?:[|│ \t*_]{0,8}(?:key|name|variable|field|setting)[*_]{0,2}[ \t]{0,200}(?:[|│\t]|[ ]{2})[ \t*_]{0,200}value\b"
    r"|(?P<record>[ \t]{0,8}-\[ RECORD \d{1,9} \][-+]{0,200}[ \t\r]{0,4}$))",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD = compile_late(r"[\"']?[\w.-]{1,30}(?: [\w.-]{1,20}){0,2}[\"']?")
_COLUMN = compile_late(r"\S+(?: \S+)*")
_KEYS, _VALUE = frozenset(("key", "name", "variable", "field", "setting")), frozenset(("value",))
_DASHES, _MARKS = frozenset("-─═"), " \t\r*_`\"'"
_BORDER = _DASHES | frozenset("|+: \t\r>│├┼┤╞╪╡╟╫╢")
_LONGEST_HEAD = 2_000  # characters of a table's first line


def find_in_tables(text: str, lowered: str, names: Sequence[int]) -> Iterator[CredentialMatch]:
    """Yield the credentials in tables; `names` are the places in the text where telling names end."""
    done, places = 0, {*names}
    if "value" in lowered or "-[ record" in lowered:
        places.update(match.start() for match in _PAIRS.finditer(text))
    for place in sorted(places):
        if place >= done:
            begin, end = text.rfind("\n", 0, place) + 1, _find_line_end(text, place)
            done = end
            if end - begin < _LONGEST_HEAD:
                found, done = _read_table(text, begin, end)
                yield from found


def _find_line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _read_table(text: str, begin: int, end: int) -> tuple[list[CredentialMatch], int]:
    """Return the credentials of the table whose first line is at `begin` to `end`, and where the table ends."""
    head, at = text[begin:end], end + 1
    pairs = _PAIRS.match(text, begin)
    is_record = pairs is not None and pairs["record"] is not None
    separator = "|" if is_record else next((one for one in "|│\t;," if one in head), "")
    columns = [] if separator else [match.start() for match in _COLUMN.finditer(head)]
    heads = ["name", "value"] if is_record else [cell.strip(_MARKS) for _, cell in _split(head, separator, columns)]
    below = text[at : _find_line_end(text, at)]
    if _BORDER.issuperset(below) and not _DASHES.isdisjoint(below):
        at += len(below) + 1
    elif not is_record and (separator in ("|", "│") or len(heads) < 2 or not all(map(_HEAD.fullmatch, heads))):
        return [], end
    named = {column: name for column, title in enumerate(heads) if (name := find_name(title))}
    first, value = (
        next((column for column, title in enumerate(heads) if title.lower() in wanted), 0) for wanted in (_KEYS, _VALUE)
    )
    found, has_user = [], any(map(is_user, heads))
    while (named or pairs) and at < len(text):
        row = text[at : _find_line_end(text, at)]
        cells = _split(row, separator, columns)
        if (
            not row.strip()
            or (separator and len(cells) < 2)
            or (separator in (",", ";", "\t") and len(cells) != len(heads))
        ):
            break
        if pairs:
            named = {value: name} if (name := find_name(cells[first][1].strip(_MARKS))) else {}
        for column, name in named.items():
            start, cell = cells[column] if column < len(cells) else (0, "")
            made = cell.strip(_MARKS)
            words = has_user or pairs is not None or not made.isalpha()
            if len(made.split()) == 1 and is_credential(name, made, BARE, words):
                start += at + cell.index(made)
                found.append(CredentialMatch(kind_of(name), start, start + len(made)))
        at += len(row) + 1
    return found, min(at, len(text))


def _split(line: str, separator: str, columns: Sequence[int]) -> list[tuple[int, str]]:
    """Return the cells of a line and where they begin: between separators, or under the columns of the first line."""
    if separator:
        cells = line.split(separator)
        starts = [0]
        for cell in cells:
            starts.append(starts[-1] + len(cell) + 1)
        return list(zip(starts, cells, strict=False))
    ends = [*columns[1:], len(line)]
    return [
        (start, line[start:end] if line[max(0, start - 1) : start] in ("", " ") else "")
        for start, end in zip(columns, ends, strict=True)
    ]
