import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.client.calls import search
from memoryd.client.dates import Span, find_spans, remove_dates, span_of
from memoryd.client.errors import Invalid
from memoryd.client.times import moment, seconds

NOW = datetime(2026, 5, 29, 7, 1, tzinfo=UTC)  # a Friday


PHRASES = [
    [part.strip() for part in line.split("|")]
    for line in (Path(__file__).parents[1] / "data" / "dates" / "phrases.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def read(spans: list[Span]) -> list[tuple[str, str]]:
    """Return the first and the last day of spans, which begin and end at midnight."""
    assert all(f"{one:%H:%M:%S.%f}" == "00:00:00.000000" for span in spans for one in span)
    return [(f"{span.start:%Y-%m-%d}", f"{span.end - timedelta(days=1):%Y-%m-%d}") for span in spans]


def test_what_people_write_is_the_span_that_they_mean() -> None:
    misses = []
    for phrase, at, *days in PHRASES:
        now = datetime.fromisoformat(at).replace(hour=12, tzinfo=UTC)
        wanted = [tuple(days)] if days else []
        for text in (f"({phrase}).", f"what about it {phrase} with Anna?"):
            if (found := read(find_spans(text, now))) != wanted:
                misses.append((text, found, wanted))
        alone = span_of(phrase, now)
        if (read([alone]) if alone else []) != wanted:
            misses.append((phrase, alone, wanted))
    assert misses == []


@each("text", ["", "soon", "31 February", "on May 3 we met", "99 days", "5/3/2023"])
def test_what_is_no_date_alone_has_no_span(text: str) -> None:
    assert span_of(text, NOW) is None


@each(
    ("text", "start"),
    [
        ("the week it may rain", None),
        ("Is it done in march?", "2026-03-01"),
        ("may", "2026-05-01"),
        ("June", "2025-06-01"),
    ],
)
def test_a_month_that_is_also_a_word_is_one_behind_a_preposition(text: str, start: str | None) -> None:
    span = span_of(text, NOW) or next(iter(find_spans(text, NOW)), None)
    assert (f"{span.start:%Y-%m-%d}" if span else None) == start


@each(
    ("text", "left"),
    [
        ("What did Mara do on October 13, 2023?", "What did Mara do on  ?"),
        ("Who has week 15 and PR #7 on Friday?", "Who has week 15 and PR #7 on  ?"),
        ("nothing at all", "nothing at all"),
    ],
)
def test_days_months_and_years_are_removed(text: str, left: str) -> None:
    assert remove_dates(text) == left


def test_a_day_begins_at_the_midnight_of_the_zone() -> None:
    span = span_of("today", datetime(2026, 5, 29, 1, tzinfo=timezone(timedelta(hours=2))))
    assert span is not None
    assert span.start.astimezone(UTC) == datetime(2026, 5, 28, 22, tzinfo=UTC)


def test_all_dates_of_a_text_are_found() -> None:
    found = find_spans("Last Monday and on 3 June we met, not on 2026-01-01; 4 May, no.", NOW)
    assert read(found) == [
        ("2026-05-25", "2026-05-25"),
        ("2025-06-03", "2025-06-03"),
        ("2026-01-01", "2026-01-01"),
        ("2026-05-04", "2026-05-04"),
    ]


def test_a_year_that_is_said_once_counts_for_both_of_two_dates() -> None:
    found = find_spans("in March and June 2023, from 11 August to 15 August 2022, then in August", NOW)
    assert [f"{span.start:%Y-%m-%d}" for span in found] == [
        "2023-03-01",
        "2023-06-01",
        "2022-08-11",
        "2022-08-15",
        "2025-08-01",
    ]


def test_a_filter_takes_the_date_in_the_zone_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-5")  # five hours east
    time.tzset()
    try:
        start, end = moment("yesterday"), moment("Yesterday", end=True)
        assert (end - start, start % 86400.0) == (86400.0, 19 * 3600.0)
        assert search("x", after="yesterday").after == start
        assert moment("2026-03-31") == seconds("2026-03-31")  # without a zone it is UTC
        with pytest.raises(Invalid, match="'soon' is not a date"):
            search("x", before="soon")
    finally:
        monkeypatch.undo()
        time.tzset()


WORDS = "last next this may 3 2023 of to - week month ago past 2 , and between 31 feb year day 2023-05 3日 前".split()


@given(
    st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
    | st.text()
    | st.from_regex(r"\A[0-9]{1,4}(-[0-9]{2}){0,2} (days|weeks|years) ago\Z")
)
def test_any_text_can_be_read(text: str) -> None:
    spans = [*find_spans(text, NOW), *filter(None, [span_of(text, NOW)])]
    assert all(span.start < span.end for span in spans)
    remove_dates(text)
