"""What the process that makes another database ready reports to memctl, as JSON."""

import msgspec


class RescueReport(msgspec.Struct):
    """What was made ready, whether it is in place, and where the former database is kept.

    `dropped` was in the schema of a copy and is not memoryd's. What of a copy is not in force here either: `tokens`
    and `workspaces` were left out, shared `roots` wait until they are confirmed.
    """

    memories: int = 0
    taken_up: bool = False
    kept: str = ""
    rows: dict[str, int] = {}
    damaged: list[str] = []
    dropped: list[str] = []
    tokens: list[str] = []
    workspaces: list[str] = []
    roots: list[str] = []
