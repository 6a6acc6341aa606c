"""Conversion of times: people write ISO 8601; the database and the protocol have UTC seconds."""

import time
from datetime import UTC, datetime

from memoryd.client.errors import Invalid
from memoryd.client.patterns import compile_late

When = float | str | datetime
_MILLISECONDS_FROM = 1e11  # a number of seconds above it would be after the year 5000
_LATEST = 253402300799.0  # the year 9999
_EXACT = compile_late(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)Z")


def seconds(when: When) -> float:
    """Return UTC seconds for seconds, a datetime or ISO 8601 text; a time without a zone is UTC. Raise `Invalid`."""
    if isinstance(when, str):
        try:
            if found := _EXACT.fullmatch(when):  # a datetime would hold microseconds only
                whole = datetime.fromisoformat(f"{found[1]}Z").timestamp()
                return float(f"{whole:.0f}{found[2]}")
            when = datetime.fromisoformat(when)
        except ValueError:
            raise Invalid(f"{when!r} is not a date; write it like 2026-03-31 or 2026-03-31T14:30:00+02:00.") from None
    if isinstance(when, datetime):
        when = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    try:
        return float(when)
    except (TypeError, ValueError, OverflowError):
        raise Invalid(f"{when!r} is not a time; give UTC seconds, a datetime or ISO 8601 text.") from None


def parse_seconds(value: object) -> float | None:
    """Return UTC seconds for a time in another program's data (seconds, milliseconds, text), None for anything else."""
    try:
        number = seconds(value.strip() if isinstance(value, str) else value)  # type: ignore[arg-type]
    except Invalid:
        return None
    number = number / 1000 if number > _MILLISECONDS_FROM else number
    return number if 0.0 <= number <= _LATEST else None


def moment(when: When, *, end: bool = False) -> float:
    """Return UTC seconds as `seconds` does, also for a date in words ("yesterday", "May 2025").

    Such a date is a span in the local time zone: return its start, or with `end` its end. Raise `Invalid` if the text
    is no date.
    """
    try:
        return seconds(when)
    except Invalid:
        if not isinstance(when, str):
            raise
    from memoryd.client.dates import EXAMPLES, span_of

    span = span_of(when, datetime.now().astimezone())
    if span is None:
        raise Invalid(f"{when!r} is not a date; write it like 2026-03-31T14:30:00+02:00, {EXAMPLES}.")
    return local_seconds(span.end if end else span.start)


def local_seconds(at: datetime) -> float:
    """Return UTC seconds for a local time; its zone is ignored, because today's offset may differ from that day's."""
    return at.replace(tzinfo=None).timestamp()


def iso(when: float | None) -> str | None:
    """Return ISO 8601 text in UTC for seconds."""
    return (
        None if when is None else datetime.fromtimestamp(when, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    )


def is_past(when: object) -> bool:
    """Return whether a value is a time in UTC seconds that has passed."""
    return isinstance(when, int | float) and when <= time.time()


def exact_iso(when: float | None) -> str | None:
    """Return ISO 8601 text in UTC with as many decimals as it takes to get the same seconds back."""
    if when is None:
        return None
    from decimal import Decimal

    whole, _, decimals = f"{Decimal(repr(when)):f}".partition(".")
    text = datetime.fromtimestamp(int(whole), UTC).isoformat(timespec="seconds").removesuffix("+00:00")
    return f"{text}.{decimals}Z" if decimals.strip("0") else f"{text}Z"
