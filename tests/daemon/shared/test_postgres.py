"""A shared root in PostgreSQL: what goes there by itself, what is found, read, changed and taken back there."""

from typing import Any

import pytest
from database import Team
from joined import decide

from memoryd.client import Conflict, Forbidden, Invalid, NotFound, protocol
from memoryd.client.protocol import (
    Add,
    Get,
    GetShared,
    GetUnasked,
    List,
    Namespaces,
    NewMemory,
    Search,
    SearchOptions,
    Update,
)
from waiting import wait_until


def test_a_decision_goes_to_the_place_and_is_found_from_here_and_by_others(team: Team) -> None:
    added = team.decide("Releases are on Tuesdays")
    assert (added.shared, added.waiting, added.outcome, added.embedded) == ("acme", False, "created", True)
    assert team.list_there() == ["Releases are on Tuesdays"]
    _, bob = team.join("bob")
    for client in (team.here, bob):
        for call in (
            Search(query="when are releases?", namespace="acme/api"),
            Search(query="when are releases?", namespace="acme/api/v2"),
            Search(query="when are releases?", namespace="acme", reach="subtree"),
            Search(query="when are releases?"),
            Search(query="releases", mode="lexical"),
            Search(query="releases tuesdays", mode="dense"),
        ):
            [hit] = client.call(call)
            assert (hit.id, hit.shared, hit.tier, hit.metadata) == (added.id, "acme", "L3", {"author": "ada"})
        assert not client.call(Search(query="when are releases?", namespace="acme/web")).hits
        assert not client.call(Search(query="when are releases?", namespace="acme/ap", reach="subtree")).hits
        assert not client.call(Search(query="when are releases?", namespace="other")).hits
        assert client.call(List(namespace="acme/api")).total == 1
        assert client.call(Get(id=added.id[:8])).content == "Releases are on Tuesdays"
    assert not (team.daemon.core.folder / "memoryd.sqlite").read_bytes().count(b"on Tuesdays")
    root = team.here.call(GetShared()).roots[0]
    assert (root.state, root.token, root.role, root.problem) == ("ready", "ada", "agent", "")


def test_floors_and_filters_hold_there(team: Team) -> None:
    team.decide("Releases are on Tuesdays", created_at=1000.0)
    team.decide("Builds are on Fridays", created_at=2000.0, path="docs/build.md", start_line=3)

    def find(**fields: object) -> list[str]:
        return sorted(hit.content for hit in team.here.call(Search(query="releases builds", **fields)))  # type: ignore[arg-type]

    both = ["Builds are on Fridays", "Releases are on Tuesdays"]
    assert find() == find(type=["decision"]) == both
    assert find(type=["rule"]) == find(floor=1.0) == find(options=SearchOptions(min_score=1.0)) == []
    assert find(after=1500.0) == find(path_prefix="docs/") == both[:1]
    assert find(before=1500.0) == both[1:]
    assert find(limit=1) in ([both[0]], [both[1]])
    assert find(where={"author": "ada"}) == both
    assert find(where={"metadata.author": {"$ne": "ada"}}) == []
    for where in ({"memory.importance": {"$gt": 0.1}}, {"team": ["api"]}):
        refused = team.here.call(Search(query="releases", where=where))
        assert (refused.hits, refused.degraded) == ([], ["shared:acme"])


