"""Agents as their makers publish them, with a model that saves a decision and, in a later session, corrects it."""

import re
import time

import pytest
from test_agent_hosts import install

from model_api import ModelAnswer, model_api
from workbench import Process

OLD = "Payments: we use Stripe Checkout, cards only for now."
NEW = "Payments go through Mollie, with SEPA direct debit."
SAYS = ["Note down how we take payments", "Stripe is out, we go to Mollie with SEPA", "What is next?"]
TOOL, SEARCH = "mcp__memoryd__memory_save", "mcp__memoryd__memory_search"
SAVES, SEARCHES = "I save that.", "I look for what is saved."
# What each needs to let its model call a tool without a person there.
MAY_CALL = {
    "claude-code": ["--allowedTools", f"{TOOL},{SEARCH}"],
    "codex": ["--dangerously-bypass-approvals-and-sandbox"],
}


class Model:
    """Saves the decision when it is asked to note it down, and what replaces it by the id that a search shows."""

    def __init__(self) -> None:
        self.shown = ""

    def answer(self, asked: str) -> ModelAnswer:
        if SAYS[2] in asked or SAVES in asked:
            return ModelAnswer("Done.")
        if "memory_save" not in asked:  # agents begin before their servers answer
            time.sleep(1)
            return ModelAnswer("A moment.", tool="WaitForMcpServers", arguments={})
        arguments = {"content": OLD, "kind": "decision"}
        if SAYS[1] in asked:
            if SEARCHES not in asked:
                return ModelAnswer(SEARCHES, tool=SEARCH, arguments={"query": "Stripe Checkout"})
            (self.shown,) = set(re.findall(r"\b[0-9a-f]{8}\b(?=[^\n]*Stripe Checkout)", asked)) or {""}
            arguments = {"content": NEW, "kind": "decision", "supersedes": [self.shown]}
        return ModelAnswer(SAVES, tool=TOOL, arguments=arguments)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("agent", MAY_CALL)
def test_what_the_agent_corrects_is_what_its_next_session_is_told(
    agent: str, real: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")  # Claude Code else names tools without their schemas
    model = Model()
    with model_api(model.answer) as api:
        installed = install(agent, api, real, monkeypatch)
        for text in SAYS:
            assert "Done." in installed.say(text, *MAY_CALL[agent])
        told = next(asked for asked in reversed(api.asked) if SAYS[2] in asked)
    assert model.shown
    assert NEW in told
    assert OLD not in told
