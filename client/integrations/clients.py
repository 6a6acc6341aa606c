"""The client of an adapter: a blocking one, which adapters for asyncio call in threads."""

import logging
import re
from collections.abc import Sequence

from memoryd.client.credentials import redact
from memoryd.client.errors import BadFrame, Invalid
from memoryd.client.integrations.values import restore
from memoryd.client.projects.project import namespace_of_environment
from memoryd.client.protocol import KeyedEntry, Put
from memoryd.client.transport.sync import Client

log = logging.getLogger(__name__)
_NUMBER = re.compile(r"(?:Entry|Memory) \d+: ")  # in the daemon's errors; users of adapters know no such numbers


def choose_client(given: Client | None) -> Client:
    """Return the given client, else one at the root, so that the current folder does not matter."""
    check_client(given)
    return given or Client(namespace_of_environment() or "")


def check_client(given: Client | None) -> None:
    """Raise `TypeError` unless it is a blocking client; an `AsyncClient` belongs to one event loop."""
    if given is not None and not isinstance(given, Client):
        raise TypeError(f"Give a memoryd.client.Client, not {type(given).__name__}: it is called on threads.")


def check_count(name: str, number: object) -> None:
    """Raise `ValueError` unless it is a number of at least 0, or None for no limit."""
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
        raise ValueError(f"The {name} must be a whole number, 0 or more, not {number!r}.")


def put_entries(client: Client, entries: Sequence[KeyedEntry], allow_secrets: bool) -> None:
    """Put entries, all or none; raise `ValueError` if one is refused, and warn of credentials that were removed."""
    try:
        done = client.call(Put(entries=list(entries), allow_secrets=allow_secrets))
    except (Invalid, BadFrame) as error:
        raise ValueError(_name_item(error, entries)) from None
    if done.redacted:
        kinds = ", ".join(sorted(done.redacted))  # without counts, since a text is in the content and in the metadata
        log.warning("taken out of what was stored: %s; `allow_secrets=True` keeps credentials", kinds)


def _name_item(error: Invalid | BadFrame, entries: Sequence[KeyedEntry]) -> str:
    """Return a refusal in terms of the framework, which calls a memory an item and its metadata the item's value."""
    index = error.data.get("index")
    if not isinstance(index, int) or index >= len(entries):
        return error.message
    entry, said = entries[index], _NUMBER.sub("", error.message, count=1).replace("metadata", "value", 1)
    key = entry.key.partition("\n")[0]
    return f"{describe_item(key, entry.below)}: {said}"


def describe_item(key: str, place: str) -> str:
    """Describe an item by its key and its namespace below the client's, without credentials."""
    where = f" of {redact(place)}" if place else ""
    return f"item {redact(restore(key))[:40]!r}{where}"
