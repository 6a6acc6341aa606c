"""A copy of the table of projects (names, remotes, folders) in the database, so that backups contain it.

The table itself is a file beside the database, which hooks read without a daemon (`client.projects`). The copy is
updated when a backup is made and when a project is renamed.
"""

from contextlib import suppress

import apsw
import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.projects import known as projects
from memoryd.client.projects.known import Project
from memoryd.daemon.store import database_settings, namespaces
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.writer import Transaction

_SETTING = "projects"  # a JSON list


def note(store: Store) -> None:
    """Copy the table from the file into the database; on failure keep the former copy."""
    with suppress(OSError, MemorydError):
        known = projects.read_table(str(store.path.parent))["projects"]
        store.write(lambda transaction: _put(transaction.connection, known), over_limit=True).result()


def note_within(transaction: Transaction, store: Store) -> None:
    """Copy the table from the file into the database, in a transaction."""
    with suppress(OSError, MemorydError):
        _put(transaction.connection, projects.read_table(str(store.path.parent))["projects"])


def read(connection: apsw.Connection) -> list[Project]:
    """Return the projects in a database, which may come from somebody else and is therefore checked."""
    try:
        known = msgspec.json.decode(database_settings.read(connection, _SETTING) or "[]", type=list[Project])
    except (msgspec.MsgspecError, RecursionError):
        return []
    return [project for project in known if _is_sound(project)]


def _put(connection: apsw.Connection, known: list[Project]) -> None:
    value = msgspec.json.encode(known).decode()
    if (database_settings.read(connection, _SETTING) or "[]") != value:
        database_settings.put(connection, _SETTING, value)


def _is_sound(project: Project) -> bool:
    try:
        folders = [*project["folders"], *project.get("past", [])]
        return bool(namespaces.check(project["namespace"])) and all(folder.startswith("/") for folder in folders)
    except MemorydError:
        return False
