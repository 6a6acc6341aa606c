"""Where Markdown is cut: whole blocks where they fit, at the best place inside where they do not."""

from itertools import pairwise

import pytest

from each import each
from memoryd.daemon.workspaces.documents.chunks import chunk
from memoryd.daemon.workspaces.documents.document import Chunk

SENTENCE = "The gateway asks the cache before the ledger. "


def places(chunks: list[Chunk]) -> list[tuple[int, int]]:
    return [(one.start_line, one.end_line) for one in chunks]


def test_a_heading_alone_is_a_chunk_with_its_path() -> None:
    assert chunk("# Alone\n") == [Chunk("# Alone", 1, 1, "Alone")]


def test_small_blocks_below_one_heading_are_one_chunk_and_each_heading_begins_one() -> None:
    chunks = chunk("intro\n\n# A\n\none\n\n- two\n- three\n\n## B\nfour\n\n# C\nfive\n")
    assert [(one.content.split("\n")[0], one.heading) for one in chunks] == [
        ("intro", ""),
        ("# A", "A"),
        ("## B", "A > B"),
        ("# C", "C"),
    ]
    assert places(chunks) == [(1, 1), (3, 8), (10, 11), (13, 14)]


def test_a_sign_in_code_is_no_heading() -> None:
    chunks = chunk("# A\n\n```sh\n# comment\nmake\n```\n\n    # indented\n")
    assert [(one.heading, one.start_line, one.end_line) for one in chunks] == [("A", 1, 8)]


@each(
    "block",
    [
        "\n".join(f"- item {number} of the list" for number in range(12)),
        "| a | b |\n|---|---|\n" + "\n".join(f"| {number} | row |" for number in range(20)),
        "```python\n" + "\n\n".join(f"value_{number} = {number}" for number in range(14)) + "\n```",
        "\n".join(f"> line {number} of the quote" for number in range(12)),
        "<div>\n" + "\n".join(f"<p>{number}</p>" for number in range(20)) + "\n</div>",
    ],
    ids=["list", "table", "code", "quote", "html"],
)
def test_a_block_that_fits_stays_whole_between_paragraphs(block: str) -> None:
    paragraph = SENTENCE * 5
    text = f"# Head\n\n{paragraph}\n\n{block}\n\n{paragraph}\n\n{paragraph}\n"
    assert any(block in one.content for one in chunk(text, 500, 0))


def test_a_long_list_is_cut_between_its_items() -> None:
    item = "- an item of two lines\n  whose second line is indented"
    chunks = chunk("\n".join([item] * 40), 400, 0)
    assert len(chunks) > 4
    assert all(one.content.startswith("- an item") and one.content.endswith("indented") for one in chunks)


def test_a_long_table_keeps_its_head_with_the_first_rows() -> None:
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {number} | a row of the table |" for number in range(60))
    first, *others = chunk(table, 400, 0)
    assert first.content.startswith("| a | b |\n|---|---|\n| 0 |")
    assert all(one.content.startswith("| ") for one in others)


def test_long_code_is_cut_at_blank_lines() -> None:
    parts = [f"def part_{number}():\n    one = {number}\n    return one" for number in range(40)]
    chunks = chunk("```python\n" + "\n\n".join(parts) + "\n```", 300, 0)
    assert all(one.content.startswith(("def part_", "```python\ndef")) for one in chunks)


def test_a_chunk_takes_along_whole_lines_from_the_end_of_the_one_before() -> None:
    lines = [f"Line {number} says something of its own." for number in range(60)]
    chunks = chunk("\n".join(lines), 400, 100)
    for before, after in pairwise(chunks):
        assert before.start_line < after.start_line <= before.end_line
        assert sum(len(lines[number - 1]) + 1 for number in range(after.start_line, before.end_line + 1)) <= 101
    assert all(one.start_line > chunks[0].end_line for one in chunk("\n".join(lines), 400, 0)[1:])


