"""Contexts through the real daemon, with the real model and the real memctl."""

import json
import subprocess
import sys
from typing import Any

import pytest

FACTS = [
    ("We use Valkey, not Redis, for the session cache", "decision"),
    ("The API cache must never hold personal data", "correction"),
    ("Cache invalidation broke in March because time to live was in seconds, not ms", "lesson"),
    ("Anna is allergic to peanuts", "fact"),
]


def memctl(real: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", *arguments]
    return subprocess.run(command, env=real.environment, capture_output=True, text=True, timeout=60)


def test_a_context_holds_what_the_task_needs(real: Any) -> None:
    with real.client(namespace="acme/api") as memory:
        for content, kind in FACTS:
            memory.add(content, type=kind)
        made = memory.context("add a cache to the API", max_tokens=400, session="one")
        assert made.tokens <= 400
        assert "Valkey" in made.text
        assert "personal data" in made.text
        assert "peanuts" not in made.text
        assert memory.context("add a cache to the API", session="one").text == ""
        assert "peanuts" in memory.context("what must Anna not eat because of an allergy?").text


@pytest.mark.slow
def test_memctl_prints_a_context_or_says_that_nothing_is_relevant(real: Any) -> None:
    empty = memctl(real, "context", "add a cache")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert "nothing relevant" in empty.stderr
    memctl(real, "add", *FACTS[0][:1])
    shown = memctl(real, "context", "which session cache do we use")
    assert shown.stdout.startswith("<memories>")
    assert "Valkey" in shown.stdout
    found = json.loads(memctl(real, "context", "which session cache do we use", "--json").stdout)
    assert found["tokenizer"] == "all-MiniLM-L6-v2"
    wrong = memctl(real, "context", "x", "--max-tokens", "3")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
