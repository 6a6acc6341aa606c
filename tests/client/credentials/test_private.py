"""Private passages are cut out of texts, whatever surrounds them, and marks in code are left."""

from collections import Counter

from memoryd.client.credentials.private import KIND, WHOLE, cut_private, cut_private_tree

CASES = {
    "a <private>b</private> c": "a  c",
    "a <PRIVATE>b</Private > c": "a  c",
    "a <private>b\n\nc": "a ",
    "<private>a</private>b<private>c</private>d": "bd",
    "a<private>b<private>c</private>d</private>e": "ae",
    "<private>all</private>\n": WHOLE,
    "<private>all": WHOLE,
    "- <private>all</private>.": WHOLE,
    WHOLE: WHOLE,
    "the tag `<private>` is cut": "the tag `<private>` is cut",
    "``a ` <private>`` b": "``a ` <private>`` b",
    "it's ` alone <private>b</private> c": "it's ` alone  c",
    "` on another\nline <private>b</private> `": "` on another\nline  `",
    "```xml\n<private>x</private>\n```\n<private>y</private>z": "```xml\n<private>x</private>\n```\nz",
    "~~~~\n<private>\n~~~\n~~~~\nb": "~~~~\n<private>\n~~~\n~~~~\nb",
    "- list\n  ```\n  <private>\n  ```\nend": "- list\n  ```\n  <private>\n  ```\nend",
    "``` is never closed\n<private>b</private>c": "``` is never closed\nc",
    "``` <private>b</private>c": "``` c",
    "<private>```\n</private>a <private>b</private>\n```": "a \n```",
    "no </private> begin": "no </private> begin",
    "<privately>a</privately>": "<privately>a</privately>",
    "a < private": "a < private",
}


def test_what_is_cut_and_what_stays() -> None:
    misses = {text: cut_private(text) for text, wanted in CASES.items() if cut_private(text) != wanted}
    assert misses == {}


def test_passages_are_counted_and_a_text_without_one_is_the_very_same() -> None:
    kinds: Counter[str] = Counter()
    tree = {"a": ["<private>x</private>b", {"c": "d"}], "n": 1}
    assert cut_private_tree(tree, kinds) == {"a": ["b", {"c": "d"}], "n": 1}
    assert cut_private("<private>x</private>b <private>y", kinds) == "b "
    assert kinds == {KIND: 3}
    text = "nothing `<private>` here"
    assert cut_private(text, kinds) is text


def test_a_passage_is_found_behind_many_marks_and_backticks() -> None:
    for piece in ("` `` ``` ", "```\n~~~ x\n", "<private>", "</private><private", "~~~ x\n", "`"):
        text = piece * (100_000 // len(piece))
        assert "secret" not in cut_private(text + "\n<private>secret"), piece
