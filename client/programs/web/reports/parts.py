"""Parts of a report, as the page draws them: a text, or a list of a name and the parts in it.

A name is `tag.class`, or one of those that the page knows: `time`, `link`, `go`, `act`, `undo`, `emit`, `bar`,
`table`. Texts are never markup, so a memory in a report is inert.
"""

from collections.abc import Iterable, Sequence
from typing import Any

Part = str | float | list[Any] | None


def remark(*parts: Part) -> Part:
    """Return a remark."""
    return ["p.dim", *parts]


def badge(text: str, kind: str = "") -> Part:
    """Return a word in a box; `kind` is `good`, `warn` or `bad`."""
    return [f"span.badge.{kind}", text]


def state(text: str, good: str) -> Part:
    """Return a state that is good or to look at."""
    return badge(text, "good" if text == good else "warn")


def place(namespace: str) -> str:
    """Return the name of a namespace."""
    return namespace or "/"


def line(*parts: Part) -> Part:
    """Return a line of small facts; what is empty is left out."""
    return ["span.about", *(part if isinstance(part, list) else ["span", part] for part in parts if part)]


def time(at: float | None) -> Part:
    """Return a time, which the browser writes for its place; `never` without one."""
    return ["time", at]


def link(id: str, text: str = "") -> Part:
    """Return a link to a memory."""
    return ["link", id, text]


def act(text: str, said: str, method: str, fields: dict[str, Any], back: str = "") -> Part:
    """Return a button that calls a method and says so; `back` is the method that undoes it, else its operation is."""
    return ["act", text, said, method, fields, back]


def undo(text: str, said: str, operation: str) -> Part:
    """Return a button that undoes an operation."""
    return ["undo", text, said, operation]


def emit(text: str, name: str, value: str, look: str = "") -> Part:
    """Return a button that sends the view an event with a value."""
    return ["emit", text, name, value, look]


def bar(share: float, start: float = 0.0) -> Part:
    """Return a bar of a share, from 0 to 1."""
    return ["bar", share, start]


def table(label: str, heads: Sequence[str], rows: Iterable[Sequence[Part]]) -> Part:
    """Return a table; a head that begins with `>` is of numbers."""
    return ["table", label, list(heads), [list(cells) for cells in rows]]


def list_items(items: Iterable[Part], empty: Part = "") -> Part:
    """Return a list, or what is said where it is empty."""
    found = [["li", item] for item in items]
    return ["ul", *found] if found else remark(empty)


def facts(pairs: Iterable[tuple[str, Part]]) -> Part:
    """Return names with their values; what is empty is left out."""
    return ["dl.facts", *(cell for name, value in pairs if value for cell in (["dt", name], ["dd", value]))]


def panel(title: Part, *parts: Part) -> Part:
    """Return parts in a box."""
    return ["section.panel", ["h2", title], *parts]


def section(title: str, *parts: Part) -> Part:
    """Return parts under a title."""
    return ["section", ["h2.small", title], *parts]


def fold(title: str, *parts: Part) -> Part:
    """Return parts that are shown when their title is chosen."""
    return ["details", ["summary", title], *parts]


def format_number(value: float | None, digits: int = 3) -> str:
    """Return a number with so many digits, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def format_counts(numbers: dict[str, int]) -> str:
    """Return what is counted: `2 moved, 1 kept`."""
    return ", ".join(f"{many:,} {name.replace('_', ' ')}" for name, many in numbers.items() if many)
