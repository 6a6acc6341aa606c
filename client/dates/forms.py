"""What dates look like: `FORMS` is the table, the longer before the shorter.

A form is a pattern of the kinds of words (`words`) and a function that returns the date, or None where the words mean
none after all; then the next form is tried. Of names and figures that are not there the functions raise `ValueError`.
"""

from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from memoryd.client.dates.reading import DateWord
from memoryd.client.patterns import compile_late

DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
WEEK = 7  # days
_MONDAY_OF_WEEK_1 = 4  # January: the week that has this day is the first
_LEAP = 8  # years in which a 29 February is found
_OLDEST_TWO = 2
_LONGEST_MONTH = 31
_MONTHS_OF_YEAR, _SHORT_YEARS = 12, 40
_FEW_YEARS = 3
_COUNTS = "nNua"  # kinds of numbers that are counted
_COUNTED = {"week": WEEK, "fortnight": 2 * WEEK}
_MONTHS = {"month": 1, "quarter": 3, "half": 6, "year": 12, "decade": 120}


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


class Date(NamedTuple):
    """A date: its span; what gives it in another year, None where it is of no year that is named or could be.

    `is_certain`: its year is named. `step` days later it is meant as well: a day of the week.
    """

    span: Span
    in_year: Callable[[int], Span] | None = None
    is_certain: bool = True
    step: int = 0


