"""The recorded workload: what four agents do in a quarter, some 900 events, an event a line."""

from pathlib import Path
from typing import Any

import msgspec
from events import Ask, Edit, Event, Forget, Note, Share, TakeBack, Talk

START = 1_767_225_600.0  # 2026-01-01
DAYS = 91
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Ask, Edit, Forget, Note, Share, TakeBack, Talk)}


def read_workload() -> list[Event]:
    """Return the events by time."""
    lines = (Path(__file__).parent / "workload.jsonl").read_bytes().splitlines()
    return [msgspec.convert(fields, _KINDS[kind]) for kind, *fields in map(msgspec.json.decode, lines)]
