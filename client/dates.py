"""Dates as people say them, as spans of time: "yesterday", "last Tuesday", "in May", "8 May 2023", "2023-05-08".

A span begins at a midnight of the zone of `now` and ends before another one. What is said without a year is the latest
one before `now`. English; figures as in any language, and a few words of German, Chinese and Japanese.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from memoryd.client.patterns import compile_late

_MONTHS = "january february march april may june july august september october november december"
_GERMAN_MONTHS = "januar februar märz april mai juni juli august september oktober november dezember"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_GERMAN_DAYS = "montag dienstag mittwoch donnerstag freitag samstag sonntag"
_NUMBERS = {word: number for number, word in enumerate("zero one two three four five six seven eight nine ten".split())}
_NUMBERS |= {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "a few": 3, "few": 3, "several": 4}
_DAY = timedelta(days=1)

_MONTH = {name: number for names in (_MONTHS, _GERMAN_MONTHS) for number, name in enumerate(names.split(), 1)}
_MONTH |= {name[:3]: number for name, number in _MONTH.items() if name != "may"} | {"sept": 9}
_WEEKDAY = {name: number for names in (_DAYS, _GERMAN_DAYS) for number, name in enumerate(names.split())}
_RELATIVE = {  # days from today
    "tomorrow": 1,
    **dict.fromkeys(("today", "tonight", "this morning", "heute", "今天", "今日"), 0),
    **dict.fromkeys(("yesterday", "last night", "gestern", "昨天", "昨日"), -1),
    **dict.fromkeys(("the day before yesterday", "day before yesterday", "vorgestern", "前天"), -2),
}
_month = "|".join(sorted(_MONTH, key=len, reverse=True))
_weekday = "|".join(_WEEKDAY)
_number = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_DATE_FORMS = (
    r"\b(?P<iso>\d{4}-\d\d(?:-\d\d)?)\b"
    rf"|\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?(?P<month>{_month})\b(?:,? (?P<year>\d{{4}}))?"
    rf"|\b(?P<month2>{_month})\.? (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year2>\d{{4}})\b)?"
    rf"|\b(?P<month3>{_month}) (?P<year3>\d{{4}})\b"
    rf"|\b(?P<relative>{'|'.join(sorted((word for word in _RELATIVE if word.isascii()), key=len, reverse=True))})\b"
    r"|(?P<relative2>今天|昨天|前天|今日|昨日)"
    rf"|\b(?:(?P<count>\d{{1,3}}|{_number}) (?P<unit>day|week|month|year)s? ago)\b"
    r"|\b(?P<which>last|this|next|past|previous) (?P<unit2>week|month|year|weekend)\b"
    rf"|\b(?:(?P<which2>last|this|next|past|previous) )?(?P<weekday>{_weekday})s?\b"
    rf"|\b(?:in|since|during|last|this|im|seit) (?P<month4>{_month})\b"
)
# Compiled when the first text may name a date: both take 20 ms.
_DATE = compile_late(_DATE_FORMS)
_TOLD = compile_late(
    rf"{_DATE_FORMS}|\b(?:19|20)\d\d\b|\b(?:{_MONTHS.replace(' ', '|').replace('may|', '')}|{_weekday})s?\b", re.I
)

_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_WORD = re.compile(r"[^\W\d_]+")
_TELLING = frozenset(_MONTH) | frozenset(_WEEKDAY) | {f"{day}s" for day in _WEEKDAY}
_TELLING |= frozenset(
    "today tonight yesterday night morning tomorrow heute gestern vorgestern ago week month year weekend".split()
)
_ISO_BEGINS = re.compile(r"\d{4}-\d\d")
_CHINESE = re.compile(r"[今昨前]")


class Span(NamedTuple):
    """From a time until just before another one."""

    start: datetime
    end: datetime

    def overlaps(self, other: "Span") -> bool:
        """Return whether the two have a moment in common."""
        return self.start < other.end and other.start < self.end


def day_of(when: datetime) -> Span:
    """Return the day of a time."""
    return _days(when, 0, 1)


def find_spans(text: str, now: datetime) -> list[Span]:
    """Return the spans of the dates that a text names; `now` has a zone."""
    text = text.casefold()
    return [span for _, span in _find(text, now)] if may_name_a_date(text) else []


def remove_dates(text: str) -> str:
    """Return a text without what it says of days, months and years."""
    lowered = text.casefold()
    return _TOLD.sub(" ", text) if may_name_a_date(lowered) or _YEAR.search(lowered) else text


def may_name_a_date(text: str) -> bool:
    """Return, quickly, whether a text in lower case may name a date."""
    return (
        not _TELLING.isdisjoint(_WORD.findall(text))
        or _ISO_BEGINS.search(text) is not None
        or (not text.isascii() and bool(_CHINESE.search(text)))
    )


def span_of(text: str, now: datetime) -> Span | None:
    """Return the span of a text that is a date and nothing else, None where it is not."""
    text = " ".join(text.casefold().split())
    for wanted in (text, f"in {text}"):
        for found, span in _find(wanted, now):
            if found == wanted:
                return span
    return None


def _find(text: str, now: datetime) -> Iterator[tuple[str, Span]]:
    for match in _DATE.finditer(text):
        try:
            span = _span(match, now)
        except (ValueError, OverflowError):
            continue  # no such day
        if span:
            yield match[0], span


def _span(match: re.Match[str], now: datetime) -> Span | None:
    part = match.groupdict()
    if part["iso"]:
        return _iso(part["iso"], now)
    if word := part["relative"] or part["relative2"]:
        return _days(now, _RELATIVE[word], 1)
    if month := part["month"] or part["month2"] or part["month3"] or part["month4"]:
        day, year = part["day"] or part["day2"], part["year"] or part["year2"] or part["year3"]
        return _date(_MONTH[month], day, year, now)
    if part["unit"]:
        return _span_ago(part["count"], part["unit"], now)
    if part["unit2"]:
        return _period(part["which"], part["unit2"], now)
    return _on_weekday(part["which2"], _WEEKDAY[part["weekday"]], now)


def _midnight(when: datetime) -> datetime:
    return when.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(now: datetime, offset: int, count: int) -> Span:
    start = _midnight(now) + offset * _DAY
    return Span(start, start + count * _DAY)


def _iso(text: str, now: datetime) -> Span:
    if len(text) == 7:
        return _month_of(_midnight(now).replace(year=int(text[:4]), month=int(text[5:]), day=1))
    start = datetime.fromisoformat(text).replace(tzinfo=now.tzinfo)
    return Span(start, start + _DAY)


def _date(month: int, day: str | None, year: str | None, now: datetime) -> Span:
    start = _midnight(now).replace(year=int(year) if year else now.year, month=month, day=int(day) if day else 1)
    if not year and start > now:
        start = start.replace(year=now.year - 1)
    return Span(start, start + _DAY) if day else _month_of(start)


def _month_of(start: datetime) -> Span:
    return Span(start, (start + 31 * _DAY).replace(day=1))


def _span_ago(count: str, unit: str, now: datetime) -> Span:
    number = int(count) if count.isdigit() else _NUMBERS[count]
    if unit == "day":
        return _days(now, -number, 1)
    days, slack = {"week": (7, 3), "month": (30, 10), "year": (365, 60)}[unit]
    return _days(now, -number * days - slack, 2 * slack + 1)


def _period(which: str, unit: str, now: datetime) -> Span:
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1}[which]
    monday = -now.weekday() + 7 * step
    if unit == "week":
        return _days(now, monday, 7)
    if unit == "weekend":
        return _days(now, monday + 5, 2)
    first = _midnight(now).replace(day=1)
    if unit == "month":
        return _month_of((first + (31 if step > 0 else step) * _DAY).replace(day=1))
    start = first.replace(month=1, year=now.year + step)
    return Span(start, start.replace(year=start.year + 1))


def _on_weekday(which: str | None, weekday: int, now: datetime) -> Span:
    """Return the latest such day before today; `next` and `this` the one that comes."""
    back = (now.weekday() - weekday) % 7 or 7
    return _days(now, 7 - back if which in ("next", "this") else -back, 1)
