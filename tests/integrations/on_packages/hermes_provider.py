"""Hermes Agent itself, with the memory provider; `test_on_packages.py` runs this."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.memory_provider import MemoryProvider

from configs import NO_MODEL
from memoryd.client.programs.hooks.hermes import MemorydProvider
from model_api import model_api
from waiting import wait_until
from workbench import Process

MEMORY = "Run the billing migrations with --lock-timeout 5s, else the deploy hangs"
ANSWER = "I have deployed the billing service at noon and told the whole team about it"
QUESTION = "How do I run the billing migrations before the deploy?"
PLUGIN = "from memoryd.client.programs.hooks.hermes import register  # a MemoryProvider\n"
NOTES = "The user likes plums.\n"


@pytest.fixture
def process(folder: Path) -> Iterator[Process]:
    made = Process(folder, NO_MODEL).start()
    yield made
    made.stop()


@pytest.fixture
def place(folder: Path) -> Path:
    made = folder / "billing"
    (made / ".git").mkdir(parents=True)
    return made


@pytest.fixture
def provider(process: Process, place: Path, monkeypatch: pytest.MonkeyPatch) -> MemorydProvider:
    for name, value in process.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(place)
    made = MemorydProvider()
    made.initialize("s1", hermes_home="", platform="cli", agent_context="primary")
    return made


def test_hermes_asks_its_model_with_the_memory_and_keeps_its_own(process: Process, folder: Path, place: Path) -> None:
    home = folder / "hermes"
    (home / "plugins" / "memoryd").mkdir(parents=True)
    (home / "plugins" / "memoryd" / "__init__.py").write_text(PLUGIN)
    (home / "memories").mkdir()
    (home / "memories" / "MEMORY.md").write_text(NOTES)
    with process.client("billing") as client:
        client.add(MEMORY, type="lesson")
    with model_api(ANSWER) as api:
        model = {"provider": "custom", "base_url": f"{api.url}/v1", "default": "m", "api_key": "none"}
        (home / "config.yaml").write_text(json.dumps({"model": model, "memory": {"provider": "memoryd"}}))
        given = {**os.environ, **process.environment, "HERMES_HOME": str(home), "HOME": str(folder), "PWD": str(place)}
        command = [sys.executable, "-m", "hermes_cli.main", "-z", QUESTION]
        done = subprocess.run(command, cwd=place, env=given, stdin=subprocess.DEVNULL, capture_output=True, timeout=200)
        assert ANSWER in done.stdout.decode(), done.stderr.decode()[-2000:]
        assert any("--lock-timeout 5s" in asked and QUESTION in asked for asked in api.asked)
    with process.client("billing") as client:
        wait_until(lambda: client.stats().methods["end_session"].calls >= 1)
        assert {(turn.role, turn.content) for turn in client.turns()} == {("user", QUESTION), ("assistant", ANSWER)}
    assert (home / "memories" / "MEMORY.md").read_text() == NOTES


def test_a_provider_is_one_of_hermes_without_tools(provider: MemorydProvider) -> None:
    assert isinstance(provider, MemoryProvider)
    assert (provider.name, provider.is_available(), provider.get_tool_schemas()) == ("memoryd", True, [])


def test_a_memory_is_told_once_and_again_after_a_compaction(process: Process, provider: MemorydProvider) -> None:
    with process.client("billing") as client:
        client.add(MEMORY, type="lesson", pinned=True)
    assert MEMORY in provider.prefetch("Good morning")
    assert provider.prefetch("Good evening") == ""
    assert provider.on_pre_compress([]) == ""
    assert MEMORY in provider.prefetch("Where were we?")


def test_what_is_said_while_the_daemon_is_away_comes_to_it_later(process: Process, provider: MemorydProvider) -> None:
    process.stop()
    provider.sync_turn(QUESTION, ANSWER, session_id="s1")
    assert len((process.data / "hooks.spool").read_text().splitlines()) == 2
    process.start()
    provider.on_session_end([])
    with process.client("billing") as client:
        assert {turn.content for turn in client.turns()} == {QUESTION, ANSWER}


def test_scheduled_runs_and_agents_below_another_say_nothing(process: Process, provider: MemorydProvider) -> None:
    provider.initialize("s2", agent_context="cron")
    provider.sync_turn(QUESTION, ANSWER)
    with process.client("billing") as client:
        assert client.turns() == client.turns(session="none")
