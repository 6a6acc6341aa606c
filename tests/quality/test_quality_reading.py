"""What an evaluation says can be read in a context, on texts small enough to count by hand."""

from reading import ContextPage

LONG = "We sold the boat in Porto. Ling paid for the new mast. Nobody has seen the old sail."


def test_a_text_is_whole_where_all_its_words_stand_in_a_row() -> None:
    page = ContextPage("Facts:\n- 2023-05-08 [1f2e] We sold the boat &lt;again> in PORTO!\n")
    found = page.read("We sold\nthe boat <again> in *Porto*")
    assert (found.whole, found.share, found.runs) == (True, 1.0, [(5, 12)])
    assert page.read("We sold the boat").runs == [(5, 9)]
    assert page.read("").share == 0.0
    assert not page.read("").whole
    assert not ContextPage("").read(LONG).whole


def test_a_text_that_is_cut_counts_by_the_words_that_are_left() -> None:
    ends_early = ContextPage("- We sold the boat in Porto. Ling paid …").read(LONG)
    assert (ends_early.whole, ends_early.share) == (False, 8 / 18)
    two_sentences = ContextPage("- We sold the boat in Porto. … Nobody has seen the old sail.").read(LONG)
    assert (two_sentences.whole, two_sentences.share) == (False, 12 / 18)
    in_two_lines = ContextPage(
        "- Nobody has seen the old sail.\n- We sold the boat in Porto. Ling paid for the new mast."
    )
    assert (in_two_lines.read(LONG).whole, in_two_lines.read(LONG).share) == (False, 1.0)


def test_a_run_of_two_words_is_there_by_chance_unless_the_text_has_no_more() -> None:
    page = ContextPage("We sold the boats.")
    assert page.read("We sold. It is gone").runs == []
    assert page.read("We sold").whole


def test_words_are_whole_words_and_each_character_of_chinese_is_one() -> None:
    assert not ContextPage("We sold the boats today").read("sold the boat").whole
    assert ContextPage("记住：我们卖了船。").read("我们卖了船").whole
    assert ContextPage("我们卖了…").read("我们卖了船").share == 0.8


def test_each_word_of_a_context_counts_once_and_the_rest_of_it_are_heads() -> None:
    page = ContextPage(
        "Facts:\n- 2023-05-08 [1f2e] Ada: We sold the boat!\n- 2023-05-09 [3c4d] Ben: The boat is far away.\n"
    )
    parts = page.divide(
        [("answer", "We sold the boat!"), ("rest", "The boat is far away."), ("rest", "We sold the boat")]
    )
    assert list(parts) == [("answer", "We sold the boat!"), ("rest", "The boat is far away.")]
    assert list(page.divide([])) == []
    assert list(
        ContextPage("The boat is far away. Asked: The boat is far away?").divide([("rest", "The boat is far away.")])
    ) == [
        ("rest", "The boat is far away."),
        ("rest", "The boat is far away?"),
    ]
