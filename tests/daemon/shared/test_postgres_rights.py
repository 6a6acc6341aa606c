"""Who may do what in a root in PostgreSQL: the server says so, whatever a member's program sends."""

from pathlib import Path

import psycopg
import pytest
from database import Team
from joined import decide
from machine import Machine

from memoryd.client import Forbidden
from memoryd.client.programs.memctl.running import run
from memoryd.client.protocol import Get, GetShared, Update
from memoryd.client.transport.postgres import schema
from postgres_server import PostgresServer
from workbench import Daemon

DENIED = psycopg.errors.InsufficientPrivilege


def test_exactly_two_functions_run_as_the_owner_and_no_row_level_security(team: Team) -> None:
    sql = "SELECT proname FROM pg_proc WHERE pronamespace = 'memoryd_acme'::regnamespace AND prosecdef ORDER BY 1"
    assert team.run(sql) == [("erase",), ("keep_history",)]
    sql = "SELECT count(*) FROM pg_class WHERE relnamespace = 'memoryd_acme'::regnamespace AND relrowsecurity"
    assert team.run(sql) == [(0,)]
    granted = "has_function_privilege('bob', oid, 'EXECUTE')"
    sql = f"SELECT proname FROM pg_proc WHERE pronamespace = 'memoryd_acme'::regnamespace AND {granted} ORDER BY 1"
    assert team.run(sql) == [("erase",), ("search",)]


def test_author_version_and_times_are_the_servers(team: Team) -> None:
    id = team.decide("Releases are on Tuesdays").id
    for change in ("author = 'eve'", "version = 9", "updated_at = 0", "text_hash = ''", "id = ''", "created_at = 0"):
        with pytest.raises(DENIED):
            team.run(f"UPDATE memoryd_acme.memories SET {change}", role="bob")
    with pytest.raises(DENIED):
        team.run("INSERT INTO memoryd_acme.memories (author) VALUES ('eve')", role="bob")
    for table in ("history", "meta"):
        with pytest.raises(DENIED):
            team.run(f"DELETE FROM memoryd_acme.{table}", role="bob")
    with pytest.raises(DENIED):
        team.run("SELECT memoryd_acme.keep_history()", role="bob")
    team.run("UPDATE memoryd_acme.memories SET content = 'Releases are on Fridays'", role="bob")
    assert team.run("SELECT author, version FROM memoryd_acme.memories WHERE id = %s", id) == [("bob", 2)]
    assert team.run("SELECT author, action FROM memoryd_acme.history ORDER BY version") == [
        ("ada", "created"),
        ("bob", "updated"),
    ]


def test_who_saved_a_memory_and_the_owner_erase_it(team: Team) -> None:
    first, second = team.decide("The password is under the mat").id, team.decide("Releases are on Tuesdays").id
    with pytest.raises(DENIED, match="only who saved"):
        team.run("SELECT memoryd_acme.erase(%s)", first, role="bob")
    assert team.run("SELECT memoryd_acme.erase(%s)", first, role="ada") == [(True,)]
    assert team.run("SELECT memoryd_acme.erase(%s)", second, role="owner") == [(True,)]
    assert team.run("SELECT memoryd_acme.erase(%s)", second, role="owner") == [(False,)]
    for table in ("memories", "history"):
        assert team.run(f"SELECT count(*) FROM memoryd_acme.{table}") == [(0,)]


