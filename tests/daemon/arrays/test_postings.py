"""Postings in RAM: the scores are FTS5's own; what is kept follows every change; bounds; threads."""

import random
import threading
from collections import Counter
from functools import partial
from typing import Any

import apsw
import msgspec
import numpy as np
import pytest

from each import each
from memoryd.daemon.arrays import lexical, postings
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.store import rows
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.tokenizer import stem_words
from workbench import arrays_of, build_mask, draw_text, insert

WORDS = ["heron", "herons", "egret", "stork", "crane", "ibis", "Ünïcode", "日本", "C++", "the", "a"]
# The same constants and weights, by FTS5 itself.
ORACLE = "SELECT rowid, -bm25(memories_fts, 1.0, 0.5, 0.35) FROM memories_fts WHERE memories_fts MATCH ?"


def ranked(store: Store, query: str, within: Mask | None = None) -> dict[int, float]:
    with store.reading() as connection:
        question = lexical.ask(connection, arrays_of(store).postings, query, reached=within)
        return dict(lexical.rank(arrays_of(store).postings, question, build_mask(store, Filter(), 0.0), 10_000))


def by_fts5(store: Store, query: str) -> dict[int, float]:
    with store.reading() as connection:
        words = lexical.split_words(connection, query)
        if not words:
            return {}
        found: Any = connection.execute(ORACLE, (" OR ".join(f'"{word}"' for word in words),)).fetchall()
        return dict(found)


def agree(store: Store, query: str) -> None:
    expected = by_fts5(store, query)
    assert ranked(store, query) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_fts5_after_any_sequence_of_changes(store: Store, seed: int) -> None:
    dice, kept = random.Random(seed), list[rows.Row]()
    text = partial(draw_text, dice, WORDS, most=8)

    def change(row: rows.Row, fields: dict[str, Any] | None) -> None:
        def job(transaction: Any) -> None:
            if fields is None:
                rows.delete(transaction.connection, [row.row])
            else:
                rows.change(transaction.connection, row.row, fields)

        store.write(job).result()

    for step in range(150):
        action = dice.choice(["add", "add", "content", "metadata", "delete", "tier", "ask", "ask"])
        if action == "ask":
            agree(store, text())
        elif action == "add" or not kept:
            metadata = f'{{"k":"{dice.choice(WORDS[:4])}"}}'
            kept.append(insert(store, text(), id=f"{step:032x}", neighbours=text(), metadata=metadata))
        elif action == "delete":
            change(kept.pop(dice.randrange(len(kept))), None)
        else:
            fields = {"content": {"content": text()}, "metadata": {"metadata": '{"k":"ibis"}', "neighbours": text()}}
            change(dice.choice(kept), fields.get(action, {"tier": "L2"}))
    for word in WORDS:
        agree(store, word)
    store.rebuild().result()
    agree(store, " ".join(WORDS))


def many(store: Store, first: int, count: int, text: str = "'heron egret ' || i") -> None:
    def job(transaction: Any) -> None:
        transaction.connection.execute(
            "WITH RECURSIVE n (i) AS (VALUES (?1) UNION ALL SELECT i + 1 FROM n WHERE i < ?1 + ?2 - 1)"
            " INSERT INTO memories (id, namespace, type, source, tier, importance, created_at, updated_at,"
            "   content_hash, text_hash, summary, metadata, neighbours, content)"
            " SELECT printf('%032x', i), 1, 'fact', 'manual', 'L1', 0.5, 0, 0, x'', x'', '', '{}', '', "
            + text
            + " FROM n",
            (first, count),
        )

    store.write(job).result()


VARIED = (
    "CASE WHEN i % 97 = 0 THEN 'stork stork ' ELSE '' END || CASE WHEN i % 11 = 0 THEN 'ibis ' ELSE '' END"
    " || CASE WHEN i % 2 = 0 THEN 'crane ' ELSE '' END || CASE WHEN i % 5 > 0 THEN 'heron ' ELSE 'egret ' END"
    " || replace(hex(zeroblob(i * 7919 % 31)), '00', 'filler ') || i"
)


@pytest.fixture
def varied(store: Store) -> Store:
    insert(store, "the namespace")
    many(store, 10, 6000, VARIED)
    return store


@each("limit", [1, 10, 60])
@each("query", ["stork crane heron", "heron crane", "ibis egret heron 4001", "stork ibis", "heron"])
def test_the_best_are_those_of_scoring_every_memory(varied: Store, query: str, limit: int) -> None:
    store = varied
    best = sorted(by_fts5(store, query).values(), reverse=True)[:limit]
    with store.reading() as connection:
        question = lexical.ask(connection, arrays_of(store).postings, query)
        everything = build_mask(store, Filter(), 0.0)
        found = lexical.rank(arrays_of(store).postings, question, everything, limit)
        half = everything.restrict(np.arange(0, 6000, 2))
        of_half = lexical.rank(arrays_of(store).postings, question, half, limit)
    assert [score for _, score in found] == pytest.approx(best, rel=1e-5)
    scores = by_fts5(store, query)
    assert [score for _, score in of_half] == pytest.approx(
        sorted((score for row, score in scores.items() if row % 2 == 0 and row < 6000), reverse=True)[:limit], rel=1e-5
    )
    assert all(score == pytest.approx(scores[row], rel=1e-5) for row, score in (*found, *of_half))


