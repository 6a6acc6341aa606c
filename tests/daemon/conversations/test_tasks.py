"""Notes of tasks: what was done, and lessons of what failed."""

from typing import Any

import pytest

from memoryd.client import Client
from memoryd.client.errors import Invalid
from waiting import wait_until

OUTPUT = "Valkey 8 runs in staging. " + "The cluster mode needs the driver of version 6, older ones fail at start. " * 6


def test_a_completed_task_is_a_note_with_its_time_to_live(client: Client, clock: Any) -> None:
    added = client.complete_task("completed", "Valkey 8 runs in staging", task="add a cache", session="s")
    memory = client.get(added.id)
    assert memory.content == "Completed: add a cache\nValkey 8 runs in staging"
    assert (memory.type, memory.source) == ("note", "task_completion")
    assert memory.metadata == {"outcome": "completed", "task": "add a cache", "session": "s"}
    assert memory.expires_at is None


def test_a_failed_task_is_a_lesson_about_what_failed(client: Client) -> None:
    added = client.complete_task("failed", "The driver has no cluster mode")
    memory = client.get(added.id)
    assert (memory.type, memory.content) == ("mistake-pattern", "Failed: The driver has no cluster mode")
    assert "cluster mode" in client.context("use the cluster mode of the driver").text


def test_a_long_output_is_condensed_in_the_background(client: Client) -> None:
    added = client.complete_task("completed", OUTPUT, task="add a cache")
    wait_until(lambda: client.get(added.id).summary != "")
    assert len(client.get(added.id).summary) < len(OUTPUT)


def test_undo_takes_a_task_back(client: Client) -> None:
    added = client.complete_task("partial", "Half of the pages are moved")
    client.undo(added.operation)
    assert list(client.list()) == []


@pytest.mark.parametrize("wrong", [("completed", " "), ("finished", "x"), ("completed", "a \0 b")])
def test_a_wrong_one_is_refused(client: Client, wrong: tuple[str, str]) -> None:
    with pytest.raises(Invalid):
        client.complete_task(*wrong)
    assert list(client.list()) == []
