"""The contract between clients and daemon: every call, its result, the envelope, the version.

A call is a value: one Struct per method, declared by `@rpc` with who may call it, whether it reads, whether it grows
the database and on which lane it runs. Its fields are the parameters, its tag the name on the wire, its docstring and
those of its fields the documentation for users, its type argument the result. Decoder, dispatch, access, the clients'
methods and protocol.json come from the declarations. Requests forbid unknown fields (a newer client's filter must not
be ignored silently); results ignore them. Times are UTC seconds since the epoch. Namespaces are written
`acme/api/alpha`; the root is the empty string.

A module of the contract is imported when one of its names is first used, because defining all Structs takes longer than
a search from a shell. Modules that such a search loads therefore import names from `base`, `memories`, `search` and
`service` alone, and write `protocol.Share` where they need another call.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

from memoryd.client.protocol.base import *
from memoryd.client.protocol.base import DECLARED, Call, R

if TYPE_CHECKING:
    from memoryd.client.protocol.access import *
    from memoryd.client.protocol.backfill import *
    from memoryd.client.protocol.context import *
    from memoryd.client.protocol.dreams import *
    from memoryd.client.protocol.erase import *
    from memoryd.client.protocol.events import *
    from memoryd.client.protocol.feedback import *
    from memoryd.client.protocol.history import *
    from memoryd.client.protocol.jobs import *
    from memoryd.client.protocol.keyed import *
    from memoryd.client.protocol.links import *
    from memoryd.client.protocol.memories import *
    from memoryd.client.protocol.namespaces import *
    from memoryd.client.protocol.pauses import *
    from memoryd.client.protocol.search import *
    from memoryd.client.protocol.service import *
    from memoryd.client.protocol.sessions import *
    from memoryd.client.protocol.shared import *
    from memoryd.client.protocol.statistics import *
    from memoryd.client.protocol.summaries import *
    from memoryd.client.protocol.tiers import *
    from memoryd.client.protocol.topics import *
    from memoryd.client.protocol.transfer import *
    from memoryd.client.protocol.workspaces import *

    METHODS: tuple[type[Call[Any]], ...]
    READS: frozenset[type[Call[Any]]]
    UNVERSIONED: frozenset[str]

# protocol.json lists the methods in this order; docs/reference.md has a section for each module.
_MODULES = tuple(
    f"{__name__}.{module}"
    for module in "base memories keyed search context links feedback history erase tiers pauses sessions summaries"
    " backfill workspaces dreams topics namespaces access shared jobs events transfer statistics service".split()
)
# Names are looked up in these modules first, since they have every name that a search needs.
_FIRST_MODULES = tuple(f"{__name__}.{module}" for module in ("base", "memories", "search", "service"))


def __getattr__(name: str) -> Any:
    """Return a name of the contract, from the first module that has it."""
    if name.startswith("__"):
        raise AttributeError(name)
    for module in (*_FIRST_MODULES, *_MODULES):
        names = vars(import_module(module))
        if name in names:
            globals()[name] = names[name]
            return names[name]
    return _build_tables(name)


def _build_tables(name: str) -> Any:
    """Return one of the tables of all calls; every module is imported by now."""
    methods = tuple(sorted(DECLARED, key=lambda call: _MODULES.index(call.__module__)))
    tables = {
        "METHODS": methods,
        # Calls that change nothing: a client may send them again after a broken connection.
        "READS": frozenset(call for call in methods if DECLARED[call].reads),
        # Answered whatever version the request names, so that a newer client can end or restart an older daemon.
        "UNVERSIONED": frozenset(method_name(call) for call in methods if DECLARED[call].any_version),
    }
    if name not in tables:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals().update(tables)
    return tables[name]


def method_name(call: type[Call[Any]]) -> str:
    """Return the wire name of a call class."""
    return str(call.__struct_config__.tag)


def result_type(call: type[Call[R]]) -> type[R]:
    """Return the result class of a call class: the type argument of its base."""
    base = next(base for base in call.__orig_bases__ if get_args(base))  # type: ignore[attr-defined]
    result: type[R] = get_args(base)[0]
    return result
