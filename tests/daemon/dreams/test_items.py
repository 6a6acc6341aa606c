"""The items of a Markdown text, and a text with some of them exchanged: nothing else changes by a byte."""

from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.dreams.items import ItemEdit, change_items, list_items, strip_time

TEXT = """---
title: x
---
# Memory

A paragraph
on two lines.

- The standup is at 9:30 (2026-01-03)
- parent
  - child
- [ ] a task
- stays <!-- note -->

| a | b |
|---|---|

```
- code
```

1. first
"""
PIECES = [
    "# H\n",
    "\n",
    "- one\n",
    "- two (2026-01-02)\n",
    "  more\n",
    "para\n",
    "```\n",
    "| a |\n",
    "1. n\n",
    "> q\n",
    "\r\n",
]


def texts_of(text: str) -> list[str]:
    return [item.text for item in list_items(text)]


def test_list_items_and_paragraphs_are_items_and_nothing_else_is() -> None:
    found = ["A paragraph on two lines.", "The standup is at 9:30", "parent", "child", "stays <!-- note -->", "first"]
    assert texts_of(TEXT) == found


def test_what_others_hang_on_and_what_holds_markup_is_not_free() -> None:
    assert [item.text for item in list_items(TEXT) if not item.is_free] == ["parent", "stays <!-- note -->"]


def test_an_item_knows_its_date_and_lines() -> None:
    [item] = [item for item in list_items(TEXT) if item.date]
    assert (item.date, item.start, item.end, item.marker) == ("2026-01-03", 8, 9, "- ")


def test_an_item_goes_and_another_takes_its_place() -> None:
    [old] = [item for item in list_items(TEXT) if item.date]
    new = change_items(TEXT, ItemEdit([old], [(old.start, "- ", "It is at 10:00")]), "## Learned")
    assert new == TEXT.replace("- The standup is at 9:30 (2026-01-03)\n", "- It is at 10:00\n")


def test_what_has_no_place_goes_below_a_heading_which_is_made_once() -> None:
    once = change_items("# M\n\n- a\n", ItemEdit([], [(None, "", "b")]), "## Learned")
    assert once == "# M\n\n- a\n\n## Learned\n\n- b\n"
    assert change_items(once, ItemEdit([], [(None, "", "c")]), "## Learned") == once + "- c\n"
    assert change_items("", ItemEdit([], [(None, "", "b")]), "## Learned") == "## Learned\n\n- b\n"


def test_line_ends_a_byte_order_mark_and_a_missing_last_line_end_stay() -> None:
    text = "\ufeff# M\r\n\r\n- a\r\n- b"
    [first, last] = list_items(text)
    assert change_items(text, ItemEdit([first], []), "## Learned") == "\ufeff# M\r\n\r\n- b"
    assert change_items(text, ItemEdit([], [(first.end - 1, "- ", "c")]), "## Learned").endswith("- a\r\n- c\r\n- b")
    assert change_items(text, ItemEdit([], [(last.end - 1, "- ", "c")]), "## Learned").endswith("- a\r\n- b\r\n- c\r\n")


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.data())
def test_only_the_lines_of_what_goes_are_gone(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    found = [item for item in list_items(text) if item.is_free]
    going = data.draw(st.lists(st.sampled_from(found), unique=True)) if found else []
    new = change_items(text, ItemEdit(going, []), "## Learned") if going else text
    gone = {number for item in going for number in range(item.start, item.end)}
    left = [line for number, line in enumerate(text.split("\n")) if number not in gone and line.strip()]
    assert [line for line in new.split("\n") if line.strip()] == left


def test_the_time_that_a_note_begins_with_is_left_out() -> None:
    notes = ["10:32 We decided", "9:05 - We decided", "(14:00) We decided", "We decided"]
    assert {strip_time(note) for note in notes} == {"We decided"}
