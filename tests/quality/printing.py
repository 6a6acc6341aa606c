"""What the programs of this folder print: tables for people, or one JSON document."""

from collections.abc import Sequence
from typing import Any

import msgspec


def print_json(report: Any) -> None:
    """Print one JSON document."""
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())


def format_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under headers: the first column flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in (headers, *rows)
    )


def percent(share: float | None) -> str:
    """Return a share as a percentage with one decimal; of nothing a dash."""
    return "–" if share is None else f"{100 * share:.1f}"
