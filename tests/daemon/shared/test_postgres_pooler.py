"""pgbouncer in front of the server, which gives each transaction any connection that is free."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from database import Team
from joined import decide, wait_until_sent

from memoryd.client import Client, TimedOut
from memoryd.client.protocol import Delete, GetShared, Search, Update
from postgres_server import as_nobody_special
from waiting import wait_until

_CONFIGURATION = """
[databases]
team = host={server.folder} port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 2
server_login_retry = 1
"""


@pytest.fixture
def pooled(team: Team, folder: Path) -> Iterator[str]:
    """The address of the team's database behind the pooler, with {} for a role."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = folder / "pooler"
    place.mkdir()
    (place / "users").write_text('"ada" ""\n"bob" ""\n')
    (place / "pgbouncer.ini").write_text(_CONFIGURATION.format(server=team.server, port=port, folder=place))
    with (place / "log").open("wb") as log:
        child = subprocess.Popen([*as_nobody_special(), program, place / "pgbouncer.ini"], stderr=log)

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    wait_until(answers)
    yield f"postgresql://{{}}@127.0.0.1:{port}/team?sslmode=disable"
    child.terminate()
    child.wait(30)


def rate(client: Client, id: str, importance: float) -> bool:
    """Change a memory; on a busy machine the others may hold its lock for longer than the place waits."""
    with suppress(TimedOut):
        return client.call(Update(id=id, importance=importance)).memory.importance == importance
    return False


def test_eight_daemons_save_change_and_find_through_two_connections_of_each_role(team: Team, pooled: str) -> None:
    roles = ["ada", "bob"] * 4
    clients = [team.join(role, server=pooled.format(role))[1] for role in roles]
    own = [[f"Choice{number} of daemon{place} holds" for number in range(15)] for place in range(len(roles))]

    def work(at: int) -> None:
        client = clients[at]
        for number, text in enumerate(own[at]):
            assert (decide(client, text, dedup=False).shared, client.call(GetShared()).waiting) == ("acme", [])
            common = decide(client, f"Common{number % 5} is held")
            wait_until(partial(rate, client, common.id, number / 20))
            found = client.call(Search(query=text, namespace="acme/api"))
            assert (found[0].content, found.degraded) == (text, [])

    with ThreadPoolExecutor(len(roles)) as pool:
        for one in [pool.submit(work, at) for at in range(len(roles))]:
            one.result()
    common = [f"Common{number} is held" for number in range(5)]
    assert team.list_there() == sorted([*common, *(text for part in own for text in part)])
    rows = team.run("SELECT content, author FROM memoryd_acme.memories WHERE content LIKE 'Choice%'")
    assert all(author == roles[int(content.split()[-2].removeprefix("daemon"))] for content, author in rows)
    assert team.list_gaps() == []
    sql = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND client_addr IS NULL AND application_name = %s"
    assert all(team.run(sql, role, "memoryd")[0][0] <= 3 for role in ("ada", "bob"))  # one is that of `team.here`


def test_a_server_that_ends_behind_the_pooler_has_saves_wait_and_gets_them_once(
    team: Team, pooled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = team.join("ada", server=pooled.format("ada"))
    first = decide(client, "Releases are on Tuesdays")
    team.server.kill()
    # The pooler may hold a request until a server is there.
    monkeypatch.setattr("memoryd.daemon.shared.root.CHANGE_S", 1.0)
    assert decide(client, "Builds are on Fridays").waiting
    team.server.start()
    wait_until_sent(client)
    assert team.list_there() == ["Builds are on Fridays", "Releases are on Tuesdays"]
    assert client.call(Delete(ids=[first.id])).count == 1
