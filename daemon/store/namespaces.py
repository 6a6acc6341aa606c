"""Namespaces: the numbers of their names, and the namespaces that a caller reaches."""

from typing import Any

import apsw

from memoryd.client.errors import Invalid
from memoryd.client.protocol import Reach
from memoryd.daemon.store.writer import Transaction

_HOLDING = (
    "SELECT name FROM namespaces n WHERE"
    " EXISTS (SELECT 1 FROM memories WHERE namespace = n.id AND superseded_by IS NULL)"
    " OR EXISTS (SELECT 1 FROM turns WHERE namespace = n.id)"
)
MAX_PARTS = 16
MAX_BYTES = 512


def check(name: str) -> str:
    """Return a namespace as given; raise `Invalid` for empty parts, control characters and excessive length."""
    parts = name.split("/") if name else []
    if any(not part.strip() for part in parts):
        raise Invalid(f"The namespace {name!r} has an empty part; write it like acme/api/alpha.")
    if any(ord(character) < 32 for character in name):
        raise Invalid(f"The namespace {name!r} has control characters.")
    if len(parts) > MAX_PARTS or len(name.encode()) > MAX_BYTES:
        raise Invalid(f"The namespace is longer than {MAX_PARTS} parts or {MAX_BYTES} bytes.")
    return name


def check_new(name: str) -> str:
    """Return a namespace that may be new; raise `Invalid` also for a part that occurs only in paths."""
    if odd := {".", ".."}.intersection(check(name).split("/")):
        raise Invalid(f"The namespace {name!r} has the part {max(odd)!r}, like a path; write it like acme/api/alpha.")
    return name


def list_enclosing(name: str) -> list[str]:
    """Return the namespace and all that enclose it, the root last."""
    parts = name.split("/") if name else []
    return ["/".join(parts[:length]) for length in range(len(parts), -1, -1)]


class NamespaceTable:
    """All names of a database, in RAM. Only the writer adds names; a name can be reached after its commit."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._numbers: dict[str, int] = dict(connection.execute("SELECT name, id FROM namespaces"))
        self._names = {number: name for name, number in self._numbers.items()}

    def name(self, number: int) -> str:
        """Return the name with a number."""
        return self._names[number]

    def find_number(self, name: str) -> int | None:
        """Return the number of a name that exists."""
        return self._numbers.get(name)

    def list_outermost(self, connection: apsw.Connection) -> set[str]:
        """Return the first parts of the names of namespaces that are not empty."""
        names: Any = connection.execute(_HOLDING).fetchall()
        return {str(name).partition("/")[0] for (name,) in names if name}

    def ensure(self, transaction: Transaction, name: str) -> int:
        """Return the number of a name, inserting it if it is new."""
        known = self._numbers.get(name)
        if known is not None:
            return known
        connection = transaction.connection
        number = connection.execute("SELECT id FROM namespaces WHERE name = ?", (name,)).get
        if number is None:
            sql = "INSERT INTO namespaces (name) VALUES (?) RETURNING id"
            number = connection.execute(sql, (check_new(name),)).get
        assert isinstance(number, int)
        # A reader may see the number as soon as it is committed, which is before `after_commit`.
        self._names[number] = name
        transaction.after_commit(lambda: self._numbers.update({name: number}))
        return number

    def reach(self, name: str, reach: Reach | None) -> frozenset[int] | None:
        """Return the numbers of the namespaces that a caller at `name` reaches, None for all."""
        reach = reach or ("visible" if name else "all")
        if reach == "all" or (reach == "subtree" and not name):
            return None
        if reach == "visible":
            names = list_enclosing(name)
        elif reach == "exact":
            names = [name]
        else:
            inner = name + "/"
            names = [other for other in list(self._numbers) if other == name or other.startswith(inner)]
        return frozenset(self._numbers[other] for other in names if other in self._numbers)


def build_inside(column: str, name: str) -> str:
    """Return the SQL condition that a column is the name of a namespace, or of one inside it; neither need exist."""
    inner = apsw.format_sql_value(f"{name}/")
    return f"({column} = {apsw.format_sql_value(name)} OR substr({column}, 1, {len(name) + 1}) = {inner})"


def condition(reached: frozenset[int] | None) -> str:
    """Return the SQL condition on `m` for reached namespaces, with the numbers in the text, which is safe."""
    if reached is None:
        return "TRUE"
    return f"m.namespace IN ({', '.join(map(str, sorted(reached)))})"
