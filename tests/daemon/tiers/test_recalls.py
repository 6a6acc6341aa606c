"""The recall-loop guard: what a session was told and merely says again is evidence, not news."""

import pytest

from conversing import contents, flows, memories, observe, problems, skips
from memoryd.client.prompt_text import FRAME
from memoryd.client.protocol import Memory
from memoryd.daemon.core.core import Core
from memoryd.daemon.tiers import recalls
from memoryd.daemon.tiers.recalls import Recalls
from workbench import add, delete

CACHE = "We use Valkey as the cache. It runs on port 6379 in the office."
LEDGER = "The ledger is closed on Fridays."


def told(id: str, content: str) -> Memory:
    return Memory(id=id, namespace="", type="fact", content=content, created_at=0.0, updated_at=0.0)


def test_a_text_that_equals_a_recalled_memory_or_a_part_of_it_repeats_it() -> None:
    guard = Recalls()
    guard.note("acme", "s", [told("a", CACHE), told("b", LEDGER)])
    assert guard.find_repeated("acme", "s", CACHE) == ["a"]
    assert guard.find_repeated("acme", "s", "we use  VALKEY as the cache!") == ["a"]
    assert guard.find_repeated("acme", "s", f"- {LEDGER}\n- It runs on port 6379 in the office") == ["a", "b"]
    assert guard.find_repeated("acme", "s", f"{CACHE} Since Monday it has a replica.") == []
    assert guard.find_repeated("acme", "s", "We use Redis as the cache.") == []
    assert guard.find_repeated("acme", "s", "") == []


def test_a_line_of_a_context_or_all_of_it_repeats_what_it_shows() -> None:
    guard = Recalls()
    guard.note("acme", "s", [told("a", CACHE), told("b", LEDGER)])
    for line in (f"- {CACHE}\n", f"- [ab12cd34] {CACHE}\n", f"Ada: {CACHE}\n", f"[ab12cd34] user: {CACHE}\n"):
        assert guard.find_repeated("acme", "s", line) == ["a"]
        below = f"  - disagrees with what was known on 1 February 2026: {LEDGER}\n"
        whole = f"{FRAME[0]}Decisions:\n1 March 2026\n{line}{below}{FRAME[1]}"
        assert guard.find_repeated("acme", "s", whole) == ["a", "b"]
        assert guard.find_repeated("acme", "s", f"{whole}We moved to Redis.") == []
        assert guard.find_repeated("acme", "s", f"{whole}2 April\n- {LEDGER}") == ["a", "b"], "a year stands once"
        assert guard.find_repeated("acme", "s", f"{whole}2nd\n- {LEDGER}") == ["a", "b"], "and a month"
        assert guard.find_repeated("acme", "s", f"{whole}2 replicas") == []
    assert guard.find_repeated("acme", "s", "".join(FRAME)) == []


def test_a_turn_that_begins_with_a_name_is_repeated_with_it_and_without() -> None:
    guard = Recalls()
    guard.note("acme", "s", [told("a", f"Ada: {CACHE}")])
    for text in (CACHE, f"Ada: {CACHE}", f"- {CACHE}"):
        assert guard.find_repeated("acme", "s", text) == guard.find_cited("acme", "s", text) == ["a"]


def test_another_session_or_namespace_was_not_told() -> None:
    guard = Recalls()
    guard.note("acme", "s", [told("a", CACHE)])
    assert guard.find_repeated("acme", "t", CACHE) == []
    assert guard.find_repeated("other", "s", CACHE) == []
    assert guard.find_repeated("acme", "", CACHE) == ["a"], "who names no session may be any"


def test_a_search_without_a_session_tells_nobody() -> None:
    guard = Recalls()
    guard.note("acme", "", [told("a", CACHE)])
    assert guard.find_repeated("acme", "", CACHE) == []


def test_a_pair_is_repeated_by_one_of_its_sides() -> None:
    guard = Recalls()
    guard.note("", "s", [told("a", f"User: Which cache do we use?\nAssistant: {CACHE}")])
    assert guard.find_repeated("", "s", CACHE) == ["a"]


