"""The namespaces that hold memories, chosen by the parts of their names."""

from collections.abc import Sequence

from memoryd.client.protocol import NamespaceCount, NamespaceList, Namespaces
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces, queries
from memoryd.daemon.store.filters import Filter

_ANY = "*"


@handles(Namespaces)
def list_namespaces(core: Core, call: Namespaces) -> NamespaceList:
    """Return one page of the namespaces in reach that hold living memories, turns in L0 aside."""
    names = core.store.namespaces
    reached = names.reach(namespaces.check(call.namespace), call.reach)
    prefix, suffix = (namespaces.check(text).split("/") if text else [] for text in (call.prefix, call.suffix))
    counts: dict[str, int] = {}
    with core.store.reading() as connection:
        found = queries.count_by_namespace(connection, Filter(reached), core.clock.read_elapsed())
    for number, count in found:
        parts = names.name(number).split("/")
        if _is_beginning(parts, prefix) and _is_beginning(parts[::-1], suffix[::-1]):
            name = "/".join(parts[: call.depth])
            counts[name] = counts.get(name, 0) + count
    ordered = sorted(counts, key=lambda name: name.split("/"))
    page = ordered[call.offset : call.offset + call.limit]
    listed = [NamespaceCount(name=name, memories=counts[name]) for name in page]
    return NamespaceList(namespaces=listed, total=len(ordered))


def _is_beginning(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(parts) >= len(wanted) and all(one in (_ANY, part) for part, one in zip(parts, wanted, strict=False))
