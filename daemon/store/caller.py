"""Who makes a call: what it may see and what it may change.

Without a token a connection is the machine's user, who reaches everything; a namespace that it names is its place, not
its limit. A token binds a connection to a namespace. It sees that namespace, those inside it and those that enclose it.
What is in its own (and inside it) belongs to it, whoever wrote it; what is in an enclosing one is shared: an `agent`
reads it and adds to it, a `lead` also edits and deletes it. A `reader` changes nothing anywhere.
"""

from typing import Literal, NamedTuple

from memoryd.client.errors import Forbidden
from memoryd.daemon.store.namespaces import list_enclosing

CallerRole = Literal["owner", "lead", "agent", "reader", "nobody"]


class Caller(NamedTuple):
    """A role, the namespace that it is bound to, and the token that says so: its name and its SHA-256."""

    role: CallerRole
    namespace: str = ""
    name: str = ""
    key: bytes = b""

    @property
    def bound(self) -> bool:
        """Whether a namespace limits what this caller reaches."""
        return self.role != "owner"

    def is_owner_of(self, namespace: str) -> bool:
        """Return whether a namespace is the caller's own or is inside it."""
        return not self.bound or namespace == self.namespace or namespace.startswith(self.namespace + "/")

    def can_see(self, namespace: str) -> bool:
        """Return whether memories in a namespace can be read."""
        return self.is_owner_of(namespace) or namespace in list_enclosing(self.namespace)

    def may_change(self, namespace: str) -> bool:
        """Return whether memories in a namespace may be edited, moved and deleted."""
        if self.role == "reader":
            return False
        return self.is_owner_of(namespace) or (self.role == "lead" and namespace in list_enclosing(self.namespace))

    def log_place(self, namespace: str) -> str:
        """Return the namespace under which the log records an operation called at `namespace`: never a shared one."""
        return namespace if self.is_owner_of(namespace) else self.namespace

    def check_change(self, memory: str, namespace: str) -> None:
        """Raise `Forbidden` for a memory that can be seen but is not the caller's to change."""
        if not self.may_change(namespace):
            raise Forbidden(
                f"Memory {memory[:8]} is shared ({namespace or 'the root'}); with this token only what is in "
                f"{self.namespace} may be changed. `memctl undo` takes back what it added there itself; a token with "
                "the role lead changes the rest.",
                {"id": memory},
            )


USER = Caller("owner")
NOBODY = Caller("nobody")
