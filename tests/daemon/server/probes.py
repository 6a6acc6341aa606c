"""What a curious agent tries: every method, with every kind of id, prefix, namespace and query."""

from collections.abc import Callable, Iterator
from itertools import chain, product
from typing import Any

import msgspec
from two_worlds import (
    ALPHA,
    BETA,
    MIXED_SECRET,
    OWN,
    OWN_IDS,
    SECRET_IDS,
    SECRET_WORDS,
    SECRETS,
    SHARED,
    SHARED_IDS,
    TEAM,
    TURN_ID,
    World,
)

from memoryd.client import protocol
from memoryd.client.protocol import METHODS, Call, NewMemory, NewTurn
from memoryd.client.protocol.topics import GraphNodes, GraphRebuild

IDS = [
    *SECRET_IDS,
    "abcd",  # a prefix of secrets alone
    "abc" + "d" + "0" * 10,
    "abce",  # of several of alpha's own
    "beef",  # of one of alpha's own and of a secret
    MIXED_SECRET,
    TURN_ID,
    "deadbeef",  # of nothing
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
        if issubclass(call, protocol.Scoped):
            yield from _placed(call, id=SECRET_IDS[0], **fields)

    return probe


def _queries(call: type[Call[Any]], **fields: Any) -> Probe:
    def probe(world: World) -> Iterator[Call[Any]]:
        fields.setdefault("touch", False)
        for query, fusion in product(QUERIES, ("weighted", "rrf")):
            yield call(query=query, options=protocol.SearchOptions(fusion=fusion), limit=50, **fields)
        yield from _placed(call, query=SECRETS[0], **fields)
        for chosen in FILTERS:
            yield call(query="wombat zyzzyva cache", **{**fields, **chosen})
        for profile in ("memweave", "memori", "swarm", "cache"):
            yield call(query="wombat cache", options=protocol.SearchOptions(profile=profile), **fields)

    return probe


FILTERS: list[dict[str, Any]] = [
    {"source": ["numbat"]},
    {"where": {"zyzzyva": "quokka"}},
    {"type": ["fact"]},
    {"tier": ["L1"]},
]


def _get(world: World) -> Iterator[Call[Any]]:
    for call in chain(_by_id(protocol.Get)(world), _by_id(protocol.Get, around=100)(world)):
        yield call
        world.settle()  # it counts an access, which the next answer shows


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


def _operations(world: World) -> Iterator[Call[Any]]:
    for id in world.secret_operations:
        yield protocol.History(operation=id)
        yield protocol.History(operation=id[:8])
    yield from _placed(protocol.History, operation=world.secret_operations[0])
    yield from _by_id(protocol.History)(world)


def _undo(world: World) -> Iterator[Call[Any]]:
    for id in world.secret_operations:
        yield protocol.Undo(operation=id)
        yield protocol.Undo(operation=id[:8])
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
    yield from _placed(GraphNodes)
    for word in (*SECRET_WORDS, "deploy"):
        yield GraphNodes(query=word)
    for id in IDS:
        yield GraphNodes(node=id)
        yield GraphNodes(node=f"concept-{id}")
        yield GraphNodes(topic=id)


def _observe(world: World) -> Iterator[Call[Any]]:
    for text in (*SECRETS, *OWN):
        yield protocol.Observe(turns=[NewTurn(role="user", content=text)], session="talk")
        yield protocol.Observe(turns=[NewTurn(role="assistant", content=f"Noted: {text}")])
    said = [NewTurn(role="user", content=text) for text in (*SECRETS, *OWN, *SHARED, "ok")]
    for namespace in (ALPHA, TEAM, BETA, ""):
        yield protocol.Observe(namespace=namespace, turns=said, session="s")
    for id in (*SECRET_IDS, TURN_ID):
        yield protocol.Observe(turns=[NewTurn(role="user", content="We moved the staging database", id=id)])
    yield from _placed(protocol.Observe, turns=[NewTurn(role="user", content="The release branch is called maple")])
    world.settle()


def _complete(world: World) -> Iterator[Call[Any]]:
    for text in (*SECRETS, *OWN):
        yield protocol.CompleteTask(outcome="failed", output=text)
    yield from _placed(protocol.CompleteTask, outcome="completed", output="The release branch is cut", task="release")
    world.settle()


def _forgets(world: World) -> Iterator[Call[Any]]:
    for id in IDS:
        if id != OWN_IDS[0]:
            yield protocol.Forget(ids=[id], dry_run=True)
            yield protocol.Forget(ids=[id], text="wombat")
    yield from _placed(protocol.Forget, ids=SECRET_IDS, dry_run=True)


def _exports(world: World) -> Iterator[Call[Any]]:
    yield from _placed(protocol.ExportMemories)
    for after, limit in product(("", "abcd", *IDS), (1, 2)):
        yield protocol.ExportMemories(after_id=after, limit=limit)
    for chosen in FILTERS:
        yield protocol.ExportMemories(**chosen)


def _contexts(world: World) -> Iterator[Call[Any]]:
    for query in QUERIES:
        yield protocol.GetContext(task=query, max_tokens=2000)
    yield from _placed(protocol.GetContext, task=SECRETS[0], session="another")
    yield protocol.GetContext(task=SECRETS[0], session="another", fresh=True)
    world.settle()


def _once(*calls: Call[Any]) -> Probe:
    return lambda world: iter(calls)


def _plain(call: type[Call[Any]]) -> Probe:
    """Try a method that needs no probe of its own: with every id if it takes one, from every place."""
    values = {name: "sweep" if name == "name" else "talk" for name in _required(call) if name != "id"}
    if "id" in _required(call):
        return _by_id(call, **values)
    return (lambda world: _placed(call, **values)) if issubclass(call, protocol.Scoped) else _once(call(**values))


def _required(call: type[Call[Any]]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(call) if field.required]


# In this order: what reads before what writes, and all of it again afterwards.
_OWN: dict[type[Call[Any]], Probe] = {
    protocol.Get: _get,
    protocol.List: _list,
    protocol.Search: _queries(protocol.Search),
    protocol.GetTrace: _traces,
    protocol.Traces: lambda world: _placed(protocol.Traces, limit=1000),
    protocol.History: _operations,
    protocol.GetContext: _contexts,
    protocol.WhyNot: _why_not,
    protocol.UseModel: _once(protocol.UseModel(name="words")),
    protocol.Verify: _once(protocol.Verify(), protocol.Verify(repair=True)),
    protocol.Backup: _once(protocol.Backup(), protocol.Backup(path="/")),
    protocol.Hello: _once(protocol.Hello(version="0.0.1"), protocol.Hello(version="99")),
    protocol.AddToken: _once(protocol.AddToken(name="spy", namespace=BETA)),
    protocol.RevokeToken: _once(protocol.RevokeToken(name="beta"), protocol.RevokeToken(name="nobody")),
    protocol.RunJob: _once(protocol.RunJob(name="sweep", dry_run=True), protocol.RunJob(name="sweep")),
    protocol.GetLog: lambda world: _placed(protocol.GetLog, limit=1000),
    protocol.Turns: lambda world: _placed(protocol.Turns, limit=1000, skipped=True),
    protocol.Consolidate: _once(protocol.Consolidate(), protocol.Consolidate(dry_run=True)),
    protocol.Observe: _observe,
    GraphNodes: _nodes,
    GraphRebuild: _once(GraphRebuild(), GraphRebuild(dry_run=True)),
    protocol.Remember: lambda world: _placed(protocol.Remember, text="A note", workspace=BETA),
    protocol.Flush: lambda world: _placed(
        protocol.Flush, turns=[NewTurn(role="user", content="We decided on port 80")], workspace=BETA
    ),
    protocol.Forget: _forgets,
    protocol.Dream: _once(protocol.Dream(place=BETA, dry_run=True)),
    protocol.Summarize: _once(
        protocol.Summarize(messages=[protocol.Message(id="1", role="user", content=SECRETS[0])], max_tokens=100)
    ),
    protocol.ExportMemories: _exports,
    protocol.Workspaces: _once(protocol.Workspaces(), protocol.Workspaces(workspace=BETA, files=5)),
    protocol.AddWorkspace: _once(protocol.AddWorkspace(path="/", namespace=BETA)),
    protocol.RemoveWorkspace: _once(protocol.RemoveWorkspace(workspace=BETA)),
    protocol.IndexWorkspace: _once(protocol.IndexWorkspace(), protocol.IndexWorkspace(workspace=BETA, force=True)),
    protocol.ImportMemories: _once(
        protocol.ImportMemories(records=[]), protocol.ImportMemories(records=[], dry_run=True)
    ),
    protocol.Update: _by_id(protocol.Update, importance=0.7, content="A changed text"),
    protocol.Feedback: _by_id(protocol.Feedback, useful=True, note="seen"),
    protocol.DismissLink: _by_id(protocol.DismissLink, other=OWN_IDS[0]),
    protocol.Tag: _by_id(protocol.Tag, tags=["seen"]),
    protocol.Undo: _undo,
    protocol.CompleteTask: _complete,
    protocol.Add: _add,
    protocol.AddMany: _add_many,
    protocol.Share: _shares,
    protocol.Delete: _deletes,
    protocol.Subscribe: lambda world: (  # what is refused; what is let through has tests of its own
        call for call in _placed(protocol.Subscribe) if call.reach == "all" or call.namespace == BETA
    ),
    protocol.Authenticate: _once(),  # of every voice; a wrong one is tried in test_access
}
PROBES = {method: _plain(method) for method in METHODS if method not in _OWN} | _OWN
