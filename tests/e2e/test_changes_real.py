"""What holds now, with the default model: a saved memory is told with what was said later that changes it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from memoryd.client import Client
from memoryd.client.errors import Forbidden, NotFound
from memoryd.client.protocol import Added
from workbench import Process, wait_until

sys.path.append(str(Path(__file__).parents[1] / "quality"))
from replaying import call_tool

pytestmark = pytest.mark.slow
PLACES = (f"acme/project-{number}" for number in count())  # each test has one of its own
OLD = "Payments: we use Stripe Checkout, cards only for now."
CHANGE = "Stripe is out, we go to Mollie."
TOLD = ", said by the user: Stripe is out, we go to Mollie.)"


@pytest.fixture
def place(shared_real: Process, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MEMORYD_SOCKET", str(shared_real.socket))
    return next(PLACES)


@pytest.fixture
def client(shared_real: Process, place: str) -> Iterator[Client]:
    with shared_real.client(namespace=place) as made:
        yield made


def memctl(*words: str) -> str:
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def say(client: Client, *said: str, session: str = "s1") -> list[str]:
    """Observe turns of a user and an agent in turn; return their ids once they were compared."""
    turns = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    made = client.observe(turns, session=session)
    settle(client)
    return [turn.id or "" for turn in made.turns]


def settle(client: Client) -> None:
    wait_until(lambda: client.tiers().waiting.keys().isdisjoint({"rate", "embed", "compare"}), limit_s=120)


def change(client: Client) -> tuple[Added, str]:
    """Save a decision and say that it is changed; return both."""
    old = client.add(OLD, type="decision")
    return old, say(client, f"{CHANGE} Start with the checkout page.", "I'll look at the page first.")[0]


def start(client: Client) -> str:
    return client.get_unasked().text


def count_open(client: Client) -> int:
    return client.list_changes().total


def test_a_turn_that_changes_a_saved_memory_is_found_when_it_is_stored(client: Client) -> None:
    old, turn = change(client)
    [memory] = client.list_changes().memories
    assert memory.id == old.id
    assert memory.later is not None
    assert (memory.later.id, memory.later.role, memory.later.text) == (turn, "user", CHANGE)


def test_a_memory_that_changes_another_one_is_found_when_it_is_added(client: Client) -> None:
    old = client.add("We deploy with Fly.io from main.", type="decision")
    new = client.add("Deploys run on Railway, Fly.io is gone.", type="fact")
    settle(client)
    later = client.get(old.id).later
    assert later is not None
    assert (later.id, later.role) == (new.id, "agent")
    assert client.get(new.id).later is None


def test_what_was_refused_or_said_before_the_memory_changes_nothing(client: Client) -> None:
    say(client, "Stripe is out, we go to Mollie.", "Noted.", session="s0")
    client.add(OLD, type="decision")
    say(client, "Sales wants a demo.", "We replace Stripe with Mollie for it.", "no, leave it", session="s1")
    assert count_open(client) == 0


def test_it_stands_in_the_line_wherever_the_memory_is_told(client: Client) -> None:
    old, turn = change(client)
    client.consolidate()
    shown = f"[{turn[:8]}]{TOLD}"
    [line] = [line for line in start(client).splitlines() if f"[{old.id[:8]}]" in line]
    assert OLD in line
    assert shown in line
    prompt = client.get_unasked(prompt="which payments checkout do we use, cards only?").text
    assert all(TOLD in line for line in prompt.splitlines() if OLD in line)
    [hit] = [hit for hit in client.search("what do we use for payments?") if hit.id == old.id]
    assert hit.later is not None
    assert hit.later.text == CHANGE
    [line] = [line for line in client.context("change the payments").text.splitlines() if OLD in line]
    assert TOLD in line


def test_it_stands_in_what_memctl_and_the_mcp_server_print(client: Client, place: str) -> None:
    old, turn = change(client)
    found = memctl("search", "what do we use for payments?", "--namespace", place)
    assert f"[{turn[:8]}], said by the user: {CHANGE}" in found
    answer = call_tool("memory_search", {"query": "what do we use for payments?"}, place).text
    [line] = [line for line in answer.splitlines() if old.id[:8] in line]
    assert f"[{turn[:8]}], said by the user: {CHANGE}" in line


@pytest.mark.parametrize("how", ["delete", "erase"])
def test_without_the_later_turn_nothing_is_told_of_it(client: Client, how: str) -> None:
    old, turn = change(client)
    client.delete(turn) if how == "delete" else client.erase(ids=[turn])
    assert count_open(client) == 0
    assert client.get(old.id).later is None


def test_an_edit_of_the_memory_settles_it(client: Client) -> None:
    old, _ = change(client)
    client.update(old.id, content="Payments: we use Mollie, cards only for now.")
    assert count_open(client) == 0


def test_the_new_one_replaces_the_old_and_an_undo_takes_that_back(client: Client) -> None:
    old, turn = change(client)
    settled = client.settle_change(turn[:8], "new")
    assert client.get(old.id).superseded_by == settled.by
    assert client.get(settled.by).content == CHANGE
    assert (client.get(settled.by).type, count_open(client)) == ("decision", 0)
    client.undo(settled.operation)
    assert (client.get(old.id).superseded_by, count_open(client)) == (None, 1)


def test_that_both_hold_is_kept_until_it_is_taken_back(client: Client) -> None:
    old, _ = change(client)
    client.settle_change(old.id[:8], "both")
    assert (client.get(old.id).later, count_open(client)) == (None, 0)
    with pytest.raises(NotFound):
        client.settle_change(old.id[:8], "both")
    client.settle_change(old.id[:8], "open")
    assert count_open(client) == 1


def test_memctl_lists_counts_and_settles_changes(client: Client, place: str) -> None:
    old, turn = change(client)
    assert f"{turn[:8]}], said by the user: {CHANGE}" in memctl("changes", "--namespace", place)
    assert re.search(r"to settle +1 change", memctl("--namespace", place))
    assert old.id[:8] in memctl("changes", "--both", old.id[:8], "--namespace", place)
    assert "No later statement seems to change a saved memory" in memctl("changes", "--namespace", place)


def test_an_agent_saves_what_replaces_several_memories(client: Client, place: str) -> None:
    ids = [client.add(text, type="decision").id for text in (OLD, "Refunds are made in the Stripe dashboard.")]
    arguments = {"content": "All payments go through Mollie.", "supersedes": [id[:8] for id in ids]}
    saved = call_tool("memory_save", arguments, place)
    assert saved.text.startswith("Saved in ")
    assert len({client.get(id).superseded_by for id in ids} - {None}) == 1
    assert all(client.get(id).superseded_by for id in ids)


def test_an_agent_takes_nothing_away_that_the_person_saved(client: Client, place: str) -> None:
    rule = client.add("Deploys need a second person who says yes.", type="rule", origin="person").id
    saved = call_tool("memory_save", {"content": "Deploys need nobody's yes.", "supersedes": [rule[:8]]}, place)
    assert saved.text.startswith("Saved in ")
    memory = client.get(rule)
    assert memory.superseded_by is None
    assert memory.later is not None
    assert memory.later.role == "agent"
    assert "a second person" in start(client)
    for verdict in ("new", "both"):
        with pytest.raises(Forbidden):
            client.settle_change(rule[:8], verdict)
    client.settle_change(rule[:8], "new", origin="person")
    assert client.get(rule).superseded_by == memory.later.id
    assert client.get(memory.later.id).confirmed_at is not None


def test_an_add_names_the_nearest_saved_memory(client: Client, place: str) -> None:
    old = client.add("The invoice service listens on port 8085 behind the proxy.", type="fact")
    added = client.add("The invoice service behind the proxy listens on a Unix socket and a port.", type="fact")
    assert (added.nearest, added.nearest_text) == (old.id, client.get(old.id).content)
    client.delete(added.id)
    text = "The invoice service behind the proxy listens on a port and writes its log there."
    printed = memctl("add", text, "--namespace", place)
    assert f"Nearest: {old.id[:8]}" in printed
    assert "--supersedes ID" in printed
    answer = call_tool("memory_save", {"content": f"{text} Daily."}, place).text
    assert "supersedes" in answer
