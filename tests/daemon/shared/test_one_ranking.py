"""What is in a root and what is on this machine are ranked as one: at both kinds of place."""

from itertools import product
from typing import Any

import pytest
from joined import Joined, decide

from memoryd.client.protocol import Add, GetUnasked, Hits, NewMemory, Search, SearchOptions
from waiting import wait_until

NOW = 1_800_000_000.0
TEXTS = [
    "The billing service listens on port 1",
    "The mail service listens on port 2",
    "The auth service listens on port 3",
    "Releases are on Tuesdays",
    "Customer Elm may send 600 requests",
    "Invoices of March are checked in a spreadsheet, because the dashboards lack the last two days",
    "Backups of the billing service run at night",
]
QUERIES = (
    "which port has the mail service?",
    "requests of customer Elm",
    "when does the billing service run",
    "Tuesdays",
)
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"mode": "lexical"},
    {"mode": "dense"},
    {"options": SearchOptions(fusion="rrf")},
)
OLD, NEW = "The retry limit of billing is 5 in production", "The retry limit of billing is 8 in production"


def save(joined: Joined, text: str, at: float, there: bool) -> None:
    """Save a decision in the root or in the same namespace on this machine; and in `alone`, on this machine."""
    memory = NewMemory(content=text, type="decision", created_at=NOW + at)
    joined.here.call(Add(memory=memory, namespace="alone"))
    if there:
        assert decide(joined.here, text, created_at=NOW + at).shared
    else:
        with joined.daemon.client("acme/api") as project:
            project.add_many([memory])


def find(joined: Joined, query: str, namespace: str, **fields: Any) -> Hits:
    found = joined.here.call(Search(query=query, namespace=namespace, reach="exact", **fields))
    assert found.degraded == []
    return found


def tell(joined: Joined, namespace: str, prompt: str = "") -> list[str]:
    """Return what a new session is shown at its start or beside a first prompt."""
    call = GetUnasked(namespace=namespace, reach="exact", prompt=prompt, touch=False)
    return [line.text for line in joined.here.call(call).lines]


@pytest.mark.parametrize("every", [1, 2])
def test_hits_have_the_order_the_scores_and_the_confidence_that_they_have_all_here(joined: Joined, every: int) -> None:
    for at, text in enumerate(TEXTS):
        save(joined, text, at, not at % every)
    for query, way in product(QUERIES, WAYS):
        here, there = find(joined, query, "alone", **way), find(joined, query, "acme/api", **way)
        assert there[0].content == here[0].content, (query, way)
        by_content = {hit.content: hit for hit in there}
        assert by_content.keys() == {hit.content for hit in here}
        for one, other in ((hit, by_content[hit.content]) for hit in here):
            assert other.confidence == pytest.approx(one.confidence, abs=0.05), (query, one.content)
            assert other.score == pytest.approx(one.score, abs=0.05), (query, one.content)
            assert other.similarity == (one.similarity and pytest.approx(one.similarity, abs=1e-4))
    pages = [find(joined, QUERIES[0], "acme/api", limit=2, offset=at)[0].content for at in (0, 1, 2)]
    assert pages == [hit.content for hit in find(joined, QUERIES[0], "acme/api", limit=3)]


@pytest.mark.parametrize("new_is_there", [True, False])
def test_a_newer_statement_comes_before_the_older_one_on_another_machine(joined: Joined, new_is_there: bool) -> None:
    save(joined, OLD, 0.0, not new_is_there)
    save(joined, NEW, 1.0, new_is_there)
    query = "is the retry limit of billing 5 in production?"  # its words are those of the older one
    assert [hit.content for hit in find(joined, query, "alone")] == [NEW, OLD]
    assert [hit.content for hit in find(joined, query, "acme/api")] == [NEW, OLD]
    wait_until(lambda: NEW in tell(joined, "acme/api"))
    assert tell(joined, "acme/api") == tell(joined, "alone") == [NEW]


def test_beside_a_prompt_a_root_is_shown_as_what_is_here(joined: Joined) -> None:
    for at, text in enumerate(TEXTS):
        save(joined, text, at, not at % 2)
    wait_until(lambda: sorted(tell(joined, "acme/api")) == sorted(tell(joined, "alone")))
    for prompt in (*QUERIES, "Which service listens on port 3?", "Write a haiku about spring"):
        assert tell(joined, "acme/api", prompt) == tell(joined, "alone", prompt), prompt
    assert tell(joined, "acme/api", "Which service listens on port 3?") == [TEXTS[2]]
