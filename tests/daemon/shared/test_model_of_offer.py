"""The server judges offers as the model does."""

import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

import model
import msgspec
import pytest

from memoryd.daemon.shared import exchange, schema, server
from memoryd.daemon.shared.messages import Offer, OfferReply, RemoteMemory, Sibling
from memoryd.daemon.shared.server import ServerConnection
from postgres import Postgres

NAMESPACES, KEYS, TEXTS, VOTERS = ("a", "b"), (None, None, "port"), ("x", "y", "z"), ("ann", "bob")
TAGS: tuple[list[str], ...] = ([], ["a"], ["b", "a"], ["b", "c", "c"])


@pytest.fixture
def opened(postgres: Postgres, database: str) -> Iterator[ServerConnection]:
    made = server.connect(postgres.address(database=database))
    yield made
    made.close()


class Comparison:
    """The same offers to the server and to the model of it."""

    def __init__(self, opened: ServerConnection, root: str, random: Random) -> None:
        self.server, self.root, self.random = opened, root, random
        schema.make_root(opened, root)
        self.model = model.Server(self._make_id)
        self.there = self.model.make_root(root)
        self.there.grants["postgres"] = True
        self.ids, self.lost = [self._make_id() for _ in range(4)], [self._make_id() for _ in range(2)]
        self.offers: list[model.Offer] = []
        self.head = exchange.look(opened, root, "")

    def _make_id(self) -> str:
        return uuid.UUID(int=self.random.getrandbits(128)).hex

    def _choose(self) -> model.Offer:
        """Return an offer, new or again, of whatever was there before."""
        choose = self.random.choice
        if self.offers and self.random.random() < 0.15:
            return choose(self.offers)
        id = choose([*self.ids, *self.there.rows])
        tags = [one.tag for one in self.offers if one.id == id] or [self._make_id()]
        row = self.there.rows.get(id)
        base = choose([None, *tags, *([row.tag] * 4 if row and not row.purged else [])])
        is_lost = self.random.random() < 0.25
        deleted, purged = self.random.random() < 0.15, self.random.random() < 0.04
        is_unchanged = base and is_lost and not deleted and not purged and choose([True, False])
        tag = base if is_unchanged else self._make_id()
        offered = tuple(one for one in dict.fromkeys(tags) if self.random.random() < 0.3 and one != tag)
        key, text = choose(KEYS), choose(TEXTS)
        body: dict[str, Any] = {"content": text, "metadata": {}, "pinned": choose([True, False])}
        body["metadata"] = {name: self.random.randrange(3) for name in "ab" if self.random.random() < 0.5}
        if self.random.random() < 0.5:
            body["metadata"]["tags"] = choose([*TAGS, "no list"])
        body["votes"] = [{"by": voter, "at": 1.0} for voter in VOTERS if self.random.random() < 0.5]
        said = ({}, None) if deleted or purged else (body if key is None else {**body, "key": key}, key)
        lost = (choose(self.lost), self.random.randrange(9), self.random.randrange(12)) if is_lost else (None, 0, 0)
        of = None if is_unchanged else choose([None, None, None, *self.ids, *self.there.rows])
        return model.Offer(
            id, base, tag, offered, f"{self.root}/{choose(NAMESPACES)}", said[1], said[0], deleted, purged, of, *lost
        )

    def step(self) -> None:
        going = [self._choose() for _ in range(self.random.randint(1, 4))]
        self.offers += going
        wanted = self.model.offer("postgres", self.root, "one", self.there.life, 0, going)
        done = exchange.offer(self.server, self.root, "one", self.head.life, 0, [Offer(**_name(o)) for o in going])
        rows = {remote.id: remote for remote in exchange.pull(self.server, self.root, self.head.life, 0).rows}
        for id, row in self.there.rows.items():  # the other versions of what was purged have tags of the server
            if row.purged and id in rows:
                self.there.rows[id] = row._replace(tag=rows[id].tag)
        purged = {id for id, remote in rows.items() if remote.purged}
        for offer, want, answer in zip(going, wanted.answers, done.answers, strict=True):
            assert _show(answer, purged) == _show_model(want, purged), (offer, want.rule)
        assert {id: _show_row(row) for id, row in rows.items()} == {
            id: _show_model_row(row) for id, row in self.there.rows.items()
        }, going
        assert done.seq == wanted.seq


def _name(offer: model.Offer) -> dict[str, Any]:
    return {**offer._asdict(), "offered": list(offer.offered)}


def _show_row(remote: RemoteMemory | None) -> Any:
    if remote is None:
        return None
    tag = "" if remote.purged else remote.tag
    said = (remote.ns, msgspec.json.decode(remote.body), remote.deleted, remote.purged, remote.conflict_of)
    return remote.id, remote.seq, tag, remote.device, *said


def _show_model_row(row: model.Row | None) -> Any:
    if row is None:
        return None
    tag = "" if row.purged else row.tag
    return row.id, row.seq, tag, row.device, row.ns, row.body, row.deleted, row.purged, row.conflict_of


def _show(answer: OfferReply, purged: set[str]) -> Any:
    named = answer.sibling and _name_sibling(answer.sibling, purged)
    return answer.id, answer.said, answer.seq, answer.base, _show_row(answer.row), named


def _show_model(answer: model.Answer, purged: set[str]) -> Any:
    named = answer.sibling and _name_sibling(answer.sibling, purged)
    return answer.id, answer.said, answer.seq, answer.base, _show_model_row(answer.row), named


def _name_sibling(sibling: Sibling | model.Sibling, purged: set[str]) -> Any:
    return sibling.id, sibling.seq, "" if sibling.id in purged else sibling.tag, sibling.conflict_of


def compare(opened: ServerConnection, seeds: range, steps: int) -> dict[int, int]:
    """Compare what is done with many offers; return how often each rule judged."""
    rules: dict[int, int] = {}
    for seed in seeds:
        made = Comparison(opened, f"acme{seed}", Random(seed))
        for _ in range(steps):
            made.step()
        for rule, count in made.model.rules.items():
            rules[rule] = rules.get(rule, 0) + count
    return rules


@pytest.mark.slow
def test_the_server_judges_as_the_model_does(opened: ServerConnection) -> None:
    rules = compare(opened, range(40), 25)
    assert set(rules) == set(range(1, 14)), rules


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_server_judges_many_offers_as_the_model_does(opened: ServerConnection) -> None:
    compare(opened, range(1_000, 1_200), 60)
