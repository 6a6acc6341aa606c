"""One who offers versions to a server by hand, for tests."""

import uuid
from typing import Any

import msgspec

from memoryd.daemon.shared import exchange, schema, server
from memoryd.daemon.shared.messages import Offer, Offered, OfferReply, RemoteMemory
from postgres import Postgres

ROOT = "acme"


def make_id() -> str:
    return uuid.uuid4().hex


def make_offer(text: str = "", **fields: Any) -> Offer:
    """Return an offer of a new memory, but for what is said of it."""
    body = {"content": text, "metadata": {}, "pinned": False, "votes": [], **fields.pop("body", {})}
    given = {"id": make_id(), "base": None, "tag": make_id(), "ns": ROOT, "body": body, **fields}
    if given.get("deleted") or given.get("purged"):
        given["body"] = {}
    elif given.get("key"):
        given["body"]["key"] = given["key"]
    return Offer(**given)


class Desk:
    """A connection of a role, and the state of a root that it knows."""

    def __init__(self, postgres: Postgres, database: str, role: str = "postgres", root: str = ROOT) -> None:
        self.server, self.root = server.connect(postgres.address(role, database)), root
        self.life, self.mark = "", 0

    def look(self) -> exchange.Head:
        head = exchange.look(self.server, self.root, self.life)
        self.life, self.mark = head.life, head.seq
        return head

    def offer(self, *offers: Offer) -> Offered:
        done = exchange.offer(self.server, self.root, "desk", self.life, self.mark, offers)
        if not done.parted:
            self.life, self.mark = done.life, done.seq
        return done

    def one(self, offer: Offer) -> OfferReply:
        [answer] = self.offer(offer).answers
        return answer

    def rows(self, after: int = 0) -> dict[str, RemoteMemory]:
        return {row.id: row for row in exchange.pull(self.server, self.root, self.life, after).rows}

    def texts(self) -> list[str]:
        """Return what lives, in its order."""
        return [read(row)["content"] for row in self.rows().values() if not row.deleted]

    def close(self) -> None:
        self.server.close()


def read(row: RemoteMemory | None) -> Any:
    assert row is not None
    return msgspec.json.decode(row.body)


def grant(postgres: Postgres, database: str, role: str, root: str = ROOT, write: bool = True) -> None:
    owner = server.connect(postgres.address(database=database))
    schema.grant(owner, root, role, write)
    owner.close()


def revoke(postgres: Postgres, database: str, role: str, root: str = ROOT) -> bool:
    owner = server.connect(postgres.address(database=database))
    try:
        return schema.revoke(owner, root, role)
    finally:
        owner.close()


def texts_there(postgres: Postgres, database: str) -> set[object]:
    """Return the texts of the living memories that the server has."""
    return {text for (text,) in postgres.sql("SELECT body->>'content' FROM memoryd.mem WHERE NOT deleted", database)}
