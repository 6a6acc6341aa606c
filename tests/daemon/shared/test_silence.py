"""A server that is silent is given up; one at the end of a slow line is not."""

import threading
import time

import psycopg
import pytest

from memoryd.daemon.shared import engine, server
from postgres import Cable, Postgres
from waiting import wait_until

RATE = 250_000  # bytes a second: 2 Mbit/s


def read_and_write(postgres: Postgres, size: int, limit_s: float) -> None:
    cable = Cable(postgres.port, bytes_per_s=RATE)
    try:
        opened = server.connect(postgres.address().replace(f"port={postgres.port}", f"port={cable.port}"))
        with opened.time_limit(limit_s):
            assert len(opened.value("SELECT repeat('x', %s)", (size,))) == size
        with opened.time_limit(limit_s):
            assert opened.value("SELECT length(%s)", ("x" * size,)) == size
        opened.close()
    finally:
        cable.close()


@pytest.mark.slow
def test_a_slow_line_is_no_silence(postgres: Postgres) -> None:
    read_and_write(postgres, 600_000, limit_s=1.5)  # each way takes longer than that


@pytest.mark.stress
@pytest.mark.timeout(300)
def test_much_over_a_slow_line(postgres: Postgres) -> None:
    read_and_write(postgres, 12_000_000, limit_s=10.0)


@pytest.mark.parametrize(("where", "times", "limit_s"), [("over a network", 1, 30), ("over a Unix socket", 4, 120)])
def test_a_hung_server_is_given_up(postgres: Postgres, where: str, times: int, limit_s: float) -> None:
    address = postgres.address()
    if where == "over a Unix socket":
        address = address.replace("host=127.0.0.1", f"host={postgres.folder}")
    opened = server.connect(address)
    postgres.hang()
    try:
        began = time.monotonic()
        with opened.time_limit(0.2), pytest.raises(psycopg.OperationalError):
            opened.run("SELECT 1")
        assert time.monotonic() - began >= 0.2 * times
        assert not opened.is_open
        assert engine.LIMIT_S * times == limit_s, "docs/sharing.md names it"
    finally:
        postgres.resume()


@pytest.mark.slow
def test_what_hangs_in_the_middle_of_much_is_given_up(postgres: Postgres) -> None:
    opened = server.connect(postgres.address())
    try:
        with opened.time_limit(3.0), opened.connection.cursor() as cursor:
            coming = cursor.stream("SELECT repeat('x', 1000), generate_series(1, 1000000)")  # sent row by row
            next(coming)
            postgres.hang()
            with pytest.raises(psycopg.OperationalError):
                list(coming)
    finally:
        postgres.resume()


def test_nothing_is_given_up_after_it_is_done(postgres: Postgres) -> None:
    opened = server.connect(postgres.address())
    before = threading.active_count()
    for _ in range(20):
        with opened.time_limit(3.0):
            assert opened.value("SELECT 1") == 1
    wait_until(lambda: threading.active_count() <= before)
    assert opened.value("SELECT 1") == 1
    opened.close()