def test_memctl_grants_and_revokes_and_the_next_call_is_refused(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    server = ["--server", team.server.url()]
    added = team.decide("Releases are on Tuesdays")

    def grant(*words: str) -> str:
        assert run(["shared", *words, *server]) == 0
        return capsys.readouterr().out

    assert "bob" not in grant("grant", "acme", "bob", "--revoke")
    listed = grant("grants", "acme")
    assert ("owner" in listed, "ada" in listed, "bob" in listed) == (True, True, False)
    _, bob = team.join("bob")
    found = bob.search("releases")
    assert (found.hits, found.degraded) == ([], ["shared:acme"])
    assert "may not read" in bob.call(GetShared()).roots[0].problem
    assert "bob" in grant("grant", "acme", "bob", "--read")
    bob.call(GetShared(send=True))
    assert bob.call(Get(id=added.id)).content == "Releases are on Tuesdays"
    assert bob.call(GetShared()).roots[0].role == "reader"
    for change in (lambda: decide(bob, "x"), lambda: bob.call(Update(id=added.id, content="x"))):
        with pytest.raises(Forbidden, match="does not allow"):
            change()
    grant("grant", "acme", "bob")
    assert decide(bob, "Builds are on Fridays").shared == "acme"
    grant("grant", "acme", "bob", "--revoke")
    with pytest.raises(Forbidden, match="does not allow"):
        bob.call(Get(id=added.id))
    assert bob.search("releases").degraded == ["shared:acme"]
    status = bob.call(GetShared()).roots[0]
    assert (status.state, "may not read" in status.problem) == ("away", True)
    assert run(["shared", "grant", "acme", "nobody_there", *server]) == 1
    assert "no role nobody_there" in capsys.readouterr().err


def test_rights_reach_one_schema_alone(team: Team) -> None:
    with psycopg.connect(team.server.url()) as connection:
        schema.create(connection, "other", "words", 64, [])
    team.decide("Releases are on Tuesdays")
    for role in ("ada", "bob"):
        with pytest.raises(DENIED):
            team.run("SELECT * FROM memoryd_other.memories", role=role)
        with pytest.raises(DENIED):
            team.run("CREATE TABLE memoryd_acme.mine (x integer)", role=role)
    columns = "id, namespace, type, content, created_at, stems"
    sql = f"INSERT INTO memoryd_acme.memories ({columns}) VALUES (%s, %s, 'x', 'x', 0, '{{}}')"
    with pytest.raises(psycopg.errors.CheckViolation):
        team.run(sql, "ab" * 16, "acmeinc", role="ada")


@pytest.mark.slow
def test_a_root_in_a_database_is_made_joined_used_and_left(postgres: PostgresServer, folder: Path) -> None:
    """The commands of the guide. Without a model a root cannot be made; the owner's machine has one."""
    postgres.make_database("team", "ada")
    laptop = Machine(folder / "laptop")
    owner, ada = postgres.url(), postgres.url("ada")
    repo = ("--repo", "x.dev/acme/*", "--server", owner)
    try:
        assert "is not ready" in laptop.refuse("shared", "create", "acme", *repo)
        assert "no root acme" in laptop.refuse("shared", "join", "acme", "--server", ada, "--yes")
        with psycopg.connect(owner) as connection:
            schema.create(connection, "acme", "none", 64, ["x.dev/acme/*"])
        assert "may not read" in laptop.refuse("shared", "join", "acme", "--server", ada, "--yes")
        laptop.say("shared", "grant", "acme", "ada", "--server", owner)
        assert "ada is agent there" in laptop.say("shared", "join", "acme", "--server", ada, "--dry-run")
        laptop.say("shared", "join", "acme", "--server", ada, "--yes")
        assert laptop.meet(laptop.checkout("api", "https://x.dev/acme/api")) == "acme/api"
        added = laptop.add("Releases are on Tuesdays", "acme/api")
        assert (added.shared, added.waiting) == ("acme", False)
        mine = laptop.add("A note of mine", "notes", type="fact")
        laptop.say("share", mine.id, "--to", "acme/api")
        sql = "SELECT author, content FROM memoryd_acme.memories ORDER BY content"
        assert postgres.run(sql) == [("ada", "A note of mine"), ("ada", "Releases are on Tuesdays")]
        assert "PostgreSQL 16" in laptop.say("shared", "status")
        assert "acme/api" in laptop.say("namespaces")
        assert "read and write" in laptop.say("shared", "grants", "acme")
        assert laptop.check_roots()["state"] == "ok"
        assert "2 memories" in laptop.say("shared", "leave", "acme", "--keep", "mine")
        assert laptop.list_texts("acme") == ["A note of mine", "Releases are on Tuesdays"]
    finally:
        laptop.process.stop()


def test_memctl_makes_a_root_with_the_vectors_of_the_model_in_use(
    postgres: PostgresServer, daemon: Daemon, capfd: pytest.CaptureFixture[str]
) -> None:
    postgres.make_database("team")
    words = ["--repo", "x.dev/acme/*", "--server", postgres.url(), "--socket", str(daemon.socket)]
    assert run(["shared", "create", "acme", *words]) == 0
    assert "memctl shared grant acme ROLE" in capfd.readouterr().out
    sql = "SELECT version, dimensions, repositories FROM memoryd_acme.meta"
    assert postgres.run(sql) == [(schema.VERSION, 64, ["x.dev/acme/*"])]
    assert run(["shared", "create", "acme", *words]) == 1
    assert "has a schema memoryd_acme already" in capfd.readouterr().err
