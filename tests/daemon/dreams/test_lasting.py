"""Which notes are of their day only."""

import pytest

from memoryd.daemon.dreams.lasting import is_durable


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