def test_common_words_are_scored_only_where_they_matter(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[int] = []
    scores = lexical._compute_scores
    monkeypatch.setattr(lexical, "_compute_scores", lambda *given: scored.append(len(given[3])) or scores(*given))
    insert(store, "the namespace")
    many(store, 10, 6000, VARIED)
    with store.reading() as connection:
        question = lexical.ask(connection, arrays_of(store).postings, "stork ibis crane heron")
        lexical.rank(arrays_of(store).postings, question, build_mask(store, Filter(), 0.0), 10)
    assert sum(scored) < 0.2 * sum(word.documents for word in question.words)


def test_what_is_kept_is_bounded_and_the_longest_unasked_go_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "MAX_KEPT", 1000)
    monkeypatch.setattr(postings, "_PER_MEMORY", 0)
    insert(store, "the namespace")
    many(store, 10, 300, "'heron egret stork crane ' || i")
    for word in ("heron", "egret", "heron", "stork", "heron", "crane", "absent"):
        ranked(store, word)
        assert arrays_of(store).postings._size <= 1000
    assert list(arrays_of(store).postings._kept) == ["heron", "crane", "absent"]
    for word in ("heron", "egret", "stork", "crane"):
        assert len(ranked(store, word)) == 300


def test_a_commit_between_a_snapshot_and_its_reading_is_taken_in_later(store: Store) -> None:
    first = insert(store, "the heron")
    with store.reading() as connection:
        list(connection.execute("SELECT count(*) FROM memories"))  # the snapshot begins
        writing = threading.Thread(target=insert, args=(store, "another heron"))
        writing.start()
        writing.join()
        posting = arrays_of(store).postings.find(connection, "heron")
        assert arrays_of(store).positions.read_rows(posting.places).tolist() == [first.row]
    assert len(ranked(store, "heron")) == 2


def test_a_question_names_a_word_that_no_memory_holds_but_does_not_ask_it(store: Store) -> None:
    insert(store, "a heron")
    with store.reading() as connection:
        question = lexical.ask(connection, arrays_of(store).postings, "heron zebra")
        assert question.asked == ["heron"]
        texts = [Counter(stem_words(connection, text)) for text in ("zebras in a text of its own", "something else")]
        one, other = lexical.score(question, texts, [text.total() for text in texts])
        assert (one > 0, other) == (True, 0)


@pytest.mark.slow
def test_readers_and_a_writer_at_once_end_with_the_scores_of_fts5(store: Store) -> None:
    insert(store, "the namespace")
    stop = threading.Event()
    faults: list[BaseException] = []

    def read() -> None:
        dice = random.Random(7)
        try:
            while not stop.is_set():
                ranked(store, " ".join(dice.choices(WORDS, k=3)))
        except BaseException as error:
            faults.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(120):
        insert(store, f"heron egret {number} " + " ".join(random.Random(number).choices(WORDS, k=4)))
        if number % 40 == 0:
            many(store, 1000 * (number + 1), 1100)
    stop.set()
    for reader in readers:
        reader.join()
    assert not faults
    for word in WORDS:
        agree(store, word)


def test_a_damaged_index_does_not_keep_the_database_from_opening(tmp_path: Any) -> None:
    store = Store(tmp_path, derived=Arrays())
    insert(store, "a heron")
    store.close()
    other = apsw.Connection(str(tmp_path / "memoryd.sqlite"))
    other.execute("DROP TABLE memories_fts_docsize")
    other.close()
    store = Store(tmp_path, derived=Arrays())
    try:
        assert build_mask(store, Filter(), 0.0).list_rows()
    finally:
        store.close()


def test_the_commonest_stems_are_read_ahead_after_a_start(tmp_path: Any) -> None:
    store = Store(tmp_path, derived=Arrays())
    try:
        insert(store, "the namespace")
        many(store, 10, 30, "'heron ' || CASE WHEN i < 20 THEN 'egrets ' ELSE '' END || i")
        store.warm_soon()
        assert store._warming is not None
        store._warming.join()
        assert list(arrays_of(store).postings._kept)[:2] == ["heron", "egret"]
        assert len(ranked(store, "heron")) == 30
    finally:
        store.close()


def test_a_text_outside_the_index_has_the_words_that_it_would_have_in_it(store: Store) -> None:
    texts = ["Two herons, one heron and an egret", "日本の日本語 heron", "Ünïcode and C++", "the a", ""]
    metadata = {"speaker": "Stork", "files": ["heron.py"], "日本": 1}
    numbers = [insert(store, text, metadata=msgspec.json.encode(metadata).decode()).row for text in texts]
    index = arrays_of(store).postings
    places = arrays_of(store).positions.find(numbers)
    with store.reading() as connection:
        counted = [postings.count_stems(connection, text, metadata) for text in texts]
        assert index.read_lengths(places).tolist() == [one.length for one in counted]
        for word in [*WORDS, "本語", "stork", "py"]:
            for stem in stem_words(connection, word)[:1]:
                counts = index.find(connection, stem).count_at(places).tolist()
                assert counts == pytest.approx([one.counts.get(stem, 0.0) for one in counted]), word


def test_words_of_two_stores_weigh_what_they_weigh_in_one(store: Store) -> None:
    for text in ("heron heron egret", "heron stork", "crane ibis egret"):
        insert(store, text)
    with store.reading() as connection:
        part = lexical.ask(connection, arrays_of(store).postings, "heron ibis stork")
    for text in ("heron", "crane crane egret stork ibis"):
        insert(store, text)
    with store.reading() as connection:
        whole = lexical.ask(connection, arrays_of(store).postings, "heron ibis stork")
    widened = lexical.widen(part, 2, 3.0, {"heron": 1, "stork": 1, "ibi": 1})
    assert widened.average == pytest.approx(whole.average)
    assert widened.weight == pytest.approx(whole.weight)
    assert [(word.text, word.documents, word.rarity) for word in widened.words] == [
        (word.text, word.documents, word.rarity) for word in whole.words
    ]
