"""Filters: every field, JSON types, prefixes; what is alive; nothing a caller writes becomes SQL."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from each import each
from memoryd.client.errors import Invalid
from memoryd.client.protocol import List
from memoryd.daemon.store import rows
from memoryd.daemon.store.filters import compile_filter
from memoryd.daemon.store.store import Store
from workbench import insert


def chosen(store: Store, now: float = 100.0, all_states: bool = False, **fields: Any) -> set[str]:
    """Return the contents that a filter leaves."""
    call = List(**fields)
    where, values = compile_filter(call, store.namespaces, call.ids).full_condition(now, all_states)
    with store.reading() as connection:
        return {row.content for row in rows.select(connection, where, values)}


@pytest.fixture
def filled(store: Store) -> Store:
    insert(store, "one", "a", type="fact", source="manual", tier="L1", created_at=10, path="notes/one.md", id="aa" * 16)
    insert(
        store, "two", "a/b", type="lesson", source="import", tier="L2", created_at=20, path="notes/two.md", id="ab" * 16
    )
    insert(
        store,
        "three",
        "c",
        type="fact",
        source="manual",
        tier="documents",
        created_at=30,
        path="notes2/x.md",
        id="ba" * 16,
    )
    return store


@each(
    ("fields", "left"),
    [
        ({}, {"one", "two", "three"}),
        ({"type": ["fact"]}, {"one", "three"}),
        ({"type": ["fact", "lesson"]}, {"one", "two", "three"}),
        ({"type": ["fac"]}, set()),
        ({"source": ["import"]}, {"two"}),
        ({"tier": ["L2", "documents"]}, {"two", "three"}),
        ({"after": 10.0}, {"two", "three"}),
        ({"before": 20.0}, {"one"}),
        ({"after": 10.0, "before": 30.0}, {"two"}),
        ({"path_prefix": "notes/"}, {"one", "two"}),
        ({"path_prefix": "notes"}, {"one", "two", "three"}),
        ({"path_prefix": "%"}, set()),
        ({"path_prefix": ""}, {"one", "two", "three"}),
        ({"ids": ["aaaa"]}, {"one"}),
        ({"ids": ["aaaa", "ba" * 16]}, {"one", "three"}),
        ({"ids": ["ffffffff"]}, set()),
        ({"namespace": "a/b"}, {"one", "two"}),
        ({"namespace": "a", "reach": "exact"}, {"one"}),
        ({"namespace": "a", "type": ["lesson"]}, set()),
        ({"type": ["fact"], "source": ["manual"], "after": 10.0}, {"three"}),
    ],
)
def test_each_field_and_all_of_them_together(filled: Store, fields: dict[str, Any], left: set[str]) -> None:
    assert chosen(filled, **fields) == left


@each("id", ["", "%%%%", "aaa", "AAAA", "aaaa' OR '1'='1"])
def test_an_id_that_is_none_is_refused(filled: Store, id: str) -> None:
    with pytest.raises(Invalid):
        chosen(filled, ids=[id])


NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text()
KEYS = st.text(st.characters(exclude_characters='"\\.', exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@example(key="0", value=[2**63])
@given(key=KEYS, value=SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(KEYS, SCALARS, max_size=3))
def test_whatever_is_stored_is_found_by_a_filter_for_it(store: Store, key: str, value: Any) -> None:
    metadata = msgspec.json.encode({key: value}, order="sorted").decode()
    row = insert(store, "text", metadata=metadata)
    try:
        assert chosen(store, where={f"metadata.{key}": {"$eq": value}}) == {"text"}
    finally:
        store.write(lambda transaction: rows.delete(transaction.connection, [row.row])).result()


@pytest.mark.parametrize("field", ["type", "source"])
def test_words_in_a_filter_are_values_and_never_sql(filled: Store, field: str) -> None:
    assert chosen(filled, **{field: ["fact') OR ('1'='1", "x'; DROP TABLE memories; --"]}) == set()
    assert len(chosen(filled)) == 3


def test_superseded_and_expired_are_left_out_unless_all_states_are_asked_for(store: Store) -> None:
    alive = insert(store, "alive", expires_at=100.5)
    insert(store, "expired", expires_at=100.0)
    insert(store, "pinned", expires_at=1.0, pinned=1)
    insert(store, "superseded", superseded_by=alive.id)
    assert chosen(store, now=100.0) == {"alive", "pinned"}
    assert chosen(store, now=100.0, all_states=True) == {"alive", "expired", "pinned", "superseded"}
