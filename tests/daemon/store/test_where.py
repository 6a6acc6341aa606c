"""The filter language of `where`: each operator, names, groups; what is not understood is refused; nothing is SQL."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from each import each
from memoryd.client.errors import Invalid
from memoryd.client.protocol import List
from memoryd.daemon.store import rows
from memoryd.daemon.store.filters import compile_filter
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.where import compile_where, select_matching
from workbench import insert


def find(store: Store, where: dict[str, Any]) -> set[str]:
    """Return the contents that a filter leaves."""
    condition, values = compile_filter(List(where=where), store.namespaces).full_condition(100.0)
    with store.reading() as connection:
        return {row.content for row in rows.select(connection, condition, values)}


def put(store: Store, content: str, metadata: Any, **fields: Any) -> None:
    insert(store, content, metadata=msgspec.json.encode(metadata, order="sorted").decode(), **fields)


@pytest.fixture
def filled(store: Store) -> Store:
    put(store, "one", {"score": 4.5, "color": "red", "tags": ["a", "b"], "author": {"name": "Ann", "level": 2}})
    put(store, "two", {"score": 3, "color": "green", "done": True, "author": {"name": "Bob"}}, importance=0.9, pinned=1)
    put(store, "three", {"score": "high", "color": None, "done": False, "tags": []}, type="lesson", expires_at=500.0)
    put(store, "four", {})
    return store


@each(
    ("where", "left"),
    [
        ({"color": "red"}, {"one"}),
        ({"metadata.color": "red"}, {"one"}),
        ({"color": None}, {"three"}),
        ({"color": {"$ne": "red"}}, {"two", "three", "four"}),
        ({"score": {"$gt": 3}}, {"one"}),
        ({"score": {"$gte": 3, "$lt": 4.5}}, {"two"}),
        ({"score": {"$lte": 4.5}}, {"one", "two"}),
        ({"score": {"$lt": float("inf")}}, {"one", "two"}),
        ({"score": {"$lt": 10**19}}, {"one", "two"}),
        ({"score": {"$gte": "a"}}, {"three"}),
        ({"done": True}, {"two"}),
        ({"done": {"$in": [False]}}, {"three"}),
        ({"score": {"$in": [3.0, "high"]}}, {"two", "three"}),
        ({"score": {"$in": []}}, set()),
        ({"tags": "a"}, {"one"}),
        ({"tags": ["a", "b"]}, {"one"}),
        ({"tags": {"$in": ["b", "z"]}}, {"one"}),
        ({"author.name": "Bob"}, {"two"}),
        ({"author": {"name": "Bob"}}, {"two"}),
        ({"author.level": {"$exists": True}}, {"one"}),
        ({"author.level": {"$exists": False}}, {"two", "three", "four"}),
        ({"color": {"$exists": True}}, {"one", "two", "three"}),
        ({"$or": [{"color": "red"}, {"done": False}]}, {"one", "three"}),
        ({"$and": [{"color": "red"}, {"score": {"$gt": 5}}]}, set()),
        ({"$not": {"color": "red"}}, {"two", "three", "four"}),
        ({"$not": {"$or": [{"tags": "a"}, {"score": 3}]}}, {"three", "four"}),
        ({"memory.importance": {"$gte": 0.6}}, {"two"}),
        ({"memory.pinned": True}, {"two"}),
        ({"memory.type": {"$in": ["lesson", "none"]}}, {"three"}),
        ({"memory.expires_at": {"$exists": True}}, {"three"}),
        ({"memory.expires_at": None}, {"one", "two", "four"}),
        ({"memory.expires_at": {"$ne": 500.0}}, {"one", "two", "four"}),
        ({"memory.content": {"$gt": "o"}}, {"one", "two", "three"}),
        ({}, {"one", "two", "three", "four"}),
    ],
)
def test_each_operator_leaves_what_it_says(filled: Store, where: dict[str, Any], left: set[str]) -> None:
    assert find(filled, where) == left


@each(
    ("where", "says"),
    [
        ({"score": {"$near": 1}}, "no operator for score"),
        ({"score": {"$gt": 1, "other": 2}}, "'other' is no operator"),
        ({"score": {"$gt": True}}, "number or a text"),
        ({"score": {"$gt": [1]}}, "number or a text"),
        ({"score": {"$gt": float("nan")}}, "finite"),
        ({"score": float("nan")}, "finite"),
        ({"score": {"$in": 3}}, "list of texts"),
        ({"score": {"$in": [None]}}, "list of texts"),
        ({"score": {"$exists": 1}}, "true or false"),
        ({"$xor": []}, "no operator here"),
        ({"$or": []}, "list of filters"),
        ({"$or": {"a": 1}}, "list of filters"),
        ({"$and": [1]}, "object of names"),
        ({"$not": [{"a": 1}]}, "object of names"),
        ({"type": "fact"}, r"memory\.type or metadata\.type"),
        ({"memory.kind": "fact"}, "is no field"),
        ({"memory.importance": "high"}, "is number"),
        ({"memory.pinned": 1}, "true or false"),
        ({"a..b": 1}, "cannot be a name"),
        ({"": 1}, "cannot be a name"),
        ({'a") OR (1': 1}, "cannot be a name"),
        ({".".join("a" * 17): 1}, "cannot be a name"),
        ({f"k{n}": 1 for n in range(65)}, "more than 64"),
    ],
)
def test_what_is_not_understood_is_refused(filled: Store, where: dict[str, Any], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        find(filled, where)


def test_a_filter_in_a_filter_ends_somewhere(filled: Store) -> None:
    where: dict[str, Any] = {"score": 3}
    for _ in range(20):
        where = {"$not": where}
    with pytest.raises(Invalid, match="nested deeper"):
        find(filled, where)


VALUES = st.sampled_from([0, 1, 1.0, 2.5, True, False, None, "", "a", "b", [], [1], ["a", 2], {"x": 1}, {"x": "a"}])
DOCUMENTS = st.dictionaries(st.sampled_from(["k", "l"]), VALUES, max_size=2)
COMPARED = st.sampled_from([0, 1, 2.5, "", "a"])
TESTS = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne"]), VALUES.filter(lambda value: not isinstance(value, dict))),
    st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), COMPARED),
    st.tuples(st.just("$in"), st.lists(st.sampled_from([0, 1, True, "a", 2.5]), max_size=2)),
    st.tuples(st.just("$exists"), st.booleans()),
)
LEAVES = st.builds(lambda name, test: {name: dict([test])}, st.sampled_from(["k", "l", "k.x"]), TESTS)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"$and": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"$or": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"$not": part}, inner),
    ),
    max_leaves=5,
)
MISSING = object()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(documents=st.lists(DOCUMENTS, max_size=6), where=FILTERS)
@pytest.mark.slow
def test_a_filter_means_what_python_says_of_it(store: Store, documents: list[Any], where: dict[str, Any]) -> None:
    condition = compile_where(where)
    assert condition is not None
    given = [{"id": str(number), "metadata": document} for number, document in enumerate(documents)]
    with store.reading() as connection:
        found = select_matching(connection, condition, given)
    assert found == {one["id"] for one in given if holds(where, one["metadata"])}


def holds(where: Any, document: Any) -> bool:
    [(name, wanted)] = where.items()
    if name == "$and":
        return all(holds(part, document) for part in wanted)
    if name == "$or":
        return any(holds(part, document) for part in wanted)
    if name == "$not":
        return not holds(wanted, document)
    value = document
    for part in name.split("."):
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    [(operator, operand)] = wanted.items()
    return compare(value, operator, operand)


def compare(value: Any, operator: str, operand: Any) -> bool:
    if operator == "$exists":
        return (value is not MISSING) == operand
    if operator == "$ne":
        return not compare(value, "$eq", operand)
    if operator == "$eq" and isinstance(operand, list | None):
        return value is not MISSING and same(value, operand)
    values = value if isinstance(value, list) else [] if value is MISSING or isinstance(value, dict) else [value]
    if operator in ("$eq", "$in"):
        operands = operand if operator == "$in" else [operand]
        return any(same(one, other) for one in values for other in operands)
    compared = [one for one in values if kind(one) == kind(operand)]
    meanings = {"$gt": "__gt__", "$gte": "__ge__", "$lt": "__lt__", "$lte": "__le__"}
    return any(getattr(number(one), meanings[operator])(number(operand)) for one in compared)


def kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def number(value: Any) -> Any:
    return float(value) if kind(value) == "number" else value


def same(value: Any, other: Any) -> bool:
    return kind(value) == kind(other) and value == other