METADATA: list[dict[str, Any]] = [
    {},
    {"status": "done", "score": 4, "tags": ["cache", "api"], "draft": True},
    {"status": "open", "score": 4.5, "tags": [], "owner": {"team": "api", "lead": None}},
    {"status": None, "score": "4", "tags": ["web", 4], "draft": False},
    {"status": ["done", "again"], "score": -1, "owner": {"team": {"of": "api"}}, 'a "b\\': 1, "ключ": "да"},
    {"score": 1e300, "draft": 1, "owner": [{"team": "web"}], "a.b": 1, "x'y@$*": "it's"},
]
FILTERS: list[dict[str, Any]] = [
    {"status": "done"},
    {"status": {"$ne": "done"}},
    {"status": None},
    {"$not": {"status": None}},
    {"score": 4},
    {"score": {"$gt": 4}},
    {"score": {"$gte": -1, "$lt": 4.5}},
    {"score": {"$gte": "3"}},
    {"score": {"$in": [4, "4", True]}},
    {"score": {"$in": []}},
    {"tags": "cache"},
    {"tags": {"$in": ["web", "api"]}},
    {"tags": {"$exists": True}},
    {"draft": True},
    {"draft": 1},
    {"draft": {"$exists": False}},
    {"owner.team": "api"},
    {"owner.lead": {"$exists": True}},
    {"owner.team.of": "api"},
    {"$or": [{"status": "open"}, {"draft": True, "score": {"$lte": 4}}]},
    {"$and": [{"$not": {"$or": [{"score": 4}, {"tags": "web"}]}}, {"status": {"$ne": "open"}}]},
    {"ключ": "да"},
    {"x'y@$*": "it's"},
]


def test_filters_by_metadata_mean_there_what_they_mean_here(team: Team) -> None:
    for number, metadata in enumerate(METADATA):
        memory = NewMemory(content=f"Decision number {number}", type="decision", metadata=metadata)
        team.here.call(Add(memory=memory, namespace="alone", dedup=False))
        team.decide(memory.content, metadata=metadata)
    for where in FILTERS:
        here, there, hits = (
            sorted(memory.content for memory in team.here.call(call))
            for call in (
                List(namespace="alone", where=where),
                List(namespace="acme/api", where=where),
                Search(query="decision", namespace="acme/api", where=where, limit=10),
            )
        )
        assert here == there == hits, where


def test_an_equal_text_is_one_memory_whoever_saves_it(team: Team) -> None:
    first = team.decide("Releases are on Tuesdays", importance=0.2, metadata={"team": "api"})
    _, bob = team.join("bob")
    again = decide(bob, "  releases are ON\nTuesdays ", importance=0.9, metadata={"by": "bob"})
    assert (again.id, again.outcome) == (first.id, "merged")
    assert decide(bob, "Releases are on Tuesdays", "acme/web").outcome == "created"
    assert decide(bob, "Releases are on Tuesdays", dedup=False).outcome == "created"
    memory = team.here.call(Get(id=first.id))
    assert (memory.content, memory.importance) == ("Releases are on Tuesdays", 0.9)
    assert memory.metadata == {"team": "api", "by": "bob", "author": "ada"}


def test_changes_by_id_are_made_where_the_memory_is_and_taken_back(team: Team) -> None:
    added = team.decide("Releases are on Tuesdays", metadata={"team": "api"})
    local = team.here.call(Add(memory=NewMemory(content="Mine"), namespace="acme/api"))
    changed = team.here.call(Update(id=added.id, content="Releases are on Fridays", metadata={"day": "Friday"}))
    assert (changed.memory.content, changed.memory.shared) == ("Releases are on Fridays", "acme")
    assert changed.memory.metadata == {"team": "api", "day": "Friday", "author": "ada"}
    assert [hit.content for hit in team.here.search("fridays")] == ["Releases are on Fridays", "Mine"]
    history = team.here.call(protocol.History(id=added.id)).changes
    assert [(one.action, one.token) for one in history] == [("created", "ada"), ("updated", "ada")]
    assert history[1].changed["content"] == ("Releases are on Tuesdays", "Releases are on Fridays")
    undone = team.here.call(protocol.Undo(operation=changed.operation))
    assert team.list_there() == ["Releases are on Tuesdays"]
    team.here.call(protocol.Undo(operation=undone.operation))
    assert team.list_there() == ["Releases are on Fridays"]
    with pytest.raises(Conflict, match="changed again"):
        team.here.call(protocol.Undo(operation=changed.operation))
    gone = team.here.call(protocol.Delete(ids=[added.id[:10]]))
    assert (gone.ids, team.list_there()) == ([added.id], [])
    team.here.call(protocol.Undo(operation=gone.operation))
    assert team.list_there() == ["Releases are on Fridays"]
    assert team.here.search("fridays")[0].content == "Releases are on Fridays"
    assert team.here.get(local.id).content == "Mine"
    for missing in (Get(id="abcd1234"), Get(id=added.id, key="x"), protocol.Undo(operation="abcd1234")):
        with pytest.raises((NotFound, Invalid)):
            team.here.call(missing)
    versions = team.run("SELECT version FROM memoryd_acme.history WHERE memory = %s ORDER BY 1", added.id)
    assert [version for (version,) in versions] == [1, 2, 3, 4, 5, 6]


