"""memctl task and session against the real daemon."""

import pytest
from fake_daemon import Memctl


@pytest.mark.usefixtures("daemon")
def test_tasks_are_kept_and_failures_are_lessons(memctl: Memctl) -> None:
    done = memctl("task", "done", "Valkey 8 runs in staging", "--task", "add a cache", "--namespace", "acme")
    assert (done.code, done.out.split(":")[0]) == (0, "Remembered")
    failed = memctl("task", "failed", "The driver has no cluster mode", "--session", "s", "--json").json
    memory = memctl("get", failed["id"], "--json").json
    assert (memory["type"], memory["source"]) == ("mistake-pattern", "task_completion")
    assert memory["metadata"] == {"outcome": "failed", "session": "s"}
    assert memctl("task", "done", " ").code == 1


@pytest.mark.usefixtures("daemon")
def test_a_session_is_ended(memctl: Memctl) -> None:
    unknown = memctl("session", "end", "s", "--wait")
    assert (unknown.code, unknown.out) == (1, "")
    assert "There is no session s; `memctl log` lists them." in unknown.err
    memctl("observe", "--session", "s", "--role", "user", "We decided to use Postgres 16 for the ledger")
    assert "1 turn of conversations that go on" in memctl("tiers").out
    assert memctl("session", "end", "s").out == "In the background: it is summed up.\n"
    memctl("observe", "--session", "s", "--role", "user", "We decided to keep backups in building 7")
    assert memctl("session", "end", "s", "--json").json == {"waiting": ["summary"]}


@pytest.mark.usefixtures("process")
def test_a_session_whose_summary_was_deleted_with_a_turn_is_not_said_to_have_one(memctl: Memctl) -> None:
    rooms = ("the ledger is in room 4", "backups are in building 7", "the vault is behind the painting")
    for room in rooms:
        memctl("observe", "--session", "s1", "--role", "user", f"We decided that {room}")
    assert memctl("session", "end", "s1", "--wait").out.startswith("What there is to sum up is summed up; ")
    [id] = [turn["id"] for turn in memctl("tiers", "--turns", "--json").json if rooms[0] in turn["content"]]
    assert memctl("delete", id).code == 0
    assert memctl("session", "end", "s1", "--wait").out == (
        "This session has no summary: it is too short for one, or its summary was deleted with one of its turns.\n"
    )
