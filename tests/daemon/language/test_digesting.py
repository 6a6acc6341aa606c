"""Summaries without a language model: what was asked first, and the last answer that says something."""

from each import each
from memoryd.daemon.language import digesting

SESSION = [
    ("user", "Hi there!"),
    ("user", "The importer is slow.\nPlease find out why, and commit it"),
    ("assistant", "I think the index on orders.created_at is missing."),
    ("tool", "$ explain analyze: Index Scan using ix_orders_created_at, 2741 ms"),
    ("user", "We decided to page by cursor from now on. Can you do that?"),
    (
        "assistant",
        "I changed importer.py: it pages by cursor and takes 3 ms.\n```\nSELECT 1\n```\nThe web still uses OFFSET.",
    ),
    ("user", "Great, push it and see you tomorrow!"),
    ("assistant", "Pushed to origin/main."),
]
ASKED = "Asked: The importer is slow. Please find out why, and commit it"
ANSWER = "Answer: I changed importer.py: it pages by cursor and takes 3 ms. The web still uses OFFSET."


def summarise(*turns: tuple[str, str], previous: str = "", max_tokens: int = 200) -> list[str]:
    return digesting.summary(turns, previous, max_tokens).splitlines()


def test_a_summary_has_what_was_asked_first_and_the_last_answer_that_says_something() -> None:
    assert summarise(*SESSION) == [ASKED, ANSWER]
    assert summarise(*SESSION[:3]) == [ASKED, f"Answer: {SESSION[2][1]}"]  # all answers are short: the longest


def test_the_next_summary_keeps_what_was_asked_first_and_an_answer_without_a_later_one() -> None:
    before = "\n".join([ASKED, ANSWER, "Learned: the planner ignores OFFSET"])
    later = ("assistant", "The web frontend pages by cursor too now, so OFFSET is gone from all of our queries.")
    assert summarise(("user", "Now the web"), later, previous=before) == [
        ASKED,
        f"Answer: {later[1]}",
        "Learned: the planner ignores OFFSET",
    ]
    assert summarise(("user", "Push it"), SESSION[-1], previous=before) == before.splitlines()


def test_a_summary_keeps_to_its_size_in_whole_sentences_where_it_can() -> None:
    said = [(role, "The cranes of the harbour move in May. " * 60) for role in ("user", "assistant")]
    text = digesting.summary(said, "", 100)
    assert 300 < len(text) <= 400
    assert all(line.endswith("in May.") for line in text.splitlines())
    [line] = summarise(("assistant", "harbour " * 200), max_tokens=20)
    assert len(line) <= 80
    assert line.endswith("harbour…")


@each("turns", [[], [("user", "ok")], [("user", "")], [("tool", "x" * 5)], [("assistant", "> ok\n```\n1")]])
def test_nothing_to_tell_is_no_summary(turns: list[tuple[str, str]]) -> None:
    assert digesting.summary(turns, "", 100) == ""
