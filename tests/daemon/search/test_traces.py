"""Traces: kept by id, bounded, with every stage and candidate; seen by who searched."""

import pytest

from memoryd.client.errors import NotFound
from memoryd.client.protocol import GetContext, GetTrace, Search, Trace
from memoryd.client.protocol import Traces as ListTraces
from memoryd.daemon.context import preparing
from memoryd.daemon.core.core import Core
from memoryd.daemon.search import pipeline
from memoryd.daemon.search.traces import StoredTrace, TraceStore
from workbench import add, add_many, ask, delete, search


def trace(core: Core, id: str | None = None, namespace: str = "") -> Trace:
    return ask(core, GetTrace(id=id, namespace=namespace))


def test_a_trace_tells_stages_counts_and_what_became_of_each_candidate(core: Core) -> None:
    add_many(core, ["heron one", "heron two", "stork three"])
    add(core, "HERON one", "b")
    hits = search(core, "heron one", limit=2, min_score=0.1)
    kept = trace(core, hits.trace)
    assert (kept.query, kept.namespace, kept.reach, kept.degraded) == ("heron one", "", "all", [])
    assert kept.model == core.embedding.report_state().name
    stages = {stage.name: stage for stage in kept.stages}
    assert list(stages) == [stage.__name__ for stage in pipeline.list_stages()]
    counts = {name: (stage.entered, stage.left) for name, stage in stages.items()}
    assert (counts["embed"], counts["candidates"], counts["fuse"]) == ((0, 0), (0, 4), (4, 4))
    assert counts["postprocess"][1] == 2
    assert stages["candidates"].notes["words"] == ["one", "heron"]
    assert stages["fuse"].notes == {"vector_weight": 0.7, "fusion": "weighted"}
    shown = {candidate.preview: candidate.lost for candidate in kept.candidates}
    assert list(shown.values()).count("") == 2
    assert any(lost.startswith("clean: the same content is ranked higher in ") for lost in shown.values())
    assert shown["stork three"].startswith(("cut: ", "clean: "))
    assert all(candidate.similarity is not None for candidate in kept.candidates)


def test_a_namespace_sees_its_own_traces_only_and_the_root_all(core: Core) -> None:
    hers = search(core, "hers", namespace="her").trace
    assert trace(core, hers, "her").id == trace(core, hers).id == hers
    for namespace in ("me", "her/inner"):
        with pytest.raises(NotFound):
            trace(core, hers, namespace)


def test_memories_deleted_since_are_left_out_of_a_trace(core: Core) -> None:
    added = add(core, "heron one")
    hits = search(core, "heron")
    delete(core, added.id)
    assert trace(core, hits.trace).candidates == []


@pytest.mark.parametrize("capacity", [1, 3])
def test_only_the_latest_are_kept(capacity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.daemon.search.traces.CAPACITY", capacity)
    traces = TraceStore()
    for number in range(10):
        one = Trace(
            id=f"{number:016x}", query="", at=0, namespace="", reach="all", model=None, stages=[], candidates=[]
        )
        traces.keep(StoredTrace(one, [], {}))
    assert len(traces._kept) == capacity
    assert traces.find(None, "").trace.id == f"{9:016x}"
    assert traces.find(f"{10 - capacity:016x}", "").trace.id == f"{10 - capacity:016x}"
    with pytest.raises(NotFound):
        traces.find(f"{9 - capacity:016x}", "")


def test_a_kept_trace_holds_no_texts(core: Core) -> None:
    add(core, "heron one")
    kept = core.sources.traces.find(search(core, "heron").trace, "")
    assert [candidate.record for candidate in kept.candidates] == [None]


def test_the_latest_retrievals_are_listed_with_what_they_returned(core: Core) -> None:
    add_many(core, ["heron one", "heron two"])
    search(core, "heron", limit=1, session="talk")
    ask(core, Search(query="stork", namespace="a", explain=True))
    made = preparing.context(core, core.sources, GetContext(task="heron one", session="s1")).result(5)
    latest = ask(core, ListTraces()).traces
    assert [(one.kind, one.query, one.session) for one in latest] == [
        ("get_context", "heron one", "s1"),
        ("search", "stork", ""),
        ("search", "heron", "talk"),
    ]
    assert [one.given for one in latest] == [len(made.ids), 2, 1]
    assert trace(core, latest[0].id).given == made.ids
    assert [one.query for one in ask(core, ListTraces(namespace="a"))] == ["stork"]
    chosen = ask(core, ListTraces(kind=["search", "get_context"], limit=1))
    assert [one.kind for one in chosen] == ["get_context"]
