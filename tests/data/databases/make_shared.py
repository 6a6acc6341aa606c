"""Write a database of schema 12 that shares two roots with other machines, as memoryd did up to 7b0f16ff.

`CHECKOUT/.venv/bin/python tests/data/databases/make_shared.py CHECKOUT` with a checkout of that commit, whose code and
PostgreSQL server it uses: once, then commit it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]) / "tests"))
sys.path.insert(0, str(Path(sys.argv[1]) / "tests" / "daemon" / "shared"))

import apsw
from machines import PLACE, Machine, converge, machines
from postgres import Postgres

from memoryd.client.protocol import Share
from memoryd.daemon.memories import sharing
from memoryd.daemon.shared import schema, server
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.store.schema import VERSION
from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.store.writer import Transaction
from workbench import add

READ_ONLY = "team"  # the second root, which the laptop may only read


def fill(laptop: Machine, desk: Machine) -> None:
    """Exchange memories; leave one of each kind of entry: pulled, deleted, erased, in conflict, waiting, refused."""
    laptop.add("Redis is the cache", type="decision", pinned=True, metadata={"project": "api"})
    keyed = laptop.add("Orders are in PostgreSQL 15")
    laptop.give_key(keyed, "orders")
    disputed = laptop.add("The staging port is 8080")
    laptop.add("Only this laptop knows the web colours", "acme/web")
    desk.add("Deploys happen on Fridays")
    gone, erased = desk.add("A slip of the pen"), desk.add("Something private")
    converge(laptop, desk)
    desk.delete(gone)
    desk.erase(erased)
    laptop.update(disputed, content="The staging port is 8081")
    desk.update(desk.id_there(disputed), content="The staging port is 9090")
    converge(laptop, desk)
    assert laptop.conflicts()
    inner = add(laptop.core, "Backups are encrypted", "acme/api/alpha").id
    sharing.share(laptop.core, Share(ids=[inner], to=PLACE)).result()
    laptop.sync()
    laptop.add("Waits for the server")
    refused = laptop.add("The server refuses this one")

    def write(transaction: Transaction) -> None:
        entry = shared.read_of_memory(transaction.connection, refused)
        assert entry is not None
        stuck = shared.Stuck(entry.id, "it is too large", entry.dirty)
        shared.note_stuck(transaction.connection, entry.root, stuck, 1.0)

    laptop.core.store.write(write).result()
    laptop.core.store.set_setting("shared_machine", "laptop").result()


def read_team(laptop: Machine, desk: Machine) -> None:
    """Let the laptop have a memory of a root that it may only read."""
    places = [f"{READ_ONLY}/notes"]
    theirs, ours = desk.open(READ_ONLY, places), laptop.open(READ_ONLY, places)
    desk.add("The office closes at six", places[0])
    for engine in (theirs, ours):
        assert engine.exchange_all(), engine.figures.error
        engine.close()
    change = lambda transaction: shared.change_root(transaction.connection, ours.root.id, writable=0)  # noqa: E731
    laptop.core.store.write(change).result()


postgres = Postgres()
try:
    postgres.start()
    postgres.sql("CREATE DATABASE sharing")
    owner = server.connect(postgres.address(database="sharing"))
    schema.migrate(owner)
    for root in ("acme", READ_ONLY):
        schema.make_root(owner, root)
    owner.close()
    with tempfile.TemporaryDirectory() as name:
        with machines(Path(name), postgres.address(database="sharing"), "laptop", "desk") as (laptop, desk):
            fill(laptop, desk)
            read_team(laptop, desk)
        written = Path(__file__).with_name(f"shared_{VERSION}.sqlite")
        shutil.copy(Path(name) / "laptop" / FILE_NAME, written)
    connection = apsw.Connection(str(written))
    connection.execute("UPDATE shared_roots SET server = 'host=db.example dbname=sharing user=ann'")
    connection.execute("PRAGMA journal_mode = delete")
    connection.execute("PRAGMA page_size = 512")  # a small file
    connection.execute("VACUUM")
    connection.close()
    print(written, written.stat().st_size)
finally:
    postgres.remove()
