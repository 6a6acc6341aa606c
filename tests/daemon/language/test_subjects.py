"""Which of two statements holds by now, and which notes are of their day only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.language.subjects import find_reason, is_durable

REPLACED = [
    ("The standup is at 9:30.", "We moved the standup to 10:00."),
    ("The cache is Redis.", "Decided: we use Valkey instead of Redis for the cache."),
    ("The API timeout is 30 s.", "The API timeout is 60 s."),
    ("Deploys on Friday are allowed.", "Deploys on Friday are not allowed."),
    ("We use tabs for indentation.", "We now use spaces instead of tabs for indentation."),
    ("Release 2.0 is due on May 12.", "Correction: release 2.0 is due on May 19, not May 12."),
    ("Ines manages the orchard.", "Tomas took over the orchard from Ines."),
    ("The office is in Berlin.", "The office moved to Leipzig."),
]
BOTH_HOLD = [
    ("The staging server listens on port 8080.", "The production server listens on port 9090."),
    ("Alice likes green tea.", "Bob likes green tea."),
    ("The server in Frankfurt has 16 GB.", "The server in Dublin has 32 GB."),
    ("Alice's birthday is May 3.", "Bob's birthday is June 4."),
    ("The cache is Redis.", "Maybe the cache should move to Valkey?"),
    ("Maria leads the mobile team.", "Jonas leads the backend team."),
    ("The search index is Elastic.", "The queue is RabbitMQ."),
    ("The API timeout is 30 s.", "The API timeout is 30 s."),
]


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_a_newer_statement_of_the_same_subject_puts_the_older_one_out_of_date(older: str, newer: str) -> None:
    assert find_reason(older, newer)


@pytest.mark.parametrize(("older", "newer"), BOTH_HOLD)
def test_statements_about_unlike_things_both_hold(older: str, newer: str) -> None:
    assert not find_reason(older, newer)


@given(st.text(), st.text())
def test_any_two_texts_can_be_compared_and_none_outdates_itself(older: str, newer: str) -> None:
    find_reason(older, newer)
    assert not find_reason(older, older)


@pytest.mark.parametrize(
    "note",
    [
        "Never deploy on Fridays.",
        "The API listens on port 8443.",
        "Jonas took over the mobile team from Maria.",
        "The root cause of the outage was a full disk on db2.",
        "Lena maintains the billing service.",
    ],
)
def test_what_holds_beyond_a_day_is_durable(note: str) -> None:
    assert is_durable(note)


@pytest.mark.parametrize(
    "note",
    [
        "Had lunch with Anna, the soup was fine.",
        "Long meeting about the roadmap, nothing decided.",
        "Reviewed 3 pull requests.",
        "Thinking about moving to Kubernetes.",
        "Should we use Kafka instead?",
        "It is at 10.0.0.7.",
        "",
    ],
)
def test_chatter_guesses_and_what_needs_its_neighbour_are_of_the_day(note: str) -> None:
    assert not is_durable(note)
