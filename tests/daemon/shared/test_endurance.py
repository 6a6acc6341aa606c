"""Eight machines save and change the same while the line is cut, the place is hung and killed, one is sent away."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import cycle
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from joined import decide, wait_until_sent
from standing import MEMBERS, Standing

from memoryd.client import Client, MemorydError
from memoryd.client.protocol import Add, AddWorkspace, Get, GetShared, GetUnasked, List, NewMemory, Update
from memoryd.daemon.store.store import FILE_NAME
from waiting import wait_until

REVOKED = MEMBERS[-1]
COMMON = [
    "Releases are on Tuesdays",
    "Builds take nine minutes",
    "Xylophones are tuned in spring",
    "Ports are above 8000",
]


class Save(NamedTuple):
    """A save that was acknowledged."""

    text: str
    began: float
    waiting: bool


class Member:
    """A daemon that is joined, and what it was told."""

    def __init__(self, name: str, process: Any) -> None:
        self.name, self.process = name, process
        self.saves: list[Save] = []
        self.errors: list[tuple[float, MemorydError]] = []
        self.changes: list[tuple[str, str]] = []  # the id, and the text that it has
        self.kept: list[str] = []  # what is to stay here
        self.seen_at = 0.0  # when a search that found something shared was asked last

    def save(self, client: Client, text: str, dedup: bool = False) -> None:
        began = time.monotonic()
        try:
            added = decide(client, text, dedup=dedup)
        except MemorydError as error:
            self.errors.append((began, error))
        else:
            assert added.shared == "acme"
            self.saves.append(Save(text, began, added.waiting))

    def keep(self, client: Client, number: int) -> None:
        """Save what must not go: outside of the root, in what is excluded, of another kind, what was said."""
        places = (("notes", "decision"), ("acme/hr", "decision"), ("acme", "decision"), ("acme/api", "preference"))
        for namespace, kind in places:
            text = f"Private {kind} {number} in {namespace} of {self.name}"
            call = Add(memory=NewMemory(content=text, type=kind), namespace=namespace, dedup=False)
            assert not client.call(call).shared
            self.kept.append(text)
        said = f"We decided to have private talk {number} of {self.name} in our room"
        client.observe([{"role": "user", "content": said}], session=self.name)

    def work(self, same: Sequence[str], until: float) -> None:
        dice = random.Random()
        number = 0
        with self.process.client("acme/api") as client:
            while time.monotonic() < until:
                number += 1
                self.save(client, f"Decision {number} of {self.name}")
                self.save(client, dice.choice(COMMON), dedup=True)
                id, text = dice.choice(same), f"Changed by {self.name} after {number}"
                with suppress(MemorydError):  # the place is away
                    client.call(Update(id=id, content=text))
                    self.changes.append((id, text))
                if number % 5 == 0:
                    self.keep(client, number)
                began = time.monotonic()
                if any(hit.shared for hit in client.search("decision", deadline_ms=300)):
                    self.seen_at = began
                client.call(GetUnasked(namespace="acme/api"))
                time.sleep(dice.uniform(0.0, 0.1))

    def list_here(self) -> list[str]:
        """Return the texts of the memories that this machine has."""
        with closing(apsw.Connection(str(self.process.data / FILE_NAME))) as connection:
            found: Any = connection.execute("SELECT content FROM memories")
            return [text for (text,) in found]


class Trouble:
    """What befalls a place, one thing after the other."""

    def __init__(self, place: Standing, seconds: float) -> None:
        self._place, self._seconds = place, seconds
        self._dice = random.Random()
        self.revoked_at = inf
        self.had: Counter[str] = Counter()  # of the one who was revoked, then

    def go_on(self, until: float) -> None:
        for befall in cycle((self._cut, self._hang, self._cut, self._kill, self._cut, self._stop)):
            time.sleep(self._dice.uniform(0.5, 4.0))
            if self.revoked_at == inf and time.monotonic() > until - self._seconds / 2:
                self._place.revoke(REVOKED)
                self.revoked_at = time.monotonic()
                time.sleep(2.5)  # a statement that was under way has ended
                self.had = count_of(REVOKED, self._place)
            if time.monotonic() > until - 2:
                return
            befall()

    def _cut(self) -> None:
        """Cut each line on which anything goes after some more blocks."""
        self._place.relay.left = self._dice.randrange(60)
        time.sleep(0.3)
        self._place.relay.left = inf

    def _hang(self) -> None:
        self._place.hang(True)
        time.sleep(self._dice.uniform(0.5, self._seconds / 5))
        self._place.hang(False)

    def _kill(self) -> None:
        self._place.kill()
        time.sleep(self._dice.uniform(0.0, 2.0))
        self._place.start()

    def _stop(self) -> None:
        self._place.stop()
        time.sleep(self._dice.uniform(0.0, 2.0))
        self._place.start()


def count_of(member: str, place: Any) -> "Counter[str]":
    return Counter(row.content for row in place.read_rows() if row.content.endswith(f" of {member}"))


@pytest.fixture
def members(folder: Path, place: Standing) -> Iterator[list[Member]]:
    joined = [Member(name, place.join(folder / name, name, exclude=["acme/hr"])) for name in MEMBERS]
    for member in joined:
        files = folder / f"{member.name}-files"
        files.mkdir()
        (files / "MEMORY.md").write_text(f"# Private\n\n- Private line of {member.name}\n")
        with member.process.client() as client:
            client.call(AddWorkspace(path=str(files), namespace="acme/api"))
    yield joined
    for member in joined:
        member.process.stop()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seconds", [pytest.param(20, marks=pytest.mark.slow), pytest.param(60, marks=pytest.mark.stress)]
)
def test_nothing_is_lost_twice_or_where_it_must_not_be(
    place: Any, members: list[Member], seconds: int, record_property: Any
) -> None:
    with members[0].process.client() as client:
        same = [decide(client, f"Known to all {number}") for number in range(20)]
    assert not any(added.waiting for added in same)
    ids = [added.id for added in same]
    trouble = Trouble(place, seconds)
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(len(members)) as pool:
        working = [pool.submit(member.work, ids, until) for member in members]
        trouble.go_on(until)  # here: the server would end with the thread that started it
        for one in working:
            one.result()
    staying, revoked = members[:-1], members[-1]
    for member in staying:
        with member.process.client() as client:
            wait_until_sent(client, 120)
    saves = [save for member in members for save in member.saves]
    record_property("saves", len(saves))
    record_property("waited", sum(save.waiting for save in saves))
    record_property("changes", sum(len(member.changes) for member in members))
    record_property("errors", dict(Counter(error.code for member in members for _, error in member.errors)))

    # Each acknowledged save is there once, and nothing else is.
    rows = place.read_rows()
    there = Counter(row.content for row in rows)
    texts = [place.read_texts(id) for id in ids]
    acknowledged = {save.text for member in staying for save in member.saves}
    assert acknowledged <= there.keys()
    assert set(there.values()) == {1}
    assert [member.errors for member in staying if member.errors] == []
    mine = {text for text in there if text.endswith(f" of {REVOKED}")}
    rest = there.keys() - acknowledged - mine - {versions[-1] for versions in texts}
    assert rest <= set(COMMON)
    assert {(row.namespace, row.type, row.path) for row in rows} == {("acme/api", "decision", None)}
    # Each acknowledged change is in the history.
    for id, versions in zip(ids, texts, strict=True):
        assert versions[-1] in there
        assert {text for member in members for one, text in member.changes if one == id} <= set(versions)
    # Nothing of it is left here; what was to stay is.
    for member in members:
        here = Counter(member.list_here())
        kept = [text for text in here if text.startswith(("Private decision", "Private preference"))]
        assert sorted(kept) == sorted(member.kept)
        if member is not revoked:
            assert not [text for text in here if text in there or text.startswith(("Decision", "Changed", "Known"))]

    # Who was revoked sees nothing of it, has what the place did not take, and knows why.
    assert count_of(REVOKED, place) == trouble.had
    assert revoked.seen_at < trouble.revoked_at
    assert [save for save in revoked.saves if save.began > trouble.revoked_at and not save.waiting] == []
    assert {save.text for save in revoked.saves} <= there.keys() | set(revoked.list_here())
    with revoked.process.client("acme/api") as client:
        # Each call opens a line that is away at once, not after its pause of up to a minute.
        wait_until(lambda: place.denied in client.call(GetShared(send=True)).roots[0].problem)
        for found in (client.search("decision changed known"), client.call(List(namespace="acme/api", limit=1000))):
            assert not [one for one in found if one.shared]
            assert "shared:acme" in found.degraded
        with pytest.raises(MemorydError):
            client.call(Get(id=ids[0]))
        told = client.call(GetUnasked(namespace="acme/api")).text
        assert not [text for text in there.keys() - set(revoked.list_here()) if text in told]
