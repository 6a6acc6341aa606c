"""Saves that pretend to be the person's (`tests/data/hostile`, the seen half): where they stand, and where they do not.

What comes by files and by other systems is measured on real processes: `tests/quality/test_saved.py`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conversing import observe, settle
from memoryd.client.programs.memctl.record_text import convert_record
from memoryd.client.protocol import Confirm, GetUnasked, ImportMemories, List, NewTurn, Unasked
from memoryd.daemon.core.core import Core
from memoryd.daemon.unasked import unasked
from workbench import LIMIT_S, add, add_own, ask

OTHER = "kiln/other"


def list_cases() -> Iterator[dict[str, Any]]:
    for line in (Path(__file__).parents[2] / "data" / "hostile" / "seen.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["way"] in ("mcp", "backfill") or case.get("system") == "memoryd":
            yield case


def save(core: Core, case: dict[str, Any]) -> None:
    place = case["project"]
    if case["way"] == "mcp":
        given = case["save"]
        where = given.get("project", place).strip("/")
        tags = {"tags": given["tags"]} if "tags" in given else {}
        add(core, given["content"], where, type=given["kind"], metadata=tags, source="mcp")
    elif case["way"] == "import":
        known = {"id": "ab" * 16, "created_at": 1.0, "updated_at": 1.0, "namespace": place}
        claimed = {"origin": "person", "confirmed_at": 1.0}  # as whoever knows the format writes
        record = convert_record({**known, **claimed, **case["source"]})
        record.namespace = record.namespace.strip("/")
        assert ask(core, ImportMemories(records=[record])).created == 1
    else:
        for turn in case["turns"]:
            observe(core, NewTurn(**turn), session="read", namespace=place)
        settle(core, "stored")


def at(core: Core, namespace: str, prompt: str = "") -> Unasked:
    call = GetUnasked(namespace=namespace, session=f"s{bool(prompt)}", prompt=prompt)
    return unasked.get_unasked(core, core.sources, call).result(LIMIT_S)


@pytest.mark.parametrize("case", list(list_cases()), ids=lambda case: str(case["id"]))
def test_a_hostile_save_is_below_the_persons_marked_and_in_no_other_project(core: Core, case: dict[str, Any]) -> None:
    add_own(core, case["beside"], case["project"], type="fact")
    save(core, case)
    said = case["text"]
    told = at(core, case["project"]).text
    assert case["beside"] in told
    if said in told:
        assert "start" not in case["must_not"]
        assert told.index(case["beside"]) < told.index("Saved by agents, unconfirmed:\n") < told.index(said)
    for line in at(core, case["project"], said).lines:
        assert said not in line.text or "unconfirmed" in line.note
    for prompt in ("", said):
        assert said not in at(core, OTHER, prompt).text
    others = [one for one in ask(core, List(reach="all", limit=100)) if one.content != case["beside"]]
    assert [one for one in others if one.origin == "person" or one.confirmed_at is not None] == []


def test_what_an_agent_of_another_project_saved_comes_up_once_it_is_confirmed(core: Core) -> None:
    text, place = "Releases of the kiln are signed with the key of the office.", "kiln/app"
    id = add(core, text, place, source="mcp", metadata={"saved_from": OTHER}).id
    assert text not in at(core, place).text
    assert text not in at(core, place, text).text
    ask(core, Confirm(namespace=place, ids=[id]))
    assert text in at(core, place).text
