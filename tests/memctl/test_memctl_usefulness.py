"""memctl usefulness and given, against a daemon in the test process."""

import json
from datetime import UTC, datetime
from typing import Any

from fake_daemon import Memctl


def test_usefulness_counts_what_became_of_lines(memctl: Memctl, daemon: Any, clock: Any) -> None:
    nothing = "There is nothing to count yet: no session was shown a line and had a turn after it.\n"
    assert memctl("usefulness", "--namespace", "acme/api").out == nothing
    with daemon.client("acme/api") as client:
        client.add("Migrations run in batches of 5000 rows", type="rule")
        assert client.get_unasked(session="one").lines
        clock.advance(60.0)
        asked = {"role": "user", "content": "write the migration of the new column"}
        client.observe([asked, {"role": "assistant", "content": "It runs in batches of 5000."}], session="one")
    heads, row = memctl("usefulness", "--reach", "all").out.splitlines()
    assert heads.split() == ["month", "project", "sessions", "told", "used", "said", "again", "corrected"]
    assert row.split()[1:] == ["acme/api", "1", "1", "1", "0", "0"]
    [month] = json.loads(memctl("usefulness", "--json").out)
    assert (month["namespace"], month["used"]) == ("acme/api", 1)


def test_given_lists_what_sessions_were_shown(memctl: Memctl, daemon: Any, clock: Any) -> None:
    assert memctl("given").out == "No session was shown any memory.\n"
    with daemon.client("acme/api") as client:
        id = client.add("Migrations run in batches of 5000 rows", type="rule").id
        assert client.get_unasked(session="one").lines
    about, line = memctl("given").out.splitlines()
    assert (about.split()[0], about.split()[2]) == ("one", "acme/api")
    assert line == f"  {id[:8]}  Migrations run in batches of 5000 rows"
    [session] = memctl("given", "--json").json
    assert [line["id"] for line in session["lines"]] == [id]
    assert memctl("given", "--namespace", "web").out == "No session was shown any memory.\n"
    clock.advance(3 * 86400.0)
    since = datetime.fromtimestamp(clock.now - 86400.0, UTC).isoformat()
    assert memctl("given", "--since", since).out == "No session was shown any memory.\n"
