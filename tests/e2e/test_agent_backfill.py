"""What hooks of the real agents have observed is not taken in again from the files that the agents wrote meanwhile."""

import json
import subprocess
import sys
from contextlib import suppress

import pytest
from test_agent_hosts import AGENTS, ANSWER, install

from model_api import model_api
from waiting import wait_until
from workbench import Process

_AUTOMATED = ("claude-code", "codex", "opencode", "cline")  # deleted when the session ends: its file says so


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("agent", AGENTS)
def test_a_backfill_finds_a_session_that_hooks_observed_and_takes_nothing_of_it(
    agent: str, real: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_api(ANSWER) as api:
        words, asking, place = install(agent, api, real, monkeypatch)
        ended = subprocess.run(words, cwd=place, env=asking, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        assert ANSWER in ended.stdout.decode(), ended.stderr.decode()[-2000:]
    with real.client("billing") as client:
        with suppress(AssertionError):  # on a busy machine an agent does not wait for all of its hooks
            wait_until(lambda: client.tiers().flows.get("observed", 0) == 2, 30)
        observed = client.tiers().flows.get("observed", 0)
        kept = 0 if agent in _AUTOMATED else observed
        wait_until(lambda: len(client.turns()) == kept)
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", "backfill", "--agent", agent]
    command += ["--automated", "--temporary", "--json"]  # one prompt without a terminal, in a folder of the test
    done = json.loads(subprocess.run(command, cwd=place, env=asking, capture_output=True, check=True).stdout)
    assert [(row["namespace"], row["turns"]) for row in done["projects"]] == [("billing", 2)]
    assert observed
    assert (done["taken"], done["known"]) == (2 - kept, kept)
