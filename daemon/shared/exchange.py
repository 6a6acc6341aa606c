"""What a machine says to the server about a root: look, pull, offer. Each is one transaction and one round trip.

The server's functions decide and see to it that a role has its grant; nothing here knows a table.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from memoryd.client.errors import Forbidden, Unavailable
from memoryd.daemon.shared.messages import Head, Offer, Offered, OfferReply, Pulled, RemoteMemory
from memoryd.daemon.shared.server import ServerConnection

PULLED = 500  # rows of one pull
PULLED_BYTES = 4 << 20  # of one pull; a row that is larger comes alone

_SNAPSHOT = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOOK = "SELECT seq, life, channel, can_write, min_client, lives FROM memoryd.look(%s, %s)"
# The columns of what the server's functions return of a memory.
COLUMNS = "id, seq, tag, ns, body, deleted, purged, conflict_of, device, author"
_FEED = f"SELECT {COLUMNS} FROM memoryd.feed(%s, %s, %s, %s)"
_FETCH = f"SELECT {COLUMNS} FROM memoryd.fetch(%s, %s::uuid[], %s)"
_OFFER = "SELECT memoryd.offer(%s, %s, %s, %s, %s::text[])::text"
_decode_offered = msgspec.json.Decoder(Offered).decode


def look(server: ServerConnection, root: str, life: str) -> Head:
    """Return how a root is on the server, for who knows its life ("": none); raise `Forbidden` without a grant."""
    return _read_head(root, server.run(_LOOK, (root, life or None)).fetchone())


def pull(server: ServerConnection, root: str, life: str, after: int) -> Pulled:
    """Return the part of the feed that follows a number, and the head of the same moment."""
    with server.exchange(_SNAPSHOT):
        head = server.run(_LOOK, (root, life or None))
        feed = server.run(_FEED, (root, after, PULLED, PULLED_BYTES))
    return Pulled(_read_head(root, head.fetchone()), [read_remote(row) for row in feed.fetchall()])


def offer(server: ServerConnection, root: str, machine: str, life: str, mark: int, offers: Sequence[Offer]) -> Offered:
    """Offer versions to the server, which judges each; `life` and `mark` are the newest state of it that is known.

    An offer that cannot be written is answered as refused.
    """
    written, going, refused = list[str](), list[Offer](), list[OfferReply]()
    for one in offers:
        try:
            written.append(msgspec.json.encode(one).decode())
            going.append(one)
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError) as error:
            refused.append(OfferReply(id=one.id, said="refused", reason=str(error)))
    said = server.value(_OFFER, (root, machine, life or None, mark, written))
    try:
        done = _decode_offered(said)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"The server's answer cannot be read: {error}.") from None
    for one, answer in zip(going, done.answers, strict=False):
        answer.id = one.id
    if not done.parted:
        done.answers += refused
    return done


def fetch(server: ServerConnection, root: str, ids: Sequence[str]) -> list[RemoteMemory]:
    """Return memories by their ids, the last changed one last; fewer where they would be too large."""
    return [read_remote(row) for row in server.run(_FETCH, (root, list(ids), PULLED_BYTES)).fetchall()]


def note_machine(server: ServerConnection, root: str, machine: str, cursor: int) -> list[str]:
    """Note how far this machine has read; return the other machines."""
    found = server.run("SELECT machine, role FROM memoryd.note(%s, %s, %s)", (root, machine, cursor))
    return [f"{name} ({role})" for name, role in found.fetchall()]


def has_root(server: ServerConnection, root: str) -> bool:
    """Return whether the server has a root that this role may read."""
    return bool(server.value("SELECT count(*) FROM memoryd.look(%s, NULL)", (root,)))


def count_rows(server: ServerConnection, root: str) -> int:
    """Return how many memories of a root the server has."""
    return int(server.value("SELECT memoryd.count_rows(%s)", (root,)))


def find_start(server: ServerConnection, root: str, max_rows: int) -> int | None:
    """Return after which number the newest memories of a root begin; None where there are no more than that."""
    found = server.value("SELECT memoryd.find_start(%s, %s)", (root, max_rows))
    return None if found is None else int(found)


def list_pinned(server: ServerConnection, root: str, cursor: int, limit: int) -> list[str]:
    """Return the newest pinned memories up to a number of the feed."""
    return [id.hex for (id,) in server.run("SELECT memoryd.list_pinned(%s, %s, %s)", (root, cursor, limit)).fetchall()]


def read_terms(server: ServerConnection) -> None:
    """Note whether the server has vectors."""
    server.has_vectors = bool(server.value("SELECT has_vectors FROM memoryd.read_terms()"))


def _read_head(root: str, found: Any) -> Head:
    if found is None:
        raise Forbidden(f"This role may not read {root} on the server, or there is no such root.")
    seq, life, channel, can_write, min_client, lives = found
    return Head(seq, life.hex, channel, can_write, min_client, lives and [(name, start) for name, start in lives])


def read_remote(row: Any) -> RemoteMemory:
    """Return a row of `COLUMNS` as the memory that it is."""
    id, seq, tag, namespace, body, deleted, purged, conflict_of, device, author = row
    return RemoteMemory(
        id=id.hex,
        seq=seq,
        tag=tag.hex,
        ns=namespace,
        body=msgspec.Raw(body.encode()),
        deleted=deleted,
        purged=purged,
        conflict_of=conflict_of.hex if conflict_of else None,
        device=device,
        author=author,
    )
