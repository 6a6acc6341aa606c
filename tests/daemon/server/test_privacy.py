"""Nobody with a token learns anything of another's private memories, by any call: every method is tried.

The same calls go to a daemon that holds the private memories and to one that does not; the replies must be equal.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from probes import PROBES
from two_worlds import (
    ALPHA,
    BETA,
    CANARY,
    LEAD,
    MIXED_ID,
    MIXED_SECRET,
    OWN,
    OWN_IDS,
    SECRET_IDS,
    SECRETS,
    SHARED,
    SHARED_IDS,
    TEAM,
    TURN_ID,
    Ids,
    Voice,
    World,
    comparable,
    differences,
)

from memoryd.client import protocol
from memoryd.client.protocol import METHODS, Call, NewMemory, NewTurn, method_name
from memoryd.daemon.search import effects
from memoryd.daemon.topics.tables import graph
from workbench import Daemon


@pytest.fixture
def worlds(start_daemon: Callable[..., "Daemon"], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[World]]:
    """The daemon with the secrets and the one without, in this order. What searches leave behind waits for `settle`."""
    monkeypatch.setattr(effects, "SOON_S", 3600.0)
    made = [build(start_daemon(), secret) for secret in (True, False)]
    made[1].secret_traces = made[0].secret_traces
    made[1].secret_operations = made[0].secret_operations
    yield made
    for world in made:
        world.owner.close()


def build(daemon: "Daemon", secret: bool) -> World:
    world = World(daemon, secret)
    owner = world.owner
    for name in ("alpha", "beta"):
        world.token(name, f"{TEAM}/{name}")
    world.token("lead", LEAD, "lead")
    for id, text, namespace in zip(SHARED_IDS, SHARED, (TEAM, "acme", ""), strict=False):
        owner.call(protocol.Add(memory=NewMemory(content=text, id=id), namespace=namespace))
    if secret:
        _hide_some(world)
    for id, text in zip(OWN_IDS, OWN, strict=False):
        owner.call(protocol.Add(memory=NewMemory(content=text, id=id), namespace=ALPHA))
    turns = [NewTurn(role="user", content="We decided to call the staging database wagtail", id="abd1" + "0" * 28)]
    owner.call(protocol.Observe(turns=turns, namespace=ALPHA, session="talk"))
    owner.call(protocol.Add(memory=NewMemory(content="A mixed prefix", id=MIXED_ID), namespace=ALPHA))
    _touch_both(world)
    _cluster(world)
    if secret:
        _use_some(world)
    world.settle()
    return world


def _touch_both(world: World) -> None:
    """What the machine's user does with private and other memories together."""
    owner, secret = world.owner, world.secret
    # A memory of beta's that became shared; before that it had a past of its own.
    past = f"It was a {CANARY}" if secret else "The release train leaves at noon"
    owner.call(protocol.Add(memory=NewMemory(content=past, id=SHARED_IDS[3]), namespace=BETA))
    if secret:
        world.hide(owner.call(protocol.Update(id=SHARED_IDS[3], content="The release train leaves at noon")).operation)
    owner.share(SHARED_IDS[3], to=TEAM, move=True)
    # A shared memory that contradicts another one and became beta's.
    for id, text in zip(SHARED_IDS[4:6], ("Backups are kept for 30 days", "Backups are kept for 60 days"), strict=True):
        owner.call(protocol.Add(memory=NewMemory(content=text, id=id), namespace=TEAM, dedup_threshold=0.5))
    owner.share(SHARED_IDS[5], to=BETA, move=True)
    if not secret:
        owner.delete(SHARED_IDS[5])
    # One operation on what is shared and on what is private.
    owner.call(
        protocol.Add(memory=NewMemory(content="The office is closed on Sunday", id=SHARED_IDS[6]), namespace=TEAM)
    )
    owner.delete(SHARED_IDS[6], *(SECRET_IDS[:1] if secret else []))
    # A search of everything from alpha's place.
    found = owner.call(protocol.Search(query="wombat zyzzyva", namespace=ALPHA, reach="all", limit=100, session="talk"))
    world.secret_traces.append(found.trace)


def _cluster(world: World) -> None:
    """Put all memories into the registry and its graph; those of beta last, so that the others' nodes have no gaps."""

    def to_registry(transaction: Any, condition: str) -> None:
        number = world.daemon.core.store.namespaces.find_number(BETA)
        where = condition.format(number or 0)
        transaction.connection.execute(f"UPDATE memories SET tier = 'L2' WHERE {where}")

    def relate(transaction: Any, known: set[int]) -> None:
        nodes = [node for (node,) in transaction.connection.execute("SELECT id FROM nodes ORDER BY id")]
        new = [(min(a, b), max(a, b)) for a in nodes[:2] for b in nodes if b not in known and b != a]
        weight = 9.0 if known else 5.0  # the secret ones would come first
        graph.put_edges(transaction.connection, [((*pair, graph.CO_OCCURS), weight) for pair in new])
        known.update(nodes)

    core = world.daemon.core
    known: set[int] = set()
    for condition in ("namespace <> {0}", "namespace = {0}"):
        core.store.write(lambda transaction, chosen=condition: to_registry(transaction, chosen)).result()
        world.owner.call(protocol.RunJob(name="cluster"))
        core.store.write(lambda transaction: relate(transaction, known)).result()


