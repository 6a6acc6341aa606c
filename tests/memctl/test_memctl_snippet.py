"""The part of a content that is shown, and which of its words are marked."""

from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.client.programs.memctl.snippet import make_snippet, stem
from memoryd.client.programs.memctl.text_table import width

FILLER = "Nothing of interest stands in this sentence about other things. " * 40


def shown(content: str, query: str, size: int = 90, lines: int = 3) -> str:
    return "\n".join(make_snippet(content, query, size, lines, lambda word: f"<{word}>"))


@each(
    "words",
    [
        "cache caches cached caching",
        "deploy deploys deployed deploying deployment deployments",
        "policy policies",
        "plan plans planned planning",
        "run running runs",
        "test tests tested testing tester testers",
        "address addresses",
        "decide decided deciding",
        "naïve Naive NAÏVE",
        "database databases",
    ],
)
def test_forms_of_a_word_have_one_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


def test_words_of_the_query_are_marked_in_any_form_and_common_ones_are_not() -> None:
    assert shown("We cached it. The cache is Valkey, and caching pays.", "which is the caching layer") == (
        "We <cached> it. The <cache> is Valkey, and <caching> pays."
    )


def test_scripts_without_blanks_are_marked_by_their_part() -> None:
    assert shown("我们使用本地缓存因为它很快", "缓存") == "我们使用本地<缓存>因为它很快"


@each("before", [0, 1, 7, 40])
@each("after", [0, 1, 40])
def test_the_match_is_shown_wherever_it_stands(before: int, after: int) -> None:
    sentence = "The gateway keeps sessions in Valkey. "
    content = FILLER[: before * 64] + sentence + FILLER[: after * 64]
    text = shown(content, "where are sessions kept")
    assert "<sessions>" in text
    assert "The gateway keeps" in text.replace("\n", " ")
    assert text.startswith("…") == (before > 1)


def test_the_part_with_most_of_the_words_wins() -> None:
    content = f"The cache is here. {FILLER} The cache of the gateway is Valkey. {FILLER} cache cache cache cache"
    assert "<cache> of the <gateway> is <Valkey>" in shown(content, "gateway cache valkey").replace("\n", " ")


@given(
    st.text(st.sampled_from("ab cache.\n缓 e\u0301\U0001f642"), max_size=600),
    st.text(st.sampled_from("ab cache 缓"), max_size=20),
    st.integers(10, 120),
    st.integers(1, 4),
)
def test_no_line_is_wider_than_asked(content: str, query: str, size: int, lines: int) -> None:
    found = make_snippet(content, query, size, lines, lambda word: word)
    assert len(found) <= lines
    assert all(width(line) <= size for line in found)
