import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.client.calls import search
from memoryd.client.dates import find_spans, span_of
from memoryd.client.errors import Invalid
from memoryd.client.times import moment, seconds

NOW = datetime(2026, 5, 29, 7, 1, tzinfo=UTC)  # a Friday


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "2026-05-29", "2026-05-30"),
        ("Yesterday", "2026-05-28", "2026-05-29"),
        ("the day before yesterday", "2026-05-27", "2026-05-28"),
        ("last night", "2026-05-28", "2026-05-29"),
        ("3 days ago", "2026-05-26", "2026-05-27"),
        ("two weeks ago", "2026-05-12", "2026-05-19"),
        ("last week", "2026-05-18", "2026-05-25"),
        ("next weekend", "2026-06-06", "2026-06-08"),
        ("last month", "2026-04-01", "2026-05-01"),
        ("next month", "2026-06-01", "2026-07-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("last Tuesday", "2026-05-26", "2026-05-27"),
        ("Friday", "2026-05-22", "2026-05-23"),
        ("next Tuesday", "2026-06-02", "2026-06-03"),
        ("May", "2026-05-01", "2026-06-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("8 May 2023", "2023-05-08", "2023-05-09"),
        ("May 8th, 2023", "2023-05-08", "2023-05-09"),
        ("December 24", "2025-12-24", "2025-12-25"),
        ("June 2024", "2024-06-01", "2024-07-01"),
        ("2026-02", "2026-02-01", "2026-03-01"),
        ("2026-02-03", "2026-02-03", "2026-02-04"),
        ("gestern", "2026-05-28", "2026-05-29"),
        ("昨天", "2026-05-28", "2026-05-29"),
    ],
)
def test_a_date_is_the_span_that_people_mean(text: str, start: str, end: str) -> None:
    span = span_of(text, NOW)
    assert span is not None
    assert [f"{one:%Y-%m-%d %H:%M}" for one in span] == [f"{start} 00:00", f"{end} 00:00"]


@pytest.mark.parametrize("text", ["", "soon", "31 February", "may I go", "may", "2026-13", "0000-01", "99 days"])
def test_what_is_no_date_has_no_span_in_a_sentence(text: str) -> None:
    assert find_spans(f"we said {text} to that", NOW) == []


def test_a_day_begins_at_the_midnight_of_the_zone() -> None:
    span = span_of("today", datetime(2026, 5, 29, 1, tzinfo=timezone(timedelta(hours=2))))
    assert span is not None
    assert span.start.astimezone(UTC) == datetime(2026, 5, 28, 22, tzinfo=UTC)


def test_all_dates_of_a_text_are_found() -> None:
    found = find_spans("Between last Monday and 3 June we met, not on 2026-01-01.", NOW)
    assert [f"{span.start:%m-%d}" for span in found] == ["05-25", "06-03", "01-01"]


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


@given(st.text() | st.from_regex(r"\A[0-9]{1,4}(-[0-9]{2}){0,2} (days|weeks|years) ago\Z"))
def test_any_text_can_be_read(text: str) -> None:
    spans = [*find_spans(text, NOW), *filter(None, [span_of(text, NOW)])]
    assert all(span.start < span.end for span in spans)
