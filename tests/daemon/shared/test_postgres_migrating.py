"""A root in PostgreSQL changes its model while it is used: no vector is compared with one of another model."""

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import psycopg
import pytest
from database import Team
from joined import decide, wait_until_sent

from memoryd.client import Client, TimedOut, Unavailable
from memoryd.client.programs.memctl import database as command
from memoryd.client.programs.memctl.running import run
from memoryd.client.protocol import GetShared, Search, Update
from memoryd.client.transport.postgres import migrating
from memoryd.client.transport.postgres.connection import transact
from memoryd.daemon.shared.postgres.tables import statements
from workbench import WordEmbedder


class Opposite(WordEmbedder):
    """A model of the same size by which all similarities to vectors of the first one are negative."""

    def _vector(self, text: str) -> Any:
        return -super()._vector(text)


MODELS = {"words": WordEmbedder(), "opposite": Opposite()}


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Both models as installed ones; return the texts of each call that embeds."""
    embedded: list[list[str]] = []

    def run_models(name: str, *words: str, given: bytes = b"") -> Any:
        if name == "list":
            known = [{"name": name, "dimensions": 64, "installed": True} for name in MODELS]
            return [*known, {"name": "large", "dimensions": 4096, "installed": True}]
        embedded.append(msgspec.json.decode(given))
        return MODELS[words[0]].embed_texts(embedded[-1]).tolist()

    monkeypatch.setattr(command, "run_models", run_models)
    monkeypatch.setattr(command, "folder_options", list)
    monkeypatch.setattr(migrating, "_PART", 2)
    return embedded


@pytest.fixture
def migrate(team: Team, models: Any, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run the command, by default as the owner; return what it prints as JSON, or its error."""

    def call(model: str, role: str = "owner") -> Any:
        code = run(["shared", "migrate", "acme", "--model", model, "--server", team.server.url(role), "--json"])
        said = capsys.readouterr()
        return said.err if code else json.loads(said.out)

    return call


def join_opposite(team: Team) -> Client:
    daemon, client = team.join("bob", model="opposite")
    daemon.embedder._vector = MODELS["opposite"]._vector  # type: ignore[method-assign]
    return client


def find(client: Client, query: str) -> float | None:
    """Return the similarity of the best hit in the root."""
    return client.call(Search(query=query, namespace="acme/api")).hits[0].similarity


def check_vectors(team: Team, model: str, without: Sequence[str] = ()) -> None:
    """Check that each memory has the vector that a model makes of its text."""
    for content, vector in team.run("SELECT content, embedding::text FROM memoryd_acme.memories"):
        if vector is None:
            assert content in without
        else:
            made = MODELS[model].embed_texts([content])[0]
            assert np.allclose(json.loads(vector), made, atol=1e-5), content


def list_columns(team: Team) -> set[str]:
    sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'memoryd_acme'"
    return {name for (name,) in team.run(sql) if name.startswith("embedding")}


def test_daemons_go_on_by_the_old_model_until_the_switch_and_by_the_new_one_after_it(
    team: Team, migrate: Callable[..., Any], models: list[list[str]]
) -> None:
    texts = [f"Decision number {number} holds" for number in range(5)]
    ids = {text: team.decide(text).id for text in texts}
    bob = join_opposite(team)
    assert not decide(bob, "Builds are on Fridays").embedded
    with psycopg.connect(team.server.url(), autocommit=True) as owner:  # of a run that is killed after a part

        def do(work: Callable[..., Any], *values: Any) -> Any:
            return transact(owner, lambda connection: work(connection, "acme", "opposite", *values))

        with psycopg.connect(team.server.url("ada"), autocommit=True) as ada:
            statements.begin(ada, "acme")  # until this transaction ends, columns do not change
            with pytest.raises(psycopg.errors.LockNotAvailable):
                do(migrating.prepare, 64)
        assert do(migrating.prepare, 64) == (6, 6)
        part = do(migrating.fill, [])
        assert len(part) == 2
        vectors = [msgspec.json.encode(MODELS["opposite"].embed_texts([one.content])[0].tolist()) for one in part]
        made = [(vector.decode(), one.id, one.version) for vector, one in zip(vectors, part, strict=True)]
        team.here.call(Update(id=part[0].id, content="It was changed meanwhile"))
        do(migrating.fill, made)
        assert not do(migrating.switch, 64)
    sql = "SELECT id FROM memoryd_acme.memories WHERE embedding_next IS NOT NULL"
    assert team.run(sql) == [(part[1].id,)]  # of the other one the text is another one since
    team.here.call(Update(id=part[1].id, content="It was changed after it was filled"))
    assert team.run(sql) == []
    assert team.run("SELECT DISTINCT said ? 'embedding_next' FROM memoryd_acme.history") == [(False,)]
    text = next(text for text, id in ids.items() if id not in (part[0].id, part[1].id))
    assert (find(team.here, text), find(bob, text)) == (pytest.approx(1.0, abs=1e-3), None)
    history = team.run("SELECT count(*) FROM memoryd_acme.history")

    assert migrate("opposite") == {"name": "acme", "model": "opposite", "dimensions": 64, "filled": 6}
    assert (find(team.here, text), find(bob, text)) == (None, pytest.approx(1.0, abs=1e-3))
    place = team.here.call(GetShared()).roots[0].place
    assert "`memctl model pull opposite`" in place["vectors"]
    assert "vectors" not in bob.call(GetShared()).roots[0].place
    assert decide(bob, "Tests are on Mondays").embedded
    assert not team.decide("Tests are on Sundays").embedded
    check_vectors(team, "opposite", without=["Tests are on Sundays"])
    assert list_columns(team) == {"embedding"}
    assert team.run("SELECT model, dimensions FROM memoryd_acme.meta") == [("opposite", 64)]
    assert team.run("SELECT count(*) - 2 FROM memoryd_acme.history") == history
    sql = "SELECT indexname FROM pg_indexes WHERE schemaname = 'memoryd_acme' AND tablename = 'memories' ORDER BY 1"
    kinds = "embedding equal namespace pkey stems superseded waiting".split()
    assert [name for (name,) in team.run(sql)] == [f"memories_{kind}" for kind in kinds]
    assert migrate("opposite")["filled"] == 0
    assert len(models) == 3


