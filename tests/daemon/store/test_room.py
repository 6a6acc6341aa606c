"""The limit of the database's size: at it nothing is added, what is there is read and deleted, and it may be raised."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memoryd.client import StorageFull
from memoryd.client.protocol import NewMemory
from memoryd.daemon.store.store import Store

if TYPE_CHECKING:
    from conftest import Daemon


def fill(client: Any) -> int:
    for number in range(1000):
        try:
            client.add_many([NewMemory(content=f"{number} {part} {'heron ' * 500}") for part in range(20)], dedup=False)
        except StorageFull:
            return number
    raise AssertionError("there was no limit")


def test_at_the_limit_nothing_is_added_while_reading_and_deleting_go_on(start_daemon: Callable[..., "Daemon"]) -> None:
    daemon = start_daemon(storage={"max_size_mb": 2})
    with daemon.client() as client:
        assert fill(client) > 3
        one = client.list(limit=1).memories[0].id
        for add in (
            lambda: client.add("One more"),
            lambda: client.observe([{"role": "user", "content": "We decided that the cache is Valkey"}]),
            lambda: client.update(one, content="Longer"),
            lambda: client.share(one, to=""),
        ):
            with pytest.raises(StorageFull, match=r"limit of 2 MB .* `max_size_mb`") as refused:
                add()
            assert refused.value.data["limit_bytes"] == 2_000_000
        status = client.status()
        assert status.database_limit_bytes == 2_000_000
        assert status.database_bytes >= 1_900_000
        assert client.search("heron", limit=3)
        ids = [memory.id for memory in client.list(limit=100).memories]
        for at in range(0, 100, 10):
            client.delete(*ids[at : at + 10])
        assert client.verify().problems == []


def test_room_comes_back_when_what_was_deleted_is_let_go(start_daemon: Callable[..., "Daemon"]) -> None:
    daemon = start_daemon(storage={"max_size_mb": 2}, jobs={"history_days": 1.0})
    with daemon.client() as client:
        fill(client)
        ids = [memory.id for memory in client.list(limit=100).memories]
        client.delete(*ids)
        daemon.core.clock.advance(90 * 86400)  # type: ignore[attr-defined]
        client.run_job("trim")
        status = client.status()
        assert (
            status.database_used_bytes < status.database_limit_bytes < status.database_bytes
        )  # the file keeps its size
        assert client.add("One more").outcome == "created"


def test_no_limit_is_no_limit_and_a_file_above_its_limit_opens(folder: Path) -> None:
    unlimited = Store(folder)
    unlimited.check_room()
    unlimited.close()
    limited = Store(folder, limit_bytes=1)
    with pytest.raises(StorageFull):
        limited.check_room()
    limited.close()
