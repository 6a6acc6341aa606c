"""Observing with the real daemon and the real default model: what stays, summaries, a restart."""

from typing import Any

import pytest

from memoryd.client.protocol import Verify
from workbench import wait_until

LONG = (
    "Sure, here is what we found. The crawler stops at the first redirect of a page. "
    "We decided that the crawler follows up to five redirects from now on. "
    "The redirects are written to the log of the crawler, so that the archive team can look at them. "
    "Tell me if you want more details."
)


def judged(client: Any) -> bool:
    return client.tiers().waiting == {}


@pytest.mark.slow
def test_turns_are_judged_with_the_real_model_and_are_back_after_a_restart(real: Any) -> None:
    with real.client("acme/api") as client:
        client.add("On Fridays we do not deploy the gateway.")
        client.add("The gateway listens on port 8080.")
        client.observe(
            [
                {"role": "user", "content": "We do not deploy the gateway on Fridays."},
                {"role": "user", "content": "The gateway listens on port 8081."},
                {"role": "assistant", "content": LONG},
                {"role": "user", "content": "haha thanks, that's great"},
            ],
            session="review",
        )
        wait_until(lambda: judged(client))
        assert [turn.content for turn in reversed(client.turns().turns)] == [
            "We do not deploy the gateway on Fridays.",
            "The gateway listens on port 8081.",
            LONG,
            "haha thanks, that's great",
        ]
        assert client.turns(skipped=True).skipped == []
        importance = {turn.content[:10]: turn.importance for turn in client.turns()}
        assert importance["haha thank"] < 0.5 < importance["The gatewa"]
        before = client.turns().turns
    real.kill()
    real.start()
    with real.client("acme/api") as client:
        assert client.turns().turns == before
        wait_until(lambda: client.status().model.state == "ready")
        done = client.consolidate()
        assert (done.promoted, done.dropped, done.moved) == (4, 0, 0)
        wait_until(lambda: judged(client))
        found = client.search("how many redirects does the crawler follow", tier="L1")[0]
        assert "five redirects" in found.content
        assert "crawler" in found.summary
        assert len(found.summary) < len(LONG) / 2
        assert client.call(Verify()).problems == []
