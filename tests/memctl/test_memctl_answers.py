"""What each command prints, sends and returns, against a daemon that says what the test tells it to."""

import io
import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from fake_daemon import FakeDaemon, Memctl
from figures import counted, healthy

from each import each
from memoryd.client import protocol

ID = "3f9a02c4" + "0" * 24
FIELDS: dict[str, Any] = {
    "id": ID,
    "namespace": "acme/api",
    "type": "decision",
    "content": "We use Valkey,\nnot Redis",
    "metadata": {"at": 5, "team": "infra"},
    "created_at": 1774967400.0,
    "updated_at": 1774967400.5,
}
MEMORY = protocol.Memory(**FIELDS)
HIT = protocol.Hit(**FIELDS, score=0.8123, similarity=0.7, bm25=3.2, confidence=0.6)
TRACE = protocol.Trace(
    id="t1",
    query="cache",
    at=1774967400.0,
    namespace="",
    reach="all",
    model=None,
    stages=[
        protocol.StageTrace(name="embed", took_ms=3.0, entered=0, left=0),
        protocol.StageTrace(name="candidates", took_ms=1.0, entered=0, left=2, notes={"vector": 2}),
    ],
    candidates=[
        protocol.CandidateTrace(id=ID, preview="We use", similarity=0.7, bm25=3.2, score=0.8, outcome="found"),
        protocol.CandidateTrace(id="b" * 32, preview="Other", lost="cut: limit", outcome="cut: limit"),
    ],
    took_ms=4.2,
)


def status(**model: Any) -> protocol.Status:
    return healthy(model=protocol.ModelState(**{"name": "mini", "state": "ready", "dimensions": 384, **model}))


def test_search_prints_blocks_for_people_and_says_what_was_left_out(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.Search] = protocol.Hits(hits=[HIT], degraded=["vector"], took_ms=1.5)
    found = memctl("search", "cache")
    assert found.out.splitlines()[:2] == [
        "0.812  likely  3f9a02c4  L1  decision  import  acme/api  2026-03-31T14:30:00Z",
        "       We use Valkey, not Redis",
    ]
    assert "model is not ready" in found.err
    assert "model is not ready" in memctl("search", "--like", "3f9a").err
    assert memctl("search", "cache", "--json").json[0]["id"] == ID
    fake.replies[protocol.Search] = protocol.Hits(hits=[])
    fake.replies[protocol.GetStats] = counted()
    assert memctl("search", "cache").out == "Nothing found. No memories yet; `memctl add TEXT` adds the first.\n"
    assert memctl("search", "cache", "--json").json == []


def test_what_a_search_sees_follows_namespace_and_reach(memctl: Memctl, fake: FakeDaemon, monkeypatch: Any) -> None:
    fake.replies[protocol.Search] = protocol.Hits(hits=[HIT])
    memctl("search", "x")
    memctl("search", "x", "--namespace", "acme/api/")
    memctl("search", "x", "--namespace", "acme", "--reach", "subtree")
    monkeypatch.setenv("MEMORYD_NAMESPACE", "env")
    memctl("search", "x")
    memctl("search", "x", "--namespace", "")
    memctl("search", "x", "--namespace", "/")
    seen = [(call.namespace, call.reach) for call in fake.calls]
    assert seen[:3] == [("", "all"), ("acme/api", "visible"), ("acme", "subtree")]
    assert seen[3:] == [("env", "visible"), ("", "all"), ("", "visible")]


@each("words", [("search", "cache"), ("search", "--like", "3f9a")])
def test_what_is_below_the_floor_is_counted_and_shown_when_asked_for(
    memctl: Memctl, fake: FakeDaemon, words: tuple[str, ...]
) -> None:
    sure, unlikely = (protocol.Hit(**FIELDS, score=0.5, confidence=share) for share in (0.02, 0.0199))

    def find(*hits: protocol.Hit, more: tuple[str, ...] = ()) -> list[str]:
        fake.replies[protocol.Search] = protocol.Hits(hits=list(hits), took_ms=1.5)
        lines = memctl(*words, *more).out.splitlines()
        return [line for line in lines if "Valkey" not in line]

    head = "0.500  a guess  3f9a02c4  L1  decision  import  acme/api  2026-03-31T14:30:00Z"
    low = head.replace("a guess", "unlikely")
    assert find(sure) == [head, "1 found in 1.50 ms"]
    assert find(unlikely, sure) == [head, "1 less likely one with --all", "1 found in 1.50 ms"]
    assert find(sure, unlikely, sure, unlikely)[2:] == ["2 less likely ones with --all", "2 found in 1.50 ms"]
    assert find(unlikely, unlikely) == ["No likely result; 2 less likely ones with --all"]
    assert find(unlikely, sure, more=("--all",)) == [low, head, "2 found in 1.50 ms"]
    assert find(unlikely, more=("--floor", "0.01")) == [low, "1 found in 1.50 ms"]
    assert [hit["confidence"] for hit in memctl(*words, "--json").json] == [0.0199]


