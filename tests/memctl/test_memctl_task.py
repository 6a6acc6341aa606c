"""memctl task and session against the real daemon."""

import pytest
from fake_daemon import Memctl

pytestmark = pytest.mark.usefixtures("daemon")


def test_tasks_are_kept_and_failures_are_lessons(memctl: Memctl) -> None:
    done = memctl("task", "done", "Valkey 8 runs in staging", "--task", "add a cache", "--namespace", "acme")
    assert (done.code, done.out.split(":")[0]) == (0, "Remembered")
    failed = memctl("task", "failed", "The driver has no cluster mode", "--session", "s", "--json").json
    memory = memctl("get", failed["id"], "--json").json
    assert (memory["type"], memory["source"]) == ("mistake-pattern", "task_completion")
    assert memory["metadata"] == {"outcome": "failed", "session": "s"}
    assert memctl("task", "done", " ").code == 1


def test_a_session_is_ended(memctl: Memctl) -> None:
    unknown = memctl("session", "end", "s", "--wait")
    assert (unknown.code, unknown.out) == (1, "")
    assert "There is no session s; `memctl log` lists them." in unknown.err
    memctl("observe", "--session", "s", "--role", "user", "We decided to use Postgres 16 for the ledger")
    assert "1 turn of conversations that go on" in memctl("tiers").out
    assert memctl("session", "end", "s").out == "In the background: it is summed up.\n"
    memctl("observe", "--session", "s", "--role", "user", "We decided to keep backups in building 7")
    assert memctl("session", "end", "s", "--json").json == {"waiting": ["summary"]}
