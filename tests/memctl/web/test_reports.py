"""Reports: made of known parts whatever memories hold, and what they say of tiers, conflicts, plans and differences."""

from typing import Any

import msgspec
import pytest
from shelf import HOSTILE

from memoryd.client import AsyncClient
from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.protocol import Consolidate, SharedRoot, Tiers, TierState
from memoryd.client.shared.calls import GetSharing, ListConflicts, SharedConflict, SharedConflicts, Sharing
from memoryd.client.topics.calls import GraphNodes
from memoryd.client.web.reports import list_reports
from memoryd.client.web.reports.health import read_health, show_findings
from memoryd.client.web.reports.memory import compare_words
from memoryd.client.web.reports.tiers import read_tiers

TAGS = set("a article b br code dd del div dl dt h2 ins li p section span ul".split())
NAMED = set("act bar emit go link table time undo".split())


def list_names(part: Any) -> set[str]:
    """Return the tags and names of a report; the values of named parts are data."""
    if not isinstance(part, list):
        return set()
    name, *parts = part
    if isinstance(name, list):  # a view of two parts
        return list_names(name).union(*map(list_names, parts))
    if name == "table":
        parts = [cell for row in parts[2] for cell in row]
    elif name in NAMED:
        parts = []
    return {name.split(".")[0]}.union(*map(list_names, parts))


def list_texts(part: Any) -> list[str]:
    """Return every text of a report, in order."""
    if isinstance(part, list):
        return [text for one in part for text in list_texts(one)]
    return [str(part)] if part is not None else []


def say(part: Any) -> str:
    return " ".join(" ".join(list_texts(part)).split())


class Answering:
    """A client of a daemon, some of whose answers are given."""

    def __init__(self, client: AsyncClient, answers: dict[type, Any]) -> None:
        self._client, self._answers = client, answers

    async def call(self, call: Any) -> Any:
        """Return the given answer, else the daemon's."""
        given = self._answers.get(type(call))
        return given(await self._client.call(call)) if given else await self._client.call(call)


def share_root() -> Sharing:
    root = SharedRoot(root="acme", server="db", state="ready", memories=2, waiting=1, conflicts=1, pushed=3, pulled=4)
    return Sharing(machine="desk", roots=[root])


async def test_reports_are_made_of_known_parts_whatever_memories_hold(morning: Any) -> None:
    with morning.client("acme/api") as agent:
        added = agent.add(HOSTILE, type="<b>", metadata={"tags": ["<i>"], "list": ["script", ["a", HOSTILE]]})
        agent.update(added.id, content=f"{HOSTILE} again")
        agent.search("right to left onerror", limit=3)
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        [trace, *_] = (await client.traces(limit=1)).traces
        await client.call(Consolidate(reach="all"))
        node = (await client.call(GraphNodes(reach="all"))).nodes[0]
        queries: dict[str, dict[str, str]] = {
            "memory": {"id": added.id},
            "node": {"id": str(node.id)},
            "plan": {"job": "sweep"},
            "tiers": {"tab": "skipped"},
            "trace": {"id": trace.id},
            "why": {"of": "right to left", "query": "deploy"},
        }
        for name, read in list_reports().items():
            found = msgspec.json.decode(msgspec.json.encode(await read(client, queries.get(name, {}))))
            assert name == "map" or list_names(found) <= TAGS | NAMED, name  # which is data of a drawing


@pytest.mark.parametrize("name", ["memory", "node", "trace", "plan"])
async def test_a_report_of_nothing_is_refused_in_one_sentence(morning: Any, name: str) -> None:
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        with pytest.raises(MemorydError, match=r"\w+"):
            await list_reports()[name](client, {"id": "no such", "job": "none"})


async def test_a_memory_is_found_or_named_by_words_or_waits_in_l0(morning: Any) -> None:
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        asked = {"query": "The staging database is called wagtail", "reach": "all"}
        [hit, *_] = await client.search(asked["query"], limit=1)
        [turn, *_] = await client.turns()
        found = say(await list_reports()["why"](client, {**asked, "of": hit.id}))
        meant = say(await list_reports()["why"](client, {**asked, "of": "wagtail is rebuilt each Monday"}))
        here = {"namespace": "acme/web", "reach": "exact"}
        waits = say(await list_reports()["why"](client, {**asked, **here, "of": turn.id}))
    assert "Found, at rank 1." in found
    assert "Or do you mean" not in found
    assert meant.startswith(f"div link {hit.id}")
    assert "It is a turn in L0" in waits


async def test_the_tiers_show_what_other_machines_share(morning: Any) -> None:
    def add_shared(report: Any) -> Any:
        report.tiers.append(TierState(name="L3", title="L3 shared", count=2, ram_bytes=0))
        return report

    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        plain = say(await read_tiers(client, {}))
        given: Any = Answering(client, {Tiers: add_shared, GetSharing: lambda _: share_root()})
        shared = say(await read_tiers(given, {"tab": "places"}))
    assert "L3 shared" not in plain
    for text in ("b 3 pushed", "L3 shared b 2", "(acme)", "b 4 pulled", "Not yet shared b 2", "1 in conflict"):
        assert text in shared


async def test_a_conflict_offers_to_keep_one_version_or_both(morning: Any) -> None:
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        first, other = (await client.list(limit=2)).memories
        conflict = SharedConflict(memory=first, other=other, machine="laptop", author="ada")
        answers = {
            GetSharing: lambda _: share_root(),
            ListConflicts: lambda _: SharedConflicts(conflicts=[conflict]),
        }
        given: Any = Answering(client, answers)
        report = await read_health(given, {})
    said = say(report)
    assert f"and, by ada on laptop, link {other.id} {other.content}" in said
    acts = [part for part in report[-1][-1][-1] if isinstance(part, list)]
    assert [act[3:5] for act in acts] == [
        ["resolve_conflict", {"id": first.id}],
        ["resolve_conflict", {"id": other.id}],
        ["resolve_conflict", {"id": first.id, "both": True}],
    ]


def test_findings_name_what_is_wrong_with_its_command() -> None:
    well = {"state": "ok", "name": "disk", "message": "fine"}
    wrong = {"state": "warn", "name": "clock", "message": "it is late", "fix": "timedatectl"}
    said = say(show_findings(msgspec.json.encode([well, wrong])))
    assert "1 of 2 checks found something." in said
    assert "it is late br code timedatectl" in said
    assert "1 check found nothing." in say(show_findings(msgspec.json.encode([well])))


def test_words_that_differ_are_marked() -> None:
    assert compare_words("the old text", "the new text") == ["the ", ["del", "old"], ["ins", "new"], " text"]
    assert compare_words("same", "same") == ["same"]
    long = "word " * 2000
    assert compare_words(long, "x") == [["del", long], ["ins", "x"]]


async def test_a_node_needs_a_number(morning: Any) -> None:
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        with pytest.raises(Invalid, match="is not the number of a node"):
            await list_reports()["node"](client, {"id": "<b>"})