def test_a_run_that_is_interrupted_anywhere_is_gone_on_with(
    team: Team, migrate: Callable[..., Any], models: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        team.decide(f"Decision number {number} holds")
    run_there, left = command._run_there, [0]

    def interrupt(*how: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return run_there(*how)

    monkeypatch.setattr(command, "_run_there", interrupt)
    for steps in range(3, 20):
        left[0] = steps
        if not isinstance(migrate("opposite"), str):
            break
        assert find(team.here, "Decision number 3 holds") == pytest.approx(1.0, abs=1e-3)
    assert 3 < steps < 19
    assert sum(map(len, models)) <= 5 + 2 * (steps - 3)
    check_vectors(team, "opposite")


def test_saves_changes_and_searches_meanwhile_are_right_by_one_model_or_the_other(
    team: Team, migrate: Callable[..., Any]
) -> None:
    text = "Releases are on Tuesdays"
    team.decide(text)
    clients = [team.here, join_opposite(team)]
    done = threading.Event()

    def work(at: int) -> int:
        count = 0
        while not done.is_set() and count < 500:
            added = decide(clients[at], f"Decision {count} of {at}", dedup=False)
            assert added.shared == "acme"
            with suppress(TimedOut, Unavailable):  # the columns change at this moment
                clients[at].call(Update(id=added.id, content=f"Decision {count} of {at} was changed"))
            found = clients[at].call(Search(query=text, namespace="acme/api"))
            assert "shared:acme" in found.degraded or found[0].similarity is None or found[0].similarity > 0.99
            count += 1
        return count

    with ThreadPoolExecutor(2) as pool:
        working = [pool.submit(work, at) for at in range(2)]
        said = migrate("opposite")
        done.set()
        counts = [one.result() for one in working]
    assert said["filled"] >= 1
    for client in clients:
        wait_until_sent(client)
    assert team.run("SELECT count(*) FROM memoryd_acme.memories") == [(1 + sum(counts),)]
    without = [content for (content,) in team.run("SELECT content FROM memoryd_acme.memories WHERE embedding IS NULL")]
    assert all("of 0" in content for content in without)  # of the daemon that has the former model, after the switch
    check_vectors(team, "opposite", without)


def test_a_change_is_given_up_by_naming_the_model_in_use_and_another_one_begins_anew(
    team: Team, migrate: Callable[..., Any]
) -> None:
    team.decide("Releases are on Tuesdays")
    with psycopg.connect(team.server.url(), autocommit=True) as owner:

        def prepare(model: str) -> Any:
            return transact(owner, lambda connection: migrating.prepare(connection, "acme", model, 64))

        def fill(model: str, made: Any) -> Any:
            return transact(owner, lambda connection: migrating.fill(connection, "acme", model, made))

        assert prepare("opposite") == (1, 1)
        [one] = fill("opposite", [])
        assert fill("opposite", [(f"{[1.0] * 64}", one.id, one.version)]) == []
        assert prepare("opposite") == (0, 1)
        assert prepare("a third 'one'") == (1, 1)
        with pytest.raises(Exception, match="taken the place"):
            fill("opposite", [])
    assert migrate("words")["filled"] == 0
    assert list_columns(team) == {"embedding"}
    check_vectors(team, "words")
    assert "memctl model pull missing" in migrate("missing")
    assert "takes 2000" in migrate("large")
    assert "does not allow it: permission denied" in migrate("opposite", role="ada")
    assert list_columns(team) == {"embedding"}
