"""The words for a confidence."""

from memoryd.client.confidence import describe_confidence, word_of


def test_a_confidence_has_a_word_from_its_lower_bound_on() -> None:
    bounds = {0.0: "unlikely", 0.0199: "unlikely", 0.02: "a guess", 0.0499: "a guess", 0.05: "maybe", 0.1999: "maybe"}
    bounds |= {0.2: "likely", 1.0: "likely"}
    assert {number: word_of(number) for number in bounds} == bounds


def test_the_number_is_rounded_down_where_it_is_small() -> None:
    assert [describe_confidence(number) for number in (0.0199, 0.0499, 0.624)] == [
        "unlikely (1.9%)",
        "a guess (4.9%)",
        "likely (62%)",
    ]
