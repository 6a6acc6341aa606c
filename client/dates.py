"""Dates as people write them in English, as spans of time: "yesterday", "last Tuesday", "3 weeks ago", "May 2023".

A span begins at a midnight of the zone of `now` and ends before another one. What is said without a year is the latest
that began before `now`. What may be meant in two ways (5/3/2023, a "may" that is no month) is no date. Weeks begin on
Monday. ISO dates, a month with or without its day and year, years, days of the week, and days, weeks, months and
years counted back from now are understood, nothing else.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import NamedTuple

from memoryd.client.patterns import compile_late

UNDERSTOOD = "2026-03-31, today, yesterday, 3 weeks ago, the last 2 days, last Tuesday, this month, May 2025 or 3 May"
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
_BEHIND = r"(?:in|since|until|till|during|for|from|of|by|before|after)\s+"
# One form each. What stands before or behind a date and makes another thing of it (a version, a part of a longer
# number, "every Monday") is looked at here, too.
_FORMS = (
    r"(?<![\w.-])(?P<year>(?:19|20)\d\d)([-/])(?P<number>0?[1-9]|1[0-2])(?:\2(?P<day>0?[1-9]|[12]\d|3[01]))?"
    r"(?:[T ]\d\d:\d\d\S*)?(?![\w/-]|\.\d)",
    rf"(?<![\w.]){_ON}(?:the\s+)?{_DAY_OF_MONTH}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
    rf"(?<!\w){_ON}{_MONTH}\s+(?:the\s+)?{_DAY_OF_MONTH}(?![\w:]|\.\d)(?:,?\s+{_YEAR})?",
    rf"(?<!\w){_MONTH},?\s+(?:of\s+)?{_YEAR}",
    rf"(?<!\w)(?:(?P<which>last|this)\s+|{_BEHIND}){_MONTH}(?!\s+\d)(?:\s+{_YEAR})?",
    r"(?<!\w)(?P<named>today|tonight|yesterday|the day before yesterday|last night)(?!\w)",
    rf"(?<!\w){_COUNT}\s+{_UNIT}\s+ago(?!\w)",
    rf"(?<!\w)(?:the\s+)?(?:(?:last|past)\s+{_COUNT}\s+|past\s+){_UNIT}(?!\s+ago)",
    r"(?<!\w)last\s+(?P<former>week|month|year)(?!\w)",
    r"(?<!\w)this\s+(?P<current>week|month|year)(?!\w)",
    rf"(?<!\w)(?:(?P<which>last|this)\s+(?:past\s+)?)?(?<!every )(?<!next )(?<!first )(?<!second ){_WEEKDAY}"
    r"(?!\s+(?:before|after|of|in|the)\s)(?!\s+\w+\s+weeks? ago)",
    rf"(?<!\w)(?:in|since|during|of|from|until|before|after|by)\s+{_YEAR}(?!\w)",
)
_EACH = [compile_late(form, re.IGNORECASE) for form in _FORMS]
_TELLS_TIME = compile_late(
    rf"\b(?:(?:19|20)\d\d|{_LONG}|{_SHORT}|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|spring|summer|autumn"
    r"|winter|christmas|today|tonight|tomorrow|yesterday|ago|past day|days|weeks?|weekends?|months?|years?|decades?"
    r"|hours?|minutes?|mornings?|evenings?|nights?|noon|midnight|\d{1,2}(?:st|nd|rd|th)|\d{1,2}:\d\d)\b",
    re.IGNORECASE,
)
_ALONE = compile_late(rf"{_MONTH}|{_YEAR}", re.IGNORECASE)
_IN_FRONT = compile_late(r"(?:in|since|until|till|during|for|from|of|by|before|after)\s+", re.IGNORECASE)
_BESIDE = frozenset("on in at the since morning afternoon evening night".split())
_NAMED = compile_late(
    rf"\b(?:{_LONG.replace('may|', '')}"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)


class Span(NamedTuple):
    """From a time until just before another one."""

    start: datetime
    end: datetime

    def overlaps(self, other: "Span") -> bool:
        """Return whether the two have a moment in common."""
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
    """Return the spans of the dates that a text names, in their order; `now` has a zone."""
    return [span for _, span in _find(text, now)]


def find_phrases(text: str, now: datetime) -> list[str]:
    """Return the parts of a text that `span_of` takes for a date each, as they are written."""
    phrases = (_IN_FRONT.sub("", match[0]) for match, _ in _find(text, now))
    return [phrase for phrase in phrases if span_of(phrase, now)]


def span_of(text: str, now: datetime) -> Span | None:
    """Return the span of a text that is a date and nothing else, None where it is not."""
    wanted = text.strip()
    found = list(_find(f"in {wanted}" if _ALONE.fullmatch(wanted) else wanted, now))
    if len(found) != 1:
        return None
    match, span = found[0]
    left = f"{match.string[: match.start()]} {match.string[match.end() :]}".casefold().split()
    return None if set(left) - _BESIDE else span


def tells_time(text: str) -> bool:
    """Return, quickly, whether a text says anything of a time: only such a one can name a date."""
    return _TELLS_TIME.search(text) is not None


def remove_dates(text: str) -> str:
    """Return a text without the days, months and years that it names."""
    for match, _ in sorted(_find(text, datetime(2000, 1, 1)), key=lambda found: -found[0].start()):
        text = f"{text[: match.start()]} {text[match.end() :]}"
    return _NAMED.sub(" ", text)


def _find(text: str, now: datetime) -> Iterator[tuple[re.Match[str], Span]]:
    """Yield the dates of a text: at each place the first form that fits."""
    if not tells_time(text):  # as most texts
        return
    matches = sorted(
        (match for form in _EACH for match in form.finditer(text)), key=lambda match: (match.start(), -match.end())
    )
    found: list[re.Match[str]] = []
    for match in matches:
        if not found or match.start() >= found[-1].end():
            found.append(match)
    for match, following in zip_longest(found, found[1:]):
        with suppress(ValueError, OverflowError):  # no such day
            yield match, _read(match, now, following)


def _read(match: re.Match[str], now: datetime, following: re.Match[str] | None) -> Span:
    """Return the span of a form that was found; a year said once, in "May and June 2023", counts for both."""
    parts = {name: value.casefold() for name, value in match.groupdict().items() if value}
    if following and match.string[match.end() : following.start()].strip(" ,") in ("and", "to", "until", "-", "–", ""):
        parts = {**({"year": year} if (year := following.groupdict().get("year")) else {}), **parts}
    today = day_of(now).start
    count = _read_count(parts.get("count", "1"))
    match parts:
        case {"named": named}:
            return day_of(today - _DAY * {"yesterday": 1, "last night": 1, "the day before yesterday": 2}.get(named, 0))
        case {"weekday": name}:
            away = (today.weekday() - _WEEKDAYS.index(name[:3])) % _WEEK
            return day_of(today - _DAY * (away if parts.get("which") == "this" else away or _WEEK))
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
        told = parts["year"]
        parts["year"] = told if told.isdecimal() else f"{today.year - ('last' in told)}"
    if not number:
        return _step(today.replace(year=int(parts["year"]), day=1), "year", 0)
    return _read_month(parts, number, today)


def _read_month(parts: dict[str, str], month: int, today: datetime) -> Span:
    """Return a month or a day of it; without a year the latest that began before now, or that is told by `which`."""

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
    years = range(today.year, today.year - 9, -1)  # a 29 February is in one of them
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
    """Return the day, week, month or year that is so many before the one of today."""
    if unit == "day":
        return day_of(today - _DAY * back)
    if unit == "week":
        start = today - _DAY * (today.weekday() + 7 * back)
        return Span(start, start + _DAY * 7)
    months = today.year * 12 + (today.month - 1 if unit == "month" else 0) - back * (1 if unit == "month" else 12)
    ends = months, months + (1 if unit == "month" else 12)
    start, end = (today.replace(year=at // 12, month=at % 12 + 1, day=1) for at in ends)
    return Span(start, end)


def _same_day(today: datetime, unit: str, back: int) -> datetime:
    """Return the day of the same number so many months or years before, or the last one of that month."""
    start, end = _step(today, "month", back * (12 if unit == "year" else 1))
    return min(start + _DAY * (today.day - 1), end - _DAY)
