"""memctl log: what was done, session by session; memctl get --around."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memoryd.client.programs.memctl.log import parse_moment

Memctl = Any
SAID = [
    {"role": "user", "content": "Make the importer stream its orders."},
    {"role": "assistant", "content": "Implemented streaming, 220 MB.", "files": ["/src/importer.py"]},
    {"role": "user", "content": "No.", "speaker": "Farid"},
    {"role": "user", "content": "Then we decided to release it on Monday.", "speaker": "Farid"},
]


@pytest.fixture
def ids(client: Any) -> list[str]:
    observed = client.observe(SAID, session="work-1")
    early = {"role": "user", "content": "Rename the ledger to book.", "created_at": 1_800_000_000 - 3600}
    client.observe([early], session="work-2")
    client.complete_task("failed", "The driver lacks cluster mode", task="add a cache", session="work-1")
    return list(observed.ids)


def test_the_log_shows_what_was_done(memctl: Memctl, ids: list[str]) -> None:
    told = memctl("log").out
    assert told.index("work-1") < told.index("work-2")
    for part in ("3 turns", "Make the importer stream its orders.", "Failed: add a cache", "/src/importer.py"):
        assert part in told
    assert "work-2" not in memctl("log", "--path", "importer.py").out
    assert [one["session"] for one in memctl("log", "--session", "work-2", "--json").json] == ["work-2"]
    assert len(memctl("log", "--since", "yesterday", "--json").json) == 2
    assert "No session matches; `memctl tiers --skipped`" in memctl("log", "--since", "2999-01-01").out
    assert memctl("log", "--since", "soon").code == 2
    assert memctl("log", "--limit", "0").code == 2


def test_a_turn_is_shown_in_its_conversation(memctl: Memctl, ids: list[str]) -> None:
    told = memctl("get", ids[1], "--around", "1").out
    assert [line for line in told.splitlines() if line in {said["content"] for said in SAID}] == [
        SAID[0]["content"],
        SAID[1]["content"],
        SAID[3]["content"],
    ]
    assert "assistant  /src/importer.py" in told
    assert "Farid" in told
    assert [one["id"] for one in memctl("get", ids[1], "--around", "0", "--json").json] == [ids[1]]
    assert memctl("get", ids[1], "--around", "-1").code != 0


def test_words_for_times_are_by_the_local_clock() -> None:
    now = datetime(2026, 3, 10, 14, 30, tzinfo=UTC)
    assert parse_moment("today", now) == datetime(2026, 3, 10, tzinfo=UTC).timestamp()
    assert parse_moment("yesterday", now) == datetime(2026, 3, 9, tzinfo=UTC).timestamp()
    assert parse_moment("12h", now) == (now - timedelta(hours=12)).timestamp()
    assert parse_moment("2w", now) == (now - timedelta(weeks=2)).timestamp()
    assert parse_moment("2026-01-01", now) == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
