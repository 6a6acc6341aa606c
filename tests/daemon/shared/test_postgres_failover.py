"""The server's machine ends for good, and its standby takes its place."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from database import Team
from joined import decide, wait_until_sent

from memoryd.client import Client
from memoryd.client.protocol import GetShared
from postgres_server import PostgresServer
from waiting import wait_until
from workbench import Daemon


@pytest.fixture
def servers(folder: Path) -> Iterator[tuple[PostgresServer, PostgresServer]]:
    primary = PostgresServer(folder / "primary")
    standby = PostgresServer(folder / "standby", primary, cluster_name="standby")
    yield primary, standby
    for one in (standby, primary):
        one.stop()


@pytest.mark.stress
@pytest.mark.parametrize("synchronous", [True, False])
def test_daemons_go_on_at_the_standby(
    start_daemon: Callable[..., Daemon],
    servers: tuple[PostgresServer, PostgresServer],
    patient: None,
    request: pytest.FixtureRequest,
    synchronous: bool,
) -> None:
    """With a synchronous standby nothing acknowledged is lost; else what was is sent again."""
    primary, standby = servers
    team = Team(start_daemon, primary)
    request.addfinalizer(team.close)
    if synchronous:
        primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.run("SELECT pg_reload_conf()")
    kind = "sync" if synchronous else "async"
    wait_until(lambda: primary.run("SELECT sync_state FROM pg_stat_replication") == [(kind,)])
    assert _describe(team)["standbys"] == "one that only roles of pg_read_all_stats see"
    primary.run("GRANT pg_read_all_stats TO ada")
    assert _describe(team)["standbys"] == f"standby ({kind})"
    address = (
        f"postgresql://{{}}@/team?host={primary.folder},{standby.folder}&port={primary.port},{standby.port}"
        "&target_session_attrs=read-write"
    )
    clients = [team.join(role, server=address.format(role))[1] for role in ("ada", "bob", "ada", "bob")]
    over = Event()
    late = [0] * len(clients)

    def count() -> int:
        return int(primary.run("SELECT count(*) FROM memoryd_acme.memories")[0][0])

    def work(at: int) -> list[tuple[str, bool]]:
        saved = []
        while late[at] < 20:
            text = f"Decision {len(saved)} of daemon {at}"
            saved.append((text, decide(clients[at], text, dedup=False).waiting))
            late[at] += over.is_set()
        return saved

    with ThreadPoolExecutor(len(clients)) as pool:
        working = [pool.submit(work, at) for at in range(len(clients))]
        wait_until(lambda: count() > 150)
        if not synchronous:
            standby.run("ALTER SYSTEM SET primary_conninfo = ''")
            standby.run("SELECT pg_reload_conf()")
            wait_until(lambda: primary.run("SELECT count(*) FROM pg_stat_replication") == [(0,)])
        before = count()
        wait_until(lambda: count() > before + 50)
        acknowledged = set(list_at(primary))
        primary.kill()
        lost = acknowledged - set(list_at(standby))
        over.set()
        standby.promote()
        saved = [one for each in working for one in each.result()]
    assert lost == set() if synchronous else len(lost) >= 50
    for client in clients:
        wait_until_sent(client, 120)
    wait_until(lambda: {text for text, _ in saved} <= set(list_at(standby)), 120)
    there = list_at(standby)
    print(f"{kind}: {len(saved)} acknowledged, {sum(waited for _, waited in saved)} waited, {len(lost)} were lost")
    assert len(there) == len(set(there))


def list_at(server: PostgresServer) -> list[str]:
    return [content for (content,) in server.run("SELECT content FROM memoryd_acme.memories")]


def _describe(team: Team) -> dict[str, str]:
    client: Client = team.here
    client.search("open the line")
    return client.call(GetShared()).roots[0].place
