"""What the page is shown with: a day of three agents on one project, as many memories as wanted, a fixed clock."""

import random
from typing import Any

from memoryd.client import Client
from memoryd.client.protocol import GetUnasked, NewMemory, NewTurn

NOON = 1_800_010_800.0  # 2027-01-15 11:00 UTC: the browser's clock when a page is looked at
_DAY = 86400.0

SAID = [
    ("acme/api", "decision", "The API caches sessions in Valkey 8, not in Redis: the licence of Redis changed."),
    ("acme/api", "lesson", "Integration tests fail when TZ is not UTC. Set TZ=UTC in the Makefile before pytest runs."),
    ("acme/api", "fact", "The staging database is called wagtail and is rebuilt each Monday at 04:00."),
    ("acme/web", "preference", "Components are written without a build step; no framework is added for one page."),
    (
        "acme/web",
        "decision",
        "The dashboard polls every 30 s. Server-sent events come when more than 50 people use it.",
    ),
    ("acme", "preference", "Commit subjects have at most 60 characters; the body says why."),
    ("acme/ops", "fact", "Backups are copied to the second site at 02:30; restoring takes 11 minutes."),
    ("acme/ops", "mistake-pattern", "A rolling restart without draining loses the jobs under way. Drain first."),
    ("acme/api", "fact", "The deploy window is Tuesday at 10."),
    ("acme/api", "fact", "The deploy window is Tuesday at 9."),
    ("acme/api", "debugging", "A 502 after a deploy was the proxy's keep-alive: 75 s there, 60 s in the application."),
    ("acme/ops", "best-practice", "Rotate the signing key every 90 days; the old one stays valid for a week."),
]
TURNS = [
    ("user", "Please move the session cache of the API to Valkey before Friday."),
    ("assistant", "I changed the client to valkey-py and kept the key format; sessions survive the move."),
    ("user", "ok"),
    ("user", "Never deploy the API on Fridays, the team is half away."),
    ("assistant", "Noted: no deploys on Fridays. The move is planned for Tuesday at 10."),
]
_THINGS = (
    "the cache|the queue|the search index|the login form|the deploy script|the report|the billing job|the map".split(
        "|"
    )
)
_DOES = "is rebuilt|is measured|was moved|is watched|fails|was split|is tested|needs a review".split("|")
_WHEN = "every Monday|after each deploy|before a release|at night|when the load is high|once a quarter".split("|")
_WHY = "because it was slow|since customers asked|to keep costs down|as the audit wants it|for the new office".split(
    "|"
)
HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    " [link](javascript:document.title='owned') \u202eright to left\u202c \x1b[31m {{7*7}} ${7*7} </textarea></script>"
)


def fill(client: Client, clock: Any, many: int) -> None:
    """Add `many` memories over the last days, then the work of a morning; the clock ends at `NOON`."""
    if not many:
        clock.now = NOON
        return
    clock.now = NOON - 2 * _DAY
    rest = max(0, many - len(SAID))
    if rest:
        client.add_many(invent(rest, clock.now), dedup=False)
    clock.now = NOON - _DAY
    for number, (namespace, type, text) in enumerate(SAID[:many]):
        clock.now = NOON - (_DAY if number < 6 else 0) - 3600 * 2 + number * 300
        _add(client, namespace, type, text)
    _work(client, clock)
    clock.now = NOON


def invent(many: int, now: float) -> list[NewMemory]:
    """Return memories that differ, one every ten minutes before `now`."""
    chosen = random.Random(7)
    made = []
    for number in range(many):
        words = [chosen.choice(part) for part in (_THINGS, _DOES, _WHEN, _WHY)]
        text = f"{words[0].capitalize()} {words[1]} {words[2]}, {words[3]} (note {number})."
        type = chosen.choice(("fact", "decision", "lesson", "debugging"))
        made.append(NewMemory(content=text, type=type, created_at=now - number * 600.0, importance=chosen.random()))
    return made


def _add(client: Client, namespace: str, type: str, text: str) -> str:
    with Client(namespace, socket=client.socket_path, autostart=False) as agent:
        return agent.add(text, type=type, metadata={"agent": namespace.rpartition("/")[2] or "team"}).id


def _work(client: Client, clock: Any) -> None:
    """What was done this morning beside adding: a conversation, searches, a correction, a deletion, a share."""
    with Client("acme/api", socket=client.socket_path, autostart=False) as agent:
        clock.now = NOON - 5400
        agent.observe([NewTurn(role=role, content=text) for role, text in TURNS], session="move-the-cache")
        agent.search("what do we cache sessions in?", limit=3)
        agent.search("when do we deploy?", limit=5)
        agent.call(GetUnasked(namespace="acme/api", session="move-the-cache", agent="Claude Code"))
        agent.context("move the session cache", max_tokens=400, session="move-the-cache")
        listed = agent.list(limit=3)
        if len(listed) == 3:
            clock.now = NOON - 3000
            agent.update(listed[0].id, content=f"{listed[0].content} Checked with the team.", pinned=True)
            agent.tag(listed[1].id, "cache", "sessions")
            agent.feedback(listed[1].id, True, "it saved an hour")
    if len(listed) == 3:
        clock.now = NOON - 1200
        client.share(listed[1].id, to="acme")
        client.delete(client.list(limit=1, sort="importance", ascending=True)[0].id)