def test_filters_and_parameters_reach_the_daemon(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.Search] = protocol.Hits(hits=[HIT])
    memctl(
        *("search", "x", "--type", "fact", "--type", "lesson", "--source", "manual", "--tier", "L1"),
        *(
            "--where",
            "a=1",
            "--after",
            "2026-03-31",
            "--before",
            "2026-04-01T00:00+02:00",
        ),
        *("--path-prefix", "docs/", "--limit", "3", "--set", "fusion=rrf"),
        *("--set", "profile=swarm", "--set", "half_life_days=90", "--set", "mmr_lambda=0.5", "--set", "graph=false"),
        *("--set", "vector_weight=0.5", "--set", "min_score=0.1", "--set", "min_similarity=-0.5"),
        *("--set", "distinct=false", "--set", "include_vectors=true"),
    )
    assert fake.calls == [
        protocol.Search(
            query="x",
            reach="all",
            type=["fact", "lesson"],
            source=["manual"],
            tier=["L1"],
            where={"a": {"$eq": 1}},
            after=1774915200.0,
            before=1774994400.0,
            path_prefix="docs/",
            limit=3,
            options=protocol.SearchOptions(
                fusion="rrf",
                profile="swarm",
                half_life_days=90,
                mmr_lambda=0.5,
                graph=False,
                vector_weight=0.5,
                min_score=0.1,
                min_similarity=-0.5,
                distinct=False,
                include_vectors=True,
            ),
        )
    ]


@each("given", ["limit=3", "fusion", "=1", "", "colour=red"])
def test_only_options_of_a_search_can_be_set(memctl: Memctl, fake: FakeDaemon, given: str) -> None:
    refused = memctl("search", "x", "--set", given)
    assert (refused.code, refused.out, fake.calls) == (2, "", [])
    assert "NAME=VALUE with one of profile, " in refused.err


@each(
    ("given", "sentence"),
    [
        ("mmr_lambda=lots", "`mmr_lambda` must be a number, not text"),
        ("min_score=2", "`min_score` must be 1 or less"),
        ("profile=none", "`profile` must be one of default, memweave, memori, swarm, cache, not 'none'"),
    ],
)
def test_an_option_that_does_not_fit_is_refused_with_a_sentence(
    memctl: Memctl, fake: FakeDaemon, given: str, sentence: str
) -> None:
    refused = memctl("search", "x", "--set", given)
    assert (refused.code, refused.out, fake.calls) == (1, "", [])
    assert sentence in refused.err


def test_wrong_usage_is_exit_code_2_and_one_sentence(memctl: Memctl) -> None:
    for words in (
        ["nothing"],
        ["search"],
        ["search", "x", "--unknown"],
        ["search", "x", "--limit", "many"],
        ["search", "x", "--reach", "far"],
        ["list", "--after", "soon"],
        ["observe", "x", "--created-at", "31.2.2026"],
        ["add", "x", "--metadata", "[1]"],
        ["tag", "abcd"],
        ["tag", "abcd", "=3"],
        ["update", "abcd"],
        ["explain"],
        ["explain", "x", "--last"],
        ["status", "--timeout", "0"],
        ["model", "nothing"],
    ):
        found = memctl(*words)
        assert (found.code, found.out) == (2, ""), words
        assert found.err.count("\n") == 1


