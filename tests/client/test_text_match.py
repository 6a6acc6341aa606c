"""Where a text says given words."""

from unicodedata import normalize

from each import each
from memoryd.client.text_match import Wording


@each(
    ("words", "text", "said"),
    [
        ("blue-harbour", "At the Blue\nHarbour now", "Blue\nHarbour"),
        ("größenwahn", "Straße des GRÖßENWAHNS", "GRÖßENWAHN"),
        (normalize("NFD", "Größenwahn"), "Es war Größenwahn hier", "Größenwahn"),
        ("Größenwahn", normalize("NFD", "Süß: Größenwahn hier"), normalize("NFD", "Größenwahn")),
    ],
)
def test_words_are_found_in_any_case_and_form(words: str, text: str, said: str) -> None:
    found = Wording(words).find(text)
    assert found is not None
    assert text[slice(*found)] == said
