"""The table of projects within the database, so that a copy has it: names, remotes and folders.

The table itself is a file beside the database, which hooks read without a daemon (`client.projects`). What the database
holds of it is as it was when the last copy was made, or a project got another name.
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
    """Take the file's table into the database; where that cannot be, it stays as it was."""
    with suppress(OSError, MemorydError):
        known = projects.read_table(str(store.path.parent))["projects"]
        store.write(lambda transaction: _put(transaction.connection, known), over_limit=True).result()


def note_within(transaction: Transaction, store: Store) -> None:
    """Take the file's table into the database in a transaction."""
    with suppress(OSError, MemorydError):
        _put(transaction.connection, projects.read_table(str(store.path.parent))["projects"])


def read(connection: apsw.Connection) -> list[Project]:
    """Return the projects that a database knows; somebody else may have made it."""
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