def _hide_some(world: World) -> None:
    """Private memories of beta: plain, tagged, changed, superseded, deleted, shared and taken back; a turn in L0."""
    owner, place = world.owner, BETA
    turns = [NewTurn(role="user", content=f"The numbat of beta is {CANARY}", id=TURN_ID)]
    owner.call(protocol.Observe(turns=turns, namespace=BETA))
    turns = [protocol.NewTurn(role="user", content=f"{text}, said alone {CANARY}") for text in SECRETS]
    owner.call(protocol.Observe(turns=[*turns, protocol.NewTurn(role="user", content="ok")], namespace=place))
    for id, text in zip(SECRET_IDS, SECRETS, strict=False):
        memory = NewMemory(content=text, id=id, metadata={"zyzzyva": "quokka", "n": CANARY}, source="numbat")
        world.hide(owner.call(protocol.Add(memory=memory, namespace=place)).operation)
    mixed = NewMemory(content="A quokka with a mixed prefix", id=MIXED_SECRET)
    world.hide(owner.call(protocol.Add(memory=mixed, namespace=place)).operation)
    world.hide(owner.call(protocol.Update(id=SECRET_IDS[0], importance=0.9, namespace=place)).operation)
    world.hide(owner.call(protocol.Delete(ids=[SECRET_IDS[4]], namespace=place)).operation)


def _use_some(world: World) -> None:
    """What beta does: searches that leave traces and warm the caches, a share that it takes back."""
    with world.client("beta") as beta:
        talk = [f"The zyzzyva of the quokka is {CANARY}", "ok", "The wombat release was moved to Friday by numbat"]
        beta.observe([{"role": "user", "content": text} for text in talk], session="talk")
        # What it finds of the shared ones is counted there for all to see.
        world.secret_traces.append(beta.search("zyzzyva quokka", reach="exact").trace)
        world.secret_traces.append(beta.explain("wombat numbat").trace)
        world.secret_traces.append(beta.call(protocol.Search(query="zyzzyva", namespace=TEAM, touch=False)).trace)
        beta.call(protocol.GetContext(task=f"The {CANARY}", namespace=TEAM, session="another", touch=False))
        shared = beta.share(SECRET_IDS[1], to=TEAM, move=True)
        world.hide(shared.operation)
        world.hide(beta.undo(shared.operation).operation)
        world.hide(beta.add(f"A numbat that only beta knows, {CANARY}", supersedes=SECRET_IDS[3]).operation)
        world.hide(beta.tag(SECRET_IDS[2], "zyzzyva").operation)


def test_every_method_is_tried() -> None:
    assert [method_name(method) for method in METHODS if method not in PROBES] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alpha", "lead"])
def test_no_reply_depends_on_what_is_private_to_others(
    worlds: list[World], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _private(worlds[0])
    answers = []
    for world in worlds:
        monkeypatch.setattr("secrets.token_hex", Ids())
        answers.append(list(_everything(world, name)))
    assert len(answers[0]) == len(answers[1])
    assert sum(frames[-1][0] == 0 for _, frames in answers[0]) > 500  # answered, not refused
    for (call, with_secrets), (_, without) in zip(*answers, strict=True):
        assert list(differences(with_secrets, without)) == [], (
            f"{call}: its access rule (@rpc), or its handler, shows it"
        )
        assert CANARY not in msgspec.json.encode(with_secrets).decode(), call
    assert _private(worlds[0]) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alpha", "lead"])
def test_no_event_depends_on_what_is_private_to_others(worlds: list[World], name: str) -> None:
    told = []
    for world in worlds:
        with world.client(name) as client, client.subscribe(idle_s=0.5) as followed:
            _go_on(world)
            told.append([comparable(msgspec.to_builtins(event)) for event in followed])
    assert told[0] == told[1]
    assert [event["kind"] for event in told[0]] == ["created", "created", "deleted"]
    assert CANARY not in str(told)


def _go_on(world: World) -> None:
    """Something that all see, and between it what only beta and the machine's user do."""
    owner = world.owner
    owner.call(protocol.Add(memory=NewMemory(content="The office closes at six", id="abff" + "0" * 28), namespace=TEAM))
    if world.secret:
        _hide_more(world)
    owner.call(protocol.Add(memory=NewMemory(content="It closes at five", id="abfe" + "0" * 28), namespace="acme"))
    owner.call(protocol.Delete(ids=["abfe" + "0" * 28]))


def _hide_more(world: World) -> None:
    with world.client("beta") as beta:
        beta.add(f"Another {CANARY}")
        beta.add_many([{"content": f"{CANARY} {number}"} for number in range(400)], dedup=False)
        beta.observe([{"role": "user", "content": f"We decided that {CANARY} is our canary from now on"}])
        beta.delete(beta.add(f"Soon gone: {CANARY}").id)
    world.owner.call(protocol.RunJob(name="sweep"))
    world.settle()


def _everything(world: World, name: str) -> Iterator[tuple[Call[Any], Any]]:
    voice = Voice(world, name)
    try:
        for _ in range(2):
            for probe in PROBES.values():
                for call in probe(world):
                    yield call, voice.ask(call)
                    world.settle()  # else the next call might come before what this one leaves to do, or after it
    finally:
        voice.close()


def _private(world: World) -> Any:
    """Return all that is private to beta, as its owner sees it."""
    listed = world.owner.call(protocol.List(namespace=BETA, reach="exact", limit=1000, all_states=True))
    histories = [world.owner.history(memory.id) for memory in listed]
    return msgspec.json.encode([listed, histories])