def test_memories_and_sessions_are_bounded_and_the_oldest_are_forgotten() -> None:
    guard = Recalls()
    for number in range(recalls.MEMORIES + 1):
        guard.note("", "s", [told(str(number), f"Rule number {number} holds.")])
    assert guard.find_repeated("", "s", "Rule number 0 holds.") == []
    assert guard.find_repeated("", "s", f"Rule number {recalls.MEMORIES} holds.") == [str(recalls.MEMORIES)]
    for number in range(recalls.SESSIONS):
        guard.note("", f"later {number}", [told("x", LEDGER)])
    assert guard.find_repeated("", "s", f"Rule number {recalls.MEMORIES} holds.") == []


def test_sentences_are_bounded_and_the_oldest_sessions_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalls, "SENTENCES", 50)
    guard = Recalls()
    for session in range(20):
        rules = [f"Rule {number} of {session} holds." for number in range(10)]
        guard.note("acme", str(session), [told(f"{session}-{number}", rule) for number, rule in enumerate(rules)])
        guard.note("acme", str(session), [told(f"{session}-0", rules[0])])
    assert guard._size == sum(guard._held["acme"].values()) == 50
    assert guard.find_repeated("acme", "", "Rule 3 of 15 holds.") == ["15-3"]
    assert guard.find_repeated("acme", "", "Rule 3 of 14 holds.") == []
    guard.note("acme", "long", [told("a", "\n".join(f"Line {number} of it." for number in range(60)))])
    assert guard._size == 0
    assert guard._held == {}


def test_what_is_forgotten_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalls, "SENTENCES", 4)
    guard = Recalls()
    for number in range(10):
        guard.note("acme", "s", [told("a", f"The ledger {number} is closed. So is {number + 1}.")])
        guard.forget(iter(["a", "unknown"]))
    guard.note("acme", "s", [told("b", CACHE)])
    guard.note("acme", "other", [told("c", LEDGER)])
    assert guard.is_known("acme", "s")
    assert guard.find_repeated("acme", "s", CACHE) == ["b"]


def test_an_observed_repetition_is_evidence_on_the_original(core: Core) -> None:
    original = add(core, CACHE, "acme")
    core.recalls.note("acme", "s", memories(core))
    [result] = observe(core, "We use Valkey as the cache.", namespace="acme", session="s", role="assistant")
    assert (result.reason, result.same_as) == ("repeats a recalled memory", original.id)
    assert memories(core)[0].access_count == 1
    assert flows(core, "acme") == {"observed": 1, "evidence": 1, "skipped: repeats a recalled memory": 1}
    assert skips(core)[0][1].startswith("repeats a recalled memory (")
    assert problems(core) == []
    assert observe(core, "We use Valkey as the cache.", namespace="acme", session="other").accepted == 1


def test_an_added_repetition_is_evidence_and_no_new_memory(core: Core) -> None:
    original = add(core, CACHE, "acme")
    core.recalls.note("acme", "s", memories(core))
    again = add(core, "It runs on port 6379 in the office.", "acme", type="decision")
    assert (again.outcome, again.id) == ("merged", original.id)
    assert contents(core) == [CACHE]
    assert memories(core)[0].access_count == 1
    assert flows(core, "acme")["evidence"] == 1


def test_an_equal_add_is_merged_as_ever_and_without_dedup_everything_is_kept(core: Core) -> None:
    add(core, CACHE, "acme")
    core.recalls.note("acme", "s", memories(core))
    add(core, CACHE, "acme", metadata={"checked": True})
    assert memories(core)[0].metadata == '{"checked":true}'
    assert add(core, "It runs on port 6379 in the office.", "acme", dedup=False).outcome == "created"
    assert add(core, "We use Valkey as the cache.", "acme", supersedes=memories(core)[0].id).outcome == "created"


def test_what_was_deleted_since_is_news_again(core: Core) -> None:
    id = add(core, CACHE, "acme").id
    core.recalls.note("acme", "s", memories(core))
    delete(core, id)
    assert add(core, "It runs on port 6379 in the office.", "acme").outcome == "created"
    assert observe(core, "We use Valkey as the cache.", namespace="acme", session="s").accepted == 1
