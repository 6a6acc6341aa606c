"""Dreams and running summaries with a language model: it chooses among the notes; the rules go on where it fails."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.client.protocol import Dream, DreamReport, GetStats, LlmUsage, Message, Summarize
from memoryd.daemon.config import Config, LlmConfig
from memoryd.daemon.conversations import running_summary
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.workspaces import indexing, registry
from memoryd.daemon.workspaces.dreams import job as dream_job
from memoryd.daemon.workspaces.dreams.dreaming import Terms
from memoryd.models import load
from model_server import ModelServer, fails, says
from workbench import LIMIT_S, running

MEMORY = "- Tests go through make\n- Tests go through tox\n"
KEEP_NEWEST = {"notes": [{"number": 1, "fate": "outdated", "by": 2}, {"number": 2, "fate": "keep"}]}


@pytest.fixture
def core(folder: Path, server: ModelServer, model_dir: Path) -> Iterator[Core]:
    config = Config(llm=LlmConfig(url=server.url, model="tiny", timeout_s=20.0))
    with running(folder, lambda name, where: load(name, model_dir), config=config) as made:
        yield made


@pytest.fixture
def root(folder: Path, core: Core) -> Path:
    made = folder / "notes"
    (made / "memory").mkdir(parents=True)
    (made / "MEMORY.md").write_text(MEMORY)
    registry.add(core, str(made), "notes", ())
    return made


def dream(core: Core, **options: Any) -> DreamReport:
    indexing.index(core, registry.list_all(core)[0])
    return dream_job.dream(core, Dream(place="notes", force=True, allow=True, **options), Terms(force=True)).dreams[0]


def usage(core: Core) -> LlmUsage:
    used = reading.stats(core, GetStats()).llm
    assert used is not None
    return used


def test_the_model_chooses_and_is_not_asked_again(core: Core, server: ModelServer, root: Path) -> None:
    server.will(says(KEEP_NEWEST))
    assert dream(core).by == "tiny"
    assert (root / "MEMORY.md").read_text() == "- Tests go through tox\n"
    indexing.index(core, registry.list_all(core)[0])
    again = dream_job.dream(core, Dream(place="notes"), Terms()).dreams[0]
    assert (again.outcome, len(server.requests), usage(core).answers) == ("unchanged", 1, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        fails(500),
        fails(401),
        says("what?"),
        says({"notes": []}),
        says({"notes": [{"number": 1, "fate": "keep"}, {"number": 3, "fate": "keep"}]}),
        says({"notes": [{"number": 1, "fate": "repeats", "by": 1}, {"number": 2, "fate": "keep"}]}),
        says({"notes": [{"number": 1, "fate": "repeats", "by": 2}, {"number": 2, "fate": "repeats", "by": 1}]}),
        says({"notes": [{"number": 1, "fate": "keep"}, {"number": 2, "fate": "outdated", "by": 1}]}),
        says({"notes": [{"number": 1, "fate": "passing"}, {"number": 2, "fate": "keep"}]}),
        says({"notes": [{"number": 1, "fate": "rewrite"}, {"number": 2, "fate": "keep"}]}),
    ],
)
def test_the_rules_decide_where_the_model_fails(core: Core, server: ModelServer, root: Path, wrong: Any) -> None:
    server.will(wrong)
    report = dream(core)
    assert (report.by, report.outcome) == ("rules", "unchanged")
    assert (root / "MEMORY.md").read_text() == MEMORY
    assert usage(core).failures == 1


def conversation(wait: bool) -> Summarize:
    messages = [Message(id=str(n), role="user", content=f"We decided on port {n} for the API") for n in range(40)]
    return Summarize(messages=messages, max_tokens=200, max_summary_tokens=60, wait=wait)


def test_a_summary_waits_for_the_model_only_when_told_to(core: Core, server: ModelServer) -> None:
    server.will(says({"done": ["The port of the API was settled."], "learned": [], "failed": []}))
    assert running_summary.handle(core, conversation(wait=False)).result(LIMIT_S).by == "rules"
    assert server.requests == []
    done = running_summary.handle(core, conversation(wait=True)).result(LIMIT_S)
    assert done.by == "tiny"
    assert done.running_summary is not None
    assert done.running_summary.summary == "The port of the API was settled."


@pytest.mark.parametrize("wrong", [fails(500), says("what?"), says({"done": [], "learned": [], "failed": []})])
def test_the_rules_sum_up_where_the_model_fails(core: Core, server: ModelServer, wrong: Any) -> None:
    server.will(wrong)
    done = running_summary.handle(core, conversation(wait=True)).result(LIMIT_S)
    assert done.by == "rules"
    assert done.tokens <= 200


def test_a_summary_of_the_model_that_is_too_long_is_cut(core: Core, server: ModelServer) -> None:
    server.will(says({"done": ["word " * 500], "learned": [], "failed": []}))
    done = running_summary.handle(core, conversation(wait=True)).result(LIMIT_S)
    assert done.by == "tiny"
    assert done.tokens <= 200


def test_many_notes_share_a_question_and_no_text_is_asked_about_twice(
    core: Core, server: ModelServer, root: Path
) -> None:
    (root / "MEMORY.md").write_text("# Memory\n")
    for day in range(1, 31):
        text = f"- The API listens on port 8443\n- Bird {day} of {day * 37} sings\n"
        (root / "memory" / f"2027-01-{day:02}.md").write_text(text)

    def keep_all(request: Any) -> None:
        asked = len(json.loads(request.body["messages"][-1]["content"])["notes"])
        request.say({"notes": [{"number": number, "fate": "keep"} for number in range(1, asked + 1)]})

    server.will(keep_all)
    assert dream(core).by == "tiny"
    assert len(server.requests) == 1
    questions = "".join(request["messages"][-1]["content"] for request in server.requests)
    assert questions.count("8443") == 1
