"""Cues: what a question says of who spoke and when adds to the score of what fits, and the trace names it."""

from datetime import UTC, datetime
from typing import Any

from each import each
from memoryd.daemon.core.core import Core
from memoryd.daemon.search.cues import CUES, read_said
from memoryd.daemon.search.hints import read_hints
from memoryd.daemon.store.rows import Row
from workbench import add, make_row, search, trace

NOW = datetime(2026, 5, 29, 7, 1, tzinfo=UTC)
YESTERDAY = datetime(2026, 5, 28, 12, tzinfo=UTC).timestamp()
LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC).timestamp()


def row(content: str, created_at: float = LONG_AGO, metadata: str = "{}") -> Row:
    return make_row(content, type="turn", created_at=created_at, updated_at=created_at, metadata=metadata)


@each(
    ("question", "content", "fields", "cues"),
    [
        ("What is WIN-1201 about?", "WIN-1201: blank labels", {}, ["identifier"]),
        ("What is WIN-1201 about?", "WIN-1210: rotated labels", {}, []),
        ("memory of a batch size of 250?", "batch size 250: 190 MB", {}, ["identifier"]),
        ("memory of a batch size of 250?", "batch size 2500: 600 MB", {}, []),
        ("firmware of gate 2?", "gate 4 has firmware 2.4.2", {}, []),
        ("does 4.2 of api.py work?", "4.2 works", {}, []),
        ("2番ゲートのファームウェアは？", "2番ゲートのスキャナーは2.4.3です。", {}, ["identifier"]),
        ("what broke yesterday?", "the pump", {"created_at": YESTERDAY}, ["date"]),
        ("what broke yesterday?", "the pump", {}, []),
        ("what broke on 31 December 2024?", "the pump broke yesterday", {}, ["date"]),
        ("when did the pump break?", "it broke last Tuesday", {}, ["when"]),
        ("when did the pump break?", "it broke", {}, []),
        ("which pump?", "Paul: yesterday I told you", {"created_at": YESTERDAY}, []),
    ],
)
def test_a_cue_holds_where_the_memory_fits(
    question: str, content: str, fields: dict[str, Any], cues: list[str]
) -> None:
    asked, said = read_hints(question, NOW), read_said(row(content, **fields))
    assert [cue.name for cue in CUES if cue.holds(asked, said)] == cues


@each(
    ("question", "state"),
    [
        ("What is the retry limit today?", "present"),
        ("Wie hoch ist die Grenze inzwischen?", "present"),
        ("今、上限は何ですか。", "present"),
        ("What was the retry limit before the incident?", "past"),
        ("What did we use originally, and what now?", "past"),
        ("What is the retry limit?", "present"),
        ("Wie lautete die Grenze früher?", "past"),
        ("上限は以前いくつでしたか。", "past"),
        ("What was the retry limit?", ""),
        ("Wie hoch war die Grenze?", ""),
        ("Which limit did we set on 3 March 2024?", ""),
    ],
)
def test_a_question_may_ask_for_what_is_true_now_or_was_before(question: str, state: str) -> None:
    assert read_hints(question, NOW).state == state


def test_a_cue_adds_its_bonus_and_is_in_the_trace(core: Core) -> None:
    told = add(core, "WIN-1201: the heron fishes at dawn").id
    other = add(core, "WIN-1210: the heron fishes at dawn, too").id
    hits = search(core, "what of the heron is in WIN-1201", vector_weight=0.0)
    found = {one.id: one.cues for one in trace(core, hits.trace).candidates}
    assert found == {told: ["identifier"], other: []}
    assert hits[0].id == told
    [stage] = [stage for stage in trace(core, hits.trace).stages if stage.name == "cues"]
    assert stage.notes == {"identifier": 1}
