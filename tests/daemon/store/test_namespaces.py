"""Namespaces: who sees whom; names that look alike; bad names."""

import threading

import pytest

from each import each
from memoryd.client.errors import Invalid
from memoryd.client.protocol import Add, AddToken, Get, List, NewMemory
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.store import namespaces
from memoryd.daemon.store.store import Store
from workbench import LIMIT_S, ask, insert

ALL = ["", "a", "a/b", "a/b/c", "a/bc", "ab", "a b", "b", "a%", "A"]


def reached(store: Store, name: str, reach: str | None) -> set[str]:
    numbers = store.namespaces.reach(name, reach)  # type: ignore[arg-type]
    return set(ALL) if numbers is None else {store.namespaces.name(number) for number in numbers}


@pytest.fixture
def all_names(store: Store) -> Store:
    for number, place in enumerate(ALL):
        insert(store, f"text {number}", place)
    return store


@each(
    ("name", "reach", "seen"),
    [
        ("a/b", "visible", {"a/b", "a", ""}),
        ("a/b", None, {"a/b", "a", ""}),
        ("a/b/c", "visible", {"a/b/c", "a/b", "a", ""}),
        ("ab", "visible", {"ab", ""}),
        ("", "visible", {""}),
        ("", None, set(ALL)),
        ("", "subtree", set(ALL)),
        ("a", "subtree", {"a", "a/b", "a/b/c", "a/bc"}),
        ("a/b", "subtree", {"a/b", "a/b/c"}),
        ("a%", "subtree", {"a%"}),
        ("a", "exact", {"a"}),
        ("", "exact", {""}),
        ("a/b", "all", set(ALL)),
        ("new", "exact", set()),
        ("a/new", "visible", {"a", ""}),
        ("new", "subtree", set()),
    ],
)
def test_reach(all_names: Store, name: str, reach: str | None, seen: set[str]) -> None:
    assert reached(all_names, name, reach) == seen


@each("name", ["/a", "a/", "a//b", " ", "a/ /b", "a\nb", "\x00", "/".join("a" * 17), "a" * 513])
def test_a_bad_name_is_refused_before_anything_else(name: str, core: Core) -> None:
    with pytest.raises(Invalid, match="namespace"):
        namespaces.check(name)
    with pytest.raises(Invalid, match="namespace"):
        ask(core, List(namespace=name))
    with pytest.raises(Invalid, match="namespace"):
        reading.get(core, Get(namespace=name, id="abcd"))


@pytest.mark.parametrize("name", ["..", "team/ben/../ada", "team/./ada"])
def test_a_new_name_has_no_part_of_a_path_and_a_stored_one_is_read(name: str, core: Core) -> None:
    with pytest.raises(Invalid, match="like a path"):
        ask(core, Add(memory=NewMemory(content="The cache is Valkey"), namespace=name))
    with pytest.raises(Invalid, match="like a path"):
        core.tokens.add(AddToken(name="ben", namespace=name))
    assert ask(core, List(namespace=name, reach="exact")).total == 0
    insert(core.store, "The cache is Valkey", "old")
    number = core.store.namespaces.find_number("old")
    assert number is not None
    core.store.write(
        lambda writing: writing.connection.execute("UPDATE namespaces SET name = ? WHERE id = ?", (name, number))
    ).result(LIMIT_S)
    with core.store.reading() as connection:
        core.store.namespaces = namespaces.NamespaceTable(connection)  # as the next start has it
    ask(core, Add(memory=NewMemory(content="It listens at 6379"), namespace=name))
    assert ask(core, List(namespace=name, reach="exact")).total == 2


def test_a_namespace_can_be_shown_as_soon_as_its_rows_can_be_read(store: Store) -> None:
    """The commit comes before the actions after it: a reader may be in between."""
    unknown: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            with store.reading() as connection:
                numbers = [number for (number,) in connection.execute("SELECT id FROM namespaces")]
            for number in numbers:
                try:
                    store.namespaces.name(number)
                except KeyError:
                    unknown.append(number)

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(60):
        insert(store, f"text {n}", f"n{n}")
    stop.set()
    reader.join()
    assert unknown == []


def test_a_namespace_of_a_failed_write_is_not_known(store: Store) -> None:
    def job(transaction: object) -> None:
        store.namespaces.ensure(transaction, "gone")  # type: ignore[arg-type]
        raise Invalid("no")

    with pytest.raises(Invalid):
        store.write(job).result()
    assert store.namespaces.find_number("gone") is None
    row = insert(store, "text", "kept")
    assert store.namespaces.name(row.namespace) == "kept"
