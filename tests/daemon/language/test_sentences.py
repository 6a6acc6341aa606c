"""Where sentences end, and what they do: ask, order, guess, deny."""

from each import each
from memoryd.daemon.language.sentences import (
    COURTESY,
    FILLERS,
    ends_with_question,
    is_denial,
    is_guess,
    is_order,
    is_question,
    is_whole,
    split_sentences,
)


@each(
    ("text", "sentences"),
    [
        ("", []),
        ("One. Two! Three? Four…", ["One.", "Two!", "Three?", "Four…"]),
        ("- a point\n2. another one\n## a heading", ["a point", "another one", "a heading"]),
        ('He said "go." Then he went.', ['He said "go."', "Then he went."]),
        (
            "The cache is Valkey 8. The port is 81. We agreed.",
            ["The cache is Valkey 8.", "The port is 81.", "We agreed."],
        ),
        ("Wir treffen uns am 3. Mai in Bonn. Danke.", ["Wir treffen uns am 3. Mai in Bonn.", "Danke."]),
        (
            "Ask Dr. Who, e.g. by mail. Version 3.11 is in use.",
            ["Ask Dr. Who, e.g. by mail.", "Version 3.11 is in use."],
        ),
        ("Before.\n```\ncode. More code.\n```\nAfter.", ["Before.", "After."]),
        ("我们用缓存。它很快。", ["我们用缓存。", "它很快。"]),
        ("lower case goes on. so does this", ["lower case goes on.", "so does this"]),
        ("Am 12. Februar z. B. ging es.", ["Am 12. Februar z. B. ging es."]),
    ],
)
def test_a_text_is_split_where_sentences_end(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@each(
    ("sentence", "does"),
    [
        ("Which port do we use", {"asks"}),
        ("We use it, right?", {"asks", "ends"}),
        ("这个端口对吗", {"asks", "ends"}),
        ("Run the tests again", {"orders"}),
        ("The tests, please", {"orders"}),
        ("It is probably the cache", {"guesses"}),
        ("可能是缓存", {"guesses"}),
        ("No, it was not the cache", {"denies"}),
        ("Nein, es war der Proxy", {"denies"}),
        ("No problem, we agreed", set()),
        ("The port is 81", set()),
    ],
)
def test_a_sentence_asks_orders_guesses_or_denies(sentence: str, does: set[str]) -> None:
    tests = {
        "asks": is_question,
        "ends": ends_with_question,
        "orders": is_order,
        "guesses": is_guess,
        "denies": is_denial,
    }
    assert {name for name, test in tests.items() if test(sentence)} == does


def test_what_announces_something_is_no_whole_sentence() -> None:
    assert is_whole("The port is 81.")
    assert not is_whole("The ports are:")
    assert not is_whole("Yes.")


def test_what_says_nothing_by_itself_is_a_courtesy_too() -> None:
    assert FILLERS < COURTESY
