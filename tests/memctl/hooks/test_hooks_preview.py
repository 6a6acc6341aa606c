"""`hooks preview`: what an agent would be told, and why each line."""

from fake_daemon import Memctl

from memoryd.client import Client


def test_a_start_and_a_prompt_are_previewed_and_leave_no_mark(memctl: Memctl, client: Client) -> None:
    assert "told nothing at the start of a session" in memctl("hooks", "preview").err
    made = client.add("Deploys run on Tuesdays.", type="decision")
    for _ in range(2):
        shown = memctl("hooks", "preview").out
        assert f"- [{made.id[:8]}] Deploys run on Tuesdays.\n" in shown
        assert f"{made.id[:8]}  a decision that was saved here" in shown
    assert memctl("hooks", "preview", "--json").json["lines"][0]["id"] == made.id
    assert "sure to be about the prompt" in memctl("hooks", "preview", "--prompt", "when do deploys run").out
    assert "told nothing with this prompt" in memctl("hooks", "preview", "--prompt", "herons").err
