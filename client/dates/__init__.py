"""Dates as people write them, as spans of time: "yesterday", "last summer", "early May 2023", "von 3. bis 5. Mai".

A span begins at a midnight of the zone of `now` and ends before another one. What is said without a year is the latest
that began before `now`; "next" and "this" count from `now`. What may be meant in two ways is no date: 5/3/2023, a "may"
that is no month. Weeks begin on Monday; early, mid and late are thirds; seasons are those of the northern half of the
Earth, from the first of March, June, September and December, and "winter 2023" begins in December 2023.

`reading` makes words of a text, each of a kind, by the table in `words`, which has a part for each language; `forms`
says what dates such words make; dates that belong together ("between … and …", "the week of …") are joined here.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from memoryd.client.dates.forms import ANY, DAY, EACH, WEEK, Date, FormParts, Span, days, week_of
from memoryd.client.dates.reading import DateWord, may_name_a_date, read_words
from memoryd.client.patterns import compile_late

__all__ = ["Span", "day_of", "find_phrases", "find_spans", "may_name_a_date", "remove_dates", "span_of"]

_ANY_TIME = datetime(2000, 1, 1)
_MAY = 5
_LONG_HOLIDAY = 3  # days
_IS_CODE = compile_late(r"[^\W\d_]{3}\d|\d[^\W\d_]{3}")  # "SUMMER26" is rather a word than a date
_YEAR_BEHIND = compile_late(r"[.,/f-]?[YJ]")
_YEAR_IN_FRONT = compile_late(r"[YJ][.,/-]?\Z")


class _Found(NamedTuple):
    """A date and the words that it is made of: the numbers of the first one and of the one after the last."""

    date: Date
    first: int
    end: int


def day_of(when: datetime) -> Span:
    """Return the day of a time."""
    return days(when, 0, 1)


def find_spans(text: str, now: datetime) -> list[Span]:
    """Return the spans of the dates that a text names; `now` has a zone."""
    text = text.casefold()
    return [found.date.span for found in _find(read_words(text), now)] if may_name_a_date(text) else []


def find_phrases(text: str, now: datetime) -> list[str]:
    """Return the parts of a text that `span_of` takes for a date each, as they are written."""
    lowered = text.casefold()
    if len(lowered) != len(text) or not may_name_a_date(lowered):
        return []
    words = read_words(lowered)
    phrases = (text[words[one.first].start : words[one.end - 1].end] for one in _find(words, now))
    return [phrase for phrase in phrases if span_of(phrase, now) and not _IS_CODE.search(phrase)]


def remove_dates(text: str) -> str:
    """Return a text without what it says of days, months and years; the number of a week or quarter stays."""
    lowered = text.casefold()
    if len(lowered) != len(text) or not may_name_a_date(lowered):
        return text
    words = read_words(lowered)
    told = [
        (words[found.first].start, words[found.end - 1].end)
        for found in _find(words, _ANY_TIME)
        if any(word.kind in "DdMmWZ" for word in words[found.first : found.end])
    ]
    told += [
        (word.start, word.end) for word in words if word.kind in "MWrYG" or (word.kind == "m" and word.value != _MAY)
    ]
    left, place = "", 0
    for start, end in sorted(told, key=lambda one: (one[0], -one[1])):
        if start >= place:  # a month is told by its date, too
            left, place = f"{left}{text[place:start]} ", end
    return left + text[place:]


def span_of(text: str, now: datetime) -> Span | None:
    """Return the span of a text that is a date and nothing else, None where it is not."""
    for wanted in (text, f"in {text}"):
        words = read_words(wanted.strip().casefold())
        if wanted != text and not (len(words) > 1 and words[1].kind in "mwSYdo"):
            break  # what is a date only behind "in"
        found = list(_find(words, now))
        if len(found) == 1 and all(word.kind in "iBf,." for word in (*words[: found[0].first], *words[found[0].end :])):
            return found[0].date.span
    return None


def _find(words: Sequence[DateWord], now: datetime) -> Iterator[_Found]:
    """Yield the dates of a text: each by the first form that makes one, joined with its neighbours."""
    kinds = "".join(word.kind for word in words)
    found = [_extend(one, words, kinds) for one in _find_each(words, kinds, now)]
    joined: list[_Found] = []
    for one in found:
        while joined and (both := _join(joined[-1], one, kinds)):
            joined.pop()
            one = both
        if joined and kinds[joined[-1].end : one.first] in ("&", ",", ",&"):  # "in March and June 2023"
            spans = _share_year(joined[-1].date, one.date)
            is_certain = joined[-1].date.is_certain or one.date.is_certain
            joined[-1], one = (
                each._replace(date=each.date._replace(span=span, is_certain=is_certain))
                for each, span in zip((joined[-1], one), spans, strict=True)
            )
        joined.append(one)
    yield from joined


def _find_each(words: Sequence[DateWord], kinds: str, now: datetime) -> Iterator[_Found]:
    place = past = 0  # where to look next, and where the last date ended
    while match := ANY.search(kinds, place):
        start = match.start()
        place = start + 1
        before = words[start - 1] if start else None
        for pattern, make in EACH:
            if (fits := pattern.match(kinds, start)) and fits.end() > start:
                end = fits.end()
                after = words[end] if end < len(words) else None
                try:
                    date = make(FormParts(words[start:end], now, before, after))
                except (ValueError, OverflowError):  # no such day
                    place = end
                    break
                if date is None:
                    continue
                place = end
                if date.is_certain or not _is_beside_year(kinds[past:], start - past, end - past):
                    yield _Found(date, start, end)
                    past = end
                break


def _is_beside_year(kinds: str, start: int, end: int) -> bool:
    """Return whether a year stands where it may be that of a date which has none: then none is better than another."""
    return _YEAR_BEHIND.match(kinds, end) is not None or _YEAR_IN_FRONT.search(kinds[:start]) is not None


def _extend(found: _Found, words: Sequence[DateWord], kinds: str) -> _Found:
    """Return a day with what is said around it: "the week of 3 May", "the weekend before it", "5月3日那周"."""
    span, first = found.date.span, found.first
    if span.days == WEEK and kinds[max(0, first - 2) : first] == "Wf":
        return _Found(Date(days(span.start, words[first - 2].value, 1)), first - 2, found.end)
    size = {"month": 1, "quarter": 3, "year": 12}.get(str(words[first - 2].value)) if first > 1 else None
    if size and kinds[first - 2] == "U" and kinds[first - 1] in "<>V":  # "the month before May 2023"
        return _Found(Date(_step_months(span, size, 1 if kinds[first - 1] == ">" else -1)), first - 2, found.end)
    if span.days > _LONG_HOLIDAY:
        return found
    if kinds[found.end : found.end + 1] == "g":
        return _Found(Date(_around(span, words[found.end].value)), first, found.end + 1)
    last, one = kinds[first - 1 : first], kinds[first - 2 : first - 1]
    unit = words[first - 2].value if first > 1 else None
    if last in ("f", "B", "E") and one == "U" and unit in ("week", "weekend"):
        return _Found(Date(_around(span, unit)), first - 2, found.end)
    if last in ("<", ">", "V") and one in ("U", "W"):
        number = words[first - 3].value if kinds[first - 3 : first - 2] in ("n", "N", "a") and first > 2 else None
        beside = _find_beside(span, unit, number, 1 if last == ">" else -1)
        if beside:
            return _Found(Date(beside), first - 2 - (number is not None), found.end)
    return found


def _step_months(span: Span, size: int, step: int) -> Span:
    """Return the month, quarter or year before (-1) or after the one that a span is in."""
    place = (span.start.year * 12 + span.start.month - 1) // size + step
    start, end = (
        span.start.replace(year=at * size // 12, month=at * size % 12 + 1, day=1) for at in (place, place + 1)
    )
    return Span(start, end)


def _around(span: Span, what: object) -> Span:
    """Return the week or weekend that a day is in, or the day so many days later."""
    week = week_of(span.start)
    if isinstance(what, int):
        return days(span.start, what, 1)
    return week if what == "week" else days(week.start, 5, 2)


def _find_beside(span: Span, unit: object, number: int | None, step: int) -> Span | None:
    """Return the day, week, weekend or day of the week before (-1) or after a day, or so many of them from it."""
    span = days(span.start if step < 0 else span.end - DAY, 0, 1)
    week = week_of(span.start)
    count = step * (number or 1)
    if unit == "day":
        return days(span.start, count, 1)
    if unit == "week":
        return days(week.start, count * WEEK, WEEK) if number is None else days(span.start, count * WEEK - 3, WEEK)
    if unit == "weekend" and number is None:
        return days(week.start, 5 + (-WEEK if step < 0 else WEEK if span.start.weekday() >= 5 else 0), 2)
    if isinstance(unit, int) and number is None:
        away = (span.start.weekday() - unit) % WEEK or WEEK
        return days(span.start, -away if step < 0 else (WEEK - away) or WEEK, 1)
    return None


def _join(one: _Found, other: _Found, kinds: str) -> _Found | None:
    """Return the time from one date to the end of another where the text says so, None where it does not.

    It does with "from … to", "between … and", and with "May and June", which are one time without a break.
    """
    between = kinds[one.end : other.first]
    opens = kinds[one.first - 1 : one.first] == "B"
    is_both = between == "&" and (opens or kinds[other.end : other.end + 1] == "b")
    if between in ("&", ",") and not is_both:
        start, end = _share_year(one.date, other.date)
        return _Found(Date(Span(start.start, end.end)), one.first, other.end) if start.end == end.start else None
    if between not in ("T", "-", "T-", "-T", "Ti") and not is_both:
        return None
    span = _reach(one.date, other.date)
    return _Found(Date(span), one.first - opens, other.end) if span else None


def _reach(first: Date, last: Date) -> Span | None:
    """Return the time from the start of one date to the end of another."""
    start, end = _share_year(first, last)
    if last.step and end.start < start.start:
        end = Span(end.start + last.step * DAY, end.end + last.step * DAY)
    return Span(start.start, end.end) if start.start < end.end and start.start <= end.start else None


def _share_year(first: Date, last: Date) -> tuple[Span, Span]:
    """Return the spans of two dates in order: a year that is said once counts for both, across New Year if need be."""
    start, end = first.span, last.span
    if last.in_year and not last.is_certain and first.in_year and first.is_certain:
        end = _move(last, start.start.year, lambda span: span.start >= start.start, 1)
    elif first.in_year and not first.is_certain and last.in_year:
        start = _move(first, end.start.year, lambda span: span.start <= end.start, -1)
    return start, end


def _move(date: Date, year: int, fits: Callable[[Span], bool], step: int) -> Span:
    """Return a date in a year, or in the one beside it where only that fits."""
    if date.in_year is None:
        return date.span
    try:
        span = date.in_year(year)
        return span if fits(span) else date.in_year(year + step)
    except ValueError:
        return date.span