def test_a_line_over_the_limit_is_cut_between_sentences_and_its_pieces_share_its_number() -> None:
    long = " ".join(f"Sentence {number} is here." for number in range(100))
    chunks = chunk(f"# Head\n\nshort\n{long}\nshort\n", 300, 0)
    assert places(chunks)[0] == (1, 3)
    assert places(chunks)[-1] == (5, 5)
    pieces = chunks[1:-1]
    assert {(one.start_line, one.end_line) for one in pieces} == {(4, 4)}
    assert "".join(one.content for one in pieces).rstrip() == long
    assert all(one.content.startswith("Sentence") and one.content.rstrip().endswith("here.") for one in pieces)


def test_pieces_of_a_line_overlap_by_sentences_or_words() -> None:
    long = " ".join(f"word{number}" for number in range(200))
    first, second, *_ = chunk(long, 300, 60)
    assert second.content.split()[0] in first.content.split()[-10:]


def test_a_heading_stands_with_the_first_piece_of_a_long_line() -> None:
    first, second, *_ = chunk("# Head\n\n" + SENTENCE * 20, 300, 0)
    assert first.content.startswith("# Head\n\nThe gateway")
    assert (first.start_line, first.end_line) == (1, 3)
    assert (second.start_line, second.heading) == (3, "Head")


def test_a_text_with_more_lines_than_the_parser_takes_keeps_its_headings() -> None:
    text = "# A\n" + "- line\n" * 60_000 + "```\n# code\n```\n## B\nlast\n"
    chunks = chunk(text)
    assert [one.heading for one in chunks[-2:]] == ["A", "A > B"]
    assert chunks[-1].content == "## B\nlast"
    assert max(len(one.content) for one in chunks) <= 1000


def test_definitions_of_references_are_not_lost() -> None:
    text = "# A\n\n[one]: https://example.org/one\n[two]: two.md\n"
    assert [one.content for one in chunk(text)] == [text.rstrip()]


def test_an_unclosed_fence_reaches_to_the_end_and_loses_nothing() -> None:
    text = "# A\n```\n" + "\n".join(f"# line {number}" for number in range(100))
    chunks = chunk(text, 300, 0)
    assert {one.heading for one in chunks} == {"A"}
    assert "\n".join(one.content for one in chunks) == text


@pytest.mark.slow
def test_an_edit_changes_the_chunk_it_is_in_and_at_most_its_neighbour() -> None:
    """One section, so that all that keeps the cuts in place is where they are chosen."""
    lines = [
        f"- Item {number * 7919 % 1000} of the list says what is to be done on day {number}." for number in range(900)
    ]
    before = chunk("# List\n\n" + "\n".join(lines))
    assert len(before) > 60
    changed = []
    for number in range(0, 900, 30):
        edited = [*lines[:number], lines[number] + " Done.", *lines[number + 1 :]]
        after = chunk("# List\n\n" + "\n".join(edited))
        changed.append(len({one.content for one in after} - {one.content for one in before}))
    assert sum(count <= 2 for count in changed) >= 27
    assert max(changed) <= 6


# Links ---------------------------------------------------------------------------------------------------------------


@each(
    ("text", "names"),
    [
        ("see [[Note]]", ["note"]),
        ("[[Note|what is shown]] and [[folder/Other#Part]] and [[third.md]]", ["note", "other", "third"]),
        (
            "[text](other.md) [more](../notes/My%20Note.md#part 'title') [a](<with blank.md>)",
            ["other", "my note", "with blank"],
        ),
        ("![[embedded]]", ["embedded"]),
        ("[[twice]] [[Twice]] [t](twice.md)", ["twice"]),
        ("[a](https://example.org/x.md) [b](/etc/x.md) [c](x.txt) [d](mailto:x.md)", []),
        ("[[#here]] [[]] [[|x]] [[ ]]", []),
        ("`[[code]]` and ``[[`more`]]`` but ` [[open]]", ["open"]),
        ("```\n[[code]]\n```\n\n    [[indented]]\n\n[[text]]", ["text"]),
        ("[[two\nlines]]", []),
        ("[[Zoe\u0301]]", ["zoé"]),
    ],
)
def test_links_are_names_outside_code(text: str, names: list[str]) -> None:
    assert [one.links for one in chunk(text)] == [names]


def test_a_line_of_brackets_takes_no_quadratic_time() -> None:
    for text in ("[[a" * 300_000, "](a" * 300_000, "[" * 1_000_000, "` " * 300_000):
        assert all(not one.links for one in chunk(text))
