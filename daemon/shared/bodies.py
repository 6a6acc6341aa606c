"""What a memory says to other machines, and how that is read and written here. Ids are those of the server in it."""

from typing import Any

import msgspec
from msgspec import Struct

from memoryd.client.errors import Invalid
from memoryd.client.protocol import Record, Vote
from memoryd.daemon.core import checks
from memoryd.daemon.memories import transfer
from memoryd.daemon.shared.messages import RemoteMemory
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.store import feedback, rows, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.hashes import content_hash
from memoryd.daemon.store.namespaces import list_enclosing
from memoryd.daemon.store.present import convert_to
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.tiers import L1


class Body(Struct, kw_only=True):
    """What a memory says to other machines. Tier, access counts, neighbours and the graph are each machine's own."""

    key: str | None = None
    type: str
    source: str
    importance: float
    created_at: float
    updated_at: float
    expires_at: float | None = None
    pinned: bool = False
    superseded_by: str | None = None
    path: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    turns: int = 0
    votes: list[Vote] = []
    summary: str = ""
    metadata: dict[str, Any] = {}
    content: str


def read_body(connection: Connection, root: int, row: Row) -> Body:
    """Return what a memory says."""
    later = row.superseded_by
    return convert_to(
        Body,
        row,
        pinned=bool(row.pinned),
        votes=feedback.decode_votes(row.feedback),
        metadata=msgspec.json.decode(row.metadata),
        superseded_by=shared.find_id_there(connection, root, later) if later else None,
    )


def read_text(body: Body) -> str:
    """Return all that a person or a program may have written into a memory."""
    return "\n".join([body.content, body.summary, msgspec.json.encode(body.metadata).decode()])


def decode(remote: RemoteMemory, root: str) -> Body:
    """Return what a memory of the server says; raise `Invalid` or `MsgspecError` where it cannot be one here."""
    if root not in list_enclosing(remote.ns):
        raise Invalid(f"It is in {remote.ns or 'no namespace'}, not in {root}.")
    body = msgspec.json.decode(remote.body, type=Body)
    transfer.check_record(convert_to(Record, body, id=remote.id, namespace=remote.ns, tier=L1))
    return body


def read_further(body: msgspec.Raw) -> dict[str, Any]:
    """Return the fields of a body that this memoryd does not know."""
    return {name: value for name, value in msgspec.json.decode(body).items() if name not in Body.__struct_fields__}


def make_row(id: str, namespace: int, body: Body) -> Row:
    """Return a body as the memory that it is here."""
    return convert_to(
        Row,
        body,
        row=0,
        id=id,
        namespace=namespace,
        tier=L1,
        content_hash=content_hash(body.content),
        text_hash=vectors.text_hash(rows.build_embedded_text(body.content, turns=body.turns)),
        feedback=feedback.text(body.votes),
        metadata=checks.metadata_text(body.metadata),
        pinned=int(body.pinned),
    )
