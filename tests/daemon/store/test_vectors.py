"""Vectors on disk: by model and text, exact, checked, dropped with their model."""

import numpy as np
import pytest

from memoryd.daemon.store import vectors
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.vectors import Vector
from workbench import insert

KEY = vectors.text_hash("text")


def write(store: Store, job: object) -> object:
    return store.write(lambda transaction: job(transaction.connection)).result()  # type: ignore[operator]


def model(store: Store, fingerprint: str = "f", name: str = "m") -> int:
    return write(store, lambda connection: vectors.ensure_model(connection, name, fingerprint, 4))  # type: ignore[return-value]


def cached(store: Store, number: int, key: bytes = KEY) -> Vector | None:
    with store.reading() as connection:
        return vectors.read_cached(connection, number, key)


def test_a_vector_comes_back_exactly_and_belongs_to_its_model(store: Store) -> None:
    first, second = model(store, "f1"), model(store, "f2")
    vector = np.array([0.1, -0.2, 1e-30, 1], np.float32)
    write(store, lambda connection: vectors.put(connection, first, KEY, vector))
    assert cached(store, first).tobytes() == vector.tobytes()  # type: ignore[union-attr]
    assert cached(store, second) is None
    assert model(store, "f1") == first


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_vectors_of_rows_are_one_matrix(store: Store, count: int) -> None:
    number = model(store)
    numbers = [insert(store, f"text {n}").row for n in range(3)]
    for n in range(count):
        key = vectors.text_hash(f"text {n}")
        write(store, lambda connection, key=key, n=n: vectors.put(connection, number, key, np.full(4, n, np.float32)))
    with store.reading() as connection:
        rows, matrix = vectors.read_exact(connection, number, [*numbers, 999])
        assert [(row, vector.tolist()) for row, vector in zip(rows, matrix, strict=True)] == [
            (numbers[n], [n] * 4) for n in range(count)
        ]
        assert vectors.read_exact(connection, number, numbers, "m.type = ?", ("lesson",))[0] == []
        assert len(list(vectors.read_all(connection, number))) == 3


def test_adopting_a_model_drops_the_vectors_of_all_others_and_is_remembered(store: Store) -> None:
    first, second = model(store, "f1"), model(store, "f2")
    for number in (first, second):
        write(store, lambda connection, number=number: vectors.put(connection, number, KEY, np.ones(4, np.float32)))
    write(store, lambda connection: connection.execute("INSERT INTO settings VALUES ('next_model', 'm')"))
    write(store, lambda connection: vectors.adopt(connection, second, "m"))
    assert (store.read_setting("model"), store.read_setting("next_model")) == ("m", None)
    assert cached(store, first) is None
    assert cached(store, second) is not None


def test_a_vector_of_a_model_given_up_meanwhile_is_not_kept_and_is_no_error(store: Store) -> None:
    number = model(store)
    write(store, lambda connection: vectors.adopt(connection, number + 1, "other"))
    write(store, lambda connection: vectors.put(connection, number, KEY, np.ones(4, np.float32)))
    assert cached(store, number) is None


def test_vectors_of_a_wrong_length_are_reported_and_dropped(store: Store) -> None:
    number = model(store)
    insert = "INSERT INTO vec_embeddings (model, text_hash, vector) VALUES (?, ?, ?)"
    right, void = np.ones(4, np.float32).tobytes(), np.zeros(4, np.float32).tobytes()
    unnumbered = np.full(4, np.nan, np.float32).tobytes()
    for n, blob in enumerate((right, b"\1" * 12, b"\1" * 15, b"\1" * 20, void, unnumbered)):
        write(store, lambda connection, n=n, blob=blob: connection.execute(insert, (number, bytes([n]), blob)))
    assert store.find_problems() == [
        "vectors: 3 have a wrong length",
        "vectors: 2 are zero or hold a value that is not a number",
    ]
    store.rebuild().result()
    assert store.find_problems() == []
    assert cached(store, number, b"\0") is not None