def test_what_is_replaced_is_not_found_until_its_successor_goes(team: Team) -> None:
    old = team.decide("Releases are on Tuesdays")
    new = team.decide("Releases are on Fridays", supersedes=old.id[:8])
    assert [hit.id for hit in team.here.search("releases")] == [new.id]
    team.here.call(protocol.Undo(operation=new.operation))
    assert [hit.id for hit in team.here.search("releases")] == [old.id]
    person = team.decide("Builds are on Mondays", origin="person")
    team.decide("Builds are on Fridays", supersedes=person.id)
    assert len(team.here.search("builds", limit=10).hits) == 3


def test_namespaces_and_what_a_start_tells_come_from_there_too(team: Team) -> None:
    team.decide("Releases are on Tuesdays", origin="person")
    _, bob = team.join("bob")
    decide(bob, "Builds are on Fridays", "acme/web", origin="person")

    def count(namespace: str = "") -> dict[str, int]:
        listed = team.here.call(Namespaces(namespace=namespace))
        return {one.name: one.memories for one in listed.namespaces}

    assert (count(), count("acme/web")) == ({"acme/api": 1, "acme/web": 1}, {"acme/web": 1})

    _, later = team.join("ada")

    def is_told(place: str, text: str) -> bool:
        return text in later.call(GetUnasked(namespace=f"acme/{place}", touch=False)).text

    wait_until(lambda: is_told("api", "Tuesdays"))
    assert not is_told("web", "Fridays")
    [builds] = team.here.call(List(namespace="acme/web")).memories
    later.call(protocol.Confirm(ids=[builds.id]))
    wait_until(lambda: is_told("web", "Fridays"))
    team.run("REVOKE ALL ON ALL TABLES IN SCHEMA memoryd_acme FROM ada")
    with pytest.raises(Forbidden):
        later.call(Get(id="abcd"))
    assert not is_told("api", "Tuesdays")


def test_lists_are_sorted_and_filtered_there(team: Team) -> None:
    for number in range(4):
        team.decide(f"Decision number {number} holds")
    assert [one.content for one in team.here.call(List(words="DECISION 3"))] == ["Decision number 3 holds"]
    assert team.here.call(List(sort="importance", ascending=True)).total == 4
    for author, count in (("ada", 4), ("bob", 0)):
        page = team.here.call(List(namespace="acme", reach="subtree", tier=["L3"], where={"metadata.author": author}))
        assert (page.total, page.degraded) == (count, [])


def test_without_the_roots_model_words_find_what_is_there(team: Team) -> None:
    team.run("UPDATE memoryd_acme.meta SET model = 'another'")
    assert not team.decide("Releases are on Tuesdays").embedded
    [hit] = team.here.search("releases")
    assert (hit.content, hit.similarity) == ("Releases are on Tuesdays", None)
    assert team.run("SELECT embedding FROM memoryd_acme.memories") == [(None,)]
    team.run("UPDATE memoryd_acme.meta SET model = 'words'")
    _, bob = team.join("bob")  # who has the model makes the vectors that are missing
    bob.search("anything")
    wait_until(lambda: team.run("SELECT count(embedding), max(version) FROM memoryd_acme.memories") == [(1, 1)])
    assert team.run("SELECT count(*) FROM memoryd_acme.history") == [(1,)]
