"""What is kept is checked again when the rules of credentials change, once, and conversations are redacted for good."""

from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conversing import FACTS, observe, talk
from memoryd.client.protocol import Consolidate, Get
from memoryd.daemon.conversations import consolidating
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs import run as job_run
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.memories import reading
from memoryd.daemon.privacy import redacting
from memoryd.daemon.privacy.tables.redacting import StoredText
from memoryd.daemon.store import rows, vectors
from moving import everything, run
from workbench import add, found, search, update, wait_until

TOKEN = "".join(("gh", "p_", "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo"))
SAID = f"We decided that the deploy pushes with {TOKEN} to the mirror."
CLEAN = "We decided that the deploy pushes with [secret: GitHub token] to the mirror."


def holding(folder: Path, secret: str = TOKEN) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def consolidate(core: Core) -> None:
    consolidating.consolidate(core, lambda progress: None, Consolidate())


def test_kept_turns_are_redacted_where_they_are_and_nothing_of_the_credential_is_left(
    core: Core, jobs: Runner, folder: Path
) -> None:
    [kept] = observe(core, SAID).ids
    observe(core, "And what else?")
    consolidate(core)
    [active] = observe(core, f"Once more: {SAID}").ids
    update(core, kept, importance=0.9)  # its former state is in the history
    before = everything(core)
    planned = run(jobs, "redact", dry_run=True)
    assert everything(core) == before
    steps = {(step.action, step.target) for step in planned.steps}
    assert {("redact", kept), ("redact", active), ("note", "rules")} <= steps
    assert all(TOKEN not in step.reason for step in planned.steps)
    done = run(jobs, "redact")
    assert done.outcome == "done"
    assert done.counts["redacted"] >= 4
    assert reading.get(core, Get(id=kept)).content == CLEAN
    assert reading.get(core, Get(id=active)).content == f"Once more: {CLEAN}"
    assert [turn.content for turn in core.active.list_turns(None)] == [f"Once more: {CLEAN}"]
    wait_until(lambda: core.embedding.count_pending() == 0)
    assert CLEAN in found(core, "deploy mirror")
    assert search(core, TOKEN[4:], mode="lexical").hits == []
    core.effects.flush()
    assert holding(folder) == []
    assert core.store.find_problems() == []


def test_of_no_kind_of_credential_is_anything_left_in_conversations_history_and_queues(
    core: Core, jobs: Runner, folder: Path
) -> None:
    secret = TOKEN[4:36]
    kinds = [
        f"tske{'y-auth'}-k1a2B3c4CNTRL-{secret}",
        f"apify_{'api'}_{secret}5uKo",
        f"The token for Linear: {secret}",
        f"USER     PASSWORD\nbob      {secret}\n",
        f"Key         Value\n---         -----\npassword    {secret}\n",
        f"https://api.telegram.org/{'bot1102'}01543:{secret}uKo/getMe",
    ]
    said = [f"We decided to keep number {number} of the list:\n{kind}" for number, kind in enumerate(kinds)]
    ids = observe(core, *said, session="s").ids
    talk(core, f"What is the number of {said[0]}?", f"It is in the list, {said[1]}", session="s")
    observe(core, f"Error: {said[2]}")  # skipped
    consolidate(core)
    update(core, ids[0], importance=0.9)
    observe(core, *said, session="later")
    assert holding(folder, secret) != []
    assert run(jobs, "redact").outcome == "done"
    core.effects.flush()
    assert holding(folder, secret) == []
    assert core.store.find_problems() == []
    wait_until(lambda: core.embedding.count_pending() == 0)
    with core.store.reading() as connection:
        stored = connection.execute(f"SELECT {rows.EMBEDDED}, text_hash FROM memories m").fetchall()
    assert [text for text, key in stored if vectors.text_hash(text) != key] == []


