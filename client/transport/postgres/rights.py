"""Rights in a root, which are granted directly to login roles."""

from typing import Any, NamedTuple

from memoryd.client.errors import NotFound
from memoryd.client.transport.postgres.schema import GIVEN, name_of

_SET = ", ".join(name for name in GIVEN if name not in ("id", "created_at"))
_READ = ("USAGE ON SCHEMA {schema}", "SELECT ON ALL TABLES IN SCHEMA {schema}")
_WRITE = (
    f"INSERT ({', '.join(GIVEN)}), UPDATE ({_SET}), DELETE ON {{schema}}.memories",
    "INSERT, UPDATE, DELETE ON {schema}.applied",
    "EXECUTE ON FUNCTION {schema}.erase",
)
_ALL = ("ALL ON SCHEMA {schema}", "ALL ON ALL TABLES IN SCHEMA {schema}", "ALL ON ALL FUNCTIONS IN SCHEMA {schema}")
_LISTED = (
    "SELECT r.rolname, r.oid = n.nspowner, has_table_privilege(r.oid, '{schema}.memories', 'DELETE')"
    " FROM pg_namespace n CROSS JOIN pg_roles r WHERE n.nspname = '{schema}' AND (r.oid = n.nspowner OR r.oid IN"
    " (SELECT (aclexplode(n.nspacl)).grantee)) ORDER BY 2 DESC, 1"
)


class Right(NamedTuple):
    """A role that may use a root."""

    role: str
    is_owner: bool
    may_write: bool


def grant(connection: Any, root: str, role: str, writes: bool) -> None:
    """Grant a role the right to read a root, and with `writes` to write to it, else revoke the right to write."""
    revoke(connection, root, role)
    for right in (*_READ, *(_WRITE if writes else ())):
        connection.execute(f"GRANT {right.format(schema=name_of(root))} TO {_find_role(connection, role)}")


def revoke(connection: Any, root: str, role: str) -> None:
    """Revoke all rights of a role in a root; its next statement fails."""
    for right in _ALL:
        connection.execute(f"REVOKE {right.format(schema=name_of(root))} FROM {_find_role(connection, role)}")


def grant_vectors(connection: Any, root: str) -> None:
    """Grant roles that may write the right to set the column of vectors, since `switch` has replaced that column."""
    for right in list_rights(connection, root):
        if right.may_write and not right.is_owner:
            role = _find_role(connection, right.role)
            connection.execute(f"GRANT INSERT (embedding), UPDATE (embedding) ON {name_of(root)}.memories TO {role}")


def list_rights(connection: Any, root: str) -> list[Right]:
    """Return the roles with rights in a root, its owner first."""
    return [Right(*row) for row in connection.execute(_LISTED.format(schema=name_of(root))).fetchall()]


def _find_role(connection: Any, role: str) -> str:
    """Return a role, quoted as an identifier; raise `NotFound` if it does not exist."""
    found = connection.execute("SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = %s", [role]).fetchone()
    if found is None:
        raise NotFound(f"The server has no role {role}; CREATE ROLE … LOGIN makes one.")
    return str(found[0])
