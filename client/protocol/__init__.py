"""The contract between clients and daemon: every call, its result, the envelope, the version.

A call is a value: one Struct per method, declared by `@rpc` with who may call it, whether it reads, whether it grows
the database and on which lane it runs. Its fields are the parameters, its tag the name on the wire, its docstring and
those of its fields the documentation for users, its type argument the result. Decoder, dispatch, access, the clients'
methods and PROTOCOL.md come from the declarations. Requests forbid unknown fields (a newer client's filter must not be
ignored silently); results ignore them. Times are UTC seconds since the epoch. Namespaces are written `acme/api/alpha`;
the root is the empty string.
"""
# isort: skip_file  (PROTOCOL.md lists the methods in this order)

from typing import Any, get_args

from memoryd.client.protocol.access import *
from memoryd.client.protocol.base import *
from memoryd.client.protocol.base import DECLARED, Call, R
from memoryd.client.protocol.chosen import *
from memoryd.client.protocol.context import *
from memoryd.client.protocol.dreams import *
from memoryd.client.protocol.erase import *
from memoryd.client.protocol.events import *
from memoryd.client.protocol.feedback import *
from memoryd.client.protocol.graph import *
from memoryd.client.protocol.history import *
from memoryd.client.protocol.jobs import *
from memoryd.client.protocol.keyed import *
from memoryd.client.protocol.links import *
from memoryd.client.protocol.memories import *
from memoryd.client.protocol.notes import *
from memoryd.client.protocol.observing import *
from memoryd.client.protocol.roots import *
from memoryd.client.protocol.search import *
from memoryd.client.protocol.service import *
from memoryd.client.protocol.sessions import *
from memoryd.client.protocol.statistics import *
from memoryd.client.protocol.summaries import *
from memoryd.client.protocol.tiers import *
from memoryd.client.protocol.transfer import *
from memoryd.client.protocol.workspaces import *

METHODS: tuple[type[Call[Any]], ...] = tuple(DECLARED)
# Calls that change nothing: a client may send them again after a broken connection.
READS = frozenset(call for call, declared in DECLARED.items() if declared.reads)


def method_name(call: type[Call[Any]]) -> str:
    """Return the wire name of a call class."""
    return str(call.__struct_config__.tag)


def result_type(call: type[Call[R]]) -> type[R]:
    """Return the result class of a call class: the type argument of its base."""
    base = next(base for base in call.__orig_bases__ if get_args(base))  # type: ignore[attr-defined]
    result: type[R] = get_args(base)[0]
    return result


# Answered whatever version the request names, so that a newer client can ask an older daemon to end or to restart.
UNVERSIONED = frozenset(method_name(call) for call, declared in DECLARED.items() if declared.any_version)
