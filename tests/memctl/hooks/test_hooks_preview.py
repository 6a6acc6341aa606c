"""`hooks preview`: what an agent would be told, and why each line."""

from fake_daemon import Memctl

from memoryd.client import Client
from memoryd.client.protocol import NewTurn, Observe


def test_a_start_and_a_prompt_are_previewed_and_leave_no_mark(memctl: Memctl, client: Client) -> None:
    assert "shown nothing at the start of a session" in memctl("hooks", "preview").err
    made = client.add("Deploys run on Tuesdays.", type="decision", origin="person")
    for _ in range(2):
        shown = memctl("hooks", "preview").out
        assert "- Deploys run on Tuesdays.\n" in shown
        assert f"{made.id[:8]}  a decision that was saved here" in shown
    assert memctl("hooks", "preview", "--json").json["lines"][0]["id"] == made.id
    assert "confident that it is about the prompt" in memctl("hooks", "preview", "--prompt", "when do deploys run").out
    assert "shown nothing with this prompt" in memctl("hooks", "preview", "--prompt", "herons").err


def test_what_is_nearest_to_a_prompt_and_does_not_come_up_is_named_with_the_reason(
    memctl: Memctl, client: Client
) -> None:
    id = client.call(Observe(turns=[NewTurn(role="user", content="Our VAT rate is 19 percent")])).turns[0].id
    shown = memctl("hooks", "preview", "--prompt", "What is our VAT rate?").err
    assert (
        f"The nearest is {str(id)[:8]} (Our VAT rate is 19 percent): only memories that were saved on purpose" in shown
    )
    made = client.add("Herons nest on the mast", type="fact")
    shown = memctl("hooks", "preview", "--prompt", "Write a poem about herons and storks and cranes").err
    assert f"The nearest is {made.id[:8]}" in shown
    assert "% needed" in shown


def test_beside_what_comes_up_the_nearest_of_the_rest_is_named(memctl: Memctl, client: Client) -> None:
    client.add("Deploys run on Tuesdays.", type="decision")
    client.add("Deploys of the herons' camera need a spare battery.", type="fact")
    shown = memctl("hooks", "preview", "--prompt", "when do deploys run")
    assert "Deploys run on Tuesdays." in shown.out
    assert "The best that was left out is" in shown.err
