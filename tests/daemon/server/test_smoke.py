"""The shortest way through everything: a client, a socket, the core and back."""

from memoryd.client import Client


def test_what_one_client_adds_is_found_and_can_be_undone(client: Client) -> None:
    added = client.add("We use Valkey, not Redis", type="decision", metadata={"project": "api"})
    assert added.outcome == "created"
    assert [hit.id for hit in client.search("Valkey")] == [added.id]
    client.undo()
    assert len(client.search("Valkey")) == 0
