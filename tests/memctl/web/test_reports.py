"""Reports: made of known parts whatever memories hold, and what they say of plans and differences."""

import asyncio
from typing import Any

import msgspec
import pytest
from shelf import HOSTILE

from conversing import settle
from memoryd.client import AsyncClient
from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.programs.web.reports.health import read_progress, show_findings
from memoryd.client.programs.web.reports.memory import compare_words
from memoryd.client.programs.web.reports.table import REPORTS
from memoryd.client.protocol import Consolidate, GetStatus, Jobs, Progress, RunJob, Tiers
from memoryd.client.protocol.topics import GraphNodes
from workbench import move_to_l2

TAGS = set("a article b br code dd del details div dl dt h2 ins li p section span summary ul".split())
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


async def test_reports_are_made_of_known_parts_whatever_memories_hold(morning: Any) -> None:
    with morning.client("acme/api") as agent:
        added = agent.add(HOSTILE, type="<b>", metadata={"tags": ["<i>"], "list": ["script", ["a", HOSTILE]]})
        agent.update(added.id, content=f"{HOSTILE} again")
        agent.search("right to left onerror", limit=3)
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        [trace, *_] = (await client.traces(limit=1)).traces
        move_to_l2(morning.core)
        await client.call(RunJob(name="cluster"))
        node = (await client.call(GraphNodes(reach="all"))).nodes[0]
        queries: dict[str, dict[str, str]] = {
            "found": {"id": added.id, "trace": trace.id},
            "memory": {"id": added.id},
            "never": {"id": added.id, "namespace": "acme/api", "session": "<b>"},
            "node": {"id": node.id},
            "plan": {"job": "sweep"},
            "tiers": {"tab": "skipped"},
            "trace": {"id": trace.id},
            "why": {"of": "right to left", "query": "deploy"},
        }
        for name, read in REPORTS.items():
            found = msgspec.json.decode(msgspec.json.encode(await read(client, queries.get(name, {}))))
            assert name == "topics" or list_names(found) <= TAGS | NAMED, name  # which are data


@pytest.mark.parametrize("name", ["memory", "node", "trace", "plan"])
async def test_a_report_of_nothing_is_refused_in_one_sentence(morning: Any, name: str) -> None:
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        with pytest.raises(MemorydError, match=r"\w+"):
            await REPORTS[name](client, {"id": "no such", "job": "none"})


async def test_page_and_terminal_print_the_same_sentences_of_a_memory(
    morning: Any, monkeypatch: pytest.MonkeyPatch, memctl: Any
) -> None:
    monkeypatch.setenv("MEMORYD_SOCKET", str(morning.socket))
    with morning.client("acme/api") as agent:
        expired = agent.add("The coupon WINTER gives ten percent, with the code 4711", expires_at="2020-01-01").id
    settle(morning.core, "L0")  # so that no vector comes between two calls
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        [hit, *_] = await client.search("The staging database is called wagtail", reach="all", limit=1)
        [turn, *_] = await client.turns()
        for of, query, place in (
            (hit.id, "The staging database is called wagtail", {"reach": "all"}),
            ("wagtail is rebuilt each Monday", "staging", {"reach": "all"}),
            ("coupon WINTER", "coupon", {"reach": "all"}),
            ("4711", "coupon", {"reach": "all"}),
            (turn.id, turn.content, {"reach": "all"}),
            (turn.id, "staging", {"namespace": "acme/web", "reach": "exact"}),
            ("zzzz", "staging", {"reach": "all"}),
        ):
            report = await REPORTS["why"](client, {"query": query, "of": of, **place})
            options = [part for name, value in place.items() for part in (f"--{name}", value)]
            printed = await asyncio.to_thread(memctl, "why-not", of, query, *options)
            if report[0] == "div.problem":
                assert printed.err == f"memctl: {report[1]}\n"
                continue
            said = next([line for _, line in part[1:]] for part in report if part[0].startswith("div.verdict"))
            assert said == printed.out.splitlines()[: len(said)]
            assert (expired in str(report)) == (query == "coupon")
        trace = (await client.explain("staging", touch=False)).trace
        whole = say(await REPORTS["trace"](client, {"id": trace.id}))
        printed = await asyncio.to_thread(memctl, "explain", "--last", trace.id)
    for candidate in trace.candidates[:10]:  # the terminal prints the first ones
        assert candidate.outcome in whole
        assert candidate.outcome in printed.out


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


async def test_a_node_needs_an_id(morning: Any) -> None:
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        with pytest.raises(Invalid, match="is not an id"):
            await REPORTS["node"](client, {"id": "<b>"})