def test_labels_of_the_graph_that_have_the_credential_go_with_it(core: Core, jobs: Runner, folder: Path) -> None:
    said = [f"{TOKEN} is what the mirror takes, and nothing {word}." for word in ("else", "more")]
    observe(core, SAID, *said, session="s")
    consolidate(core)
    wait_until(lambda: core.embedding.count_pending() == 0)
    core.store.write(lambda transaction: transaction.connection.execute("UPDATE memories SET tier = 'L2'")).result(30)
    assert run(jobs, "cluster").outcome == "done"
    labels = "SELECT label FROM nodes UNION ALL SELECT label FROM topics"
    with core.store.reading() as connection:
        assert any(TOKEN in label for (label,) in connection.execute(labels))
    assert run(jobs, "redact").outcome == "done"
    core.effects.flush()
    assert holding(folder) == []
    assert core.store.find_problems() == []
    wait_until(lambda: core.embedding.count_pending() == 0)
    run(jobs, "cluster")
    with core.store.reading() as connection:
        assert connection.execute(labels).fetchall() != []
    assert holding(folder) == []


def test_it_runs_once_for_each_change_of_the_rules(core: Core, jobs: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    observe(core, SAID, *FACTS[:3])
    assert run(jobs, "redact").counts["redacted"] >= 1
    assert run(jobs, "redact", dry_run=True).total == 0
    monkeypatch.setattr(redacting, "_hash_rules", lambda: "other rules")
    assert [step.action for step in run(jobs, "redact", dry_run=True).steps] == ["note"]


def test_a_large_store_is_checked_in_several_runs(core: Core, jobs: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    observe(core, SAID, FACTS[0], f"Also {SAID}")
    monkeypatch.setattr(redacting, "_PLAN_S", 0.0)
    assert run(jobs, "redact", dry_run=True).steps[-1].action == "continue"  # no mere note: there is more to look at
    runs = 0
    while run(jobs, "redact", dry_run=True).total:
        assert run(jobs, "redact").outcome == "done"
        runs += 1
    assert runs > 3
    assert {turn.content for turn in core.active.list_turns(None)} == {CLEAN, FACTS[0], f"Also {CLEAN}"}


def test_a_plan_ends_at_the_text_at_which_the_job_is_paused(
    core: Core, jobs: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe(core, *FACTS)
    checked = []

    def check(core: Core, held: StoredText, kinds: Any) -> tuple[str, ...]:
        checked.append(held)
        if len(checked) == 2:
            jobs.pause("redact")
        return held.texts

    monkeypatch.setattr(redacting, "_redact", check)
    monkeypatch.setattr(job_run, "time", SimpleNamespace(perf_counter=count().__next__))
    assert "paused" in run(jobs, "redact").error
    assert len(checked) == 2 < len(FACTS)


def test_what_was_added_on_purpose_is_listed_and_stays(core: Core, jobs: Runner) -> None:
    id = add(core, SAID, summary=SAID).id
    [step, _] = run(jobs, "redact", dry_run=True).steps
    assert (step.action, step.target) == ("leave", id)
    assert run(jobs, "redact").counts == {"left": 1}
    assert [(step.action, step.target) for step in run(jobs, "redact", dry_run=True).steps] == [("leave", id)]
    assert run(jobs, "redact").counts == {}
    assert reading.get(core, Get(id=id)).content == SAID


def test_an_interrupted_check_begins_again(core: Core, jobs: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    observe(core, SAID, f"Also {SAID}")
    real: Any = redacting._replace
    calls: list[int] = []

    def fails(*given: Any) -> bool:
        calls.append(1)
        if len(calls) > 1:
            raise OSError("the disk hesitates")
        return bool(real(*given))

    monkeypatch.setattr(redacting, "_replace", fails)
    run(jobs, "redact")
    monkeypatch.setattr(redacting, "_replace", real)
    run(jobs, "redact")
    assert {turn.content for turn in core.active.list_turns(None)} == {CLEAN, f"Also {CLEAN}"}
