"""The client of an adapter: a blocking one, which adapters for code that awaits call on threads."""

import logging
from collections.abc import Sequence

from memoryd.client.errors import BadFrame, Invalid
from memoryd.client.project import namespace_of_environment
from memoryd.client.protocol import KeyedEntry, PutMany
from memoryd.client.transport.sync import Client

log = logging.getLogger(__name__)


def choose_client(given: Client | None) -> Client:
    """Return the client that was given, else one at the root, whatever folder the program runs in."""
    check_client(given)
    return given or Client(namespace_of_environment() or "")


def check_client(given: Client | None) -> None:
    """Raise `TypeError` for what is no blocking client, such as an `AsyncClient`, which belongs to one event loop."""
    if given is not None and not isinstance(given, Client):
        raise TypeError(f"Give a memoryd.client.Client, not {type(given).__name__}: it is called on threads.")


def put_entries(client: Client, entries: Sequence[KeyedEntry], allow_secrets: bool) -> None:
    """Put entries, all or none; raise `ValueError` for what is refused, and warn of credentials that were taken out."""
    try:
        done = client.call(PutMany(entries=list(entries), allow_secrets=allow_secrets))
    except (Invalid, BadFrame) as error:
        raise ValueError(error.message) from None
    if done.redacted:
        kinds = ", ".join(sorted(done.redacted))  # without their numbers: a text is in the content and the metadata
        log.warning("credentials were taken out of what was stored: %s; `allow_secrets=True` keeps them", kinds)
