"""What a question names: identifiers and proper names, by the language that it is in."""

from each import each
from memoryd.daemon.language.names import find_names, is_named


@each(
    ("text", "identifiers", "proper"),
    [
        ("Which bug does PR #441 fix?", ["441"], ["pr"]),
        ("When did importer 4.2.2 go? Ask Tom.", ["4.2.2"], ["tom"]),
        ("does shop.acme.example expire, or src/read_me?", ["shop.acme.example", "src/read_me"], []),
        ("who owns the reports service", [], []),
        ("Done. Now the next one, I say, and I'm sure", [], []),
        ("What did Mara show on October 13, 2023?", [], ["mara"]),
        ("Who was there in May, since 2 Feb 2024, on Mondays or yesterday?", [], []),
        ("Welcher Kunde liefert EDIFACT statt CSV?", [], ["edifact", "csv"]),
        ("Wer hat in KW 15 Rufbereitschaft?", ["15"], ["kw"]),
        ("4番ゲートのスキャナーは何ですか。", ["4"], []),
        ("打印机出现 E-18 怎么处理？", ["e-18"], []),
        ("", [], []),
    ],
)
def test_names_are_figures_identifiers_and_capitalised_words_within_a_sentence(
    text: str, identifiers: list[str], proper: list[str]
) -> None:
    assert [list(part) for part in find_names(text)] == [identifiers, proper]


@each(
    ("text", "name", "is_held"),
    [
        ("importer 4.2.1 went", "4.2.1", True),
        ("importer 4.2.1 went", "4.2", False),
        ("importer 4.2.1 went", "2.1", False),
        ("the limit is 4.", "4", True),
        ("3番ゲートの2.4.1", "4", False),
        ("4番ゲート", "4", True),
        ("pr #4410", "441", False),
        ("tomorrow", "tom", False),
        ("toms laptop, his mug", "tom", False),
        ("toms laptop, tom's mug", "tom", True),
    ],
)
def test_a_name_is_held_as_a_whole(text: str, name: str, is_held: bool) -> None:
    assert is_named(name, text) is is_held