def test_add_sends_all_fields(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.Add] = protocol.Added(id=ID, outcome="created", embedded=True, operation="1" * 32)
    words = "--type decision --metadata a=1 --tag x --importance 0.9"
    more = "--expires-at 2026-04-01 --pinned --supersedes abcd --no-dedup --namespace acme"
    assert (
        memctl("add", "text", *words.split(), *more.split()).out == f"Remembered: {ID}\nIt replaces abcd in results.\n"
    )
    call = fake.calls[0]
    assert isinstance(call, protocol.Add)
    assert (call.namespace, call.dedup) == ("acme", False)
    assert msgspec.to_builtins(call.memory) == {
        "content": "text",
        "type": "decision",
        "metadata": {"a": 1, "tags": ["x"]},
        "importance": 0.9,
        "origin": "person",
        "expires_at": 1775001600.0,
        "pinned": True,
        "supersedes": "abcd",
    }


def test_add_tells_of_merges_and_contradictions(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.Add] = protocol.Added(
        id=ID,
        outcome="merged",
        embedded=False,
        contradicts=["b" * 32],
        contradicts_texts=["The limit\nis 5"],
        operation="1" * 32,
    )
    out = memctl("add", "x").out
    assert out.startswith(
        f"Merged into an existing memory: {ID}\nBoth are kept; it disagrees with:\n  bbbbbbbb: The limit is 5\n"
    )
    assert memctl("add", "x", "--json").json["contradicts"] == ["b" * 32]
    assert "To have it replace one: add it once more with --supersedes ID." in out
    replacing = memctl("add", "x", "--supersedes", "bbbb").out
    assert "It replaces bbbb in results." in replacing
    assert "disagrees" not in replacing


def test_what_a_memory_disagrees_with_is_told_in_its_words(memctl: Memctl, fake: FakeDaemon) -> None:
    others = {"contradicts": ["b" * 32, "c" * 32], "contradicts_texts": ["The limit\nis 5", "None"]}
    fake.replies[protocol.Search] = protocol.Hits(hits=[msgspec.structs.replace(HIT, **others)])
    fake.replies[protocol.Get] = msgspec.structs.replace(HIT, **others)
    found, shown = memctl("search", "x").out, memctl("get", "abcd").out
    assert found.count("\n       disagrees with ") == 2
    for line in ("bbbbbbbb: The limit is 5", "cccccccc: None"):
        assert f"disagrees with {line}" in found
        assert line in shown


def test_update_sends_only_what_was_given(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.Update] = protocol.Changed(memory=MEMORY, operation="4" * 32)
    memctl("update", "abcd", "--expires-at", "never", "--no-pinned", "--remove", "old", "--metadata", "a=1")
    metadata = {"a": 1, "old": None}
    expected = protocol.Update(
        id="abcd", expires_at=None, pinned=False, metadata=metadata, origin="person", reach="all"
    )
    assert fake.calls == [expected]


