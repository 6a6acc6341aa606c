"""Who makes a call: what it may see and what it may change.

Without a token a connection is the machine's user, who reaches everything; a namespace that it names is its place, not
its limit. A token binds a connection to a namespace. It sees that namespace, those inside it and those that enclose it.
What is in its own (and inside it) belongs to it, whoever wrote it; what is in an enclosing one is shared: an `agent`
reads it, adds to it and changes what nobody but itself has worked on, a `lead` also edits and deletes the rest. A
`reader` changes nothing anywhere. What was done is undone by the token that did it, and by the owner.

Somebody on another machine is confined: what encloses the namespace is not there for them.
"""

from typing import Literal, NamedTuple

from memoryd.daemon.store.namespaces import list_enclosing

CallerRole = Literal["owner", "lead", "agent", "reader"]


class Caller(NamedTuple):
    """A role, the namespace that it is bound to, and the token that says so: name, SHA-256, since when there is it.

    `confined`: it sees nothing of what encloses the namespace.
    """

    role: CallerRole
    namespace: str = ""
    name: str = ""
    key: bytes = b""
    since: float = 0.0
    confined: bool = False

    @property
    def bound(self) -> bool:
        """Whether a namespace limits what this caller reaches."""
        return self.role != "owner"

    def list_around(self) -> list[str]:
        """Return the namespaces that enclose its own and that it sees, the innermost first, the root last."""
        return [] if self.confined else list_enclosing(self.namespace)[1:]

    def is_owner_of(self, namespace: str) -> bool:
        """Return whether a namespace is the caller's own or is inside it."""
        return not self.bound or namespace == self.namespace or namespace.startswith(self.namespace + "/")

    def can_see(self, namespace: str) -> bool:
        """Return whether memories in a namespace can be read."""
        return self.is_owner_of(namespace) or namespace in self.list_around()

    def may_change(self, namespace: str) -> bool:
        """Return whether memories in a namespace may be edited, moved and deleted."""
        if self.role == "reader":
            return False
        return self.is_owner_of(namespace) or (self.role == "lead" and namespace in self.list_around())

    def log_place(self, namespace: str) -> str:
        """Return the namespace under which the log records an operation called at `namespace`: never a shared one."""
        return namespace if self.is_owner_of(namespace) else self.namespace

    def may_add(self, namespace: str) -> bool:
        """Return whether memories may be added to a namespace."""
        return self.role != "reader" and self.can_see(namespace)


USER = Caller("owner")
ANONYMOUS = Caller("reader")  # presents no token in force, so it may only call what anyone may