class FormParts:
    """The words of a form by kind, and when they are said."""

    def __init__(
        self, words: Sequence[DateWord], now: datetime, before: DateWord | None, after: DateWord | None
    ) -> None:
        self.kinds = "".join(word.kind for word in words)
        self._words = words
        self.now = now
        self.before, self.after = before, after

    def without(self, count: int) -> "FormParts":
        """Return the parts without the first words."""
        return FormParts(self._words[count:], self.now, None, None)

    def first(self, kinds: str) -> Any:
        """Return the value of the first word of any of these kinds, None without one."""
        return next((word.value for word in self._words if word.kind in kinds), None)

    def all(self, kinds: str) -> list[Any]:
        """Return the values of all words of these kinds."""
        return [word.value for word in self._words if word.kind in kinds]

    @property
    def year(self) -> int | None:
        """The year that is named, or told from now."""
        if (year := self.first("YJ")) is not None:
            return int(year)
        offset = self.first("y")
        return None if offset is None else self.now.year + int(offset)

    def resolve(self, make: Callable[[int], Span]) -> Date:
        """Return what has a place in each year: in the year that is named, else the latest that has begun."""
        if (year := self.year) is not None:
            return Date(make(year), make)
        for year in range(self.now.year, self.now.year - _LEAP - 1, -1):
            try:
                span = make(year)
            except ValueError:
                continue
            if span.start <= self.now:
                return Date(span, make, is_certain=False)
        raise ValueError("no such day")

    def choose(self, which: int, make: Callable[[int], Span]) -> Date:
        """Return the one before, the one of now, or the next one of what has a place in each year."""
        spans = [make(year) for year in range(self.now.year - 4, self.now.year + 4)]
        today = midnight(self.now)
        past = [span for span in spans if span.end <= today]
        coming = [span for span in spans if span.start > today]
        if which < 0:
            return Date(past[which])
        if which > 0:
            return Date(coming[which - 1])
        now = [span for span in spans if span.start <= today < span.end]
        return Date(now[0] if now else make(self.now.year))

    def days(self, offset: int, count: int) -> Span:
        """Return so many days from so many days after today."""
        return days(self.now, offset, count)

    def date(self, year: int, month: int, day: int = 1) -> datetime:
        """Return the midnight at which a day begins."""
        return midnight(self.now).replace(year=year, month=month, day=day)

    def month(self, year: int, month: int, count: int = 1) -> Span:
        """Return some months; a month may be past the end of the year."""
        return Span(*(self.date(year + at // 12, at % 12 + 1) for at in (month - 1, month - 1 + count)))

    def season(self, year: int, number: int) -> Span:
        """Return a season."""
        return self.month(year, 3 * number, 3)

    def period(self) -> Span | None:
        """Return the week, month or year that "last week", "上个月" or "2023" are."""
        if (year := self.year) is not None:
            return self.month(year, 1, 12)
        if (told := self.first("P")) is not None:
            unit, which = told
        elif "U" in self.kinds and (which := self.first("Rp")) is not None:
            unit = self.all("U")[-1]
        else:
            return None
        return self.unit(unit, which)

    def unit(self, unit: str, which: int | None) -> Span | None:
        """Return the week, weekend, month … that is so many after the one of now."""
        if which is None:  # "at the weekend": this one once it has begun, else the last
            which = 0 if self.now.weekday() >= 5 else -1
        if unit in ("week", "weekend"):
            monday = WEEK * which - self.now.weekday()
            return self.days(monday, WEEK) if unit == "week" else self.days(monday + 5, 2)
        if unit not in _MONTHS:
            return None
        size = _MONTHS[unit]
        place = (self.now.year * 12 + self.now.month - 1) // size + which
        return self.month(0, place * size + 1, size)


def midnight(when: datetime) -> datetime:
    """Return when a day began."""
    return when.replace(hour=0, minute=0, second=0, microsecond=0)


def days(now: datetime, offset: int, count: int) -> Span:
    """Return so many days from so many days after a time."""
    start = midnight(now) + offset * DAY
    return Span(start, start + count * DAY)


def week_of(day: datetime) -> Span:
    """Return the week that a day is in."""
    return days(day, -day.weekday(), WEEK)


# Days ----------------------------------------------------------------------------------------------------------------


def _full(parts: FormParts) -> Date:
    start = parts.date(*parts.first("D"))
    return Date(Span(start, start + DAY), lambda year: Span(start, start + DAY))


def _day_of_month(parts: FormParts) -> Date | None:
    month, day = parts.first("Mm"), parts.first("noq")
    if day > _LONGEST_MONTH:
        return None  # "in May 100 people came"
    return parts.resolve(lambda year: days(parts.date(year, month, day), 0, 1))


def _day_of_short_year(parts: FormParts) -> Date | None:
    """Return "14 Mar 23", where 23 can be nothing but a year."""
    day, year = parts.all("noq")
    if not _MONTHS_OF_YEAR < year < _SHORT_YEARS or day > _LONGEST_MONTH:
        return None
    start = parts.date(_short_year(year), parts.first("Mm"), day)
    return Date(days(start, 0, 1), lambda year: days(start, 0, 1))


def _short_year(number: int) -> int:
    if not _MONTHS_OF_YEAR < number < _SHORT_YEARS:
        raise ValueError("no year")
    return 2000 + number


def _day_in_figures(parts: FormParts) -> Date:
    month, day = parts.first("d")
    return parts.resolve(lambda year: days(parts.date(year, month, day), 0, 1))


def _days_of_month(parts: FormParts) -> Date | None:
    month, (first, last) = parts.first("Mm"), parts.all("noq")
    is_both = "&" in parts.kinds and "B" not in parts.kinds and "b" not in parts.kinds
    if last <= first or last > _LONGEST_MONTH or (is_both and last > first + 1):
        return None
    return parts.resolve(lambda year: Span(parts.date(year, month, first), parts.date(year, month, last) + DAY))


def _days_to_figures(parts: FormParts) -> Date | None:
    """Return "11.-15.8.2023"."""
    year, month, last = parts.first("D")
    first = parts.first("no")
    return Date(Span(parts.date(year, month, first), parts.date(year, month, last) + DAY)) if first < last else None


def _day_of_period(parts: FormParts) -> Date | None:
    """Return "the 5th of last month"."""
    span, day = parts.period(), parts.first("noq")
    if span is None and parts.first("U") == "month":
        span = parts.unit("month", 0)
    if span is None or not 28 <= span.days <= 31:
        return None
    return Date(days(span.start.replace(day=day), 0, 1))


_GOES_ON = frozenset("we i he she they it you at was is were had did do with and for to about wir ich war ist".split())


def _day_alone(parts: FormParts) -> Date | None:
    """Return the latest such day: "on the 15th", "15日". What comes after it may be a thing that is counted."""
    before, after = parts.before, parts.after
    if "q" not in parts.kinds:
        if before is None or before.value not in ("on", "am", "since", "seit"):
            return None
        if after is not None and (after.value not in _GOES_ON if after.kind == "x" else after.kind not in ".,-&iT"):
            return None
    day, start = parts.first("oq"), midnight(parts.now)
    place = start.year * 12 + start.month - 1
    for back in range(3):
        try:
            found = start.replace(year=(place - back) // 12, month=(place - back) % 12 + 1, day=day)
        except ValueError:
            continue
        if found <= parts.now:
            return Date(days(found, 0, 1))
    return None


def _from_today(parts: FormParts) -> Date:
    return Date(parts.days(parts.first("Z"), 1))


def _holiday(parts: FormParts) -> Date:
    month, day, count = parts.first("H")

    def make(year: int) -> Span:
        if month == 0:
            return days(parts.date(year, *_find_easter(year)), day, count)
        if day < 0:
            first = parts.date(year, month)
            return days(first, (3 - first.weekday()) % WEEK + WEEK * (-day - 1), count)
        return days(parts.date(year, month, day), 0, count)

    which = parts.first("Rp")
    return parts.resolve(make) if which is None else parts.choose(which, make)


def _week_of_holiday(parts: FormParts) -> Date | None:
    return Date(week_of(_holiday(parts).span.start)) if parts.first("U") == "week" else None


def _find_easter(year: int) -> tuple[int, int]:
    """Return month and day of Easter Sunday (the anonymous Gregorian computus)."""
    century, rest = divmod(year, 100)
    moon = (19 * (year % 19) + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    sunday = (32 + 2 * (century % 4) + 2 * (rest // 4) - moon - rest % 4) % 7
    month, day = divmod(moon + sunday - 7 * ((year % 19 + 11 * moon + 22 * sunday) // 451) + 114, 31)
    return month, day + 1


def _same_day(parts: FormParts) -> Date | None:
    """Return "a year ago today", "heute vor einer Woche", "a week from today"."""
    today = parts.days(parts.first("Z"), 1).start
    if "y" in parts.kinds:
        return Date(days(today.replace(year=parts.year or today.year), 0, 1))
    count, unit, step = parts.first(_COUNTS), parts.first("U"), -1 if parts.first("AV") is not None else 1
    if unit in _COUNTED or unit == "day":
        return Date(days(today, step * count * _COUNTED.get(unit, 1), 1))
    if unit not in _MONTHS:
        return None
    return Date(days(_later_clipped(today, step * count * _MONTHS[unit]), 0, 1))


# Days of the week ----------------------------------------------------------------------------------------------------


def _weekday(parts: FormParts) -> Date | None:
    """Return the latest such day before today; `next` the one that comes, `this` today's or the one that comes."""
    which, weekday = parts.first("Rp"), parts.first("Ww")
    if parts.first("Z") not in (None, 1):  # "Montag morgen"
        return None
    back = (parts.now.weekday() - weekday) % WEEK or WEEK
    if "<" in parts.kinds:  # "the Friday before last"
        return Date(parts.days(-back - WEEK, 1)) if which == -1 else None
    if ">" in parts.kinds:  # "Monday after next"
        which = 2 if which == 1 else None
    if which is None or which == -1:
        return Date(parts.days(-back, 1), step=0 if which else WEEK)
    if which < 0:
        return Date(parts.days(-back - WEEK, 1))
    ahead = (WEEK - back) % WEEK
    return Date(parts.days(ahead if which == 0 else (ahead or WEEK) + WEEK * (which - 1), 1))


def _weekday_of_week(parts: FormParts) -> Date | None:
    week = parts.period()
    return Date(days(week.start, parts.first("Ww"), 1)) if week and week.days == WEEK else None


def _weekdays_of_week(parts: FormParts) -> Date | None:
    week, (first, last) = parts.period(), parts.all("W")
    if week is None or week.days != WEEK or last <= first:
        return None
    return Date(days(week.start, first, last - first + 1))


def _weekday_weeks_ago(parts: FormParts) -> Date | None:
    """Return "three weeks ago on Friday", "Freitag vor zwei Wochen"."""
    if (unit := parts.first("U")) not in _COUNTED:
        return None
    monday = parts.days(-parts.now.weekday() - parts.first(_COUNTS) * _COUNTED[unit], WEEK).start
    return Date(days(monday, parts.first("W"), 1))


def _weekday_of_period(parts: FormParts) -> Date | None:
    """Return "the first Monday of last month", "the last Friday of the month"."""
    number, weekday = parts.first("oR"), parts.first("W")
    rest = parts if parts.kinds[0] == "P" else parts.without(2)
    span = rest.period() or (rest.unit(rest.first("U"), 0) if rest.first("U") in ("month", "year", "quarter") else None)
    if span is None or span.days <= WEEK or number in (0, -2):
        return None
    found = days(span.start, (weekday - span.start.weekday()) % WEEK + WEEK * (number - 1), 1)
    if number < 0:
        found = days(span.end, -((span.end.weekday() - weekday) % WEEK or WEEK), 1)
    return Date(found) if found.overlaps(span) else None


def _day_and_weekday(parts: FormParts) -> Date | None:
    """Raise an error for "Wednesday the 3rd", which may be of any month."""
    raise ValueError("no month")


def _weekday_ago(parts: FormParts) -> Date:
    back = (parts.now.weekday() - parts.first("Wr")) % WEEK or WEEK
    return Date(parts.days(-back - WEEK * (parts.first(_COUNTS) - 1), 1))


def _weekday_of_month(parts: FormParts) -> Date | None:
    """Return "the first Monday of May", "the last Friday in June 2023"."""
    number, weekday, month = parts.first("oR"), parts.first("W"), parts.first("Mm")
    if number == 0:
        return None

    def make(year: int) -> Span:
        span = parts.month(year, month)
        found = days(span.start, (weekday - span.start.weekday()) % WEEK + WEEK * (number - 1), 1)
        if number < 0:
            found = days(span.end, -((span.end.weekday() - weekday) % WEEK or WEEK), 1)
        if not found.overlaps(span):
            raise ValueError("no such day")
        return found

    return parts.resolve(make)


# Weeks and parts -----------------------------------------------------------------------------------------------------


def _count_within(span: Span, number: int, unit: str) -> Span | None:
    """Return the first, second … (from 1) or the last (-1) week, weekend, day, month, quarter or half of a span.

    The first week are the first seven days; a weekend is one whose Saturday is in the span.
    """
    if number in (0, -_OLDEST_TWO):
        return None
    if unit in ("day", "week", "fortnight"):
        size = {"day": 1}.get(unit) or _COUNTED[unit]
        found = days(span.start, size * (number - 1), size) if number > 0 else days(span.end, -size, size)
    elif unit == "weekend":
        saturday = (5 - span.start.weekday()) % WEEK + WEEK * (number - 1)
        found = days(span.start, saturday, 2)
        if number < 0:
            found = days(span.end, -((span.end.weekday() - 5) % WEEK or WEEK), 2)
    elif unit in _MONTHS and span.days > 31:
        size = _MONTHS[unit]
        place = span.start.month - 1 + size * (number - 1) if number > 0 else span.start.month - 1 + 12 - size
        year, month = span.start.year + place // 12, place % 12
        begin = span.start.replace(year=year, month=month + 1)
        end = begin.replace(year=year + (month + size) // 12, month=(month + size) % 12 + 1)
        found = Span(begin, end)
    else:
        return None
    if not span.start <= found.start < span.end:
        return None
    return (
        Span(found.start, max(min(found.end, span.end), found.start + DAY)) if unit == "week" and number >= 5 else found
    )


def _units_within(parts: FormParts) -> Date | None:
    """Return "the first ten days of May", "the last two weeks of August", "the first three months of 2023"."""
    number, count, unit, month = parts.first("oR"), parts.first("nN"), parts.first("U"), parts.first("Mm")
    if number not in (1, -1):
        return None

    def take(whole: Span) -> Span:
        one = _count_within(whole, number, unit)
        if one is None:
            raise ValueError("no such days")
        if unit in _MONTHS:
            months = count * _MONTHS[unit]
            return Span(one.start, _later(one.start, months)) if number > 0 else Span(_later(one.end, -months), one.end)
        size = count * one.days * DAY
        return Span(one.start, one.start + size) if number > 0 else Span(one.end - size, one.end)

    if month is not None:
        return parts.resolve(lambda year: take(parts.month(year, month)))
    rest = parts.without(3)
    return Date(take(span)) if (span := rest.period()) else None


def _unit_of_month(parts: FormParts) -> Date | None:
    number, unit, month = parts.first("oR"), parts.first("U"), parts.first("Mm")

    def make(year: int) -> Span:
        found = _count_within(parts.month(year, month), number, unit)
        if found is None:
            raise ValueError("no such week")
        return found

    return parts.resolve(make)


def _unit_of_year(parts: FormParts) -> Date | None:
    """Return "the second quarter of 2023", "Q2", "2023年第23周"."""
    number, unit = parts.first("o"), parts.first("U")
    if parts.kinds[-1] == "n":  # "Q1 23"
        span = parts.month(_short_year(parts.first("n")), 1, 12) if unit == "quarter" else None
        return Date(found) if span and (found := _count_within(span, number, unit)) else None
    if unit == "week" and number > 5 and parts.year is not None:
        return _iso_week(parts.year, number, parts)
    if parts.year is None and unit != "quarter":
        return None

    def make(year: int) -> Span:
        found = _count_within(parts.month(year, 1, 12), number, unit)
        if found is None:
            raise ValueError("no such quarter")
        return found

    return parts.resolve(make)


def _unit_of_period(parts: FormParts) -> Date | None:
    """Return "the first week of last month", "the last day of 2023"."""
    number, unit = parts.first("oR"), parts.first("U")
    rest = parts if parts.kinds[0] == "P" else parts.without(2)
    span = rest.period() or (rest.unit(rest.first("U"), 0) if "U" in rest.kinds else None)
    found = span and _count_within(span, number, unit)
    return Date(found) if found else None


def _iso_week(year: int, number: int, parts: FormParts) -> Date:
    monday = week_of(parts.date(year, 1, _MONDAY_OF_WEEK_1)).start
    found = days(monday, WEEK * (number - 1), WEEK)
    if not 1 <= number <= 53 or found.start.year > year:
        raise ValueError("no such week")
    return Date(found)


def _week_of_year(parts: FormParts) -> Date | None:
    if told := parts.first("IG"):  # "KW 10/2023" reads like a month
        return _iso_week(told[0], told[1], parts)
    number, year = parts.first("noq"), parts.year
    if year is not None:
        return _iso_week(year, number, parts)
    if "K" not in parts.kinds:
        return None
    found = _iso_week(parts.now.year, number, parts) if number < 53 else _iso_week(parts.now.year - 1, number, parts)
    return found if found.span.start <= parts.now else _iso_week(parts.now.year - 1, number, parts)


_THIRDS = {"week": (0, 2, 4, 7), "month": (0, 10, 20, 31)}


def _third(span: Span, number: int) -> Span:
    """Return the early, middle or late part of a week (two, two, three days), a month (ten days each) or more."""
    if span.days == WEEK or 28 <= span.days <= 31:
        edges = _THIRDS["week" if span.days == WEEK else "month"]
        return Span(span.start + edges[number - 1] * DAY, min(span.end, span.start + edges[number] * DAY))
    months = round(span.days / 30.4)
    if months < 3:
        return span
    return Span(*(_later(span.start, months // 3 * at if at < 3 else months) for at in (number - 1, number)))


def _later(start: datetime, months: int) -> datetime:
    place = start.year * 12 + start.month - 1 + months
    return start.replace(year=place // 12, month=place % 12 + 1)


def _part_of_month(parts: FormParts) -> Date:
    part, month = parts.first("E"), parts.first("Mm")
    return parts.resolve(lambda year: _third(parts.month(year, month), part))


def _part_of_season(parts: FormParts) -> Date | None:
    part, season, which = parts.first("E"), parts.first("S"), parts.first("Rp")

    def make(year: int) -> Span:
        return _third(parts.season(year, season), part)

    if which is not None:
        return Date(_third(parts.choose(which, lambda year: parts.season(year, season)).span, part))
    return parts.resolve(make)


def _part_of_period(parts: FormParts) -> Date | None:
    span = parts.period()
    if span is None and (unit := parts.first("U")):
        span = parts.unit(unit, 0)
    return Date(_third(span, parts.first("E"))) if span and span.days > _OLDEST_TWO else None


def _part_of_quarter(parts: FormParts) -> Date | None:
    """Return "the end of Q2"."""
    date = _unit_of_year(parts) if parts.first("U") == "quarter" else None
    return Date(_third(date.span, parts.first("E"))) if date else None


def _half(parts: FormParts) -> Date | None:
    number, of = parts.first("oR"), parts.first("h")
    number = 2 if number == -1 else number
    if number not in (1, 2):
        return None
    if (month := parts.first("Mm")) is not None:
        return parts.resolve(lambda year: _half_of(parts.month(year, month), number))
    span = parts.period()
    if span is None and of == "of a year":
        return None  # "h1" is also a heading
    if span is None and (unit := parts.first("U") or of):
        if parts.year is None and unit == "year" and "U" not in parts.kinds:
            return parts.resolve(lambda year: _half_of(parts.month(year, 1, 12), number))
        span = parts.unit(unit, 0)
    if span and of == "month" and span.days > 31:
        return None
    return Date(_half_of(span, number)) if span and span.days > _OLDEST_TWO else None


def _half_of(span: Span, number: int) -> Span:
    if span.days > 31:
        middle = _later(span.start, round(span.days / 60.8))
    else:
        middle = span.start + (15 if span.days > WEEK else 3) * DAY
    return Span(span.start, middle) if number == 1 else Span(middle, span.end)


# Months and more -----------------------------------------------------------------------------------------------------


def _month(parts: FormParts) -> Date | None:
    month, which = parts.first("Mm"), parts.first("Rp")
    if "<" in parts.kinds:  # "the May before last"
        return parts.choose(-2, lambda year: parts.month(year, month)) if which == -1 else None
    if which is not None:
        return parts.choose(which, lambda year: parts.month(year, month))
    return parts.resolve(lambda year: parts.month(year, month))


def _month_in_figures(parts: FormParts) -> Date:
    span = parts.month(*parts.first("G"))
    return Date(span, lambda year: span)


def _season(parts: FormParts) -> Date | None:
    season, which = parts.first("S"), parts.first("Rp")

    def make(year: int) -> Span:
        return parts.season(year, season)

    if "<" in parts.kinds:  # "the summer before last"
        return parts.choose(-2, make) if which == -1 else None
    if "A" in parts.kinds:  # "two summers ago"
        count = parts.first("nN")
        return parts.choose(-count, make) if 1 <= count <= _FEW_YEARS else None
    if parts.kinds == "Sn":  # "summer 22"
        return Date(make(_short_year(parts.all("n")[-1])))
    return parts.resolve(make) if which is None else parts.choose(which, make)


def _year(parts: FormParts) -> Date | None:
    if "U" in parts.kinds and parts.first("U") != "year":
        return None
    year = parts.year
    if year is None:
        return None
    span = parts.month(year, 1, 12)
    return Date(span, lambda year: span)


def _years(parts: FormParts) -> Date | None:
    first, last = parts.all("YJ")
    return Date(parts.month(first, 1, 12 * (last - first + 1))) if last > first else None


def _decade(parts: FormParts) -> Date:
    year, part = parts.first("c"), parts.first("E")
    if part is None:
        return Date(parts.month(year, 1, 120))
    first, last = (0, 3, 7, 10)[part - 1 : part + 1]
    return Date(parts.month(year + first, 1, 12 * (last - first)))


# Counted from now ----------------------------------------------------------------------------------------------------


def _away(parts: FormParts, forwards: int) -> Date | None:
    """Return the day so many days ago; around it a week for weeks, the calendar's month for months."""
    count, unit = parts.first(_COUNTS), parts.first("U")
    if "u" in parts.kinds and unit in _MONTHS:
        return None  # "a few months ago" is no month
    if unit == "hour":
        return Date(days(parts.now + forwards * count * _HOUR, 0, 1))
    if unit == "day":
        return Date(parts.days(forwards * count, 1))
    if unit in _COUNTED:
        return Date(parts.days(forwards * count * _COUNTED[unit] - 3, WEEK))
    if unit == "decade":
        unit, count = "year", 10 * count
    found = parts.unit(unit, forwards * count)
    return Date(found) if found else None


def _ago(parts: FormParts) -> Date | None:
    return _away(parts, -1)


def _from_now(parts: FormParts) -> Date | None:
    if "F" not in parts.kinds and (parts.before is None or parts.before.value != "in"):
        return None
    return _away(parts, 1)


def _rolling(parts: FormParts) -> Date | None:
    """Return the time up to now, or from now on: "the last three days", "the past week", "最近两个月"."""
    which, unit = parts.first("Rp"), parts.first("U") or "day"
    count = next(iter(parts.all(f"{_COUNTS}q")), 1)
    if which not in (-1, 0, 1) or ("u" in parts.kinds and unit in ("year", "decade")):
        return None
    if unit == "weekend":
        return Date(found) if count == 1 and (found := parts.unit(unit, which)) else None
    today = parts.days(0, 1)
    if unit == "hour":
        other = midnight(parts.now + (count if which > 0 else -count) * _HOUR)
        return Date(Span(min(other, today.start), max(other, today.start) + DAY))
    if unit == "day" or unit in _COUNTED:
        size = count * {"day": 1}.get(unit, _COUNTED.get(unit, 1)) * DAY
        return Date(Span(today.start, today.end + size) if which > 0 else Span(today.start - size, today.end))
    if unit not in _MONTHS:
        return None
    size_months = count * _MONTHS[unit]
    other = _later_clipped(today.start, size_months if which > 0 else -size_months)
    return Date(Span(today.start, other + DAY) if which > 0 else Span(other, today.end))


def _later_clipped(start: datetime, months: int) -> datetime:
    first = _later(start.replace(day=1), months)
    return first.replace(day=min(start.day, monthrange(first.year, first.month)[1]))


def _period(parts: FormParts) -> Date | None:
    span = parts.period()
    return Date(span) if span else None


def _weekend_now(parts: FormParts) -> Date | None:
    """Return the weekend of "at the weekend": this one once it has begun, else the last."""
    if parts.first("U") != "weekend":
        return None
    return Date(found) if (found := parts.unit("weekend", None)) else None


_IN = r"(?:,?[fi]?[YJy])?"  # a year behind
_YEAR = r"(?:[YJy],?[fi]?)?"  # a year in front
_PERIOD = "(?:RU|P|y)"
_N = "[noq]"
_C = f"[{_COUNTS}]"

Form = tuple[str, Callable[[FormParts], Date | None]]
FORMS: tuple[Form, ...] = (
    (r"[no]\.?[T-]D", _days_to_figures),
    (r"[Ww],?o(?![fMm-])", _day_and_weekday),
    (r"(?:[Ww],?)?D", _full),
    (rf"{_YEAR}M[oNR]W|[oR]W[fi][Mm]{_IN}", _weekday_of_month),
    (rf"[oR]W[fi]?(?:{_PERIOD}|[YJ])|[oR]W[fi]U|P[oR]W", _weekday_of_period),
    (rf"[oR][nN]U[fi]?(?:[Mm]{_IN}|{_PERIOD}|[YJ])", _units_within),
    (rf"{_YEAR}M[oR]U|oU[fi]?[Mm]{_IN}|RU[fi]?M{_IN}|RU[fi]m{_IN}", _unit_of_month),
    (rf"[oR]U[fi](?:{_PERIOD}|[YJ]|U)|P[oR]U", _unit_of_period),
    (rf"[oR]h[fi](?:[Mm]{_IN}|[YJ]|U)|oh[fi]?(?:{_PERIOD}|[Mm]{_IN}|[YJ]|U)|(?:{_PERIOD}|{_YEAR}M|[YJ])f?oh|oh", _half),
    (r"E[fi]?oU(?:[,/-]?[fi]?[YJy])?|(?:[YJy]f?)?oUE", _part_of_quarter),
    (r"oUn(?![MmUhqT-])|[YJy]-?f?oU|oU(?:[,/-]?[fi]?[YJy])?", _unit_of_year),
    (rf"{_YEAR}[Mm]f?{_N}(?:[T-]{_N}|&{_N}b?)(?!f?[MmUhq]){_IN}|B[Mm]f?{_N}&{_N}(?!f?[MmUh]){_IN}", _days_of_month),
    (rf"{_N}[T&-]{_N}f?[Mm]{_IN}|B{_N}&{_N}f?[Mm]{_IN}", _days_of_month),
    (rf"(?:[Ww],?)?{_N}-?[Mm]-?n(?![MmUhT-])", _day_of_short_year),
    (rf"(?:[Ww],?)?(?:{_YEAR}[Mm],?f?{_N}(?![Uh]){_IN}|{_N}[f/-]?[Mm](?:[/-]Y|{_IN})|Y-[Mm]-n)", _day_of_month),
    (rf"E-?[fi]?[Mm]{_IN}|{_YEAR}ME", _part_of_month),
    (rf"E-?[fi]?S{_IN}|E-?[fi]?RS|[YJy]f?ES", _part_of_season),
    (rf"E-?[fi]?(?:{_PERIOD}|[YJ])|(?:{_PERIOD}|[YJ])E|E[fi]U", _part_of_period),
    (r"S<R|[nN]SA|Sn(?![MmUhqT-])|S,?f?Y[/T-][Yn]|S,?[fi]?[YJy]|[YJy],?[fi]?S|[Rp]S|(?<=[iBb&T])S", _season),
    (
        r"[Mm]<R|[Mm],?[fi]?[-/]?[YJy]|[YJy],?[fi]?[Mm]|[Rp][Mm]|(?<=[ifBT<>EV/])m|(?<=B[Mm]&)m|(?<=B)m|m(?=[T-][Mm])|M",
        _month,
    ),
    (r"HU,?[fi]?[YJy]?", _week_of_holiday),
    (r"[YJy]f?H|H,?[fi]?[YJy]|[Rp]H|H", _holiday),
    (rf"I|KG|K{_N}[./-]?{_IN}|oK{_IN}|[YJy]f?K{_N}|U{_N},?[fi]?[YJ]", _week_of_year),
    (r"Zy|yZ|Z[Vi][nNa]U|[nNa]UAZ|[nNa]UBZ", _same_day),
    (r"B?W[T&-]W,?[fi]?(?:RU|P)|(?:RU|P),?[fi]?W[T-]W", _weekdays_of_week),
    (r"[Ww],?[fi]?(?:RU|P)|(?:RU|P),?[fi]?W(?!,?[MmnoqD])", _weekday_of_week),
    (r"o[fi](?:RU|P|U)|(?:P|RU)[fi]?[oq](?![fMmhUW])", _day_of_period),
    (r"[nNa]UAi?W|WV[nNa]U|W[nNa]UA", _weekday_weeks_ago),
    (rf"{_C}UA|V{_C}U", _ago),
    (r"[nNa][Wr]A", _weekday_ago),
    (rf"{_C}UF|(?<=i){_C}U(?!A)", _from_now),
    (rf"[Rp]f?{_C}U|pU|pq", _rolling),
    (r"RU|P", _period),
    (r"[Rp][Ww]|W[<>]R|(?<=i)w|(?<!v)WZ|(?<!v)W(?![<>fU])", _weekday),
    (r"G", _month_in_figures),
    (r"(?:[Ww],?)?(?:(?<=[iBTV&<>,-])d|d(?=[T-][dD]))[YJ]?", _day_in_figures),
    (r"B?[YJ][T-][YJ]|B[YJ]&[YJ]", _years),
    (r"U[YJ]|(?<=[iTB<>])Y(?!U)|J|y", _year),
    (r"Z", _from_today),
    (r"E?-?f?c", _decade),
    (r"(?<=i)o|q", _day_alone),
    (r"(?<=i)U(?![<>VfBE])", _weekend_now),
)
# Where a date may begin, and the forms one by one. Compiled when the first text may name a date: it takes 10 ms.
ANY = compile_late(rf"(?=[^x.,/&<>bgvAFTf-])(?:{'|'.join(pattern for pattern, _ in FORMS)})")
EACH = [(compile_late(pattern), make) for pattern, make in FORMS]
