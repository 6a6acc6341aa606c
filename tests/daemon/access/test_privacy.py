"""Nobody with a token learns anything of another's private memories, by any call: every method is tried.

The same calls go to a daemon that holds the private memories and to one that does not; the replies must be equal.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from two_worlds import (
    ALPHA,
    BETA,
    CANARY,
    LEAD,
    MIXED_ID,
    MIXED_SECRET,
    OWN_IDS,
    SECRET_IDS,
    SECRET_WORDS,
    SHARED_IDS,
    TEAM,
    TURN_ID,
    Ids,
    Voice,
    World,
    differences,
)

from memoryd.client import protocol
from memoryd.client.protocol import METHODS, Call, NewMemory, NewTurn, method_name
from memoryd.daemon.lifecycle import judging
from memoryd.daemon.tiers import graph
from waiting import wait_until

if TYPE_CHECKING:
    from conftest import Daemon

SECRETS = (
    "The zyzzyva password of the quokka account is xylitol",
    "beta thinks that wombat releases on Friday are a numbat mistake",
    "We use Valkey 8 as the cache",  # nearly what alpha says
    "The deploy window is Tuesday at 9",  # disagrees with what alpha says
    "Everybody knows that wombat and numbat are animals",
)
OWN = (
    "We use Valkey as the cache",
    "The deploy window is Tuesday at 10",
    "The staging database is called wagtail",
    "A wombat is a marsupial",  # one of the secret words, in a memory of alpha's own
)
SHARED = ("Releases are tagged by the release manager", "The company is called Acme", "All dates are in UTC")


@pytest.fixture
def worlds(start_daemon: Callable[..., "Daemon"]) -> Iterator[list[World]]:
    """The daemon with the secrets and the one without, in this order."""
    made = [build(start_daemon(), secret) for secret in (True, False)]
    made[1].secret_traces = made[0].secret_traces
    made[1].secret_operations = [10**6 + number for number in range(len(made[0].secret_operations))]
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
    daemon.core.effects.flush()
    _settle(world)
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
        number = world.daemon.core.store.namespaces.number(BETA)
        where = condition.format(number or 0)
        transaction.connection.execute(f"UPDATE memories SET tier = 'L2' WHERE {where}")

    def relate(transaction: Any, known: set[int]) -> None:
        nodes = [node for (node,) in transaction.connection.execute("SELECT id FROM nodes ORDER BY id")]
        new = [(node, other) for node in nodes[:2] for other in nodes if other not in known and other != node]
        graph.strengthen(transaction.connection, new, 9.0 if known else 5.0)  # the secret ones would come first
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
        world.secret_traces.append(beta.explain("wombat numbat").trace.id)
        shared = beta.share(SECRET_IDS[1], to=TEAM, move=True)
        world.hide(shared.operation)
        world.hide(beta.undo(shared.operation).operation)
        world.hide(beta.add(f"A numbat that only beta knows, {CANARY}", supersedes=SECRET_IDS[3]).operation)
        world.hide(beta.tag(SECRET_IDS[2], "zyzzyva").operation)


# Every method, with every kind of id, prefix, namespace and query ----------------------------------------------------

IDS = [
    *SECRET_IDS,
    "abcd",  # a prefix of secrets alone
    "abc" + "d" + "0" * 10,
    "abce",  # of several of alpha's own
    "beef",  # of one of alpha's own and of a secret
    MIXED_SECRET,
    TURN_ID,
    "dead",  # of nothing
    SHARED_IDS[0],
    *SHARED_IDS[3:],
    OWN_IDS[0],
]
QUERIES = [
    *SECRETS,
    *OWN[:2],
    *SECRET_WORDS,
    "zyzzyva quokka",
    "wombat numbat",
    "what is known of releases",
    "wombat cache deploy",
]
PLACES: list[dict[str, Any]] = [
    {},
    {"namespace": BETA},
    {"namespace": TEAM},
    {"namespace": "acme"},
    {"namespace": "acme/api/nobody"},
    {"namespace": f"{ALPHA}/inner"},
    {"reach": "all"},
    {"reach": "subtree"},
    {"reach": "exact"},
    {"namespace": TEAM, "reach": "subtree"},
    {"namespace": BETA, "reach": "exact"},
]
Probe = Callable[[World], Iterator[Call[Any]]]


def _placed(call: type[Call[Any]], **fields: Any) -> Iterator[Call[Any]]:
    for place in PLACES:
        yield call(**{**fields, **place})


def _by_id(call: type[Call[Any]], **fields: Any) -> Probe:
    def probe(world: World) -> Iterator[Call[Any]]:
        for id in IDS:
            yield call(id=id, **fields)
        yield from _placed(call, id=SECRET_IDS[0], **fields)

    return probe


def _queries(call: type[Call[Any]], **fields: Any) -> Probe:
    def probe(world: World) -> Iterator[Call[Any]]:
        fields.setdefault("touch", False)
        for query, fusion in product(QUERIES, ("weighted", "rrf")):
            yield call(query=query, fusion=fusion, limit=50, **fields)
        yield from _placed(call, query=SECRETS[0], **fields)
        for chosen in FILTERS:
            yield call(query="wombat zyzzyva cache", **{**fields, **chosen})
        for profile in ("memweave", "memori", "swarm", "cache"):
            yield call(query="wombat cache", profile=profile, **fields)

    return probe


FILTERS: list[dict[str, Any]] = [
    {"ids": SECRET_IDS},
    {"ids": ["abcd", "beef"]},
    {"source": ["numbat"]},
    {"metadata": {"zyzzyva": "quokka"}},
    {"type": ["fact"]},
    {"tier": ["L1"]},
]


def _list(world: World) -> Iterator[Call[Any]]:
    yield from _placed(protocol.List, all_states=True)
    for chosen in FILTERS:
        yield protocol.List(all_states=True, **chosen)
    for sort in ("created", "updated", "accessed", "count", "importance"):
        yield protocol.List(sort=sort, limit=3, offset=1)


def _why_not(world: World) -> Iterator[Call[Any]]:
    for id, query in product(IDS, QUERIES[:4]):
        yield protocol.WhyNot(id=id, query=query, touch=False)
    for query in QUERIES:
        yield protocol.WhyNot(id=OWN_IDS[2], query=query, touch=False, limit=1)
    yield from _placed(protocol.WhyNot, id=SECRET_IDS[0], query=SECRETS[0], touch=False)


def _traces(world: World) -> Iterator[Call[Any]]:
    yield from _placed(protocol.GetTrace)
    yield protocol.GetTrace(id="nothing")
    for trace in world.secret_traces:
        yield protocol.GetTrace(id=trace)


def _undo(world: World) -> Iterator[Call[Any]]:
    for number in world.secret_operations:
        yield protocol.Undo(operation=number)
    yield from _placed(protocol.Undo, operation=world.secret_operations[0])


def _add(world: World) -> Iterator[Call[Any]]:
    for text in (*SECRETS, *OWN):
        yield protocol.Add(memory=NewMemory(content=text, metadata={"by": "alpha"}))
        yield protocol.Add(memory=NewMemory(content=f"{text} indeed"))
    for id in (*SECRET_IDS, "0" * 32):
        yield protocol.Add(memory=NewMemory(content="An id of somebody's", id=id))
        yield protocol.Add(memory=NewMemory(content=f"It replaces {id}", supersedes=id))
    yield protocol.Add(memory=NewMemory(content="It replaces some", supersedes="abcd"))
    yield protocol.Add(
        memory=NewMemory(content="It replaces one of them", supersedes=SECRET_IDS[1]), namespace=TEAM, reach="subtree"
    )
    yield from _placed(protocol.Add, memory=NewMemory(content="Something for others"))


def _add_many(world: World) -> Iterator[Call[Any]]:
    yield protocol.AddMany(memories=[NewMemory(content=f"{text} certainly") for text in SECRETS])
    yield protocol.AddMany(memories=[NewMemory(content="A memory"), NewMemory(content="Another", id=SECRET_IDS[0])])
    yield protocol.AddMany(memories=[NewMemory(content="A replacement", supersedes=SECRET_IDS[1])])
    yield from _placed(protocol.AddMany, memories=[NewMemory(content="One of many for others")])


def _deletes(world: World) -> Iterator[Call[Any]]:
    for id in IDS:
        if id != OWN_IDS[0]:
            yield protocol.Delete(ids=[id])
    yield protocol.Delete(ids=[OWN_IDS[0], SECRET_IDS[0]])
    yield from _placed(protocol.Delete, ids=SECRET_IDS)


def _shares(world: World) -> Iterator[Call[Any]]:
    for id, to, move in product(IDS, (TEAM, BETA, ALPHA, ""), (False, True)):
        if id != OWN_IDS[0]:
            yield protocol.Share(ids=[id], to=to, move=move)
    yield protocol.Share(ids=[OWN_IDS[0], SECRET_IDS[0]], to=TEAM)
    yield from _placed(protocol.Share, ids=[SECRET_IDS[0]], to=TEAM)
    yield protocol.Share(ids=[OWN_IDS[0]], to=TEAM)


def _nodes(world: World) -> Iterator[Call[Any]]:
    yield from _placed(protocol.GraphNodes)
    for word in (*SECRET_WORDS, "deploy"):
        yield protocol.GraphNodes(query=word)


def _edges(world: World) -> Iterator[Call[Any]]:
    yield from _placed(protocol.GraphEdges, limit=1000)
    for node in range(1, 40):
        yield protocol.GraphEdges(node=node)


def _node(world: World) -> Iterator[Call[Any]]:
    for node in range(1, 40):
        yield protocol.GraphNode(node=node)


def _judged(method: type[Call[Any]], **fields: Any) -> Probe:
    """Calls about L0, whose judge is a thread: it shall be done in both worlds."""

    def probe(world: World) -> Iterator[Call[Any]]:
        for call in _placed(method, **fields):
            while judging.step(world.daemon.core):
                pass
            yield call

    return probe


def _observe(world: World) -> Iterator[Call[Any]]:
    said = [protocol.NewTurn(role="user", content=content) for content in (*SECRETS, *OWN, *SHARED, "ok")]
    for namespace in (ALPHA, TEAM, BETA, ""):
        yield protocol.Observe(namespace=namespace, turns=said, session="s")
    yield protocol.Observe(turns=[protocol.NewTurn(role="user", content="A chosen id", id=SECRET_IDS[0])])


def _observe(world: World) -> Iterator[Call[Any]]:
    for text in (*SECRETS, *OWN):
        yield protocol.Observe(turns=[NewTurn(role="user", content=text)], session="talk")
        yield protocol.Observe(turns=[NewTurn(role="assistant", content=f"Noted: {text}")])
    for id in (*SECRET_IDS, TURN_ID):
        yield protocol.Observe(turns=[NewTurn(role="user", content="We moved the staging database", id=id)])
    yield from _placed(protocol.Observe, turns=[NewTurn(role="user", content="The release branch is called maple")])
    _settle(world)


def _settle(world: World) -> None:
    """Wait until the background has worked off what was observed."""
    wait_until(lambda: not any(world.owner.call(protocol.Tiers()).waiting.values()))


def _once(*calls: Call[Any]) -> Probe:
    return lambda world: iter(calls)


# In this order: what reads before what writes, and all of it again afterwards.
PROBES: dict[type[Call[Any]], Probe] = {
    protocol.Get: _by_id(protocol.Get),
    protocol.List: _list,
    protocol.History: _by_id(protocol.History),
    protocol.Operations: lambda world: _placed(protocol.Operations, limit=1000),
    protocol.Explain: _queries(protocol.Explain),
    protocol.Search: _queries(protocol.Search),
    protocol.GetTrace: _traces,
    protocol.WhyNot: _why_not,
    protocol.GetStatus: _once(protocol.GetStatus()),
    protocol.GetStats: lambda world: _placed(protocol.GetStats),
    protocol.ListTokens: _once(protocol.ListTokens()),
    protocol.Jobs: _once(protocol.Jobs()),
    protocol.JobHistory: _once(protocol.JobHistory()),
    protocol.UseModel: _once(protocol.UseModel(name="words")),
    protocol.Verify: _once(protocol.Verify(), protocol.Verify(repair=True)),
    protocol.Shutdown: _once(protocol.Shutdown()),
    protocol.AddToken: _once(protocol.AddToken(name="spy", namespace=BETA)),
    protocol.RevokeToken: _once(protocol.RevokeToken(name="beta"), protocol.RevokeToken(name="nobody")),
    protocol.RunJob: _once(protocol.RunJob(name="sweep", dry_run=True), protocol.RunJob(name="sweep")),
    protocol.PauseJob: _once(protocol.PauseJob(name="sweep")),
    protocol.ResumeJob: _once(protocol.ResumeJob(name="sweep")),
    protocol.Turns: lambda world: _placed(protocol.Turns),
    protocol.Skipped: lambda world: _placed(protocol.Skipped),
    protocol.Tiers: lambda world: _placed(protocol.Tiers),
    protocol.Consolidate: _once(protocol.Consolidate(), protocol.Consolidate(dry_run=True)),
    protocol.Seed: _once(protocol.Seed(turns=[NewTurn(role="user", content="A seed")])),
    protocol.Observe: _observe,
    protocol.GraphNodes: _nodes,
    protocol.GraphEdges: _edges,
    protocol.GraphNode: _node,
    protocol.GraphTopics: lambda world: _placed(protocol.GraphTopics),
    protocol.GraphExport: lambda world: _placed(protocol.GraphExport),
    protocol.GraphDedupe: _once(protocol.GraphDedupe(), protocol.GraphDedupe(dry_run=True)),
    protocol.GraphAbstract: _once(protocol.GraphAbstract(dry_run=True)),
    protocol.GraphRegroup: _once(protocol.GraphRegroup(dry_run=True)),
    protocol.Update: _by_id(protocol.Update, importance=0.7, content="A changed text"),
    protocol.Tag: _by_id(protocol.Tag, tags=["seen"]),
    protocol.Undo: _undo,
    protocol.Add: _add,
    protocol.AddMany: _add_many,
    protocol.Share: _shares,
    protocol.Observe: _observe,
    protocol.Turns: _judged(protocol.Turns, limit=1000),
    protocol.Skipped: _judged(protocol.Skipped, limit=1000),
    protocol.Tiers: _judged(protocol.Tiers),
    protocol.Consolidate: _once(protocol.Consolidate(), protocol.Consolidate(dry_run=True)),
    protocol.Seed: _once(protocol.Seed(memories=[NewMemory(content="A seed of the quince")])),
    protocol.Delete: _deletes,
    protocol.Authenticate: _once(),  # of every voice; a wrong one is tried in test_access
}


def test_every_method_is_tried() -> None:
    assert [method_name(method) for method in METHODS if method not in PROBES] == []


@pytest.mark.parametrize("name", ["alpha", "lead"])
def test_no_reply_depends_on_what_is_private_to_others(
    worlds: list[World], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _private(worlds[0])
    answers = []
    for world in worlds:
        monkeypatch.setattr("secrets.token_hex", Ids())
        answers.append(list(_everything(world, name)))
    assert len(answers[0]) == len(answers[1]) > 300
    for (call, with_secrets), (_, without) in zip(*answers, strict=True):
        assert list(differences(with_secrets, without)) == [], call
        assert CANARY not in msgspec.json.encode(with_secrets).decode(), call
    assert _private(worlds[0]) == before


def _everything(world: World, name: str) -> Iterator[tuple[Call[Any], Any]]:
    voice = Voice(world, name)
    try:
        for _ in range(2):
            for probe in PROBES.values():
                for call in probe(world):
                    yield call, voice.ask(call)
            world.daemon.core.effects.flush()
    finally:
        voice.close()


def _private(world: World) -> Any:
    """Return all that is private to beta, as its owner sees it."""
    listed = world.owner.call(protocol.List(namespace=BETA, reach="exact", limit=1000, all_states=True))
    histories = [world.owner.history(memory.id) for memory in listed]
    return msgspec.json.encode([listed, histories])
