import itertools
import time

import pytest
from agreement_pairs import LOOK_ALIKES, REPHRASINGS
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.language import lexicon
from memoryd.daemon.language.agreement import MAX_CHARACTERS, disagreement
from memoryd.daemon.language.wording import keys, stem, wordings

SENTENCES = sorted({text for pair in (*LOOK_ALIKES, *REPHRASINGS) for text in pair})
WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})

texts = st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join) | st.sampled_from(SENTENCES)
near = st.sampled_from(SENTENCES).flatmap(
    lambda text: st.tuples(st.just(text), st.permutations(text.split()).map(" ".join))
)


@pytest.mark.parametrize(("old", "new"), LOOK_ALIKES)
def test_look_alikes_disagree(old: str, new: str) -> None:
    assert disagreement(old, new)
    assert disagreement(new, old)


@pytest.mark.parametrize(("old", "new"), REPHRASINGS)
def test_rephrasings_agree(old: str, new: str) -> None:
    assert disagreement(old, new) is None
    assert disagreement(new, old) is None


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("We use PostgreSQL 14", "We use PostgreSQL 15", "numbers differ: 14 / 15"),
        ("The timeout is 30 s", "The timeout is 30 min", "numbers differ: 30 s / 30 min"),
        ("The job is allowed", "The job is not allowed", "one is negated: not"),
        ("We never deploy", "We don't deploy", "negations differ: never / do not"),
        ("It is owned by Alice", "It is owned by Bob", "names differ: Alice / Bob"),
        ("It runs in staging", "It runs in production", "'staging' became 'production'"),
        ("It is owned by Alice", "It is owned by Alice and Bob", "only the new one says Bob"),
        ("The office is temporarily closed", "The office is closed", "only the old one says 'temporarily'"),
        ("The client calls the server", "The server calls the client", "the order differs"),
        ("Pardon impossible, to be executed", "Pardon, impossible to be executed", "the punctuation differs"),
        ("", "The office is closed", "one is empty"),
    ],
)
def test_the_reason_says_what_differs(old: str, new: str, reason: str) -> None:
    assert disagreement(old, new) == reason


@given(texts)
def test_every_text_agrees_with_itself(text: str) -> None:
    assert disagreement(text, text) is None


@given(st.tuples(texts, texts) | near)
def test_the_order_of_the_texts_does_not_matter(pair: tuple[str, str]) -> None:
    old, new = pair
    assert (disagreement(old, new) is None) == (disagreement(new, old) is None)


@given(st.text(st.characters(codec=None, categories=["Cs", "Cc", "Zs", "Po", "Nd", "No", "So", "Lo", "Mn"])))
def test_any_text_can_be_compared(text: str) -> None:
    other = "The timeout is 30 s" + text
    assert (disagreement(text, other) is None) == (disagreement(other, text) is None)


@pytest.mark.parametrize("word", ["not", "never", "only", "15", "Bob", "staging", "except", "temporarily", "?"])
def test_a_word_that_changes_the_fact_is_never_overlooked(word: str) -> None:
    for sentence in SENTENCES[::5]:
        pieces = sentence.split()
        for at in range(len(pieces) + 1):
            assert disagreement(sentence, " ".join([*pieces[:at], word, *pieces[at:]])), (sentence, at)


def test_two_words_of_a_sentence_cannot_be_swapped_unseen() -> None:
    harmless = {"the", "a", "an", "is", "and", "or"}
    for sentence in (text for text in SENTENCES if not harmless & set(text.casefold().split())):
        pieces = sentence.split()
        for one, other in itertools.pairwise(range(1, len(pieces))):
            swapped = [*pieces[:one], pieces[other], pieces[one], *pieces[other + 1 :]]
            same_date = keys(wordings(sentence, " ".join(swapped)).old) == keys(
                wordings(sentence, " ".join(swapped)).new
            )
            assert pieces[one] == pieces[other] or same_date or disagreement(sentence, " ".join(swapped)), swapped


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("No, funciona bien", "No funciona bien"),
        ("Hablas inglés", "Habla inglés"),
        ("会议在三点", "会议在四点"),
        ("Встреча в понедельник", "Встреча во вторник"),
        ("Sie kommen morgen", "sie kommen morgen"),
    ],
)
def test_other_languages_are_compared_strictly(old: str, new: str) -> None:
    assert disagreement(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Встреча  в понедельник.", "Встреча в понедельник"),
        ("会议在三点", "会议在三点。 "),
        ("re\u0301sume\u0301 hier", "résumé hier"),
    ],
)
def test_other_languages_agree_but_for_white_space_and_marks(old: str, new: str) -> None:
    assert disagreement(old, new) is None


def test_long_texts_agree_only_when_equal() -> None:
    text = "The user likes tea. " * (MAX_CHARACTERS // 10)
    assert disagreement(text, " " + text) is None
    assert disagreement(text, text + "The user likes tea") == "long texts differ"


@pytest.mark.parametrize(
    "unit", ["a ", "a", "'", "*", "1,", "12 million ", "at 3 pm ", "-", "May 5 ", "not ", "\u0301"]
)
@pytest.mark.parametrize("size", [MAX_CHARACTERS - 20, 100_000, 1 << 20])
def test_no_text_takes_long(unit: str, size: int) -> None:
    text = unit * (size // len(unit))
    start = time.perf_counter()
    disagreement(text, text + " the end")
    disagreement("every day the " + text, text + " every day")
    assert time.perf_counter() - start < 2


def test_numbers_keep_their_last_zero() -> None:
    assert keys(wordings("the version is 3.10", "").old)[-1] == "3.10"


def test_times_and_durations_have_one_form() -> None:
    tokens = wordings("from 3 pm to 5:30 p.m. for 1.5 hours until March 5, 2026", "").old
    assert keys(tokens) == ["from", "15:00", "to", "17:30", "for", "5400 s", "until", "2026-03-05"]


@pytest.mark.parametrize(
    ("word", "root"),
    [
        ("caches", "cach"),
        ("cache", "cach"),
        ("policies", "policy"),
        ("movies", "movy"),
        ("boxes", "box"),
        ("uses", "use"),
        ("utilises", "utiliz"),
        ("colours", "color"),
        ("status", "status"),
        ("https", "https"),
        ("news", "news"),
        ("your", "your"),
    ],
)
def test_stems(word: str, root: str) -> None:
    assert stem(word) == root


def test_the_tables_hold_no_row_in_vain() -> None:
    """A key that is not in its folded form could never be found."""
    for phrase in lexicon.PHRASES:
        for word in phrase:
            assert lexicon.SAME.get(word, word) == word or word in ("not",), phrase
    assert not lexicon.DROPPED & lexicon.NEGATIONS
    assert {word for word in lexicon.SAME if word in lexicon.NEGATIONS} == {"without"}
