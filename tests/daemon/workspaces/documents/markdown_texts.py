"""Markdown for fuzzing: what people write, in any order and nesting, and what nobody should."""

from hypothesis import strategies as st

WORDS = st.sampled_from(
    "the cache of gateway Valkey is used. Why? because: deploy `code` **bold** [[Note|x]] [a](b.md) naïve 缓存。 "
    "émoji🙂 https://example.org/a_b 3.11 - * # > | ``` \t".split(" ")
)
PROSE = st.lists(WORDS, min_size=1, max_size=60).map(" ".join)
LINE = st.lists(WORDS, max_size=12).map(" ".join)
BLANK = st.sampled_from(["", "", " ", "\t", "\n\n"])


def _fence(mark: str, lines: list[str], closed: bool) -> str:
    return "\n".join([f"{mark}python", *lines, *([mark] if closed else [])])


def _list(items: list[tuple[int, str, str]]) -> str:
    return "\n".join(f"{'  ' * depth}{mark} {text}" for depth, mark, text in items)


def _table(rows: list[list[str]]) -> str:
    head, *others = rows
    lines = [head, ["---"] * len(head), *others]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


HEADING = st.builds(lambda level, text: f"{'#' * level} {text}", st.integers(1, 6), LINE)
SETEXT = st.builds(lambda text, mark: f"{text}\n{mark * 5}", LINE, st.sampled_from("=-"))
PARAGRAPH = st.lists(LINE, min_size=1, max_size=8).map("\n".join)
FENCE = st.builds(_fence, st.sampled_from(["```", "~~~~"]), st.lists(LINE, max_size=30), st.booleans())
LIST = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["-", "*", "1.", "- [ ]"]), LINE), min_size=1).map(_list)
TABLE = st.lists(st.lists(LINE, min_size=2, max_size=3), min_size=1, max_size=30).map(_table)
QUOTE = st.builds(
    lambda depth, lines: "\n".join(f"{'> ' * depth}{line}" for line in lines),
    st.integers(1, 4),
    st.lists(LINE, min_size=1),
)
HTML = st.builds(lambda lines: "\n".join(["<div>", *lines, "</div>"]), st.lists(LINE, max_size=5))
REFERENCES = st.lists(st.builds("[{}]: other.md".format, st.integers(0, 99)), min_size=1, max_size=40).map("\n".join)
LONG_LINE = st.builds(lambda text, times: text * times, PROSE, st.integers(2, 30))
BLOB = st.builds(
    lambda text, times: text * times,
    st.sampled_from(["x", "ab", "缓", "> ", "- ", "[", "`", " "]),
    st.integers(1, 3000),
)

BLOCK = st.one_of(HEADING, SETEXT, PARAGRAPH, PROSE, FENCE, LIST, TABLE, QUOTE, HTML, REFERENCES, LONG_LINE, BLOB)
MARKDOWN = st.lists(st.one_of(BLOCK, BLANK), max_size=14).map("\n".join)
ARBITRARY = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=3000)
ANY_TEXT = st.one_of(MARKDOWN, ARBITRARY)
