"""Write the database of the present schema: `python tests/data/databases/make.py`, once per schema, then commit it."""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import apsw

from memoryd.daemon.store.schema import VERSION
from memoryd.daemon.store.store import FILE_NAME
from workbench import CountingEmbedder, add, add_many, delete, running, update

with tempfile.TemporaryDirectory() as name:
    with running(Path(name), CountingEmbedder()) as core:
        add(core, "We use Redis as the cache", "acme/api", type="decision", id="ab" * 16)
        update(core, "ab" * 16, content="We use Valkey as the cache", metadata={"project": "api"})
        add_many(core, ["PostgreSQL 14 holds the orders", "Deploys happen on Fridays"], "acme")
        add(core, "PostgreSQL 15 holds the orders", "acme", supersedes=add(core, "Orders are kept").id)
        delete(core, add(core, "A slip of the pen").id)
    written = Path(__file__).with_name(f"schema_{VERSION}.sqlite")
    shutil.copy(Path(name) / "data" / FILE_NAME, written)
    connection = apsw.Connection(str(written))
    connection.execute("PRAGMA journal_mode = delete")
    connection.execute("PRAGMA page_size = 512")  # a small file
    connection.execute("VACUUM")
    connection.close()
    print(written, written.stat().st_size)
