"""The caller of a call: what it may see and what it may change.

A connection without a token is the machine's user, who reaches everything; a namespace in its calls is no limit. A
token binds a connection to a namespace. It sees that namespace, those inside it and those that enclose it. It owns the
memories of its namespace and those inside, whoever wrote them. In an enclosing namespace an `agent` reads and adds, and
changes memories that nobody else has worked on; a `lead` edits and deletes all. A `reader` changes nothing anywhere. An
operation is undone by the token that did it, or by the owner.

A caller on another machine is confined: it does not see the enclosing namespaces.
"""

from typing import Literal, NamedTuple

from memoryd.daemon.store.namespaces import list_enclosing

CallerRole = Literal["owner", "lead", "agent", "reader"]


class Caller(NamedTuple):
    """A role and a namespace, with the token that grants them: its name, its SHA-256, its time of creation.

    `confined`: the caller does not see enclosing namespaces.
    """

    role: CallerRole
    namespace: str = ""
    name: str = ""
    key: bytes = b""
    since: float = 0.0
    confined: bool = False

    @property
    def bound(self) -> bool:
        """Whether the caller is limited to a namespace."""
        return self.role != "owner"

    def list_around(self) -> list[str]:
        """Return the enclosing namespaces that it sees, the innermost first, the root last."""
        return [] if self.confined else list_enclosing(self.namespace)[1:]

    def is_owner_of(self, namespace: str) -> bool:
        """Return whether a namespace is the caller's own or is inside it."""
        return not self.bound or namespace == self.namespace or namespace.startswith(self.namespace + "/")

    def can_see(self, namespace: str) -> bool:
        """Return whether it may read memories in a namespace."""
        return self.is_owner_of(namespace) or namespace in self.list_around()

    def may_change(self, namespace: str) -> bool:
        """Return whether it may edit, move and delete memories in a namespace."""
        if self.role == "reader":
            return False
        return self.is_owner_of(namespace) or (self.role == "lead" and namespace in self.list_around())

    def log_place(self, namespace: str) -> str:
        """Return the namespace for the operation log: the call's, but never an enclosing one."""
        return namespace if self.is_owner_of(namespace) else self.namespace

    def may_add(self, namespace: str) -> bool:
        """Return whether it may add memories to a namespace."""
        return self.role != "reader" and self.can_see(namespace)


USER = Caller("owner")
ANONYMOUS = Caller("reader")  # without a valid token, so limited to calls that anyone may make