def test_what_an_agents_shell_saves_is_the_agents_and_it_confirms_nothing(
    memctl: Memctl, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    fake.replies[protocol.Add] = protocol.Added(id=ID, outcome="created", embedded=True, operation="1" * 32)
    memctl("add", "text")
    [call] = fake.calls
    assert isinstance(call, protocol.Add)
    assert call.memory.origin == "agent"
    refused = "in a terminal of your own: an agent runs this shell.\n"
    assert memctl("confirm", "3f9a").err == f"memctl: Run `memctl confirm` {refused}"
    assert memctl("import", "x.jsonl", "--mine").err == f"memctl: Run `memctl import --mine` {refused}"
    assert fake.calls == [call]


def test_confirm_names_what_takes_it_back(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.Confirm] = protocol.Confirmed(ids=[ID], operation="4" * 32)
    assert memctl("confirm", "3f9a").out == "Confirmed 1 memory; `memctl undo 44444444` takes it back.\n"
    assert fake.calls == [protocol.Confirm(ids=["3f9a"], reach="all")]


def test_history_and_undo(memctl: Memctl, fake: FakeDaemon) -> None:
    change = protocol.Change(
        operation="2" * 32,
        kind="update",
        action="updated",
        at=1774967400.0,
        changed={"expires_at": (None, 0.0)},
        token="ada",
        process="memctl (4711)",
    )
    at, undo = 1774967400.0, "3" * 32
    logged = protocol.Operation(
        id="2" * 32, kind="update", at=at, namespace="", memories=1, undone_by=undo, token="ada"
    )
    fake.replies |= {
        protocol.Operations: protocol.OperationLog(operations=[logged]),
        protocol.History: protocol.Changes(id=ID, changes=[change]),
        protocol.Undo: protocol.Undone(undone=logged.id, operation=undo, ids=[ID]),
    }
    assert "by 33333333" in memctl("history").out
    assert "update  ada " in memctl("history").out
    assert memctl("history", "--json").json[0]["at"] == "2026-03-31T14:30:00Z"
    assert "expires_at: – → 1970-01-01T00:00:00Z" in memctl("history", "3f9a").out
    assert "update  updated  ada " in memctl("history", "3f9a").out
    fake.replies[protocol.History] = protocol.Changes(id=ID, changes=[msgspec.structs.replace(change, token="")])
    assert "update  updated  memctl " in memctl("history", "3f9a").out
    changes = memctl("history", "3f9a", "--json").json["changes"]
    assert changes[0]["changed"] == {"expires_at": [None, "1970-01-01T00:00:00Z"]}
    step = protocol.Change(
        id=ID, namespace="a", preview="x", operation=logged.id, kind="update", action="updated", at=0.0
    )
    fake.replies[protocol.History] = protocol.Changes(operation=logged, changes=[step])
    assert "updated  a" in memctl("history", "--operation", "2222").out
    assert "update  ada " in memctl("history", "--operation", "2222").out
    assert fake.calls[-1] == protocol.History(operation="2222", limit=20, reach="all")
    memctl("history", "--before", "2026-03-31", "--kind", "delete")
    assert fake.calls[-1] == protocol.Operations(limit=20, before=1774915200.0, kind=["delete"], reach="all")
    assert memctl("history", "3f9a", "--operation", "2222").code == 2
    assert memctl("undo").out.startswith("Undid operation 22222222 (1 memory)")
    assert fake.calls[-1] == protocol.Undo(reach="all")
    assert memctl("undo", "2222", "--json").json == {
        "undone": logged.id,
        "operation": undo,
        "ids": [ID],
        "turns": 0,
    }


def test_explain_draws_stages_and_candidates(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies |= {protocol.Search: protocol.Hits(hits=[HIT], explanation=TRACE), protocol.GetTrace: TRACE}
    out = memctl("explain", "cache").out
    assert "embed" in out
    assert "█" * 12 in out
    assert "cut: limit" in out
    assert max(map(len, out.splitlines())) <= 100
    assert memctl("explain", "cache", "--json").json["explanation"]["at"] == "2026-03-31T14:30:00Z"
    assert memctl("explain", "--last").out == out
    assert memctl("explain", "--last", "t1", "--json").json["id"] == "t1"
    assert fake.calls[-1] == protocol.GetTrace(id="t1", reach="all")
    kept = protocol.TraceSummary(
        id="t1", query="cache", at=0.0, namespace="", kind="search", session="", token="alpha", given=2, took_ms=1.0
    )
    fake.replies[protocol.Traces] = protocol.TraceList(traces=[kept])
    assert "search        2  alpha  cache" in memctl("explain", "--recent").out
    assert memctl("explain", "x", "--recent").code == 2


def test_the_id_of_an_operation_in_place_of_a_memorys_is_explained(memctl: Memctl, daemon: Any) -> None:
    with daemon.client() as client:
        operation = client.delete(client.add("We deploy on Tuesdays").id).operation[:8]
    told = f"{operation} is an operation, not a memory: `memctl history --operation {operation}`."
    assert memctl("history", operation).err == f"memctl: {told}\n"
    assert "No memory has an id that begins with ffff" in memctl("history", "ffff").err


def test_why_not_says_what_an_agent_of_a_place_is_told_of_a_memory_that_is_found(memctl: Memctl, daemon: Any) -> None:
    with daemon.client("acme/api") as client:
        id = client.add("The staging database listens on port 5433").id
    found = memctl("why-not", id[:8], "staging", "--namespace", "acme/web", "--reach", "all").out
    assert "is found, at rank 1" in found
    assert "An agent in acme/web does not see it: it is in acme/api." in found
    found = memctl("why-not", id[:8], "which staging", "--namespace", "acme/api").out
    assert "What is shown automatically: memctl hooks preview --namespace acme/api --prompt 'which staging'" in found


def test_where_an_erase_cleared_the_searches_that_is_said(memctl: Memctl, daemon: Any) -> None:
    with daemon.client() as client:
        id = client.add("The staging database listens on port 5433").id
        client.search("staging")
        assert "staging" in memctl("explain", "--recent").out
        client.erase(ids=[id])
    assert "cleared when the daemon stops and when something is erased" in memctl("explain", "--recent").out
    assert "cleared when the daemon stops and when something is erased" in memctl("explain", "--last").err


def test_why_not_wants_the_id_before_the_query_and_says_so(memctl: Memctl, fake: FakeDaemon) -> None:
    swapped = memctl("why-not", "which cache", "3f9a")
    assert swapped.code == 2
    assert swapped.err == "memctl: the id comes before the query: memctl why-not 3f9a 'which cache'\n"
    assert "give the memory first (an id, or words" in memctl("why-not", "which", "cache", "do", "we", "use").err
    assert fake.calls == []


def test_an_answer_is_printed_with_its_question(memctl: Memctl, fake: FakeDaemon) -> None:
    question = protocol.Related(id="c" * 32, kind="question", content="What do we cache in?")
    answer = protocol.Related(id="d" * 32, kind="answer", content="Valkey, " + "as it is free " * 20)
    prompt = protocol.Related(id="e" * 32, kind="prompt", content="Cache the sessions.")
    hit = msgspec.structs.replace(HIT, related=[question, prompt, answer])
    fake.replies[protocol.Search] = protocol.Hits(hits=[hit])
    lines = memctl("search", "cache").out.splitlines()
    assert "       question cccccccc  What do we cache in?" in lines
    assert "       prompt eeeeeeee  Cache the sessions." in lines
    beginning = next(at for at, line in enumerate(lines) if line.startswith("       answer dddddddd  Valkey, as it"))
    assert [line[: 7 + 17] for line in lines[beginning + 1 : beginning + 3]] == [" " * 24] * 2


@each(
    ("words", "sentence"),
    [
        (
            ("list", "--type", "nonsense"),
            "No memory has the type nonsense; there are: fact (2), decision (1).\n",
        ),
        (
            ("list", "--source", "mail"),
            "No memory has the source mail; there are: manual (3).\n",
        ),
        (
            ("list", "--type", "fact", "--before", "2020-01-01"),
            "None of 2 memories matches.\n",
        ),
        (("search", "x", "--tier", "L2"), "Nothing found. No memory has the tier L2; there are: L1 (3).\n"),
        (
            ("search", "what is the", "--mode", "lexical"),
            'Nothing found. No memory has one of these words; words like "the" are not searched for.\n',
        ),
    ],
)
def test_a_filter_that_leaves_nothing_is_explained(
    memctl: Memctl, fake: FakeDaemon, words: tuple[str, ...], sentence: str
) -> None:
    totals = iter([0, 2, 2])  # of the filters, of all states, of no filter
    fake.replies[protocol.List] = lambda: protocol.Page(memories=[], total=next(totals))
    fake.replies[protocol.Search] = protocol.Hits(hits=[])
    fake.replies[protocol.GetStats] = counted(
        memories=3, by_type={"decision": 1, "fact": 2}, by_source={"manual": 3}, by_tier={"L1": 3}
    )
    more = " 2 more, superseded or expired, with --all-states." if words[0] == "list" else ""
    assert memctl(*words).out == sentence.replace("\n", f"{more}\n")


def test_a_list_of_nothing_says_what_to_do(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies |= {protocol.List: protocol.Page(memories=[], total=0), protocol.GetStats: counted()}
    assert memctl("list").out == "No memories yet; `memctl add TEXT` adds the first.\n"
    assert "`memctl namespaces` lists where there are some" in memctl("list", "--namespace", "acme").out
    assert memctl("list", "--namespace", "acme", "--reach", "exact").out.startswith("No memories are in acme; ")
    fake.replies[protocol.GetStats] = counted(turns=2)
    assert "`memctl tiers --turns` lists them" in memctl("list").out
    fake.replies[protocol.List] = protocol.Page(memories=[], total=4)
    assert memctl("list", "--offset", "9").out == "There are no more than 4 memories.\n"


def test_a_list_counts_what_is_superseded_or_expired_beside_it(memctl: Memctl, daemon: Any) -> None:
    old = memctl("add", "Deploys are on Monday", "--json").json["id"]
    memctl("add", "Deploys are on Tuesday", "--supersedes", old)
    added = memctl("add", "The coupon WINTER is valid", "--type", "coupon", "--expires-at", "2020-01-01").out
    assert "It has expired already, so no search finds it; `memctl list --all-states` shows it." in added
    assert memctl("list").out.endswith("1 of 1 memory\n2 more, superseded or expired, with --all-states\n")
    listed = memctl("list", "--all-states").out
    assert listed.endswith("3 of 3 memories\n")
    assert ("STATE" in listed, "  expired  " in listed, "  replaced by " in listed) == (True, True, True)
    assert "STATE" not in memctl("list").out
    assert memctl("list", "--type", "coupon").out.endswith(" 1 more, superseded or expired, with --all-states.\n")
    shown = memctl("get", old).out
    assert "replaced by" in shown
    id = memctl("add", "The coupon SPRING is valid", "--json").json["id"]
    assert "no search finds it" in memctl("update", id, "--expires-at", "2020-01-01").out
    assert "\nexpired " in memctl("get", id).out
    assert "disagrees with" not in shown


def test_a_question_that_names_a_time_is_told_the_filter_for_it(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.Search] = protocol.Hits(hits=[msgspec.structs.replace(HIT, confidence=0.01)])
    hint = "All memories of that time, whatever they say: --on "
    assert memctl("search", "what was decided in October").out.endswith(f"{hint}October\n")
    assert memctl("search", "what was decided last Tuesday?").out.endswith(f"{hint}'last Tuesday'\n")
    assert hint not in memctl("search", "coupon SUMMER26").out


def test_recent_searches_are_those_of_agents_and_programs_with_their_session(memctl: Memctl, daemon: Any) -> None:
    with daemon.client("acme/api") as client:
        client.add("The staging database listens on port 5433")
        client.search("which port?", session="work-17")
    memctl("hooks", "preview", "--prompt", "which port?", "--namespace", "acme/api")
    memctl("explain", "port", "--namespace", "acme/api")
    [line] = memctl("explain", "--recent").out.splitlines()[1:]
    assert "  search " in line
    assert "acme/api (session work-17)  which port?" in line
    assert [one["query"] for one in memctl("explain", "--recent", "--json").json] == ["which port?"]


def test_status_and_stats(memctl: Memctl, fake: FakeDaemon) -> None:
    stats = counted(memories=2, by_namespace={"": 2}, embedded=2, operations=1, database_bytes=4096, oldest_at=0.0)
    fake.replies |= {protocol.GetStatus: status(), protocol.GetStats: stats}
    assert "mini, ready, 384 dimensions\n" in memctl("status").out
    fake.replies[protocol.GetStatus] = status(format="block8/2")
    assert "mini, ready, 384 dimensions, block8/2\n" in memctl("status").out
    assert memctl("status", "--json").json["model"]["format"] == "block8/2"
    assert memctl("status", "--json").json["model"]["name"] == "mini"
    assert "/ 2" in memctl("stats").out
    assert memctl("stats", "--json").json["oldest_at"] == "1970-01-01T00:00:00Z"
    assert "language model" not in memctl("stats").out
    stats.llm = protocol.LlmUsage(model="tiny", answers=3, failures=1, tokens_in=1200, last_error="no answer")
    shown = memctl("stats").out
    assert "tiny: 3 answers, 1,200 tokens in, 0 out, 1 failed (the latest: no answer)" in shown


def test_status_names_threads_that_failed(memctl: Memctl, fake: FakeDaemon) -> None:
    thread = protocol.ThreadState(name="effects", restarts=3, error="OSError: no", failed_at=5.0)
    well = protocol.ThreadState(name="judge")
    fake.replies[protocol.GetStatus] = healthy(threads=[well, thread])
    assert "effects failed 3 times (OSError: no)\n" in memctl("status").out
    thread.works_since = 6.0
    assert "effects failed 3 times, works since 1970-01-01T00:00:06Z (OSError: no)\n" in memctl("status").out


def test_a_change_of_model_is_followed_to_its_end(memctl: Memctl, fake: FakeDaemon) -> None:
    half = protocol.Progress(stage="new", done=1, total=2)
    preparing = {"name": "old", "reembedding": half}
    states = [{"name": "old"}, preparing, preparing, {"name": "new"}]
    fake.replies |= {protocol.UseModel: protocol.Done(), protocol.GetStatus: lambda: status(**states.pop(0))}
    shown = memctl("model", "use", "new").out
    assert shown == "Model in use: new, ready, 384 dimensions. `memctl model use old` switches back.\n"
    assert states == []
    fake.replies[protocol.GetStatus] = status(name="old", reembedding=half)
    stuck = memctl("model", "use", "new", "--timeout", "0.3")
    assert stuck.code == 1
    assert "No progress for 0.3 s" in stuck.err
    assert "vectors computed again: 1 of 2" in memctl("model", "use", "new", "--no-wait").out
    fake.replies[protocol.GetStatus] = status(name="new", state="failed", error="broken file")
    assert "new, failed, 384 dimensions (broken file)" in memctl("model", "use", "new").err


def test_waiting_for_readiness_has_a_limit(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.GetStatus] = healthy(pending_embeddings=3)
    assert "Not ready after 0.2 s" in memctl("up", "--wait", "0.2").err


def test_output_that_nobody_reads_ends_without_a_word(fake: FakeDaemon) -> None:
    fake.replies[protocol.List] = protocol.Page(memories=[MEMORY] * 1000, total=1000)
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", "list", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr.read() == b""


def test_content_from_standard_input(memctl: Memctl, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.replies[protocol.Add] = protocol.Added(id=ID, outcome="created", embedded=True, operation="1" * 32)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    assert memctl("add", "-").code == 0
    [call] = fake.calls
    assert isinstance(call, protocol.Add)
    assert call.memory.content == "one\ntwo"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    refused = memctl("add", "-")
    assert (refused.code, refused.err) == (1, "memctl: The content on standard input is not UTF-8 text.\n")
    surrogates = "memctl: The text holds lone surrogates, which are not Unicode characters; remove them.\n"
    assert memctl("add", "\udcff\udcfe").err == surrogates


def test_any_locale_no_terminal_and_hardly_an_environment_will_do(fake: FakeDaemon) -> None:
    """As cron has it."""
    hit = protocol.Hit(**{**FIELDS, "content": "日本 …"}, score=1.0, confidence=0.9)
    fake.replies[protocol.Search] = protocol.Hits(hits=[hit])
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", "search", "x"]
    environment = {"MEMORYD_SOCKET": os.environ["MEMORYD_SOCKET"], "PYTHONIOENCODING": "ascii"}
    given: dict[str, Any] = {"env": environment, "stdin": subprocess.DEVNULL, "cwd": "/"}
    plain = subprocess.run(command, capture_output=True, **given)
    assert (plain.returncode, plain.stderr) == (0, b"")
    assert b"?? ?" in plain.stdout
    json = subprocess.run([*command, "--json"], capture_output=True, **given)
    assert msgspec.json.decode(json.stdout)[0]["content"] == "日本 …"


def test_a_search_imports_nothing_slow(fake: FakeDaemon) -> None:
    fake.replies[protocol.Search] = protocol.Hits(hits=[HIT])
    code = (
        "import sys; from memoryd.client.programs.memctl.running import run; run(['search', 'x', '--json']);"
        "slow = {'asyncio', 'subprocess', 'pathlib', 'json', 'numpy', 'apsw', 'logging', 'email'} & sys.modules.keys();"
        "here = 'memoryd.client.protocol.'; parts = {n[len(here):] for n in sys.modules if n.startswith(here)};"
        "slow |= parts - {'base', 'memories', 'observing', 'search', 'service'};"
        "sys.exit(str(slow) if slow else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_on_asks_for_a_whole_time_and_shows_what_is_there_however_unlikely(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[protocol.Search] = protocol.Hits(hits=[msgspec.structs.replace(HIT, confidence=0.001)])
    out = memctl("search", "what happened", "--on", "2026-03-31").out
    call = fake.calls[-1]
    assert call.before - call.after == pytest.approx(86_400, abs=0.01)
    assert "  unlikely  " in out
    assert memctl("search", "x", "--on", "whenever").code == 2
