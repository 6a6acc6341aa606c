"""Full text: a person's words into a query that never fails; stop words; common words; what is indexed."""

import random
import threading
import time
from contextlib import closing
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.daemon.arrays import lexical
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.store import fulltext, rows
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.store import Interrupted, Store
from workbench import arrays_of, build_mask, insert, make_row

EVERYTHING = Filter()


def found(
    store: Store, query: str, chosen: Filter = EVERYTHING, limit: int = 10, deadline: float | None = None
) -> list[str]:
    with store.reading() as connection, fulltext.stopping_at(connection, deadline):
        question = lexical.ask(connection, arrays_of(store).postings, query)
        hits = lexical.rank(arrays_of(store).postings, question, build_mask(store, chosen, 100.0), limit)
        contents = rows.read_rows(connection, [row for row, _ in hits])
        return [contents[row].content for row, _ in hits]


def asked(store: Store, query: str) -> lexical.TextQuery:
    with store.reading() as connection:
        return lexical.ask(connection, arrays_of(store).postings, query)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Any:
    store = Store(tmp_path_factory.mktemp("shelf"), derived=Arrays())
    for text in ("The cache is Valkey", "near or not and", "naïve Straße ﬁne", "C++ and C# and .NET", "你好 世界"):
        insert(store, text)
    yield store
    store.close()


FTS_WORDS = st.sampled_from(
    ["AND", "OR", "NOT", "NEAR(", '"', "*", "^", ":", "{", "}", "(", ")", "+", "-", "content", "'", "cache"]
)


@settings(max_examples=30)
@given(st.text() | st.lists(FTS_WORDS | st.text(max_size=3), max_size=12).map(" ".join))
def test_no_text_makes_the_query_fail(shelf: Store, query: str) -> None:
    assert len(found(shelf, query)) <= 5


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_text_is_found_by_itself_if_it_has_more_than_stop_words(store: Store, text: str) -> None:
    row = insert(store, text)
    try:
        with store.reading() as connection:
            words = lexical.split_words(connection, text)
            indexed = connection.execute("SELECT count(*) FROM memories_terms").get
        assert indexed or not words
        assert found(store, text) == ([text] if words else [])
    finally:
        store.write(lambda transaction: rows.delete(transaction.connection, [row.row])).result()


def test_a_natural_question_finds_although_most_of_its_words_are_absent(store: Store) -> None:
    insert(store, "Releases go out on Fridays after the review")
    insert(store, "Valkey holds the sessions")
    assert found(store, "Could you please tell me when exactly we usually release things?")[0].startswith("Releases")


def test_a_word_that_most_memories_hold_says_little_where_the_other_words_are_in_none(store: Store) -> None:
    for text in ("I drink green tea", "I work in Lyon", "My sister is called Ruth"):
        insert(store, text)
    question = asked(store, "do I have siblings")
    hits = lexical.rank(arrays_of(store).postings, question, build_mask(store, EVERYTHING, 100.0), 10)
    assert len(hits) == 2
    assert max(score for _, score in hits) < 0.01 * question.weight


def test_words_are_compared_by_their_stem_without_case_and_accents(store: Store) -> None:
    insert(store, "Migrations of the Café")
    for query in ("migration", "MIGRATE", "cafe", "CAFÉ"):
        assert found(store, query) == ["Migrations of the Café"]


def test_a_question_of_stop_words_alone_has_no_word_to_ask_for(store: Store) -> None:
    insert(store, "To be or not to be")
    assert found(store, "to be or not to be") == []
    assert asked(store, "What is that?").words == asked(store, "").words == []
    assert asked(store, "What was it that I did?").asked == []
    insert(store, "I did it")
    assert asked(store, "What was it that I did?").asked == ["i"]


