"""Rows: ids by prefix, reading many, numbers that are never used again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.client.errors import AmbiguousId, Invalid, NotFound
from memoryd.daemon.store import queries, rows
from memoryd.daemon.store.store import Store
from workbench import insert, make_row

FIRST, SECOND, OTHER = "abcd" + "0" * 28, "abcd" + "1" * 28, "abff" + "0" * 28


@pytest.fixture
def filled(store: Store) -> Store:
    for number, key in enumerate((FIRST, SECOND, OTHER)):
        insert(store, f"text {number}", id=key)
    return store


def resolve(store: Store, prefix: str, condition: str = "TRUE") -> str:
    with store.reading() as connection:
        return rows.resolve(connection, prefix, condition).id


def test_an_ambiguous_prefix_lists_the_candidates(filled: Store) -> None:
    with pytest.raises(AmbiguousId, match="abcd0000, abcd1111") as refused:
        resolve(filled, "abcd")
    assert refused.value.data == {"candidates": [FIRST, SECOND]}


def test_only_rows_within_reach_make_a_prefix_ambiguous(filled: Store) -> None:
    here = insert(filled, "text here", "here", id="abcd" + "2" * 28)
    assert resolve(filled, "abcd", f"m.namespace = {here.namespace}") == here.id
    with pytest.raises(NotFound):
        resolve(filled, "abff", f"m.namespace = {here.namespace}")


@given(st.text())
def test_a_prefix_is_4_to_32_hex_digits_and_nothing_else(prefix: str) -> None:
    allowed = 4 <= len(prefix) <= 32 and all(character in "0123456789abcdef" for character in prefix)
    if allowed:
        rows.check_prefix(prefix)
    else:
        with pytest.raises(Invalid):
            rows.check_prefix(prefix)


@pytest.mark.parametrize("count", [0, 1, 2, 1200])
def test_many_rows_are_read_by_number_and_by_id(store: Store, count: int) -> None:
    def job(transaction: object) -> None:
        insert_many(store, transaction, count)

    store.write(job).result()
    with store.reading() as connection:
        every = rows.select(connection, "TRUE", ())
        assert len(every) == count
        numbers = [row.row for row in every]
        assert list(rows.read_rows(connection, [*numbers, 999_999])) == numbers
        assert set(rows.read_ids(connection, [*(row.id for row in every), "0" * 32])) == {row.id for row in every}


def insert_many(store: Store, transaction: object, count: int) -> None:
    number = store.namespaces.ensure(transaction, "")  # type: ignore[arg-type]
    for n in range(count):
        row = make_row(f"text {n}", id=f"{n + 1:032x}", namespace=number, created_at=n, updated_at=n)
        rows.insert(transaction.connection, row)  # type: ignore[attr-defined]


def test_the_number_of_a_deleted_row_is_not_used_again(store: Store) -> None:
    gone = insert(store, "first")
    store.write(lambda transaction: rows.delete(transaction.connection, [gone.row])).result()
    assert insert(store, "second").row > gone.row


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("User: what?\nAssistant: that", "what?"),
        ("User: what?\nAssistant: that\nAssistant: more", "what?"),
        ("User: two\nlines\nAssistant: that", "two\nlines"),
        ("User: ü😀\nAssistant: ß", "ü😀"),
        ("User: \nAssistant: that", None),
        ("User: what?", None),
        ("What?\nAssistant: that", None),
    ],
)
def test_of_a_question_and_its_answer_the_question_is_embedded(
    store: Store, content: str, question: str | None
) -> None:
    for turns, expected in ((1, content), (2, question or content)):
        row = insert(store, content, id=f"{turns:032x}", turns=turns)
        with store.reading() as connection:
            told = connection.execute(f"SELECT {rows.EMBEDDED} FROM memories m WHERE m.row = ?", (row.row,)).get
        assert told == rows.build_embedded_text(content, turns=turns) == expected


def test_lookups_by_id_do_not_walk_through_a_namespace(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Any]] = []
    monkeypatch.setattr(rows, "select", lambda connection, where, values: asked.append((where, values)) or [])
    condition, id = "m.namespace IN (1, 2)", "ab" * 16
    with store.reading() as connection:
        queries.find_alive(connection, [id], condition, 0.0)
        queries.find_answers(connection, [id], condition, 0.0)
        queries.find_by_id(connection, [id], condition, ())
        for where, values in asked:
            plan: Any = connection.execute(f"EXPLAIN QUERY PLAN SELECT m.row FROM memories m WHERE {where}", values)
            assert not [detail for *_, detail in plan if "(namespace=" in detail]
    assert len(asked) == 3
