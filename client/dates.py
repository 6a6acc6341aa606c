"""Dates as people write them in English, as spans of time: "yesterday", "last Tuesday", "3 weeks ago", "May 2023".

A span begins at a midnight in the time zone of `now` and ends before another midnight. A date without a year is the
latest one that began before `now`. An ambiguous text (5/3/2023, the verb "may") is no date. Weeks begin on Monday. The
module reads ISO dates, a month with or without its day and year, years, days of the week, and days, weeks, months and
years counted back from now, nothing else.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import NamedTuple

from memoryd.client.patterns import compile_late

EXAMPLES = "2026-03-31, today, yesterday, 3 weeks ago, the last 2 days, last Tuesday, this month, May 2025 or 3 May"
_DAY, _WEEK = timedelta(days=1), 7
_UNITS = {"day": 1, "week": 7}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTS = {"a": 1, "an": 1, "couple": 2, **{word: number for number, word in enumerate(_NUMBERS, 1)}}

_LONG = "january|february|march|april|may|june|july|august|september|october|november|december"
_SHORT = "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_MONTH = rf"(?P<month>{_LONG}|(?:{_SHORT})\.?)(?![\w-])"
_DAY_OF_MONTH = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?:\s?[-–]\s?(?P<until>\d{1,2})(?:st|nd|rd|th)?)?"
_YEAR = r"(?P<year>(?:19|20)\d\d(?!\d|[.,-]\d|/)|(?:of\s+)?(?:last|this) year)"
_WEEKDAY = r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)(?!\w)"
_ON = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"  # "Monday, May 8"
_COUNT = rf"(?P<count>\d{{1,3}}|an?|(?:a )?couple(?: of)?|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?(?!\w)"
_PREPOSITION = r"(?:in|since|until|till|during|for|from|of|by|before|after)\s+"
# One expression for each form of a date. It also rejects a text that its surroundings make something else: a version,
# a part of a longer number, "every Monday".
_FORMS = (
    r"(?<![\w.-])(?P<year>(?:19|20)\d\d)([-/])(?P<number>0?[1-9]|1[0-2])(?:\2(?P<day>0?[1-9]|[12]\d|3[01]))?"
    r"(?:[T ]\d\d:\d\d\S*)?(?![\w/-]|\.\d)",
    rf"(?<![\w.]){_ON}(?:the\s+)?{_DAY_OF_MONTH}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
    rf"(?<!\w){_ON}{_MONTH}\s+(?:the\s+)?{_DAY_OF_MONTH}(?![\w:]|\.\d)(?:,?\s+{_YEAR})?",
    rf"(?<!\w){_MONTH},?\s+(?:of\s+)?{_YEAR}",
    rf"(?<!\w)(?:(?P<which>last|this)\s+|{_PREPOSITION}){_MONTH}(?!\s+\d)(?:\s+{_YEAR})?",
    r"(?<!\w)(?P<named>today|tonight|yesterday|the day before yesterday|last night)(?!\w)",
    rf"(?<!\w){_COUNT}\s+{_UNIT}\s+ago(?!\w)",
    rf"(?<!\w)(?:the\s+)?(?:(?:last|past)\s+{_COUNT}\s+|past\s+){_UNIT}(?!\s+ago)",
    r"(?<!\w)last\s+(?P<former>week|month|year)(?!\w)",
    r"(?<!\w)this\s+(?P<current>week|month|year)(?!\w)",
    rf"(?<!\w)(?:(?P<which>last|this)\s+(?:past\s+)?)?(?<!every )(?<!next )(?<!first )(?<!second ){_WEEKDAY}"
    r"(?!\s+(?:before|after|of|in|the)\s)(?!\s+\w+\s+weeks? ago)",
    rf"(?<!\w)(?:in|since|during|of|from|until|before|after|by)\s+{_YEAR}(?!\w)",
)
_FORM_PATTERNS = [compile_late(form, re.IGNORECASE) for form in _FORMS]
_TELLS_TIME = compile_late(
    rf"\b(?:(?:19|20)\d\d|{_LONG}|{_SHORT}|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|spring|summer|autumn"
    r"|winter|christmas|today|tonight|tomorrow|yesterday|ago|past day|days|weeks?|weekends?|months?|years?|decades?"
    r"|hours?|minutes?|mornings?|evenings?|nights?|noon|midnight|\d{1,2}(?:st|nd|rd|th)|\d{1,2}:\d\d)\b",
    re.IGNORECASE,
)
_MONTH_OR_YEAR = compile_late(rf"{_MONTH}|{_YEAR}", re.IGNORECASE)
_LEADING_PREPOSITION = compile_late(_PREPOSITION, re.IGNORECASE)
_FILLER_WORDS = frozenset("on in at the since morning afternoon evening night".split())
_NAMES = compile_late(
    rf"\b(?:{_LONG.replace('may|', '')}"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)


class Span(NamedTuple):
    """The time from `start` until just before `end`."""

    start: datetime
    end: datetime

    def overlaps(self, other: "Span") -> bool:
        """Return whether the two spans have a moment in common."""
        return self.start < other.end and other.start < self.end

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.end - self.start).days


def day_of(when: datetime) -> Span:
    """Return the day of a time."""
    start = when.replace(hour=0, minute=0, second=0, microsecond=0)
    return Span(start, start + _DAY)


def find_spans(text: str, now: datetime) -> list[Span]:
    """Return the spans of the dates in a text, in their order; `now` has a time zone."""
    return [span for _, span in _find(text, now)]


def find_phrases(text: str, now: datetime) -> list[str]:
    """Return the dates in a text as they are written; `span_of` reads each of them."""
    phrases = (_LEADING_PREPOSITION.sub("", match[0]) for match, _ in _find(text, now))
    return [phrase for phrase in phrases if span_of(phrase, now)]


def span_of(text: str, now: datetime) -> Span | None:
    """Return the span of a text that is a date and nothing else, otherwise None."""
    phrase = text.strip()
    found = list(_find(f"in {phrase}" if _MONTH_OR_YEAR.fullmatch(phrase) else phrase, now))
    if len(found) != 1:
        return None
    match, span = found[0]
    other_words = f"{match.string[: match.start()]} {match.string[match.end() :]}".casefold().split()
    return None if set(other_words) - _FILLER_WORDS else span


def tells_time(text: str) -> bool:
    """Return whether a text mentions any time; a quick check, because only such a text can have a date."""
    return _TELLS_TIME.search(text) is not None


def remove_dates(text: str) -> str:
    """Return a text without its dates and without names of days, months and years."""
    for match, _ in sorted(_find(text, datetime(2000, 1, 1)), key=lambda found: -found[0].start()):
        text = f"{text[: match.start()]} {text[match.end() :]}"
    return _NAMES.sub(" ", text)


def _find(text: str, now: datetime) -> Iterator[tuple[re.Match[str], Span]]:
    """Yield the dates of a text with their spans; of overlapping matches the first, and of these the longest."""
    if not tells_time(text):  # most texts
        return
    matches = sorted(
        (match for pattern in _FORM_PATTERNS for match in pattern.finditer(text)),
        key=lambda match: (match.start(), -match.end()),
    )
    found: list[re.Match[str]] = []
    for match in matches:
        if not found or match.start() >= found[-1].end():
            found.append(match)
    for match, following in zip_longest(found, found[1:]):
        with suppress(ValueError, OverflowError):  # such as 31 February
            yield match, _read(match, now, following)


def _read(match: re.Match[str], now: datetime, following: re.Match[str] | None) -> Span:
    """Return the span of a match; a year given once, as in "May and June 2023", holds for both months."""
    parts = {name: value.casefold() for name, value in match.groupdict().items() if value}
    if following and match.string[match.end() : following.start()].strip(" ,") in ("and", "to", "until", "-", "–", ""):
        parts = {**({"year": year} if (year := following.groupdict().get("year")) else {}), **parts}
    today = day_of(now).start
    count = _read_count(parts.get("count", "1"))
    match parts:
        case {"named": named}:
            return day_of(today - _DAY * {"yesterday": 1, "last night": 1, "the day before yesterday": 2}.get(named, 0))
        case {"weekday": name}:
            days_ago = (today.weekday() - _WEEKDAYS.index(name[:3])) % _WEEK
            return day_of(today - _DAY * (days_ago if parts.get("which") == "this" else days_ago or _WEEK))
        case {"current": unit}:
            return _step(today, unit, 0)
        case {"former": unit}:
            return _step(today, unit, 1)
        case {"unit": unit} if match[0].casefold().endswith("ago"):
            if unit == "week":
                return Span(today - _DAY * (7 * count + 3), today - _DAY * (7 * count - 4))
            return _step(today, unit, count)
        case {"unit": unit}:
            days = _DAY * _UNITS[unit] * count if unit in _UNITS else None
            start = today - days if days else _same_day(today, unit, count)
            return Span(start, today + _DAY)
    number = int(parts["number"]) if "number" in parts else 0
    if "month" in parts:
        number = _MONTHS.index(parts["month"][:3]) + 1
    if "year" in parts:
        year_text = parts["year"]
        parts["year"] = year_text if year_text.isdecimal() else f"{today.year - ('last' in year_text)}"
    if not number:
        return _step(today.replace(year=int(parts["year"]), day=1), "year", 0)
    return _read_month(parts, number, today)


def _read_month(parts: dict[str, str], month: int, today: datetime) -> Span:
    """Return a month or a day of it; without a year the latest that began before now, or last or this year's."""

    def in_year(year: int) -> Span:
        if "day" in parts:
            first, last = (
                today.replace(year=year, month=month, day=int(parts.get(name, parts["day"])))
                for name in ("day", "until")
            )
            return Span(first, last + _DAY)
        return _step(today.replace(year=year, month=month, day=1), "month", 0)

    if "year" in parts:
        return in_year(int(parts["year"]))
    years = range(today.year, today.year - 9, -1)  # one of nine years has a 29 February
    if parts.get("which") == "this":
        return in_year(today.year)
    for year in years:
        try:
            span = in_year(year)
        except ValueError:
            continue
        is_over = span.end <= today if parts.get("which") == "last" else span.start <= today
        if is_over:
            return span
    raise ValueError(month)


def _read_count(text: str) -> int:
    return int(text) if text.isdecimal() else _COUNTS.get(text.removeprefix("a ").split()[0], 1)


def _step(today: datetime, unit: str, back: int) -> Span:
    """Return the day, week, month or year `back` units before the current one."""
    if unit == "day":
        return day_of(today - _DAY * back)
    if unit == "week":
        start = today - _DAY * (today.weekday() + 7 * back)
        return Span(start, start + _DAY * 7)
    months = today.year * 12 + (today.month - 1 if unit == "month" else 0) - back * (1 if unit == "month" else 12)
    bounds = months, months + (1 if unit == "month" else 12)
    start, end = (today.replace(year=month // 12, month=month % 12 + 1, day=1) for month in bounds)
    return Span(start, end)


def _same_day(today: datetime, unit: str, back: int) -> datetime:
    """Return the same day `back` months or years earlier, or the last day of that month if it is shorter."""
    start, end = _step(today, "month", back * (12 if unit == "year" else 1))
    return min(start + _DAY * (today.day - 1), end - _DAY)
