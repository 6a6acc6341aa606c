"""memctl usefulness, against a daemon in the test process."""

import json
from typing import Any

from fake_daemon import Memctl


def test_usefulness_counts_what_became_of_lines(memctl: Memctl, daemon: Any, clock: Any) -> None:
    nothing = "There is nothing to count yet: no session was shown a line and went on after it.\n"
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