async def test_how_a_memory_was_found_is_told_in_a_persons_words(morning: Any) -> None:
    async with AsyncClient("acme/api", socket=morning.socket, autostart=False) as client:
        trace = (await client.explain("when do we move the session cache", touch=False)).trace
        [said, *_] = [one for one in trace.candidates if one.preview.startswith("Please move")]
        [saved, *_] = [one for one in trace.candidates if one.preview.startswith("The deploy window is Tuesday at 9")]
        turn = say(await REPORTS["found"](client, {"id": said.id, "trace": trace.id}))
        fact = say(await REPORTS["found"](client, {"id": saved.id, "trace": trace.id}))
        whole = say(await REPORTS["trace"](client, {"id": trace.id}))
        other = say(await REPORTS["found"](client, {"id": "0" * 32, "trace": trace.id}))
    assert "%); these words: “move”, “session”, “cache”; " in turn
    assert "in meaning (" in fact
    assert turn.endswith("; said by the user.")
    assert fact.endswith("; saved.")
    assert "the word" not in fact
    assert "This was looked for by its words (" in whole
    assert whole.index("Please move") < whole.index("details summary Stages")
    assert "did not come upon it" in other


async def test_a_turn_is_shown_with_its_conversation_and_files(morning: Any) -> None:
    async with AsyncClient("acme/ops", socket=morning.socket, autostart=False) as client:
        turns = [
            {"role": "user", "content": "Where do we keep the runbook of the database?", "speaker": "ada"},
            {"role": "assistant", "content": "It is in the folder docs of the repository.", "files": ["docs/run.md"]},
        ]
        asked, answered = (await client.observe(turns, session="runbook")).ids
        question = say(await REPORTS["memory"](client, {"id": asked}))
        answer = say(await REPORTS["memory"](client, {"id": answered}))
        [alone, *_] = (await client.list(limit=1, type=["fact"])).memories
        fact = say(await REPORTS["memory"](client, {"id": alone.id}))
    assert "Said around it div.hit span.about span ada" in question
    assert "Files of that time ul li code docs/run.md" in question
    assert "Said around it div.hit span.about span ada" in answer
    assert "Said around it" not in fact


async def test_what_agents_were_given_can_be_rated_deleted_and_kept_out_for_good(morning: Any) -> None:
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        report = await REPORTS["given"](client, {})
        asked = {"namespace": "acme/api", "session": "move-the-cache"}
        [memory, *_] = (await client.list(limit=1)).memories
        never = say(await REPORTS["never"](client, {"id": memory.id, **asked}))
        elsewhere = say(await REPORTS["given"](client, {"namespace": "other", "reach": "exact"}))
    assert "h2 acme/api" in say(report)
    assert "span.badge. Claude Code" in say(report)
    for text in ("act Useful", "feedback", "act Wrong", "delete", "emit Never again never"):
        assert text in say(report)
    assert "no undo brings it back" in never
    assert "Keep nothing more of acme/api Observing is paused pause_observing" in never
    assert "No agent was given anything yet" in elsewhere


async def test_progress_says_how_far_what_is_under_way_is(morning: Any) -> None:
    def load(status: Any) -> Any:
        status.model.state, status.model.reembedding = "loading", Progress("vectors", 5, 20)
        status.memories, status.pending_embeddings = 40, 10
        return status

    def run(jobs: Any) -> Any:
        jobs.jobs[0].state, jobs.jobs[0].last_run_at = "running", jobs.at - 90
        return jobs

    def rest(report: Any) -> Any:
        report.waiting, report.resting = {}, {}
        return report

    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        busy: Any = Answering(client, {GetStatus: load, Jobs: run, Tiers: rest})
        said = say(await read_progress(busy, {}))
        quiet: Any = Answering(client, {Tiers: rest})
        nothing = say(await read_progress(quiet, {}))
    assert "is being loaded" in said
    assert "All texts get vectors of another model bar 0.25" in said
    assert "Texts get their vectors bar 0.75 0.0 span.about span 30 of 40" in said
    assert "for 1.5 min now" in said
    assert "Nothing: all that came in is ready to be found." in nothing


async def test_topics_hold_what_is_not_in_l2_yet(morning: Any) -> None:
    async with AsyncClient(socket=morning.socket, autostart=False) as client:
        young = await REPORTS["topics"](client, {})
        await client.call(Consolidate(reach="all"))
        move_to_l2(morning.core)
        await client.call(RunJob(name="cluster"))
        await client.add("The deploy window moves to Tuesday at noon", dedup=False)
        grown = await REPORTS["topics"](client, {})
    assert young["topics"] == []
    assert {one["tier"] for group in young["groups"] for one in group["recent"]} == {"L0", "L1"}
    assert all(group["label"] and group["recent"] for group in young["groups"])
    [window] = [one for one in grown["topics"] if "window" in one["label"]]
    assert window["examples"][0].startswith("The deploy window is Tuesday")
    assert [one["text"] for one in window["recent"]] == ["The deploy window moves to Tuesday at noon"]
