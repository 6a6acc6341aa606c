"""`kill -9` in the middle of a call that adds thousands: whole parts are left, and one undo takes them back."""

import threading
from typing import Any

import apsw

from memoryd.client import MemorydError
from memoryd.client.protocol import Verify
from memoryd.daemon.memories.batches import PART
from workbench import wait_until

MANY = 20_000


def test_a_crash_leaves_whole_parts_of_one_operation(process: Any) -> None:
    importer = threading.Thread(target=add_many, args=(process,))
    importer.start()
    database = apsw.Connection(str(process.data / "memoryd.sqlite"), flags=apsw.SQLITE_OPEN_READWRITE)
    wait_until(lambda: count(database) >= 3 * PART)
    process.kill()
    importer.join(30)
    stored = count(database)
    database.close()
    assert stored in range(3 * PART, MANY, PART)
    process.start()
    with process.client() as client:
        assert client.call(Verify()).problems == []
        [operation] = client.operations().operations
        assert (operation.kind, operation.memories, client.list().total) == ("add_many", stored, stored)
        one = client.list(limit=1).memories[0].id
        assert [change.operation for change in client.history(one)] == [operation.id]
        assert len(client.undo().ids) == stored
        assert client.list().total == 0
        assert client.call(Verify()).problems == []


def add_many(process: Any) -> None:
    try:
        with process.client() as client:
            client.add_many(({"content": f"note {number}"} for number in range(MANY)), dedup=False)
    except MemorydError:
        return


def count(database: apsw.Connection) -> int:
    found: Any = database.execute("SELECT count(*) FROM memories").get
    return int(found)