def test_rare_words_enter_first_and_the_commonest_are_left_out_past_the_budget(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        insert(store, f"common {'frequent' if number < 20 else ''} {'rare' if number < 2 else ''} text{number}")
    monkeypatch.setattr(lexical, "MAX_POSTINGS", 25)
    question = asked(store, "common frequent rare")
    assert (question.asked, question.left_out) == (["rare", "frequent"], ["common"])
    monkeypatch.setattr(lexical, "MAX_POSTINGS", 1)
    both = asked(store, "common frequent")  # the rarest two are asked whatever they cost
    assert both.asked == ["frequent", "common"]


def test_metadata_and_neighbours_are_found_and_weigh_less_than_content(store: Store) -> None:
    insert(store, "first of all", metadata='{"project":"heron"}')
    insert(store, "second of all", neighbours="we spoke about the heron")
    insert(store, "third of heron")
    insert(store, "fourth of all")
    assert found(store, "heron") == ["third of heron", "first of all", "second of all"]


@pytest.mark.parametrize("allowed", [1, 2, 30, 400])
def test_a_filter_that_leaves_few_gets_all_of_them_that_match(store: Store, allowed: int) -> None:
    def job(transaction: Any) -> None:
        for number in range(1, 401):
            kind = "lesson" if number <= allowed else "fact"
            content = "heron " * (number > allowed) + f"heron {number}"  # those left match worst
            rows.insert(transaction.connection, make_row(content, id=f"{number:032x}", type=kind))

    insert(store, "the namespace")
    store.write(job).result()
    wanted = {f"heron {number}" for number in range(1, allowed + 1)}
    assert set(found(store, "heron", Filter(words={"type": ["lesson"]}), limit=400)) == wanted


def test_a_search_is_interrupted_at_its_deadline_and_the_connection_goes_on(store: Store) -> None:
    def job(transaction: Any) -> None:
        transaction.connection.execute(
            "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
            " INSERT INTO memories (id, namespace, type, source, tier, importance, created_at, updated_at,"
            "   content_hash, text_hash, summary, metadata, neighbours, content)"
            " SELECT printf('%032x', i), 1, 'fact', 'manual', 'L1', 0.5, 0, 0, x'', x'', '', '{}', '', 'heron ' || i"
            " FROM n"
        )

    insert(store, "the namespace")
    store.write(job).result()
    with pytest.raises(Interrupted):
        found(store, "heron", deadline=time.monotonic() - 1)
    assert len(found(store, "heron")) == 10


def test_a_check_takes_no_turn_of_the_writer_and_finds_a_row_that_the_index_does_not_have_as_it_is(
    store: Store,
) -> None:
    present = insert(store, "heron")
    insert(store, "ibis")
    hold = threading.Event()
    waiting = store.write(lambda transaction: hold.wait(30))
    assert store.find_problems() == []
    hold.set()
    assert waiting.result()

    def change(transaction: Any) -> None:
        told = "INSERT INTO memories_fts (memories_fts, rowid, content, metadata, neighbours)"
        transaction.connection.execute(f"{told} VALUES ('delete', ?, 'heron', '{{}}', '')", (present.row,))

    store.write(change).result()
    assert len(store.find_problems()) == 1


def add_empty_levels(store: Store, count: int) -> None:
    """Add levels without a segment at the end of the index, as FTS5 leaves them when it moves segments forward."""
    with closing(apsw.Connection(str(store.path))) as connection:
        block: Any = connection.execute("SELECT block FROM memories_fts_data WHERE id = 10").get
        block = block[:4] + bytes([block[4] + count]) + block[5:] + bytes(2 * count)
        connection.execute("UPDATE memories_fts_data SET block = ? WHERE id = 10", (block,))


def write(store: Store, content: str, is_deleted: bool = False) -> None:
    row = insert(store, content)
    if is_deleted:
        store.write(lambda transaction: rows.delete(transaction.connection, [row.row])).result()


def merge(store: Store, pages: int, is_first: bool) -> bool:
    return store.write(lambda transaction: fulltext.merge_all(transaction.connection, pages, is_first)).result()


def merge_all(store: Store, pages: int, is_first: bool = True) -> None:
    while merge(store, pages, is_first):
        is_first = False


def count_pages_with(store: Store, part: bytes) -> int:
    """Return how many pages of the index hold a part of a word; what it begins with like another is not there."""
    with store.reading() as connection:
        sql = "SELECT count(*) FROM memories_fts_data WHERE instr(block, ?)"
        return int(connection.execute(sql, (part,)).get)  # type: ignore[call-overload]


def write_shelf(store: Store, count: int) -> None:
    dice = random.Random(1)
    for _ in range(count):
        write(store, " ".join(f"{dice.randrange(16**6):06x}" for _ in range(50)))


@pytest.mark.parametrize(("size", "empty_levels"), [(1, 0), (1, 2), (40, 0), (40, 1), (40, 60)])
def test_no_word_of_a_deleted_row_is_left_once_all_is_merged(store: Store, size: int, empty_levels: int) -> None:
    """Neither as it was written nor as the index has it, by its stem and without the beginning of the word before."""
    write_shelf(store, size)
    write(store, "The quokkaaltar is open")
    for word, rest in (("quokkafarming", b"farm"), ("quokkabanking", b"bank")):
        add_empty_levels(store, empty_levels)
        write(store, f"The {word} is closed", is_deleted=True)
        assert count_pages_with(store, rest) > 0
        merge_all(store, 1)
        assert [count_pages_with(store, part) for part in (b"farm", b"bank")] == [0, 0]
        add_empty_levels(store, empty_levels)
        merge_all(store, 1)
    assert found(store, "quokkaaltar") == ["The quokkaaltar is open"]
    assert store.find_problems() == []


def test_words_that_an_earlier_merge_left_are_gone_after_the_next(store: Store) -> None:
    write(store, "The quokkaaltar is open")
    add_empty_levels(store, 2)
    write(store, "The quokkafarming is closed", is_deleted=True)
    with closing(apsw.Connection(str(store.path))) as connection:
        connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('merge', -100)")
    assert count_pages_with(store, b"farm") == 1
    merge_all(store, 100)
    assert count_pages_with(store, b"farm") == 0


@pytest.mark.parametrize("beside", [1, 4, 9])
def test_a_merge_goes_on_when_others_write_meanwhile(store: Store, beside: int) -> None:
    write_shelf(store, 40)
    merge_all(store, 100)
    write(store, "The zebrafarming is closed", is_deleted=True)
    assert merge(store, 1, is_first=True)
    for number in range(beside):
        write(store, f"The shelf {number} is open")
    merge_all(store, 1, is_first=False)
    assert count_pages_with(store, b"farm") == 0
    assert store.find_problems() == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("苏州的打印机放在三楼。", "打印机"),
        ("API密钥放在保险箱里", "密钥在哪里"),
        ("プリンターは一階にあります", "プリンター"),
        ("本番サーバーの再起動は禁止", "再起動してもいい?"),
        ("เครื่องพิมพ์อยู่ชั้นสาม", "เครื่องพิมพ์"),
        ("프린터는 삼층에 있습니다", "프린터"),
        ("水曜日に会議", "水"),
    ],
)
def test_words_without_spaces_are_found_within_a_sentence(store: Store, text: str, query: str) -> None:
    other = insert(store, "something else altogether")
    before = insert(store, text)
    assert best(store, query) == [before.row]
    later = insert(store, f"{text} again")  # what is kept in RAM follows
    assert set(best(store, query)) == {before.row, later.row}
    assert other.row not in best(store, query)


def best(store: Store, query: str) -> list[int]:
    with store.reading() as connection:
        question = lexical.ask(connection, arrays_of(store).postings, query)
        return [
            row for row, _ in lexical.rank(arrays_of(store).postings, question, build_mask(store, Filter(), 0.0), 10)
        ]
