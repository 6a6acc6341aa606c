"""The steps of the demo. Each gets the stage, makes real calls, and prints their results."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from memoryd.client.programs.demo.agents import Agent
from memoryd.client.programs.memctl.output import columns, paint, say
from memoryd.client.programs.memctl.private_daemon import PrivateDaemon
from memoryd.client.programs.memctl.service import model_text, wait_until_ready
from memoryd.client.programs.memctl.text_table import ms_text, shorten, size_text, to_one_line
from memoryd.client.protocol import Verify
from memoryd.client.transport.sync import Client

WHERE = 12  # the width of a namespace
SHARED = "demo"  # the namespace that encloses those of the agents
READY_LIMIT_S = 300.0


class AgentFacts(NamedTuple):
    """What one agent saves, for all agents and for itself, and what it asks."""

    shared: str
    private: str
    question: str


FACTS = {
    "alpha": AgentFacts(
        "We use Valkey, not Redis, as the session cache, because of the licence.",
        "My test test_login_retry is flaky: it races with the warm-up of the cache.",
        "on which day may we release to production?",
    ),
    "beta": AgentFacts(
        "Deploys to production run on Tuesdays at 14:00 UTC, never on a Friday.",
        "I left the dark mode branch half finished: its colour tokens are missing.",
        "what did we choose for caching sessions?",
    ),
    "gamma": AgentFacts(
        "The nightly backup of the database is kept for 30 days in the vault bucket.",
        "The staging certificate runs out soon and I have not renewed it.",
        "what came of the dark mode work?",
    ),
}
CHANGED = "Deploys to production run on Wednesdays at 14:00 UTC, never on a Friday."
LAST_WORD = "This sentence was acknowledged just before the daemon was killed."


class DemoStage(msgspec.Struct):
    """The state that the steps share; `--json` prints `figures`, and `missing` says why there is no model."""

    daemon: PrivateDaemon
    crew: list[Agent]
    quiet: bool
    missing: str
    figures: dict[str, Any] = {}

    def print_line(self, text: str) -> None:
        """Print a line of the story."""
        if not self.quiet:
            say(f"   {text}")

    def client(self) -> Client:
        """Return a client in the namespace that all agents share."""
        return self.daemon.client(SHARED)


def start(stage: DemoStage) -> None:
    """Show the daemon and its model."""
    with stage.client() as client:
        status = client.status() if stage.missing else wait_until_ready(client, READY_LIMIT_S)
    stage.print_line(f"pid {status.pid}, socket {status.socket}, {size_text(status.rss_bytes)} of memory")
    stage.print_line(f"model: {model_text(status.model)}")
    stage.figures |= {"model": status.model.name, "model_state": status.model.state}


def remember(stage: DemoStage) -> None:
    """Let all agents save at the same time: one memory for everyone, and one for themselves."""
    for agent in stage.crew:
        agent.order(remember=FACTS[agent.name].shared, namespace=SHARED)
        agent.order(remember=FACTS[agent.name].private, namespace=agent.namespace)
    for agent in stage.crew:
        times = " and ".join([ms_text(agent.answer()["took_ms"]) for _ in range(2)])
        stage.print_line(f"{_name_text(agent)} (pid {agent.pid}) remembers in {times} ms:")
        stage.print_line(f"  for everyone   {FACTS[agent.name].shared}")
        stage.print_line(f"  for itself     {FACTS[agent.name].private}")


def share(stage: DemoStage) -> None:
    """Let each agent ask; it does not see what the others keep for themselves."""
    found = [_ask(stage, agent, FACTS[agent.name].question, limit=1) for agent in stage.crew]
    beta, gamma = stage.crew[1], stage.crew[2]
    own = _ask(stage, beta, FACTS["gamma"].question, limit=1)
    private = FACTS["beta"].private
    hidden = all(hit["content"] != private for hit in gamma.send(ask=FACTS["gamma"].question, limit=100)["hits"])
    seen = any(hit["content"] == private for hit in own)
    stage.print_line(f"Only beta finds what beta kept for itself: {_verdict_text(hidden and seen)}")
    stage.figures |= {"shared_found": sum(map(bool, found)), "private_hidden": hidden and seen}


def merge(stage: DemoStage) -> None:
    """Save a memory a second time, then one that contradicts it."""
    gamma, same = stage.crew[2], FACTS["beta"].shared
    again = gamma.send(remember=same if stage.missing else same.rstrip("."), namespace=SHARED)
    stage.print_line(f"{_name_text(gamma)} says again what beta said: {again['outcome']}, {again['id'][:8]}")
    changed = gamma.send(remember=CHANGED, namespace=SHARED)
    outcome = "kept beside it (its vector finds the other later)"
    if beside := ", ".join(id[:8] for id in changed["contradicts"]):
        outcome = f"kept beside {beside}, which it contradicts"
    stage.print_line(f"{_name_text(gamma)} says Wednesdays: {changed['outcome']} as {changed['id'][:8]}, {outcome}")
    _ask(stage, gamma, "when do deploys run?", limit=2)
    stage.figures |= {"repeated": again["outcome"], "contradicts": len(changed["contradicts"])}


def kill(stage: DemoStage) -> None:
    """Kill the daemon right after a write was acknowledged, and start it again."""
    with stage.client() as client:
        before = client.status().memories
        last = client.add(LAST_WORD)
    pid = stage.daemon.pid
    stage.daemon.kill()
    started = time.perf_counter()
    stage.daemon.start()
    took_ms = (time.perf_counter() - started) * 1000
    with stage.client() as client:
        after = client.status().memories
        kept = client.get(last.id).content == LAST_WORD and after == before + 1
        problems = client.call(Verify()).problems
    stage.print_line(f"{before:,} memories, one more acknowledged, then kill -9 {pid}")
    answers = f"pid {stage.daemon.pid} answers after {took_ms:.0f} ms with {after:,} memories"
    stage.print_line(f"{answers}, the last one among them")
    stage.print_line(f"Nothing lost: {_verdict_text(kept)}   The database is sound: {_verdict_text(not problems)}")
    stage.figures |= {"memories": after, "restart_ms": round(took_ms), "nothing_lost": kept, "problems": problems}


STEPS: Sequence[tuple[str, Callable[[DemoStage], None]]] = (
    ("A daemon of its own", start),
    ("Three agents, each a process of its own, remember at the same time", remember),
    ("They find what the others shared, and only that", share),
    ("The same again is merged, a contradiction is kept", merge),
    ("kill -9", kill),
)


def _ask(stage: DemoStage, agent: Agent, question: str, limit: int) -> list[dict[str, Any]]:
    reply = agent.send(ask=question, limit=limit)
    hits: list[dict[str, Any]] = reply["hits"]
    without = f", without {', '.join(reply['degraded'])}" if reply["degraded"] else ""
    took = f"({ms_text(reply['took_ms'])} ms{without})"
    stage.print_line(f"{_name_text(agent)} asks “{question}” {paint(took, 'dim')}")
    for hit in hits:
        content = shorten(to_one_line(hit["content"]), columns() - WHERE - 16)
        stage.print_line(f"  {hit['score']:.3f}  {hit['namespace']:<{WHERE}}  {content}")
    return hits


def _name_text(agent: Agent) -> str:
    return paint(agent.name, "cyan")


def _verdict_text(good: bool) -> str:
    return paint("yes", "green") if good else paint("NO", "red")
