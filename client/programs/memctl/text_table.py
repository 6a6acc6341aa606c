"""Tables and other text for people: columns as wide as needed, one that is shortened to the terminal's width."""

import re
from collections.abc import Mapping, Sequence

from memoryd.client.programs.memctl.output import columns, is_terminal, make_printable, paint
from memoryd.client.protocol.memories import Memory

GAP = "  "
MIN_FLEXIBLE = 16
FREE = 400  # width of the flexible column without a terminal, for example in a file
LONGEST = 4000  # only the beginning of a longer text is examined; no line shows more


def format_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    empty: str = "",
    flexible: int = -1,
    right: Sequence[int] = (),
) -> str:
    """Return rows under headers, or `empty`, if given, if there are no rows.

    Column `flexible` is shortened to fit a terminal, columns in `right` are set flush right.
    """
    if empty and not rows:
        return empty
    flexible %= len(headers)
    cells = [[to_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(headers, *cells, strict=True)]
    others = sum(widths) - widths[flexible] + len(GAP) * (len(headers) - 1)
    room = columns() - others if is_terminal() else FREE
    widths[flexible] = min(widths[flexible], max(room, MIN_FLEXIBLE))
    lines = [paint(_format_line(headers, widths, right), "bold")]
    return "\n".join(lines + [_format_line(row, widths, right) for row in cells])


def format_fields(pairs: Sequence[tuple[str, str]], indent: str = "  ") -> str:
    """Return names and values, one pair per line, with the values aligned."""
    broadest = max((width(name) for name, _ in pairs), default=0)
    return "\n".join(f"{indent}{paint(pad(name, broadest), 'dim')}{GAP}{value}" for name, value in pairs)


def _format_line(cells: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    fitted = [
        pad(shorten(cell, size), size, i in right) for i, (cell, size) in enumerate(zip(cells, widths, strict=True))
    ]
    return GAP.join(fitted).rstrip()


def draw_bar(share: float, size: int) -> str:
    """Return a bar of `share` 0..1 of `size` columns."""
    eighths = round(min(max(share, 0.0), 1.0) * size * 8)
    whole, part = divmod(eighths, 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[part] if part else "")


# Text ----------------------------------------------------------------------------------------------------------------


def width(text: str) -> int:
    """Return how many columns text takes in a terminal: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) or c in "\u200b\u200d\ufe0f" else 1 + (east_asian_width(c) in "WF") for c in text)


def shorten(text: str, limit: int) -> str:
    """Return text of at most `limit` columns; `…` shows that it was cut."""
    if len(text) <= limit * 4 and width(text) <= limit:
        return text
    beginning = text[: max(limit - 1, 0)]
    while beginning and width(beginning) > limit - 1:
        beginning = beginning[:-1]
    return beginning.rstrip() + "…" if limit > 0 else ""


def pad(text: str, size: int, right: bool = False) -> str:
    """Return text filled with blanks to `size` columns."""
    blanks = " " * (size - width(text))
    return blanks + text if right else text + blanks


def to_one_line(text: str) -> str:
    """Return text on one line without control characters."""
    return make_printable(re.sub(r"\s+", " ", text[:LONGEST]).strip())


def origin_text(memory: Memory) -> str:
    """Return whose words the text of a memory is, and whether the person confirmed them."""
    return f"{memory.origin}, confirmed" if memory.confirmed_at is not None else memory.origin


def disagreement_lines(ids: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return a line for each memory that disagrees with this one: its short id and its text."""
    return [f"{id[:8]}: {to_one_line(text)}" for id, text in zip(ids, texts, strict=False)]


def list_texts(texts: Sequence[tuple[str, str]], total: int) -> list[str]:
    """Return a line for each memory, given as id and text, and a last line with the number of further ones."""
    lines = [f"{id[:8]}  {shorten(to_one_line(text), columns() - 12)}" for id, text in texts]
    return [*lines, *([f"… and {total - len(texts):,} more"] if total > len(texts) else [])]


def list_ids(ids: Sequence[str]) -> str:
    """Return the first ten ids, shortened, on one line."""
    return f"{', '.join(id[:8] for id in ids[:10])}{' …' if len(ids) > 10 else ''}"


def wrap(text: str, size: int, lines: int) -> list[str]:
    """Return at most `lines` lines of `size` columns; the last one is shortened."""
    words, wrapped = to_one_line(text).split(" "), [""]
    for at, word in enumerate(words):
        longer = f"{wrapped[-1]} {word}".lstrip()
        if width(longer) <= size:
            wrapped[-1] = longer
        elif len(wrapped) == lines:
            wrapped[-1] = shorten(" ".join([wrapped[-1], *words[at:]]).lstrip(), size)
            break
        elif wrapped[-1]:
            wrapped.append(word)
        else:
            wrapped[-1] = word
    return [shorten(line, size) for line in wrapped]


def text_of(value: object) -> str:
    """Return a value of metadata or of a note as readable text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return " ".join(f"{name} {text_of(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(text_of, value)) or "none"
    return str(value)


def ms_text(value: float) -> str:
    """Return milliseconds with three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def size_text(size_bytes: int) -> str:
    """Return a size in a suitable unit."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def duration_text(seconds: float) -> str:
    """Return a time span in a suitable unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun: `1 memory`, `2 memories`."""
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else many}"


def count_kept(memories: int, turns: int, parts: int = 0) -> str:
    """Return the numbers of memories, turns and parts of files: `2 memories`, `1 turn`, `2 memories, 1 turn`."""
    counts = [count_text(memories, "memory")] if memories or not (turns or parts) else []
    counts += [count_text(turns, "turn")] if turns else []
    counts += [f"{count_text(parts, 'part')} of files"] if parts else []
    return ", ".join(counts)


def count_stored(memories: int, turns: int, by_tier: Mapping[str, int]) -> str:
    """Return the same as `count_kept` for counts of the daemon, in which memories include parts of files."""
    parts = by_tier.get("documents", 0)
    return count_kept(memories - parts, turns, parts)
