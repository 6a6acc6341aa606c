"""What the process that makes another database ready reports to memctl, as JSON."""

import msgspec


class Report(msgspec.Struct):
    """What was made ready, whether it is in place, and where the former database is kept.

    `dropped` was in the schema of a copy and is not memoryd's; `tokens` of a copy were left out.
    """

    memories: int = 0
    taken_up: bool = False
    kept: str = ""
    rows: dict[str, int] = {}
    damaged: list[str] = []
    dropped: list[str] = []
    tokens: list[str] = []
