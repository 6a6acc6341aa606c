"""Sharing a root through the daemon: what goes, what stays, who may, what people decide, how it ends."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from desk import texts_there

from memoryd.client import Client, exposition
from memoryd.client.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from memoryd.client.protocol import Add, Erase, GetStats, NewMemory, Operations, Tiers
from memoryd.client.shared.calls import (
    GetSharing,
    GrantRoot,
    ListConflicts,
    MigrateServer,
    PurgeShared,
    ResolveConflict,
    SharedRoot,
    ShareRoot,
    UnshareRoot,
)
from memoryd.daemon.shared import engine, sharing
from memoryd.daemon.shared.sharing import lines_of
from memoryd.daemon.shared.tables import shared
from postgres import Cable, Postgres
from waiting import wait_until

Start = Callable[..., Any]


@pytest.fixture
def two(start_daemon: Start, address: str) -> Iterator[tuple[Client, Client]]:
    """Clients of two machines that share `acme`."""
    settings = {"acme": {"poll_s": 0.2}}
    with start_daemon(shared=settings).client("acme") as one, start_daemon(shared=settings).client("acme") as other:
        for client in (one, other):
            client.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
        yield one, other


@contextmanager
def hanging(postgres: Postgres) -> Iterator[None]:
    """Let the server answer nobody meanwhile."""
    postgres.hang()
    try:
        yield
    finally:
        postgres.resume()


def root_of(client: Client) -> SharedRoot:
    [root] = client.call(GetSharing()).roots
    return root


def metrics_of(client: Client) -> set[str]:
    """Return the lines of the metrics."""
    return set(exposition.format_stats(client.call(GetStats())).splitlines())


def texts(client: Client) -> set[str]:
    return {memory.content for memory in client.list(reach="exact")}


def test_nothing_is_shared_at_first(start_daemon: Start) -> None:
    with start_daemon().client("acme") as client:
        assert client.call(GetSharing()).roots == []
        with pytest.raises(Invalid, match="Say which server"):
            client.call(ShareRoot(root="acme"))
        for wrong in ("", "acme/api"):
            with pytest.raises(Invalid, match="cannot be shared"):
                client.call(ShareRoot(root=wrong, server="dbname=x"))
        with pytest.raises(Invalid, match="holds a password"):
            client.call(ShareRoot(root="acme", server="dbname=x password=y"))
        with pytest.raises(Unavailable, match="cannot be used"):
            client.call(ShareRoot(root="acme", server="host=127.0.0.1 port=1"))
        with pytest.raises(NotFound, match="is not shared"):
            client.call(UnshareRoot(root="acme"))


def test_what_one_machine_adds_the_other_finds_soon(two: tuple[Client, Client]) -> None:
    one, other = two
    one.add("deploys are on Tuesday")
    wait_until(lambda: "deploys are on Tuesday" in texts(other))
    wait_until(lambda: [hit.content for hit in other.search("when do we deploy")] == ["deploys are on Tuesday"])
    wait_until(lambda: (root_of(one).waiting, root_of(one).state) == (0, "ready"))
    assert root_of(one).memories == 1
    history = other.call(GetSharing())
    assert history.machine != one.call(GetSharing()).machine


@pytest.mark.parametrize(("poll_s", "listen"), [(3600.0, True), (0.2, False)])
def test_changes_are_reported_by_the_server_or_asked_for(
    start_daemon: Start, address: str, poll_s: float, listen: bool
) -> None:
    settings = {"acme": {"poll_s": poll_s, "listen": listen}}
    one, other = start_daemon(shared=settings), start_daemon(shared=settings)

    def listens() -> bool:
        return bool(lines_of(other.core)._lines["acme"]._channel)

    with one.client("acme") as writer, other.client("acme") as reader:
        for client in (writer, reader):
            client.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
        wait_until(lambda: root_of(reader).state == "ready" and listens() == listen)
        writer.add("deploys are on Tuesday")
        wait_until(lambda: "deploys are on Tuesday" in texts(reader))
        assert listens() == listen


def test_a_plan_says_what_goes_and_what_stays(start_daemon: Start, address: str) -> None:
    daemon = start_daemon()
    with daemon.client("/") as everywhere:
        everywhere.add("for everybody here")
    with daemon.client("acme") as client:
        client.add("shared by a person")
        client.call(Add(memory=NewMemory(content="an agent's own"), namespace="acme/alpha"))
        client.observe([{"role": "user", "content": "my dentist is on Friday at nine, tell nobody"}])
        client.call(ShareRoot(root="acme", server=address, dry_run=True))
        assert client.call(GetSharing()).roots == []
        with pytest.raises(Invalid, match="is not in acme"):
            client.call(ShareRoot(root="acme", server=address, namespaces=[""]))
        plan = client.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
        assert [(one.namespace, one.going) for one in plan.namespaces] == [("acme", 1)]
        wait_until(lambda: root_of(client).memories == 1)
        assert root_of(client).namespaces == ["acme"]


def edit_apart(two: tuple[Client, Client], postgres: Postgres) -> str:
    """Edit one memory on both machines while the server answers neither, and return its id."""
    one, other = two
    id = one.add("the port is 80").id
    wait_until(lambda: "the port is 80" in texts(other))
    with hanging(postgres):
        one.update(id, content="the port is 8080")
        other.update(id, content="the port is 9090")
    return id


def test_two_edits_are_a_conflict_that_a_person_resolves(two: tuple[Client, Client], postgres: Postgres) -> None:
    id, (one, other) = edit_apart(two, postgres), two
    wait_until(lambda: texts(one) == texts(other) == {"the port is 8080", "the port is 9090"})
    wait_until(lambda: bool(other.call(ListConflicts()).conflicts))
    [conflict] = other.call(ListConflicts())
    assert "memoryd_shared_conflicts 1" in metrics_of(other)
    assert conflict.memory.id == id
    [found] = other.search("the port is 8080", limit=1)
    assert found.contradicts, "both are shown as a contradiction"
    kept = other.call(ResolveConflict(id=conflict.other.id))
    assert (kept.memory.id, kept.removed) == (id, [conflict.other.id])
    wait_until(lambda: texts(one) == texts(other) == {conflict.other.content})
    assert one.call(ListConflicts()).conflicts == []
    with pytest.raises(NotFound, match="no other version"):
        other.call(ResolveConflict(id=id))


def test_both_versions_may_stay(two: tuple[Client, Client], postgres: Postgres) -> None:
    id, (one, other) = edit_apart(two, postgres), two
    wait_until(lambda: bool(one.call(ListConflicts()).conflicts))
    one.call(ResolveConflict(id=id, both=True))
    both = {"the port is 8080", "the port is 9090"}
    wait_until(lambda: texts(one) == texts(other) == both and not other.call(ListConflicts()).conflicts)
    assert [root_of(client).conflicts for client in two] == [0, 0]


def test_a_new_text_replaces_both_versions(two: tuple[Client, Client], postgres: Postgres) -> None:
    id, (one, other) = edit_apart(two, postgres), two
    wait_until(lambda: all(client.call(ListConflicts()).conflicts for client in two))
    one.call(ResolveConflict(id=id, content="the port is 8443"))
    wait_until(lambda: texts(one) == texts(other) == {"the port is 8443"})
    assert [client.call(ListConflicts()).conflicts for client in two] == [[], []]


def test_a_purge_reaches_every_machine_and_its_history(
    two: tuple[Client, Client], postgres: Postgres, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    monkeypatch.setattr(engine, "NOTED_S", 0.1)
    id = one.add("the password is |hunter2".replace("|", "")).id
    one.update(id, content="the pass phrase is hunter2 again")
    wait_until(lambda: "the pass phrase is hunter2 again" in texts(other))
    other.update(id, content="the pass phrase was hunter2")
    wait_until(lambda: texts(one) == {"the pass phrase was hunter2"})
    wait_until(lambda: bool(root_of(one).machines))
    done = one.call(PurgeShared(ids=[id[:8]]))
    assert done.ids == [id]
    assert f"machine {other.call(GetSharing()).machine} (postgres), until it has read this" in done.copies
    assert "backups and replicas of the server" in done.copies
    wait_until(lambda: not texts(other) and root_of(one).waiting == 0)
    for client in two:
        folder = Path(client.status().data_dir)
        wait_until(lambda folder=folder: not any(b"hunter2" in path.read_bytes() for path in folder.glob("memoryd*")))  # type: ignore[misc]
    assert postgres.sql("SELECT body, size, key FROM memoryd.mem", database) == [({}, 0, None)]


def test_what_is_erased_here_is_erased_everywhere(two: tuple[Client, Client]) -> None:
    one, other = two
    id = one.add("my address is 5 Elm street").id
    wait_until(lambda: bool(texts(other)))
    one.call(Erase(ids=[id], namespace="acme"))
    wait_until(lambda: not texts(other))
    folder = Path(other.status().data_dir)
    wait_until(lambda: not any(b"Elm street" in path.read_bytes() for path in folder.glob("memoryd*")))


def test_a_purge_takes_only_what_is_shared(two: tuple[Client, Client]) -> None:
    one, _ = two
    own = one.call(Add(memory=NewMemory(content="of this machine alone"), namespace="mine")).id
    with pytest.raises(Conflict, match="is not shared"):
        one.call(PurgeShared(ids=[own]))


def test_roles_are_let_in_and_kept_out(start_daemon: Start, postgres: Postgres, database: str, address: str) -> None:
    role = f"ann_{database}"
    postgres.sql(f"CREATE ROLE {role} LOGIN")
    hers = postgres.address(role, database)
    settings = {"acme": {"poll_s": 0.2}}
    try:
        with start_daemon(shared=settings).client("acme") as owner, start_daemon(shared=settings).client("acme") as ann:
            owner.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
            with pytest.raises(Forbidden):
                ann.call(ShareRoot(root="acme", server=hers))
            with pytest.raises(Forbidden):
                ann.call(GrantRoot(root="acme", role=role, server=hers))
            owner.call(GrantRoot(root="acme", role=role))
            ann.call(ShareRoot(root="acme", server=hers, namespaces=["acme"]))
            ann.add("from ann")
            wait_until(lambda: "from ann" in texts(owner))
            owner.call(GrantRoot(root="acme", role=role, access="none"))
            ann.add("too late")
            wait_until(lambda: root_of(ann).state == "refused")
            assert root_of(ann).waiting == 1
            assert "may not" in root_of(ann).error
            with pytest.raises(Conflict, match="not pushed yet"):
                ann.call(UnshareRoot(root="acme"))
            assert "stay here" in ann.call(UnshareRoot(root="acme", force=True)).message
            assert texts(ann) == {"from ann", "too late"}
    finally:
        postgres.sql(f"DROP OWNED BY {role}", database)
        postgres.sql(f"DROP ROLE {role}")


def test_a_role_that_may_only_read_reads_and_changes_nothing(
    start_daemon: Start, postgres: Postgres, database: str, address: str
) -> None:
    role = f"ann_{database}"
    postgres.sql(f"CREATE ROLE {role} LOGIN")
    hers = postgres.address(role, database)
    settings = {"acme": {"poll_s": 0.2}}
    try:
        with start_daemon(shared=settings).client("acme") as owner, start_daemon(shared=settings).client("acme") as ann:
            owner.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
            id = owner.add("from the owner").id
            owner.call(GrantRoot(root="acme", role=role, access="read"))
            ann.call(ShareRoot(root="acme", server=hers, namespaces=["acme"]))
            wait_until(lambda: texts(ann) == {"from the owner"} and not root_of(ann).writable)
            changes: list[Callable[[], object]] = [
                lambda: ann.add("from ann"),
                lambda: ann.update(id, content="changed by ann"),
                lambda: ann.delete(id),
            ]
            for change in changes:
                with pytest.raises(Forbidden, match="may only"):
                    change()
            assert texts(ann) == {"from the owner"}
            ann.call(Add(memory=NewMemory(content="her own"), namespace="ann"))
            owner.update(id, content="changed by the owner")
            wait_until(lambda: texts(ann) == {"changed by the owner"})
    finally:
        postgres.sql(f"DROP OWNED BY {role}", database)
        postgres.sql(f"DROP ROLE {role}")


def test_unsharing_keeps_or_deletes_what_is_here(two: tuple[Client, Client], postgres: Postgres, database: str) -> None:
    one, other = two
    one.add("a shared fact")
    wait_until(lambda: "a shared fact" in texts(other))
    wait_until(lambda: root_of(other).waiting == 0)
    said = other.call(UnshareRoot(root="acme", drop=True)).message
    assert texts(other) == set()
    one.add("added after that")
    wait_until(lambda: root_of(one).waiting == 0)
    everything = {"a shared fact", "added after that"}
    assert texts_there(postgres, database) == texts(one) == everything
    [operation] = re.findall(r"`memctl undo (\w+)` brings them back", said)
    other.undo(operation)
    assert texts(other) == {"a shared fact"}
    assert "2 memories stay" in one.call(UnshareRoot(root="acme")).message
    one.add("of this machine alone")
    assert one.call(GetSharing()).roots == []
    assert texts(one) == {*everything, "of this machine alone"}
    assert texts_there(postgres, database) == everything


def test_the_tables_are_made_once(start_daemon: Start, postgres: Postgres, folder: Path) -> None:
    name = "empty_one"
    [(version,)] = postgres.sql("SHOW server_version")
    assert str(version).startswith("18."), "docs/sharing.md says which PostgreSQL the tests run with"
    postgres.sql(f"CREATE DATABASE {name}")
    address = postgres.address(database=name)
    try:
        with start_daemon().client("acme") as client:
            with pytest.raises(Conflict, match="shared migrate"):
                client.call(ShareRoot(root="acme", server=address))
            done = client.call(MigrateServer(server=address))
            assert (done.before, done.dialect, done.tested) == (0, "PostgreSQL", True)
            assert client.call(MigrateServer(server=address)).before == done.after
    finally:
        postgres.sql(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_daemon_that_starts_again_goes_on_sharing(
    start_daemon: Start, address: str, postgres: Postgres, folder: Path
) -> None:
    daemon = start_daemon(shared={"acme": {"poll_s": 0.2}})
    with daemon.client("acme") as client:
        client.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
    lines_of(daemon.core).close()
    lines_of(daemon.core).start()
    with daemon.client("acme") as client:
        client.add("after the start")
        wait_until(lambda: root_of(client).memories == 1)


def test_status_says_each_state(
    start_daemon: Start, postgres: Postgres, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    cable = Cable(postgres.port)
    where = postgres.address(database=database).replace(f"port={postgres.port}", f"port={cable.port}")
    share = ShareRoot(root="acme", server=where, namespaces=["acme"])
    daemon = start_daemon(shared={"acme": {"poll_s": 0.1}})
    lines = lines_of(daemon.core)
    with daemon.client("acme") as client:

        def reaches(state: str, said: str = "") -> None:
            wait_until(lambda: root_of(client).state == state and said in root_of(client).error)

        def change_there(statement: str) -> None:
            postgres.sql(f"UPDATE memoryd.{statement}", database)

        client.call(share)
        reaches("ready")
        lines.close()
        with psycopg.connect(postgres.address(database=database)) as holding:
            holding.execute("LOCK memoryd.heads IN ACCESS EXCLUSIVE MODE")
            lines.start()
            assert root_of(client).state == "starting"
        reaches("ready")
        change_there("meta SET min_client = 99")
        reaches("old", "newer memoryd")
        change_there("meta SET min_client = 1")
        reaches("ready")
        cable.cut()
        reaches("offline")
        client.add("it waits")
        assert root_of(client).waiting == 1
        assert "memoryd_shared_waiting 1" in metrics_of(client)
        change_there("grants SET can_write = false")
        cable.plug()
        reaches("refused", "may only read acme: 1 changes")
        change_there("grants SET can_write = true")
        wait_until(lambda: (root_of(client).state, root_of(client).waiting) == ("ready", 0))
        lines.close()
        change = lambda t: shared.change_root(t.connection, 1, confirmed=0)  # noqa: E731
        daemon.core.store.write(change).result()
        lines.start()
        assert root_of(client).state == "unconfirmed"
        client.call(share)
        reaches("ready")
        daemon.core.store.write(lambda t: t.connection.execute("DROP TRIGGER shared_changed")).result()
        reaches("refused", "memctl repair")
    lines.close()
    cable.close()
    assert "failed and is started again" not in caplog.text, "a connection that ends is no failure of the thread"


def test_who_shares_nothing_pays_nothing(process: Any) -> None:
    with process.client("acme") as client:
        client.add("of this machine alone")
        threads = {state.name for state in client.status().threads}
        loaded = Path(f"/proc/{client.status().pid}/maps").read_text()
    assert not [name for name in threads if name.startswith("shared")]
    assert "psycopg" not in loaded
    opened = sqlite3.connect(process.data / "memoryd.sqlite")
    assert opened.execute("SELECT count(*) FROM shared_entries").fetchone() == (0,)
    opened.close()


def test_a_credential_that_was_let_in_stays_here(
    start_daemon: Start, address: str, postgres: Postgres, database: str
) -> None:
    secret = "The deploy key is gh|p_q7RtZ0mXc3vB9nL2kJ8hG5fD4sA1pQ6wE0yU".replace("|", "")
    with start_daemon().client("acme") as client:
        client.call(ShareRoot(root="acme", server=address, namespaces=["acme"]))
        id = client.add(secret, allow_secrets=True).id
        client.add("nothing secret")
        wait_until(lambda: root_of(client).memories == 1 and len(root_of(client).refused) == 1)
        assert "memoryd_shared_refused 1" in metrics_of(client)
        assert "looks like" in root_of(client).refused[0].reason
        assert postgres.sql("SELECT count(*) FROM memoryd.mem", database) == [(1,)]
        client.add("with a summary", summary=secret, allow_secrets=True)
        client.add("with a value", metadata={"note": secret}, allow_secrets=True)
        wait_until(lambda: len(root_of(client).refused) == 3)
        assert postgres.sql("SELECT count(*) FROM memoryd.mem", database) == [(1,)]
        client.update(id, content="The deploy key is in the safe")
        wait_until(lambda: root_of(client).memories == 2 and len(root_of(client).refused) == 2)


def test_what_came_from_another_machine_says_from_which_and_counts_as_l3(two: tuple[Client, Client]) -> None:
    one, other = two
    id = one.add("deploys are on Tuesday").id
    wait_until(lambda: bool(texts(other)))
    [operation] = other.call(Operations()).operations
    assert operation.kind == "job:shared"
    role = f"{one.call(GetSharing()).machine} (postgres)"
    assert operation.process == role
    command = [sys.executable, "-m", "memoryd.client.memctl", "history", id]
    environment = {**os.environ, "MEMORYD_SOCKET": other.status().socket, "COLUMNS": "200"}
    assert role in subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    assert other.history(id).changes[0].operation == operation.id
    [tier] = [tier for tier in other.call(Tiers()).tiers if tier.name == "L3"]
    assert tier.count == 1
    wait_until(lambda: [one.state for one in other.call(GetSharing()).roots] == ["ready"])
    stats = other.call(GetStats())
    assert stats.daemon is not None
    assert [root.root for root in stats.daemon.shared] == ["acme"]
    assert {'memoryd_shared_roots{state="ready"} 1', "memoryd_shared_memories 1"} <= metrics_of(other)
    assert {f"memoryd_shared_{name} 0" for name in ("waiting", "conflicts", "refused")} <= metrics_of(other)


def test_without_its_packages_sharing_says_what_to_install(
    start_daemon: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "find_spec", lambda name: None)
    calls = (
        ShareRoot(root="acme", server="dbname=x"),
        MigrateServer(server="dbname=x"),
        GrantRoot(root="acme", role="x"),
    )
    with start_daemon().client("acme") as client:
        for call in calls:
            with pytest.raises(Invalid, match=r"with the extra shared"):
                client.call(call)
